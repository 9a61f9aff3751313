"""A day's candidate windows as arcs of its grid, and which of them leave the least missed (§5.7), before any money.

What belongs here: arcs and what they miss. What doesn't: what they cost, and moves (``boundaries``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints

_EQUAL = 1e-9  # shortages closer than this share are one; so are unserved loads


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Missed:
    """What is missed in every arc, float64[arcs], of one kind: a day misses as much as its windows together.

    ``rounding``: how far two cuts of a day may differ by the units that it is counted in alone.
    """

    by_arc: Floats
    rounding: float = 0.0

    def equal_up_to(self, missed: float) -> float:
        """The largest sum that counts as the same as this one: what comes after it then decides between them."""
        return missed + max(self.rounding, _EQUAL * max(1.0, abs(missed)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DayArcs:
    """One pattern's candidate windows.

    ``rows[start, length]`` is the arc's row in ``costs_usd`` (USD a day, [arcs, states]; inf: not allowed) and in
    ``missed``, −1 where it is no candidate; starts and lengths in base intervals. ``missed`` is what goes before money:
    shortage, then unserved load. At most ``at_most`` windows make a day; a pattern with given windows has only those as
    arcs. ``days``: how often it comes in a cycle.
    """

    rows: Ints
    costs_usd: Floats
    missed: tuple[Missed, ...]
    at_most: int
    days: int

    @property
    def base(self) -> int:
        """Base intervals of the day."""
        return len(self.rows)


def least_missed(rows: Ints, arcs: DayArcs) -> tuple[tuple[float, ...], NDArray[np.bool_]]:
    """The least of each kind that a day misses, one kind after another; ``allowed[used, at, length]``: arcs on a way
    that reaches them all."""
    allowed = np.repeat((rows >= 0)[None, :, :], arcs.at_most, axis=0)
    least = []
    for missed in arcs.missed:
        cost = np.where(allowed, missed.by_arc[rows], np.inf)
        to_end = _least_to_end(cost)
        least.append(float(to_end[0, 0]))
        allowed = _within(cost, to_end, missed.equal_up_to(least[-1]))
    return tuple(least), allowed


@njit(cache=True)
def _least_to_end(cost):  # type: ignore[no-untyped-def]  # numba infers types
    """[used, at]: the least from a boundary to the day's end, that many windows being used."""
    at_most, base = cost.shape[:2]
    to_end = np.full((at_most + 1, base + 1), np.inf)
    to_end[:, base] = 0.0
    for used in range(at_most - 1, -1, -1):
        for at in range(base):
            for length in range(1, base - at + 1):
                to_end[used, at] = min(to_end[used, at], cost[used, at, length] + to_end[used + 1, at + length])
    return to_end


@njit(cache=True)
def _within(cost, to_end, limit):  # type: ignore[no-untyped-def]  # numba infers types
    """[used, at, length]: the arcs on a way of at most ``limit``."""
    at_most, base = cost.shape[:2]
    so_far = np.full((at_most + 1, base + 1), np.inf)
    so_far[0, 0] = 0.0
    allowed = np.zeros(cost.shape, dtype=np.bool_)
    for used in range(at_most):
        for at in range(base):
            if so_far[used, at] == np.inf:
                continue
            for length in range(1, base - at + 1):
                through = so_far[used, at] + cost[used, at, length]
                if through + to_end[used + 1, at + length] <= limit:
                    allowed[used, at, length] = True
                    so_far[used + 1, at + length] = min(so_far[used + 1, at + length], through)
    return allowed
