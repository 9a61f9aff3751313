"""Replicas by rules that plan little: a static peak, and two hand-set windows; both from past days alone.

What belongs here: what each rule would set, and how it is tuned. What doesn't: the planner (``allocate``), the
autoscaler, whose target needs simulated past days (``backtest``), nodes (``realised``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from whenever import Time

from ebbtide.allocate.needs import planned_shares, station_shape
from ebbtide.fleet.demand import Series
from ebbtide.fleet.horizon import WEEK, DayPattern, Window, windows_of
from ebbtide.fleet.planned import Ints, confidence_rank
from ebbtide.fleet.workload import Workload
from ebbtide.forecast.calendar import date_at
from ebbtide.forecast.scenarios import Scenarios, past_scenarios
from ebbtide.forecast.seasonal import demand_of
from ebbtide.forecast.trials import LEAST_DAYS_BEFORE
from ebbtide.queueing.curves import required_replicas

HAND_SET_STEP_H = 2  # hours are tried on this grid: by hand nobody sets them finer
TOLERANCE = 0.005  # a rule tuned to static's attainment may stay half a point below it
AT_MOST_REPLICAS = 100_000

HOURS = tuple(range(0, 24, HAND_SET_STEP_H))


def grid_windows() -> tuple[Window, ...]:
    """The day in equal windows: what static's worst past window is looked for in, and hours are set on."""
    return windows_of(DayPattern(days=WEEK, starts=tuple(Time(hour) for hour in HOURS)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PastNeeds:
    """What past days needed of one workload: ``needs[day, window]`` replicas of the grid's windows, exactly at target.

    −1 where less than half was observed. Days are calendar days, oldest first.
    """

    workload: Workload
    needs: Ints

    @property
    def days(self) -> int:
        """Past days."""
        return len(self.needs)


def past_needs(workload: Workload, series: Series, *, time_zone: str) -> PastNeeds:
    """The needs of every past day of the series; ``InputError`` as ``window_demand``.

    A target out of reach counts as far as it can be met (§5.4).
    """
    found: dict[tuple[int, int], int] = {}
    for k, window in enumerate(grid_windows()):
        past = past_scenarios(series, window, time_zone=time_zone, workload=workload.name)
        needs = _scenario_needs(workload, series, past)
        begins = series.starts_s[past.interval[past.offsets[:-1]]]
        for begin, need in zip(begins.tolist(), needs.tolist(), strict=True):
            found[_ordinal(begin, time_zone), k] = need
    days = sorted({day for day, _ in found})
    table = np.full((len(days), len(HOURS)), -1, dtype=np.int64)
    for (day, k), need in found.items():
        table[days.index(day), k] = need
    return PastNeeds(workload=workload, needs=table)


def static_replicas(past: PastNeeds, confidence: float) -> int:
    """All day the replicas of the worst past window, each window's at the confidence of its days, no margin."""
    return int(_bounded(past.workload, _confident(past.needs, confidence).max()))


@dataclass(frozen=True, slots=True, kw_only=True)
class HandSet:
    """Two windows for the whole fleet: ``day`` from ``starts_h`` to ``ends_h``, else night; replicas by workload."""

    starts_h: int
    ends_h: int
    day: Mapping[str, int]
    night: Mapping[str, int]
    held_share: float
    static_share: float

    @property
    def windows(self) -> tuple[Window, ...]:
        """Day, then night."""
        return windows_of(DayPattern(days=WEEK, starts=(Time(self.starts_h), Time(self.ends_h))))


def hand_set(pasts: Sequence[PastNeeds], confidence: float) -> HandSet:
    """The hours that would have taken the fewest GPU-hours at what a static peak attained on past days.

    Every past day with two before it is tried: both are set from the days before it, and hold those of its windows
    that needed no more. Hours count that held at least static's share less half a point; where none did, those that
    held most. Each part has the replicas of its worst past window, as static has.
    """
    trials = [_tries(past, confidence) for past in pasts]
    static = _share([(tried.max(axis=1, keepdims=True) >= need)[need >= 0] for tried, need in trials])
    found = []
    for starts_h, ends_h in combinations(HOURS, 2):
        day = (np.array(HOURS) >= starts_h) & (np.array(HOURS) < ends_h)
        share = _share([(_by_part(tried, day) >= need)[need >= 0] for tried, need in trials])
        hours = sum(
            float(_by_part(_confident(past.needs, confidence)[None, :], day).sum()) * past.workload.gpus_per_replica
            for past in pasts
        )
        found.append((share, hours, starts_h, ends_h))
    enough = [one for one in found if one[0] >= static - TOLERANCE]
    share, _, starts_h, ends_h = min(enough, key=lambda one: one[1]) if enough else max(found)
    inside = (np.array(HOURS) >= starts_h) & (np.array(HOURS) < ends_h)
    return HandSet(
        starts_h=starts_h,
        ends_h=ends_h,
        day={past.workload.name: _worst(past, confidence, inside) for past in pasts},
        night={past.workload.name: _worst(past, confidence, ~inside) for past in pasts},
        held_share=share,
        static_share=static,
    )


def _scenario_needs(workload: Workload, series: Series, past: Scenarios) -> Ints:
    demand = demand_of(
        series,
        past,
        service_time_s=workload.service.time_s,
        service_scv=workload.service.scv,
        workload=workload.name,
    )
    times_s, scvs = (np.full(past.days, value) for value in (demand.service_time_s, demand.service_scv))
    needs = np.zeros(past.days, dtype=np.int64)
    for target in workload.targets:
        share = float(planned_shares(target, times_s[:1], scvs[:1])[0])
        found = required_replicas(
            station_shape(workload),
            replace(target, percentile=share),
            rates_rps=demand.rates_rps,
            scv=demand.scv,
            service_time_s=times_s,
            service_scv=scvs,
            offsets=demand.offsets,
            at_most=AT_MOST_REPLICAS,
        )
        needs = np.maximum(needs, found)
    return needs


def _ordinal(at_s: int, time_zone: str) -> int:
    """A number for the date on the wall at an instant, ascending."""
    date = date_at(at_s, time_zone)
    return date.year * 10_000 + date.month * 100 + date.day


def _confident(needs: Ints, confidence: float) -> Ints:
    """Per window the need that the confident share of its days keeps to; 0 where no day was seen."""
    ranked = np.sort(np.where(needs < 0, np.iinfo(np.int64).max, needs), axis=0)
    days = (needs >= 0).sum(axis=0)
    return np.array(
        [ranked[confidence_rank(n, confidence) - 1, k] if n else 0 for k, n in enumerate(days.tolist())],
        dtype=np.int64,
    )


def _tries(past: PastNeeds, confidence: float) -> tuple[Ints, Ints]:
    """For every tried day what its windows would have been set to, each alone, and what they needed."""
    days = range(LEAST_DAYS_BEFORE, past.days)
    rows = [np.maximum(_confident(past.needs[:day], confidence), past.workload.min_replicas) for day in days]
    tried = np.array(rows, dtype=np.int64).reshape(len(rows), len(HOURS))
    return tried, past.needs[LEAST_DAYS_BEFORE:].reshape(len(rows), len(HOURS))


def _by_part(tried: Ints, day: NDArray[np.bool_]) -> Ints:
    """Every window with the most that its part needs."""
    parts = (tried[:, inside].max(axis=1, keepdims=True) for inside in (day, ~day))
    return np.asarray(np.where(day, *parts), dtype=np.int64)


def _share(held: Sequence[NDArray[np.bool_]]) -> float:
    every = np.concatenate(list(held))
    return float(every.mean()) if len(every) else 1.0


def _worst(past: PastNeeds, confidence: float, inside: NDArray[np.bool_]) -> int:
    return int(_bounded(past.workload, _confident(past.needs, confidence)[inside].max()))


def _bounded(workload: Workload, replicas: int) -> int:
    most = np.inf if workload.max_replicas is None else workload.max_replicas
    return int(min(max(replicas, workload.min_replicas), most))
