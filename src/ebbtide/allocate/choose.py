"""Windows that are ebbtide's to choose: at most so many, none shorter than so long, so that the plan costs least.

Where the joint node counts of all pools are few enough the search over boundaries is exact (``boundaries``). Larger
fleets start from the best cut without moves and improve it one boundary at a time, each try with its exact cycle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ebbtide.allocate.arcs import DayArcs, Missed
from ebbtide.allocate.boundaries import States, choose_daily, choose_weekly, work
from ebbtide.allocate.candidate_costs import PoolCosts, pool_costs
from ebbtide.allocate.candidates import PatternGrid, pattern_grids
from ebbtide.allocate.cycle import TIE_SHARE, CycleProblem, solve_cycle
from ebbtide.allocate.moves import Timeline, timeline_of
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import DatedException, DayPattern, Window
from ebbtide.fleet.planned import WindowDemand

Cut = tuple[tuple[int, int], ...]  # a pattern's windows, (start, length) on its grid

EXACT_WORK = 2_000_000_000  # steps of the exact search's bounds, some seconds; above it the search is local
EXACT_CELLS = 30_000_000  # candidate windows × joint states, 240 MB
_ROUNDS = 20


class DemandOf(Protocol):
    """Planned demand of a workload in a window, from the past of the window's days.

    For a dated window: an undated one with the days that speak for it, and the exception that it is planned for.
    """

    def __call__(self, workload: str, window: Window, exception: DatedException | None, /) -> WindowDemand: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The patterns with their windows, and what the finest grid would cost: every base interval a window of its own."""

    patterns: tuple[DayPattern, ...]
    finest_usd: float

    def few_windows(self, objective_usd: float) -> float:
        """The price of few windows: the objective over the finest grid's, minus 1; 0 where that costs nothing.

        Below 0 where few windows cost less: the finest grid is no bound, since every base interval has to hold its
        targets there alone, where a longer window makes up for its worst requests with the rest of them.
        """
        return objective_usd / self.finest_usd - 1.0 if self.finest_usd > 0.0 else 0.0


def chosen_patterns(fleet: Fleet, demand_of: DemandOf, progress: Callable[[str, int, int], None]) -> Chosen | None:
    """The fleet's patterns, those to choose with their windows; None where all are given."""
    if all(pattern.choose is None for pattern in fleet.patterns):
        return None
    grids = pattern_grids(fleet.patterns)
    search = _Search(grids, _candidate_costs(fleet, grids, demand_of, progress))
    cuts = search.cuts()
    return Chosen(
        patterns=tuple(
            grid.pattern if grid.pattern.choose is None else grid.with_starts(cut)
            for grid, cut in zip(grids, cuts, strict=True)
        ),
        finest_usd=search.value([tuple((i, 1) for i in range(len(grid.marks))) for grid in grids], finest=True),
    )


def _candidate_costs(
    fleet: Fleet, grids: Sequence[PatternGrid], demand_of: DemandOf, progress: Callable[[str, int, int], None]
) -> list[PoolCosts]:
    windows = [window for grid in grids for window in grid.windows]
    costs = []
    pools = [pool for pool in fleet.pools if fleet.workloads_of(pool.name)]
    for done, pool in enumerate(pools):
        progress("choosing windows", done, len(pools))
        workloads = fleet.workloads_of(pool.name)
        # One workload's at a time: all candidates' demand at once is a good part of what planning holds.
        demand = ([demand_of(one.name, window, None) for window in windows] for one in workloads)
        costs.append(pool_costs(fleet, pool, windows, demand))
    progress("choosing windows", len(pools), len(pools))
    return costs


class _Search:
    """The choice over all patterns and pools. ``value`` is a cut's objective, USD per cycle."""

    def __init__(self, grids: Sequence[PatternGrid], pools: Sequence[PoolCosts]) -> None:
        self.grids, self.pools = grids, pools
        self.offsets = np.cumsum([0, *(len(grid.windows) for grid in grids)])[:-1].tolist()
        self.missed = tuple(  # windows join all pools
            Missed(by_arc=np.sum([one.by_arc for one in kinds], axis=0), rounding=sum(one.rounding for one in kinds))
            for kinds in zip(*(pool.missed for pool in pools), strict=True)
        )
        self.known: dict[tuple[Cut, ...], float] = {}

    def cuts(self) -> list[Cut]:
        """The best windows of every pattern."""
        return self._exact() or self._local()

    def value(self, cuts: Sequence[Cut], *, finest: bool = False) -> float:
        """Least objective with these windows."""
        timeline, rows = self._rows(cuts, finest=finest)
        times = np.array(timeline.occurrences)
        return sum(self._objective(pool, timeline, times, rows) for pool in self.pools)

    def _rows(self, cuts: Sequence[Cut], *, finest: bool = False) -> tuple[Timeline, list[int]]:
        """The cuts' windows as a cycle, and each one's candidate."""
        windows, rows = [], []
        for grid, offset, cut in zip(self.grids, self.offsets, cuts, strict=True):
            for start, length in cut:
                row = grid.finest[start] if finest else int(grid.rows[start, length])
                windows.append(grid.windows[row])
                rows.append(offset + row)
        return timeline_of(windows), rows

    def _missed_by(self, cuts: Sequence[Cut]) -> list[float]:
        """What the cuts miss in a cycle, kind by kind."""
        timeline, rows = self._rows(cuts)
        return [float(np.array(timeline.occurrences) @ one.by_arc[rows]) for one in self.missed]

    @staticmethod
    def _objective(pool: PoolCosts, timeline: Timeline, times: Floats, rows: Sequence[int]) -> float:
        costs = pool.costs_usd[rows] * times[:, None]
        return solve_cycle(CycleProblem(timeline=timeline, costs_usd=costs, move_usd=pool.move_usd)).objective_usd

    def _exact(self) -> list[Cut] | None:
        """None where there are too many joint states."""
        lows = [int(np.isfinite(pool.costs_usd).any(axis=0).argmax()) for pool in self.pools]
        sizes = tuple(pool.costs_usd.shape[1] - low for pool, low in zip(self.pools, lows, strict=True))
        states = States(sizes=sizes, move_usd=tuple(pool.move_usd for pool in self.pools))
        if states.count * len(self.missed[0].by_arc) > EXACT_CELLS:
            return None
        joint = np.zeros((len(self.missed[0].by_arc), 1))
        for pool, low in zip(self.pools, lows, strict=True):
            joint = (joint[:, :, None] + self._tied(pool)[:, None, low:]).reshape(len(joint), -1)
        days = self._days(joint)
        if len(days) == 1:
            steps = work(days[0], states)
            if steps * days[0].base * 5 > EXACT_WORK:
                return None
            return [choose_daily(days[0], states, budget=2 * EXACT_WORK).windows]
        if sum(work(day, states) for day in days) * states.count > EXACT_WORK or states.count**2 > EXACT_CELLS:
            return None
        found = choose_weekly(days, self._followed(), states)
        return None if found is None else list(found)

    def _tied(self, pool: PoolCosts) -> Floats:
        """Costs with fewer nodes, then fewer windows, winning ties."""
        hours = np.array([window.nominal_hours for grid in self.grids for window in grid.windows])[:, None]
        tie = TIE_SHARE * (pool.node_usd_per_h or 1.0)
        tied: Floats = pool.costs_usd + tie * (hours * np.arange(pool.costs_usd.shape[1]) + 0.01)
        return tied

    def _days(self, joint: Floats) -> list[DayArcs]:
        return [
            DayArcs(
                rows=grid.rows,
                costs_usd=joint[offset : offset + len(grid.windows)],
                missed=tuple(
                    replace(one, by_arc=one.by_arc[offset : offset + len(grid.windows)]) for one in self.missed
                ),
                at_most=grid.at_most,
                days=len(grid.pattern.days) if len(self.grids) > 1 else 1,
            )
            for grid, offset in zip(self.grids, self.offsets, strict=True)
        ]

    def _followed(self) -> list[tuple[int, int, int]]:
        """Which pattern's day follows which, and how often in a week."""
        whole = [replace(grid.windows[0], days=grid.pattern.days, end=grid.windows[0].start) for grid in self.grids]
        track = timeline_of(whole).track
        pairs = list(zip(track, track[1:] + track[:1], strict=True))
        return [(one, other, pairs.count((one, other))) for one, other in sorted(set(pairs))]

    def _local(self) -> list[Cut]:
        """From the best cut without moves, one boundary at a time."""
        alone = States(sizes=(1,), move_usd=(0.0,))
        cheapest = np.sum([self._tied(pool).min(axis=1, keepdims=True) for pool in self.pools], axis=0)
        days = self._days(cheapest)
        if len(days) == 1:
            best: list[Cut] = [choose_daily(days[0], alone, budget=EXACT_WORK).windows]
        else:
            best = choose_weekly(days, [], alone) or []
        # No cut misses less than the first: what is missed does not depend on moves.
        count = self._rows(best)[0].days
        limits = [
            replace(one, rounding=count * one.rounding).equal_up_to(least)
            for one, least in zip(self.missed, self._missed_by(best), strict=True)
        ]

        def known_value(cuts: Sequence[Cut]) -> float:
            key = tuple(cuts)
            if key not in self.known:
                misses_more = any(one > most for one, most in zip(self._missed_by(cuts), limits, strict=True))
                self.known[key] = math.inf if misses_more else self.value(cuts)
            return self.known[key]

        for _ in range(_ROUNDS):
            better = min(self._beside(best), key=known_value, default=best)
            if known_value(better) >= known_value(best):
                break
            best = better
        return best

    def _beside(self, cuts: Sequence[Cut]) -> Iterator[list[Cut]]:
        """Cuts with one boundary moved, added or taken away."""
        for p, (grid, cut) in enumerate(zip(self.grids, cuts, strict=True)):
            if grid.pattern.choose is not None:
                for other in _neighbours(grid, cut, held=len(self.grids) > 1):
                    yield [*cuts[:p], other, *cuts[p + 1 :]]


def _neighbours(grid: PatternGrid, cut: Cut, *, held: bool) -> Iterator[Cut]:
    """``held``: the day begins where it does."""
    base = len(grid.marks)
    starts = {start for start, _ in cut}
    free = [start for start in sorted(starts) if not (held and start == 0)]
    tries = [starts - {start} | {(start + by) % base} for start in free for by in (-2, -1, 1, 2)]
    tries += [starts - {start} for start in free if len(starts) > 1]
    tries += [starts | {start} for start in range(base) if start not in starts]
    for each in tries:
        ordered = sorted(each)
        ends = [*ordered[1:], ordered[0] + base]
        windows = tuple((start, end - start) for start, end in zip(ordered, ends, strict=True))
        if len(windows) == 1 and not held:
            windows = ((0, base),)  # a whole day is one candidate, wherever it begins
        if len(windows) <= grid.at_most and all(grid.rows[window] >= 0 for window in windows):
            yield windows
