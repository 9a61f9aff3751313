"""Exact packing of replicas of any width, with what they leave and cost, as an integer program for small fleets.

Replicas of one width are alike, so a width is one class with a curve over its total count. Nodes are paths through the
arc-flow graph of a node (J. M. Valério de Carvalho, Exact solution of bin-packing problems using column generation
and branch-and-bound, Annals of Operations Research 86, 1999): as strong as Gilmore and Gomory's pattern program, and
polynomial in the node's size. Solved by HiGHS (through scipy: highspy writes a banner to stdout). What comes back is a
count per class, and its pair is added up again from the curves, so the solver's tolerances decide ties only.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise

import numpy as np

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints

# Nodes of the branch-and-bound tree of one program. Most are solved in the root or near it; one that takes more than
# this is given up, and the caller's heuristic, which has a proven bound too, answers for it.
TREE_NODES = 2_000

# ``scipy.optimize.milp``'s words for it.
_OPTIMAL, _INFEASIBLE = 0, 2


class UnsolvedError(Exception):
    """HiGHS ended without a proven answer. Always caught: there is a heuristic beside every program."""


class Least(Enum):
    """What the program makes least."""

    SHORTAGE = auto()
    UNSERVED = auto()
    NODES = auto()
    MONEY = auto()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WidthClass:
    """All workloads of one width: ``counts`` of replicas that are worth looking at.

    Their least shortage (``deficit``), the least unserved load at it, and the least money at both.
    """

    width: int
    counts: Ints
    deficit: Floats
    unserved: Floats
    money: Floats


def fixed_class(width: int, count: int) -> WidthClass:
    """A class with a single count to pack."""
    return WidthClass(
        width=width, counts=np.array([count]), deficit=np.zeros(1), unserved=np.zeros(1), money=np.zeros(1)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Picks:
    """A solution: for each class the index into its ``counts``; nodes and free units as in ``Packing``."""

    index: tuple[int, ...]
    nodes: int
    free: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most that may be short, and may go unserved; same units as the classes'."""

    deficit: float
    unserved: float = np.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingProgram:
    """The program of one window: ``classes`` on nodes of ``node`` units.

    A class as wide as a node or wider needs ``width / node`` nodes a replica.
    """

    node: int
    classes: tuple[WidthClass, ...]

    def solve(self, least: Least, *, nodes_at_most: int, limits: Limits | None = None) -> Picks | None:
        """The least by ``least`` within ``limits``; None where nothing fits. ``UnsolvedError`` where HiGHS gives up."""
        columns = self._columns()
        found = self._solved(columns, least, nodes_at_most, limits)
        if found is None:
            return None
        firsts = np.concatenate([[0], np.cumsum([len(one.counts) for one in self.classes])]).tolist()
        picks = tuple(int(np.argmax(found[first:last])) for first, last in pairwise(firsts))
        whole = sum(self._whole_nodes(c, k) for c, k in enumerate(picks))
        free = np.zeros(self.node + 1, dtype=np.int64)
        for (point, _, owner), flow in zip(columns.arcs, found[len(columns.picks) : -1].tolist(), strict=True):
            free[self.node - point] += round(flow) if owner < 0 else 0
        nodes = round(float(found[-1]))
        free[0] = whole + nodes - free.sum()
        return Picks(index=picks, nodes=nodes + whole, free=free)

    def _columns(self) -> _Columns:
        picks = [(c, k) for c, one in enumerate(self.classes) for k in range(len(one.counts))]
        narrow = [(c, one.width) for c, one in enumerate(self.classes) if one.width < self.node]
        arcs = node_arcs(self.node, narrow)
        return _Columns(picks=picks, arcs=arcs)

    def _solved(self, columns: _Columns, least: Least, nodes_at_most: int, limits: Limits | None) -> Floats | None:
        rows = _Rows(len(columns.picks) + len(columns.arcs) + 1)
        nodes_column = rows.columns - 1
        first_arc = len(columns.picks)
        for c, one in enumerate(self.classes):
            mine = [j for j, (owner, _) in enumerate(columns.picks) if owner == c]
            rows.add(mine, [1.0] * len(mine), 1.0, 1.0)
            if one.width < self.node:
                supply = [first_arc + a for a, arc in enumerate(columns.arcs) if arc[2] == c]
                # Room for more than the count is harmless, and quicker to solve; a count to pack is packed as it is.
                most = 0.0 if len(mine) == 1 else np.inf
                rows.add(supply + mine, [1.0] * len(supply) + [-float(count) for count in one.counts], 0.0, most)
        self._flow_rows(rows, columns, first_arc, nodes_column)
        wide = [(j, self._whole_nodes(c, k)) for j, (c, k) in enumerate(columns.picks)]
        wide = [(j, whole) for j, whole in wide if whole]
        rows.add(
            [nodes_column, *(j for j, _ in wide)],
            [1.0, *(float(whole) for _, whole in wide)],
            0.0,
            float(nodes_at_most),
        )
        if limits is not None:
            every = list(range(len(columns.picks)))
            rows.add(every, [float(self.classes[c].deficit[k]) for c, k in columns.picks], -np.inf, limits.deficit)
            if limits.unserved < np.inf:
                rows.add(
                    every, [float(self.classes[c].unserved[k]) for c, k in columns.picks], -np.inf, limits.unserved
                )
        # A presolved solution that misses a row of large numbers by a rounding makes HiGHS write to stdout.
        presolve = limits is None
        return rows.solved(self._prices(columns, least, wide), binary=first_arc, presolve=presolve)

    def _prices(self, columns: _Columns, least: Least, wide: list[tuple[int, int]]) -> Floats:
        prices = np.zeros(len(columns.picks) + len(columns.arcs) + 1)
        if least is Least.NODES:
            prices[-1] = 1.0
            for j, whole in wide:
                prices[j] = float(whole)
        else:
            prices[: len(columns.picks)] = [_price(self.classes[c], least)[k] for c, k in columns.picks]
        return prices

    def _whole_nodes(self, c: int, k: int) -> int:
        one = self.classes[c]
        return 0 if one.width < self.node else one.width // self.node * int(one.counts[k])

    def _flow_rows(self, rows: _Rows, columns: _Columns, first_arc: int, nodes_column: int) -> None:
        for point in range(self.node + 1):
            into = [first_arc + a for a, arc in enumerate(columns.arcs) if arc[1] == point]
            out = [first_arc + a for a, arc in enumerate(columns.arcs) if arc[0] == point]
            members, signs = into + out, [1.0] * len(into) + [-1.0] * len(out)
            if point == 0:
                members, signs = [*members, nodes_column], [*signs, 1.0]
            elif point == self.node:
                members, signs = [*members, nodes_column], [*signs, -1.0]
            rows.add(members, signs, 0.0, 0.0)


def _price(one: WidthClass, least: Least) -> Floats:
    return {Least.SHORTAGE: one.deficit, Least.UNSERVED: one.unserved, Least.MONEY: one.money}[least]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """What the columns stand for: a pick (class, index of its count); an arc (from, to, class; −1: empty GPUs)."""

    picks: list[tuple[int, int]]
    arcs: list[tuple[int, int, int]]


def node_arcs(node: int, narrow: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Arcs (from, to, class; −1: empty) of the paths that fill a node widest first; ``narrow`` are (class, width)."""
    arcs: set[tuple[int, int, int]] = set()
    reached = {0}
    for owner, width in sorted(narrow, key=lambda item: -item[1]):
        for point in range(node - width + 1):
            if point in reached:
                arcs.add((point, point + width, owner))
                reached.add(point + width)
    arcs.update((point, node, -1) for point in reached if point < node)
    return sorted(arcs)


class _Rows:
    """Rows of the program, gathered one by one."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self._entries: list[tuple[int, int, float]] = []
        self._lower: list[float] = []
        self._upper: list[float] = []

    def add(self, members: list[int], weights: list[float], lower: float, upper: float) -> None:
        row = len(self._lower)
        self._entries.extend((row, column, weight) for column, weight in zip(members, weights, strict=True))
        self._lower.append(lower)
        self._upper.append(upper)

    def solved(self, prices: Floats, *, binary: int, presolve: bool) -> Floats | None:
        """The columns' values that make the price least, all whole, the first ``binary`` of them 0 or 1."""
        # Most of a second to import, and fleets whose widths divide the node never need it.
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import coo_array

        row, column, weight = (np.array(part) for part in zip(*self._entries, strict=True))
        matrix = coo_array((weight.astype(float), (row, column)), shape=(len(self._lower), self.columns))
        found = milp(
            prices,
            integrality=np.ones(self.columns, dtype=np.int64),
            bounds=Bounds(0.0, np.where(np.arange(self.columns) < binary, 1.0, np.inf)),
            constraints=LinearConstraint(matrix.tocsc(), np.array(self._lower), np.array(self._upper)),
            options={"mip_rel_gap": 0.0, "presolve": presolve, "node_limit": TREE_NODES},
        )
        if found.status not in (_OPTIMAL, _INFEASIBLE):
            raise UnsolvedError(found.message)
        values: Floats | None = found.x
        return values
