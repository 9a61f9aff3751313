"""Exact minimisation of tables joined by L1 edges, by variable elimination (Bertelè and Brioschi, 1972).

The variables are node counts of windows; an edge costs ``weight · |x − y|``: nodes that move between two windows.
Edges stay symbolic until a variable must go. Eliminating x adds its tables, then the edges to variables that the sum
already speaks of. One edge that leads elsewhere, to y, costs no new dimension: the L1 distance transform
(Felzenszwalb and Huttenlocher, 2012, §3) turns the axis of x into one of y in two passes. So a chain needs vectors, a
ring (a day, closed at its end) squares, and a week of two day patterns squares too.

What belongs here: the algebra. What doesn't: what a window costs, and how domains get small (``cycle``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numba import njit

from ebbtide.fleet.demand import Floats

Scope = tuple[int, ...]
Edge = tuple[int, int, float]

# 200 MB of kept tables at most; beyond that the last variable is fixed first and the rest solved again without squares.
KEPT_CELLS = 25_000_000
# One table of 64 MB: a ring of 2,800 nodes. Larger problems are the caller's to cut.
TABLE_CELLS = 8_000_000
_BLOCK = 256  # columns worked on together: 2,500 rows of 256 doubles are 5 MB, near a core's cache


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class L1Problem:
    """Variables ``i`` on the integers ``lows[i] … lows[i] + sizes[i] − 1``, tables over some of them, L1 edges.

    A table is (scope, array) with one axis per variable of its scope; inf forbids. An edge is (i, j, weight ≥ 0).
    """

    lows: tuple[int, ...]
    sizes: tuple[int, ...]
    tables: tuple[tuple[Scope, Floats], ...]
    edges: tuple[Edge, ...]

    def fixed(self, variable: int, value: int) -> L1Problem:
        """The same problem with one variable held at a value of its domain: it joins nothing any more.

        Its edges become tables of the variables at their other ends, so that it ties no two of them together.
        """
        at = value - self.lows[variable]
        tables = [
            (
                tuple(other for other in scope if other != variable) or (variable,),
                np.take(table, [at] if scope == (variable,) else at, axis=scope.index(variable)),
            )
            if variable in scope
            else (scope, table)
            for scope, table in self.tables
        ]
        for one, other, weight in self.edges:
            if variable in (one, other) and one != other:
                end = other if one == variable else one
                there = np.arange(self.sizes[end]) + self.lows[end]
                tables.append(((end,), weight * np.abs(there - value).astype(np.float64)))
        lows = (*self.lows[:variable], value, *self.lows[variable + 1 :])
        sizes = (*self.sizes[:variable], 1, *self.sizes[variable + 1 :])
        edges = tuple(edge for edge in self.edges if variable not in edge[:2])
        return L1Problem(lows=lows, sizes=sizes, tables=tuple(tables), edges=edges)


@njit(cache=True)
def _l1_passes(table: Floats, weight: float) -> None:
    """In place along axis 0 of rows × columns: table[y] = min over x of table[x] + weight·|x − y|."""
    rows, columns = table.shape
    for first in range(0, columns, _BLOCK):
        last = min(first + _BLOCK, columns)
        for row in range(1, rows):
            for column in range(first, last):
                table[row, column] = min(table[row, column], table[row - 1, column] + weight)
        for row in range(rows - 2, -1, -1):
            for column in range(first, last):
                table[row, column] = min(table[row, column], table[row + 1, column] + weight)


def l1_transform(table: Floats, weight: float, *, low: int, new_low: int, new_size: int) -> Floats:
    """``min over x of table[x, …] + weight·|x − y|`` for y on ``new_low …``; axis 0 is x on ``low …``.

    ``table`` is overwritten. O(cells), two passes.

    >>> l1_transform(np.array([0.0, 9.0, 4.0]), 1.5, low=0, new_low=-1, new_size=4).tolist()
    [1.5, 0.0, 1.5, 3.0]
    """
    flat = np.ascontiguousarray(table).reshape(len(table), -1)
    _l1_passes(flat, weight)
    if new_low == low and new_size == len(table):
        return flat.reshape(table.shape)
    wanted = np.arange(new_low, new_low + new_size)
    nearest = np.clip(wanted, low, low + len(table) - 1)
    moved: Floats = flat[nearest - low] + weight * np.abs(wanted - nearest)[:, None]
    return moved.reshape((new_size, *table.shape[1:]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Step:
    """How to find an eliminated variable again: the summed table (its axis first) and the edge that led elsewhere."""

    variable: int
    scope: Scope
    table: Floats
    onward: tuple[int, float] | None


class _Elimination:
    """One run over an order of variables. ``kept`` holds what finds the variables again, where asked for."""

    def __init__(self, problem: L1Problem, *, keep: bool) -> None:
        self.lows, self.sizes, self.keep = problem.lows, problem.sizes, keep
        self.tables: dict[int, tuple[Scope, Floats]] = dict(enumerate(problem.tables))
        self.owned: set[int] = set()  # tables made here may be overwritten, the caller's may not
        self.of: list[set[int]] = [set() for _ in problem.lows]
        for key, (scope, _) in self.tables.items():
            for variable in scope:
                self.of[variable].add(key)
        self.edges = _adjacency(problem)
        self.kept: list[_Step] = []
        self.constant = 0.0

    def eliminate(self, variable: int) -> None:
        """Take one variable out: what is left is a table over its neighbours."""
        edges = self.edges[variable]
        self.edges[variable] = {}
        for other in edges:
            del self.edges[other][variable]
        scope, table = self._summed(variable, edges)
        inside = [other for other in edges if other in scope]
        for other in inside:
            table += self._distance(scope, variable, other, edges[other])
        outside = [other for other in edges if other not in scope]
        onward = (outside[-1], edges[outside[-1]]) if outside else None
        if self.keep:
            self.kept.append(_Step(variable=variable, scope=scope, table=table.copy(), onward=onward))
        self._store(scope[1:], table, variable, onward)

    def _summed(self, variable: int, edges: dict[int, float]) -> tuple[Scope, Floats]:
        """The sum of the variable's tables, its own axis first, with an axis for all outside edges but the last."""
        keys = sorted(self.of[variable])
        parts = [self.tables.pop(key) for key in keys]
        scopes = dict.fromkeys(chain.from_iterable(scope for scope, _ in parts))
        scopes.pop(variable, None)
        outside = [other for other in edges if other not in scopes]
        scope = (variable, *scopes, *outside[:-1])
        for other in scope:
            self.of[other].difference_update(keys)
        shape = tuple(self.sizes[other] for other in scope)
        whole = next((n for n, part in enumerate(parts) if part[0] == scope and keys[n] in self.owned), None)
        total = np.zeros(shape) if whole is None else parts.pop(whole)[1]
        for part_scope, table in parts:
            total += _spread(part_scope, table, scope)
        return scope, total

    def _distance(self, scope: Scope, variable: int, other: int, weight: float) -> Floats:
        here = np.arange(self.sizes[variable]) + self.lows[variable]
        there = np.arange(self.sizes[other]) + self.lows[other]
        return _spread((variable, other), weight * np.abs(here[:, None] - there[None, :]).astype(np.float64), scope)

    def _store(self, rest: Scope, table: Floats, variable: int, onward: tuple[int, float] | None) -> None:
        if onward is None:
            scope, result = rest, table.min(axis=0)
        else:
            scope = (onward[0], *rest)
            result = l1_transform(
                table, onward[1], low=self.lows[variable], new_low=self.lows[onward[0]], new_size=self.sizes[onward[0]]
            )
        if not scope:
            self.constant += float(result)
            return
        key = max(self.tables, default=-1) + 1
        self.tables[key] = (scope, np.asarray(result))
        self.owned.add(key)
        for other in scope:
            self.of[other].add(key)


def _adjacency(problem: L1Problem) -> list[dict[int, float]]:
    """Edges by variable, parallel ones added; an edge to itself or without weight costs nothing."""
    edges: list[dict[int, float]] = [{} for _ in problem.lows]
    for one, other, weight in problem.edges:
        if one != other and weight > 0.0:
            edges[one][other] = edges[one].get(other, 0.0) + weight
            edges[other][one] = edges[other].get(one, 0.0) + weight
    return edges


def _spread(scope: Scope, table: Floats, onto: Scope) -> Floats:
    """A view of a table with its axes in the order of a wider scope, ready to broadcast."""
    order = sorted(range(len(scope)), key=lambda axis: onto.index(scope[axis]))
    shape = [1] * len(onto)
    for axis in order:
        shape[onto.index(scope[axis])] = table.shape[axis]
    return np.transpose(table, order).reshape(shape)


def elimination_order(problem: L1Problem) -> tuple[tuple[int, ...], int, int]:
    """A greedy order: at each step the variable that leaves the smallest table, one already in squares first.

    Comes back with the largest table's cells and the cells of all tables together.
    """
    around = [set(edges) for edges in _adjacency(problem)]
    for scope, _ in problem.tables:
        for variable in scope:
            around[variable].update(set(scope) - {variable})
    joined = dict.fromkeys(range(len(problem.lows)), False)

    def score(variable: int) -> tuple[int, bool, int]:
        if not around[variable]:
            return 0, False, variable  # joined to nothing: out first, so that the last one is a free one
        return math.prod(problem.sizes[other] for other in around[variable]), not joined[variable], variable

    scores = {variable: score(variable) for variable in joined}
    order, largest, total = [], 1, 0
    while scores:
        variable = min(scores.values())[2]
        neighbours = around[variable]
        # Before the rename the axis of x stands where that of the onward neighbour will: bound by both.
        widest = max((problem.sizes[other] for other in neighbours), default=1)
        cells = max(1, scores[variable][0]) * max(1, -(-problem.sizes[variable] // widest))
        largest, total = max(largest, cells), total + cells
        order.append(variable)
        del scores[variable]
        for other in neighbours:
            around[other].discard(variable)
            around[other].update(neighbours - {other})
            joined[other] = joined[other] or len(neighbours) > 1
        for other in neighbours:
            scores[other] = score(other)
    return tuple(order), largest, total


def minimise(
    problem: L1Problem, *, table_cells: int = TABLE_CELLS, kept_cells: int = KEPT_CELLS
) -> tuple[tuple[int, ...], float] | None:
    """A minimising assignment and its value, exactly; None where a table would exceed ``table_cells``.

    Ties go to the lower value, variable by variable. The value is inf where nothing is allowed (the assignment then
    means nothing).

    >>> costs = (((0,), np.array([5.0, 0.0, 5.0])), ((1,), np.array([0.0, 5.0, 5.0])))
    >>> minimise(L1Problem(lows=(0, 0), sizes=(3, 3), tables=costs, edges=((0, 1, 2.0),)))
    ((1, 0), 2.0)
    """
    for variable in range(len(problem.lows)):
        if problem.sizes[variable] == 1:
            problem = problem.fixed(variable, problem.lows[variable])
    while True:
        order, largest, total = elimination_order(problem)
        if largest > table_cells:
            return None
        keep = total <= kept_cells or problem.sizes[order[-1]] == 1
        run = _Elimination(problem, keep=False)
        run.keep = keep
        for variable in order[:-1]:
            run.eliminate(variable)
        run.keep = True  # the last variable's table is a vector
        run.eliminate(order[-1])
        if keep:
            return _found_again(problem, run.kept), run.constant
        last = run.kept[-1]
        problem = problem.fixed(last.variable, problem.lows[last.variable] + int(np.argmin(last.table)))


def _found_again(problem: L1Problem, kept: Sequence[_Step]) -> tuple[int, ...]:
    """The variables' values, last eliminated first."""
    values = [0] * len(problem.lows)
    for step in reversed(kept):
        column = step.table
        for other in step.scope[1:]:
            column = column[:, values[other] - problem.lows[other]]
        if step.onward is not None:
            own = problem.lows[step.variable] + np.arange(problem.sizes[step.variable])
            column = column + step.onward[1] * np.abs(own - values[step.onward[0]])
        values[step.variable] = problem.lows[step.variable] + int(np.argmin(column))
    return tuple(values)
