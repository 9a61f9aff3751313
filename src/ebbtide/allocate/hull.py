"""Concave gains: curves over replicas replaced by their lower convex hulls, cut into steps of falling gain.

On its hull a curve's steps can be taken greedily by gain per GPU, workloads merged by slope; the sum of hulls is a
lower bound of the sum of curves at every count of GPUs (H. Everett, Operations Research 11, 1963: generalised Lagrange
multipliers; B. Fox, Management Science 13, 1966: greedy by marginal gains).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Steps:
    """Hull steps of many workloads, steepest first.

    Step i takes workload ``workload[i]`` from ``origin[i]`` replicas above its low to ``origin[i] + replicas[i]``, and
    saves ``saving[i]`` (> 0). A workload's own steps follow each other.
    """

    workload: Ints
    origin: Ints
    replicas: Ints
    saving: Floats

    def pick(self, steps: Ints) -> Steps:
        """Some of the steps, in the given order."""
        return Steps(
            workload=self.workload[steps],
            origin=self.origin[steps],
            replicas=self.replicas[steps],
            saving=self.saving[steps],
        )

    def width(self, per_replica: Ints | Floats) -> Floats:
        """Width of every step, for a width per workload's replica."""
        widths: Floats = self.replicas.astype(np.float64) * per_replica[self.workload].astype(np.float64)
        return widths


def hull_steps(values: Floats, start: Ints, length: Ints, width: Ints | Floats) -> Steps:
    """The hull steps of every workload's curve ``values[start[w] : start[w] + length[w]]``, steepest per width first.

    >>> curves = np.array([9.0, 8.0, 2.0, 1.0, 5.0, 1.0])
    >>> steps = hull_steps(curves, np.array([0, 4]), np.array([4, 2]), np.array([1, 2]))
    >>> steps.workload.tolist(), steps.origin.tolist(), steps.replicas.tolist(), steps.saving.tolist()
    ([0, 1, 0], [0, 0, 2], [2, 1, 1], [7.0, 4.0, 1.0])
    """
    workload, origin, replicas, saving = _hulls(values, start, length)
    with np.errstate(divide="ignore"):  # a price of 0 makes a step free: it comes first
        slope = saving / (replicas * width[workload])
    order = np.argsort(-slope, kind="stable")
    return Steps(workload=workload[order], origin=origin[order], replicas=replicas[order], saving=saving[order])


def least_by_width(steps: Steps, per_replica: Ints | Floats, room: Floats) -> Floats:
    """Greatest saving on the hulls within each ``room`` ≥ 0 (in the unit of ``per_replica``): float64[len(room)].

    The steps must have been sorted by that width. Together with the curves' first values a lower bound.
    """
    widths = np.concatenate([[0.0], np.cumsum(steps.width(per_replica)), [np.inf]])
    savings = np.concatenate([[0.0], np.cumsum(steps.saving)])
    whole = np.searchsorted(widths, room, side="right") - 1
    parts = np.append(np.diff(savings), 0.0)[whole] * (room - widths[whole]) / (widths[whole + 1] - widths[whole])
    total: Floats = savings[whole] + parts
    return total


@njit(cache=True)
def _hulls(values, start, length):  # type: ignore[no-untyped-def]  # numba infers types
    most = 0
    longest = 1
    for w in range(len(start)):
        most += max(length[w] - 1, 0)
        longest = max(longest, length[w])
    workload = np.empty(most, dtype=np.int64)
    origin = np.empty(most, dtype=np.int64)
    replicas = np.empty(most, dtype=np.int64)
    saving = np.empty(most)
    corner = np.empty(longest, dtype=np.int64)
    count = 0
    for w in range(len(start)):
        first = start[w]
        top = 0
        corner[0] = 0
        for n in range(1, length[w]):
            if values[first + n] >= values[first + corner[top]]:
                continue
            # A corner stays only if the curve falls more steeply before it than after it.
            while top > 0:
                before = (values[first + corner[top - 1]] - values[first + corner[top]]) / (
                    corner[top] - corner[top - 1]
                )
                after = (values[first + corner[top]] - values[first + n]) / (n - corner[top])
                if before > after:
                    break
                top -= 1
            top += 1
            corner[top] = n
        for i in range(top):
            workload[count] = w
            origin[count] = corner[i]
            replicas[count] = corner[i + 1] - corner[i]
            saving[count] = values[first + corner[i]] - values[first + corner[i + 1]]
            count += 1
    return workload[:count], origin[:count], replicas[:count], saving[:count]
