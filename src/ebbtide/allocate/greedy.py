"""Steps taken greedily, node by node: the last partial step of every node count is put right with what still fits.

For 0, 1, 2 … more nodes the steepest step that fits is taken; one that does not fit is taken as far as it does and
waits, and the steps after it may use the room. Nothing taken is ever given back, so the allocations of growing node
counts are nested, and one walk answers for all counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from ebbtide.allocate.hull import Steps
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints

# Steps looked at beyond the first one that does not fit. What lies further down saves less than what waits, and the
# whole effect is a part of one node: 64 steps find a use for every width.
LOOK_AHEAD = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Walk:
    """A greedy walk. With ``i`` nodes beyond the first count ``saved[i]`` is saved by the takes (``workload``,
    ``replicas``) up to ``ends[i]``; ``free[r]`` nodes have r units free in the end.
    """

    saved: Floats
    ends: Ints
    workload: Ints
    replicas: Ints
    free: Ints

    def more(self, beyond: int, workloads: int) -> Ints:
        """Replicas taken per workload with so many nodes beyond the first count."""
        end = int(self.ends[beyond])
        taken = np.bincount(self.workload[:end], weights=self.replicas[:end], minlength=workloads)
        return taken.astype(np.int64)


def walk(
    steps: Steps,
    *,
    values: Floats,
    start: Ints,
    width: Ints,
    free: Ints,
    nodes: int,
    shared: bool,
    look_ahead: int = LOOK_AHEAD,
) -> Walk:
    """Takes steps into the free room, then into 1, 2, … ``nodes`` empty nodes more.

    ``values``, ``start`` and ``width`` are the workloads' curves and replica widths in units. ``free[r]`` counts the
    nodes with r units free at the beginning (``len(free) - 1`` units are a whole node). ``shared``: widths pack
    perfectly, so that only the sum of the free units matters; else a replica goes to the fullest node that has room.
    """
    left = free.copy()
    saved, ends, workload, replicas = _walk(
        steps.workload,
        steps.origin.copy(),
        steps.replicas.copy(),
        steps.saving.copy(),
        values,
        start,
        width,
        left,
        nodes,
        shared,
        look_ahead,
    )
    return Walk(saved=saved, ends=ends, workload=workload, replicas=replicas, free=left)


@njit(cache=True)
def _walk(  # type: ignore[no-untyped-def]  # noqa: C901  # one loop: calls that pass its ten arrays would cost more than they tell
    workload, origin, replicas, saving, values, start, width, free, nodes, shared, look_ahead
):
    node = len(free) - 1
    saved = np.zeros(nodes + 1)
    ends = np.zeros(nodes + 1, dtype=np.int64)
    done = np.zeros(len(workload), dtype=np.bool_)
    waits = np.full(len(width), -1)
    taken_workload = np.empty(len(workload) * 4 + 64, dtype=np.int64)
    taken_replicas = np.empty(len(workload) * 4 + 64, dtype=np.int64)
    taken = 0
    head = 0
    total = 0.0
    room = 0
    for r in range(node + 1):
        room += r * free[r]
    for beyond in range(nodes + 1):
        if beyond > 0:
            free[node] += 1
            room += node
        looked = 0
        i = head
        while i < len(workload) and room > 0 and looked < look_ahead:
            w = workload[i]
            if not done[i] and waits[w] != beyond:
                fitting = _fitting(replicas[i], width[w], room, free, shared)
                gain = saving[i]
                if fitting < replicas[i]:
                    looked += 1
                    waits[w] = beyond
                    at = start[w] + origin[i]
                    gain = values[at] - values[at + fitting]
                if fitting > 0 and gain > 0.0:
                    _take(fitting, width[w], free, shared)
                    room -= fitting * width[w]
                    total += gain
                    if taken == len(taken_workload):
                        taken_workload = np.concatenate((taken_workload, np.empty_like(taken_workload)))
                        taken_replicas = np.concatenate((taken_replicas, np.empty_like(taken_replicas)))
                    taken_workload[taken] = w
                    taken_replicas[taken] = fitting
                    taken += 1
                    origin[i] += fitting
                    replicas[i] -= fitting
                    saving[i] -= gain
                    done[i] = replicas[i] == 0
            elif not done[i]:
                looked += 1
            if i == head and done[i]:
                head += 1
            i += 1
        while head < len(workload) and done[head]:
            head += 1
        saved[beyond] = total
        ends[beyond] = taken
    return saved, ends, taken_workload[:taken], taken_replicas[:taken]


@njit(cache=True)
def _fitting(wanted, width, room, free, shared):  # type: ignore[no-untyped-def]  # numba infers types
    """Replicas that fit, at most the wanted."""
    if shared:
        return min(wanted, room // width)
    node = len(free) - 1
    if width >= node:
        return min(wanted, free[node] // (width // node))
    fits = 0
    for r in range(width, node + 1):
        fits += free[r] * (r // width)
    return min(wanted, fits)


@njit(cache=True)
def _take(count, width, free, shared):  # type: ignore[no-untyped-def]  # numba infers types
    """Puts replicas onto the fullest nodes that have room."""
    node = len(free) - 1
    if shared:
        return
    if width >= node:
        free[node] -= count * (width // node)
        return
    for _ in range(count):
        for r in range(width, node + 1):
            if free[r] > 0:
                free[r] -= 1
                free[r - width] += 1
                break
