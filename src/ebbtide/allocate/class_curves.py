"""Workloads of one width, joined: what every total count of their replicas is worth at best.

Replicas of one width are alike to the nodes, so a window's choice is a count per width, by exact (min, +) convolution
of the workloads' curves. How counts pack is ``packing_table``'s and ``packing_program``'s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from ebbtide.allocate.knapsack import Choices, least_pairs
from ebbtide.allocate.packing import NodeShape
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassCurves:
    """One window's classes, widest first.

    ``base[c]`` replicas are held; with j more the class's least pair is ``pairs[c][0][j]`` (shortage) and
    ``pairs[c][1][j]`` (money). ``spare_units`` is the room of all ``nodes`` beyond the lows.
    """

    shape: NodeShape
    nodes: int
    widths: Ints
    base: Ints
    pairs: tuple[tuple[Ints, Floats], ...]
    spare_units: int

    @property
    def base_units(self) -> int:
        """Units that the lows take."""
        return int((self.base * self.widths).sum())

    def total(self, more: Ints) -> tuple[int, float]:
        """Shortage and money of so many replicas more of every class."""
        found = [(deficit[one], money[one]) for (deficit, money), one in zip(self.pairs, more.tolist(), strict=True)]
        return int(sum(int(deficit) for deficit, _ in found)), float(sum(float(money) for _, money in found))

    def improving(self, c: int) -> Ints:
        """Counts above the low of class c whose pair is less than that of every smaller count."""
        return np.asarray(_improving(*self.pairs[c]), dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassCounts:
    """A window's answer for every count of nodes 0 … M.

    ``deficit`` is the least shortage, reached from ``needed_nodes`` on; ``money[m]`` the least at it (inf below) with
    ``more[m]`` replicas of every class above its low.
    """

    needed_nodes: int
    deficit: int
    money: Floats
    more: dict[int, Ints]


def class_curves(shape: NodeShape, choices: Choices, low: Ints, nodes: int) -> ClassCurves | None:
    """The classes of one window for up to ``nodes`` nodes; None where the lows are more than these hold."""
    members = class_members(choices.width)
    widths = np.array([choices.width[one[0]] for one in members], dtype=np.int64)
    base = np.array([low[one].sum() for one in members], dtype=np.int64)
    spare = nodes * shape.node_units - int((base * widths).sum())
    if spare < 0:
        return None
    most = [
        min(int((choices.length[one] - 1).sum()), spare // width)
        for one, width in zip(members, widths.tolist(), strict=True)
    ]
    pairs = tuple(least_pairs(by_count(choices.pick(one)), top) for one, top in zip(members, most, strict=True))
    return ClassCurves(shape=shape, nodes=nodes, widths=widths, base=base, pairs=pairs, spare_units=spare)


def class_members(width: Ints) -> list[Ints]:
    """Indices of the workloads of every width, widest first."""
    return [np.flatnonzero(width == one) for one in sorted(set(width.tolist()), reverse=True)]


def by_count(choices: Choices) -> Choices:
    """The same curves, measured in replicas."""
    return Choices(
        width=np.ones(len(choices.width), dtype=np.int64),
        start=choices.start,
        length=choices.length,
        deficit=choices.deficit,
        money=choices.money,
    )


@njit(cache=True)
def _improving(deficit, money):  # type: ignore[no-untyped-def]  # numba infers types
    kept = [0]
    for count in range(1, len(money)):
        best = kept[-1]
        if deficit[count] < deficit[best] or (deficit[count] == deficit[best] and money[count] < money[best]):
            kept.append(count)
    return np.array(kept)
