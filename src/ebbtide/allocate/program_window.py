"""One window's best counts per width for every count of nodes, by volume and, where that does not pack, by programs.

The widths' curves are joined into one over GPUs. Where widths pack perfectly that is the answer for every count of
nodes. Other widths make it a lower bound, which holds wherever its choice happens to pack; elsewhere the packing
program decides, one count of nodes at a time: dear, and only asked where ``packing_table`` would be too large.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ebbtide.allocate.class_curves import ClassCounts, ClassCurves
from ebbtide.allocate.knapsack import Choices, best_within, staged_pairs
from ebbtide.allocate.packing import first_fit
from ebbtide.allocate.packing_program import Least, Limits, PackingProgram, Picks, UnsolvedError, WidthClass
from ebbtide.allocate.unserved import SHORTAGE_STEP, UNSERVED_UNITS
from ebbtide.fleet.planned import Ints

# HiGHS works at absolute tolerances of 1e-6 and 1e-7: the largest number of a kind is scaled to this, so that they mean
# a billionth of it. Shortages closer than that may count as equal where the packing program decides.
PROGRAM_SCALE = 1e3
# A unit of unserved load is then 15,000 times the solver's tolerance.
UNSERVED_SCALE = PROGRAM_SCALE / UNSERVED_UNITS


def by_program(curves: ClassCurves) -> ClassCounts | None:
    """The least for every count of nodes; None where not even the lows pack. ``UnsolvedError``: HiGHS gave up."""
    search = _Search(curves)
    deficit = search.least_deficit()
    if deficit is None:
        return None
    needed = search.least_nodes(deficit)
    money = np.full(curves.nodes + 1, np.inf)
    more: dict[int, Ints] = {}
    for nodes in range(needed, curves.nodes + 1):
        if nodes > needed and search.bound(nodes) >= (deficit, money[nodes - 1]):
            money[nodes], more[nodes] = money[nodes - 1], more[nodes - 1]
        else:
            money[nodes], more[nodes] = search.least_money(nodes, deficit)
    return ClassCounts(needed_nodes=needed, deficit=deficit, money=money, more=more)


class _Search:
    """The join of one window's classes over GPUs, and the packing program where it is asked."""

    def __init__(self, curves: ClassCurves) -> None:
        self.curves = curves
        self.joined = staged_pairs(_joint_choices(curves), curves.spare_units)
        self.within = best_within(*self.joined.last)

    def bound(self, nodes: int) -> tuple[int, float]:
        """Least shortage and money by volume: no packing has less."""
        used = self._used(nodes)
        return int(self.joined.last[0][used]), float(self.joined.last[1][used])

    def least_deficit(self) -> int | None:
        """The least shortage with all nodes; None where not even the lows pack."""
        nodes = self.curves.nodes
        if self._packs(self._more(nodes), nodes):
            return self.bound(nodes)[0]
        picks = self._program.solve(Least.SHORTAGE, nodes_at_most=nodes)
        if picks is None:
            if self._packs(np.zeros_like(self.curves.base), nodes):
                raise UnsolvedError("no plan was found, where the lows alone are one")
            return None
        least = self.curves.total(self._counts(picks))[0]
        if least % SHORTAGE_STEP == 0:
            return least
        held = Limits(deficit=self._limits(least).deficit)
        served = self._solved(Least.UNSERVED, nodes, held)
        return min(least, self.curves.total(self._counts(served))[0])

    def least_nodes(self, deficit: int) -> int:
        """Fewest nodes with the least shortage."""
        curves = self.curves
        reached = range(curves.shape.nodes_for(curves.base_units), curves.nodes + 1)
        nodes = next(nodes for nodes in reached if self.bound(nodes)[0] <= deficit)
        if self.bound(nodes)[0] == deficit and self._packs(self._more(nodes), nodes):
            return nodes
        return self._solved(Least.NODES, curves.nodes, self._limits(deficit)).nodes

    def least_money(self, nodes: int, deficit: int) -> tuple[float, Ints]:
        """Least money with so many nodes at the least shortage, and the classes' counts above their lows."""
        more = self._more(nodes)
        if self.bound(nodes)[0] == deficit and self._packs(more, nodes):
            return self.bound(nodes)[1], more
        more = self._counts(self._solved(Least.MONEY, nodes, self._limits(deficit)))
        return self.curves.total(more)[1], more

    def _solved(self, least: Least, nodes: int, limits: Limits) -> Picks:
        """A program that has a solution: so many nodes are known to attain the limits."""
        picks = self._program.solve(least, nodes_at_most=nodes, limits=limits)
        if picks is None:
            raise UnsolvedError("no plan was found, where there is one")
        return picks

    def _used(self, nodes: int) -> int:
        return int(self.within[nodes * self.curves.shape.node_units - self.curves.base_units])

    def _more(self, nodes: int) -> Ints:
        return self.joined.back(self._used(nodes))

    def _packs(self, more: Ints, nodes: int) -> bool:
        shape, widths = self.curves.shape, self.curves.widths
        if shape.perfect:
            return True
        return first_fit(shape.node_units, widths.tolist(), (self.curves.base + more).tolist()).nodes <= nodes

    @cached_property
    def _program(self) -> PackingProgram:
        curves = self.curves
        top = max(float(money[0]) for _, money in curves.pairs) or 1.0
        classes = []
        for c, (width, base, (deficit, money)) in enumerate(
            zip(curves.widths.tolist(), curves.base.tolist(), curves.pairs, strict=True)
        ):
            worth = curves.improving(c)
            classes.append(
                WidthClass(
                    width=width,
                    counts=base + worth,
                    deficit=(deficit[worth] // SHORTAGE_STEP).astype(np.float64) * self._deficit_scale,
                    unserved=(deficit[worth] % SHORTAGE_STEP).astype(np.float64) * UNSERVED_SCALE,
                    money=money[worth] * (PROGRAM_SCALE / top),
                )
            )
        return PackingProgram(node=curves.shape.node_units, classes=tuple(classes))

    @cached_property
    def _deficit_scale(self) -> float:
        return PROGRAM_SCALE / max(1.0, *(float(deficit[0] // SHORTAGE_STEP) for deficit, _ in self.curves.pairs))

    def _limits(self, deficit: int) -> Limits:
        # Half a unit of room: the next worse is a whole unit away.
        shortage, unserved = divmod(deficit, SHORTAGE_STEP)
        return Limits(deficit=(shortage + 0.5) * self._deficit_scale, unserved=(unserved + 0.5) * UNSERVED_SCALE)

    def _counts(self, picks: Picks) -> Ints:
        chosen = [one.counts[pick] for one, pick in zip(self._program.classes, picks.index, strict=True)]
        return np.array(chosen, dtype=np.int64) - self.curves.base


def _joint_choices(curves: ClassCurves) -> Choices:
    lengths = np.array([len(money) for _, money in curves.pairs])
    return Choices(
        width=curves.widths,
        start=np.cumsum(lengths) - lengths,
        length=lengths,
        deficit=np.concatenate([deficit for deficit, _ in curves.pairs]),
        money=np.concatenate([money for _, money in curves.pairs]),
    )
