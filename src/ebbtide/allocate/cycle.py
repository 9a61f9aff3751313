"""How many nodes stand in production in each window of a closed cycle: windows joined by the cost of moves (§5.9).

One pool's problem is Σ over windows of a cost table and Σ over steps of ``weight · |nodes before − nodes after|``. It
is solved exactly by variable elimination on domains that bounds have made small:

1. *Untied*: every occurrence of a window gets its own variable and its share of the window's cost, and the step across
   one cut is left out. That is a chain; its min-marginals bound the objective from below for every node count.
2. *Improved*: elimination with some windows held, then within a band around the best answer, until it stays.
3. Node counts whose min-marginal is above the best answer are out; elimination over the rest is exact.

With three patterns and more on thousands of nodes the tables of step 3 can be too large; then the best answer stands
and the chain's bound says how far it may be off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

from ebbtide.allocate.elimination import TABLE_CELLS, L1Problem, minimise
from ebbtide.allocate.moves import Timeline
from ebbtide.fleet.demand import Floats

# Fewer nodes win ties: each node-hour costs this share of the cost scale more while the search lasts. A billionth is
# far below the 1e-6 that plans are exact to, and far above the rounding of sums.
TIE_SHARE = 1e-9
_ROUNDS = 4  # cuts tried before large tables are
_EASY_CELLS = 250_000
_BAND = 12  # half-width of the band, in nodes: tables of 25 × 25


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CycleProblem:
    """``costs_usd[k, m]``: what window k costs in a cycle with m nodes, all its occurrences together; inf: not allowed.

    ``move_usd``: what a node costs per step up or down.
    """

    timeline: Timeline
    costs_usd: Floats
    move_usd: float

    def objective_usd(self, nodes: Sequence[int]) -> float:
        """Node-hours at research's value, waiting and moves of one answer, USD per cycle."""
        own = sum(float(self.costs_usd[k, m]) for k, m in enumerate(nodes))
        steps = sum(count * abs(nodes[i] - nodes[j]) for (i, j), count in self.timeline.transitions.items())
        return own + self.move_usd * steps


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleAnswer:
    """Nodes per window, their objective, and a proven lower bound of every answer's objective (equal where exact)."""

    nodes: tuple[int, ...]
    objective_usd: float
    lower_bound_usd: float


def solve_cycle(problem: CycleProblem, *, table_cells: int = TABLE_CELLS) -> CycleAnswer:
    """The best node counts, ties going to fewer nodes. Exact unless tables of ``table_cells`` are too small for it.

    ``ValueError`` where some window allows no count at all.
    """
    if not np.isfinite(problem.costs_usd).any(axis=1).all():
        raise ValueError("a window allows no node count")
    search = _Search(problem, table_cells)
    exact = search.run()
    nodes = search.best
    objective = problem.objective_usd(nodes)
    return CycleAnswer(
        nodes=nodes, objective_usd=objective, lower_bound_usd=objective if exact else min(objective, search.bound)
    )


class _Search:
    """Steps 1 to 3. Costs here carry the tie-break."""

    def __init__(self, problem: CycleProblem, table_cells: int) -> None:
        self.timeline = problem.timeline
        self.cells = table_cells
        self.weight = problem.move_usd
        self.scale = _tie_scale(problem)
        hours = np.array(problem.timeline.hours_per_cycle)[:, None]
        self.tie = self.scale * TIE_SHARE * hours * np.arange(problem.costs_usd.shape[1])
        self.costs = problem.costs_usd + self.tie
        self.searched = CycleProblem(timeline=self.timeline, costs_usd=self.costs, move_usd=self.weight)
        self.edges = tuple((i, j, self.weight * count) for (i, j), count in self.timeline.transitions.items())
        days = [window.days for window in self.timeline.windows]
        self.patterns = [[k for k, other in enumerate(days) if other == one] for one in dict.fromkeys(days)]
        self.best: tuple[int, ...] = ()
        self.value = np.inf
        self.bound = -np.inf
        self.allowed = np.isfinite(self.costs)

    def run(self) -> bool:
        """True where ``best`` is proven best."""
        tried: list[int] = []
        for _ in range(_ROUNDS):
            tried.append(self._quietest_step(tried))
            self._untie(tried[-1])
            self._improve()
            self.allowed &= self.marginals <= self.value + self._slack
            if self._solved_exactly(min(self.cells, _EASY_CELLS)):
                return True
            if len(tried) == len(self.timeline.track):
                break
        return self._solved_exactly(self.cells)

    @property
    def _slack(self) -> float:
        return 1e-12 * abs(self.value)

    def _untie(self, cut: int) -> None:
        """Step 1, with the chain cut before ``track[cut]``."""
        track = np.array(self.timeline.track[cut:] + self.timeline.track[:cut])
        share = 1.0 / np.array(self.timeline.occurrences)
        forward = np.empty((len(track), self.costs.shape[1]))
        _run_forward(self.costs * share[:, None], track, self.weight, forward)
        backward = np.empty_like(forward)
        _run_forward(self.costs * share[:, None], track[::-1].copy(), self.weight, backward)
        both = forward + backward[::-1]
        own = self.costs[track] * share[track][:, None]
        through = np.where(np.isfinite(own), both - np.where(np.isfinite(own), own, 0.0), np.inf)
        self.marginals = np.full(self.costs.shape, -np.inf)
        np.maximum.at(self.marginals, track, through)
        top = float((self.scale * TIE_SHARE) * sum(self.timeline.hours_per_cycle) * (self.costs.shape[1] - 1))
        self.bound = max(self.bound, float(forward[-1].min()) - top)
        if not self.best:
            self._take(tuple(int(m) for m in np.argmin(self.marginals, axis=1)))

    def _take(self, nodes: tuple[int, ...]) -> bool:
        value = self.searched.objective_usd(nodes)
        if not self.best or value < self.value - self._slack:
            self.best, self.value = nodes, value
            return True
        return False

    def _improve(self) -> None:
        """Step 2: first whole patterns, each held at one window (vectors only), then all windows in a narrow band."""
        top = self.costs.shape[1] - 1
        moved = True
        while moved:
            moved = False
            for pattern in self.patterns:
                held = {k: self.best[k] for k in range(len(self.best)) if k not in pattern[1:]}
                first = [held.get(k, 0) for k in range(len(self.best))]
                last = [held.get(k, top) for k in range(len(self.best))]
                moved = self._try(first, last) or moved
        while self._try([max(0, m - _BAND) for m in self.best], [min(top, m + _BAND) for m in self.best]):
            pass

    def _try(self, first: Sequence[int], last: Sequence[int]) -> bool:
        found = minimise(self._problem(first, last), table_cells=self.cells)
        return found is not None and self._take(found[0])

    def _solved_exactly(self, cells: int) -> bool:
        """Step 3: False where the remaining domains need larger tables."""
        first = np.argmax(self.allowed, axis=1)
        last = self.allowed.shape[1] - 1 - np.argmax(self.allowed[:, ::-1], axis=1)
        found = minimise(self._problem(first.tolist(), last.tolist()), table_cells=cells)
        if found is None:
            return False
        self._take(found[0])
        return True

    def _problem(self, first: Sequence[int], last: Sequence[int]) -> L1Problem:
        tables = tuple(
            ((k,), self.costs[k, low : high + 1]) for k, (low, high) in enumerate(zip(first, last, strict=True))
        )
        sizes = tuple(high - low + 1 for low, high in zip(first, last, strict=True))
        return L1Problem(lows=tuple(first), sizes=sizes, tables=tables, edges=self.edges)

    def _quietest_step(self, tried: Sequence[int]) -> int:
        """The place in the track before which the best answer moves least: leaving that step out costs least bound."""
        track = self.timeline.track
        if not self.best:
            return 0
        steps = {t: abs(self.best[track[t]] - self.best[track[t - 1]]) for t in range(len(track)) if t not in tried}
        return min(steps, key=lambda t: steps[t])


def _tie_scale(problem: CycleProblem) -> float:
    """USD per node-hour: the typical step of the cost tables, so that the tie-break is small beside them."""
    finite = problem.costs_usd[np.isfinite(problem.costs_usd)]
    spread = float(finite.max() - finite.min()) if len(finite) else 0.0
    counts = max(1, problem.costs_usd.shape[1] - 1)
    return spread / (counts * max(problem.timeline.hours_per_cycle)) or 1.0


@njit(cache=True)
def _run_forward(costs, track, weight, out):  # type: ignore[no-untyped-def]  # numba infers types
    """out[t, m]: least cost of the occurrences 0 … t with m nodes at the last, steps between them included."""
    width = costs.shape[1]
    for t in range(len(track)):
        row = out[t]
        for m in range(width):
            row[m] = 0.0 if t == 0 else out[t - 1, m]
        if t > 0:
            for m in range(1, width):
                row[m] = min(row[m], row[m - 1] + weight)
            for m in range(width - 2, -1, -1):
                row[m] = min(row[m], row[m + 1] + weight)
        for m in range(width):
            row[m] += costs[track[t], m]
