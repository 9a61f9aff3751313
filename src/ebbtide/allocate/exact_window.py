"""One window of a small fleet, exactly: any curves, any widths.

Workloads of one width are joined into a class curve over their total count, class curves into a curve over GPUs, both
by exact (min, +) convolution. Where the widths pack perfectly that is the answer for every count of nodes. Other widths
make it a lower bound, which holds wherever its choice happens to pack; elsewhere the packing program decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ebbtide.allocate.knapsack import Choices, Stages, best_within, least_pairs, staged_pairs
from ebbtide.allocate.packing import NodeShape, first_fit
from ebbtide.allocate.packing_program import Least, Limits, PackingProgram, Picks, WidthClass
from ebbtide.allocate.unserved import SHORTAGE_STEP, UNSERVED_UNITS
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints

# HiGHS works at absolute tolerances of 1e-6 and 1e-7: the largest number of a kind is scaled to this, so that they mean
# a billionth of it. Shortages closer than that may count as equal where the packing program decides.
PROGRAM_SCALE = 1e3
# A unit of unserved load is then 15,000 times the solver's tolerance.
UNSERVED_SCALE = PROGRAM_SCALE / UNSERVED_UNITS


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactWindow:
    """The exact answer for every count of nodes 0 … M.

    ``choices`` above ``low`` replicas. ``deficit`` is the least shortage with the least unserved load at it
    (``unserved.joint``), and its own ``deficit_bound``; ``money[m]`` the least waiting cost with m nodes at both, inf
    below ``needed_nodes``; ``class_more[m]`` how many replicas above its low every width gets.
    """

    shape: NodeShape
    choices: Choices
    low: Ints
    needed_nodes: int
    deficit: int
    money: Floats
    deficit_bound: float
    class_more: dict[int, Ints]

    def replicas(self, nodes: int) -> Ints:
        """Replicas per workload with so many nodes."""
        more = np.zeros(len(self.low), dtype=np.int64)
        for members, stages, count in zip(self._classes, self._stages, self.class_more[nodes].tolist(), strict=True):
            more[members] = stages.back(count)
        return self.low + more

    @property
    def bound(self) -> Floats:
        """The proven lower bound of ``money``: itself."""
        return self.money

    @cached_property
    def _classes(self) -> list[Ints]:
        return class_members(self.choices.width)

    @cached_property
    def _stages(self) -> list[Stages]:
        most = max(int(more.max(initial=0)) for more in self.class_more.values())
        return [staged_pairs(_by_count(self.choices.pick(members)), most) for members in self._classes]


def solve_exactly(shape: NodeShape, choices: Choices, low: Ints, nodes: int) -> ExactWindow | None:
    """The exact window for up to ``nodes`` nodes; None where not even ``low`` packs into them."""
    search = _Search(shape, choices, low, nodes)
    needed, deficit = search.least_nodes()
    if needed is None:
        return None
    money = np.full(nodes + 1, np.inf)
    class_more: dict[int, Ints] = {}
    for count in range(needed, nodes + 1):
        money[count], class_more[count] = search.least_money(count, deficit)
    return ExactWindow(
        shape=shape,
        choices=choices,
        low=low,
        needed_nodes=needed,
        deficit=deficit,
        deficit_bound=float(deficit),
        money=money,
        class_more=class_more,
    )


def class_members(width: Ints) -> list[Ints]:
    """Indices of the workloads of every width, widest first."""
    return [np.flatnonzero(width == one) for one in sorted(set(width.tolist()), reverse=True)]


def _by_count(choices: Choices) -> Choices:
    return Choices(
        width=np.ones(len(choices.width), dtype=np.int64),
        start=choices.start,
        length=choices.length,
        deficit=choices.deficit,
        money=choices.money,
    )


class _Search:
    """The tables of one window: class curves, their join over GPUs, and the packing program where it is asked."""

    def __init__(self, shape: NodeShape, choices: Choices, low: Ints, nodes: int) -> None:
        self.shape = shape
        self.nodes = nodes
        members = class_members(choices.width)
        self.widths = np.array([choices.width[one[0]] for one in members], dtype=np.int64)
        self.base = np.array([low[one].sum() for one in members], dtype=np.int64)
        self.base_units = int((self.base * self.widths).sum())
        self.spare = nodes * shape.node_units - self.base_units
        self.fits = self.spare >= 0
        if self.fits:
            self.curves = [
                least_pairs(
                    _by_count(choices.pick(one)), min(int((choices.length[one] - 1).sum()), self.spare // width)
                )
                for one, width in zip(members, self.widths.tolist(), strict=True)
            ]
            self.joined = staged_pairs(self._class_choices(), self.spare)
            self.within = best_within(*self.joined.last)

    def _class_choices(self) -> Choices:
        lengths = [len(money) for _, money in self.curves]
        return Choices(
            width=self.widths,
            start=np.cumsum([0, *lengths[:-1]]),
            length=np.array(lengths),
            deficit=np.concatenate([deficit for deficit, _ in self.curves]),
            money=np.concatenate([money for _, money in self.curves]),
        )

    def least_nodes(self) -> tuple[int | None, int]:
        """Fewest nodes with the least shortage, and that shortage; None where not even the lows pack."""
        if not self.fits:
            return None, 0
        deficit = self._least_deficit()
        if deficit is None:
            return None, 0
        for nodes in range(self.shape.nodes_for(self.base_units), self.nodes + 1):
            used = self._used(nodes)
            if int(self.joined.last[0][used]) <= deficit:
                if self._packs(self._more(used), nodes) and int(self.joined.last[0][used]) == deficit:
                    return nodes, deficit
                picks = self._program.solve(Least.NODES, nodes_at_most=self.nodes, limits=self._limits(deficit))
                assert picks is not None, "the least shortage was attained with all nodes"
                return picks.nodes, deficit
        raise AssertionError("the least shortage is attained with all nodes")

    def _least_deficit(self) -> int | None:
        used = self._used(self.nodes)
        if self._packs(self._more(used), self.nodes):
            return int(self.joined.last[0][used])
        picks = self._program.solve(Least.SHORTAGE, nodes_at_most=self.nodes)
        if picks is None:
            return None
        least = self._pair(self._counts(picks))[0]
        if least % SHORTAGE_STEP == 0:
            return least
        served = self._program.solve(
            Least.UNSERVED, nodes_at_most=self.nodes, limits=Limits(deficit=self._limits(least).deficit)
        )
        return least if served is None else min(least, self._pair(self._counts(served))[0])

    def least_money(self, nodes: int, deficit: int) -> tuple[float, Ints]:
        """Least money with so many nodes at the least shortage, and the classes' counts above their lows."""
        used = self._used(nodes)
        more = self._more(used)
        if int(self.joined.last[0][used]) == deficit and self._packs(more, nodes):
            return float(self.joined.last[1][used]), more
        picks = self._program.solve(Least.MONEY, nodes_at_most=nodes, limits=self._limits(deficit))
        assert picks is not None, "needed_nodes attain the least shortage, more nodes do too"
        more = self._counts(picks)
        return self._pair(more)[1], more

    def _used(self, nodes: int) -> int:
        return int(self.within[nodes * self.shape.node_units - self.base_units])

    def _more(self, used: int) -> Ints:
        return self.joined.back(used)

    def _packs(self, more: Ints, nodes: int) -> bool:
        if self.shape.perfect:
            return True
        counts = (self.base + more).tolist()
        return first_fit(self.shape.node_units, self.widths.tolist(), counts).nodes <= nodes

    def _pair(self, more: Ints) -> tuple[int, float]:
        pairs = [(deficit[one], money[one]) for (deficit, money), one in zip(self.curves, more.tolist(), strict=True)]
        return int(sum(int(deficit) for deficit, _ in pairs)), float(sum(float(money) for _, money in pairs))

    @cached_property
    def _program(self) -> PackingProgram:
        top = max(float(money[0]) for _, money in self.curves) or 1.0
        classes = []
        for width, base, (deficit, money) in zip(self.widths.tolist(), self.base.tolist(), self.curves, strict=True):
            worth = _improving(deficit, money)
            classes.append(
                WidthClass(
                    width=width,
                    counts=base + worth,
                    deficit=(deficit[worth] // SHORTAGE_STEP).astype(np.float64) * self._deficit_scale,
                    unserved=(deficit[worth] % SHORTAGE_STEP).astype(np.float64) * UNSERVED_SCALE,
                    money=money[worth] * (PROGRAM_SCALE / top),
                )
            )
        return PackingProgram(node=self.shape.node_units, classes=tuple(classes))

    @cached_property
    def _deficit_scale(self) -> float:
        return PROGRAM_SCALE / max(1.0, *(float(deficit[0] // SHORTAGE_STEP) for deficit, _ in self.curves))

    def _limits(self, deficit: int) -> Limits:
        # Half a unit of room: the next worse is a whole unit away.
        shortage, unserved = divmod(deficit, SHORTAGE_STEP)
        return Limits(deficit=(shortage + 0.5) * self._deficit_scale, unserved=(unserved + 0.5) * UNSERVED_SCALE)

    def _counts(self, picks: Picks) -> Ints:
        chosen = [one.counts[pick] for one, pick in zip(self._program.classes, picks.index, strict=True)]
        return np.array(chosen, dtype=np.int64) - self.base


def _improving(deficit: Ints, money: Floats) -> Ints:
    """Counts whose pair is less than that of every smaller count."""
    kept = [0]
    for count in range(1, len(money)):
        if (deficit[count], money[count]) < (deficit[kept[-1]], money[kept[-1]]):
            kept.append(count)
    return np.array(kept, dtype=np.int64)


def exact_work(choices: Choices, spare: int) -> float:
    """Additions that ``solve_exactly`` makes where widths pack perfectly, for ``spare`` units above the lows."""
    work, counts = 0.0, []
    for members in class_members(choices.width):
        most = min(float((choices.length[members] - 1).sum()), spare / float(choices.width[members[0]]))
        work += float(choices.length[members].sum()) * most
        counts.append(most)
    return work + sum(counts) * spare
