"""What every policy sets for one tested stretch, from the past alone; hindsight from the stretch itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from whenever import Instant

from ebbtide.allocate.plan import plan_fleet, schedule_of
from ebbtide.fleet.demand import Floats, Series
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import Window
from ebbtide.fleet.planned import Ints
from ebbtide.fleet.schedule import Schedule
from ebbtide.forecast.margin import Tuning
from ebbtide.forecast.seasonal import NO_MARGIN
from ebbtide.simulate.fcfs import Capacity
from ebbtide.simulate.plays import Played, Setting, autoscaler_of, tuned_target
from ebbtide.simulate.policies import hand_set, past_needs, static_replicas
from ebbtide.simulate.realised import Realised, on_demand, realised, scheduled, steps_of, window_starts
from ebbtide.workflows.demand import Demand, Stage
from ebbtide.workflows.planning import Planned, tuned

EBBTIDE, STATIC, REACTIVE, CRON, HINDSIGHT = "ebbtide", "static", "reactive", "cron", "hindsight"
RIVALS = (STATIC, REACTIVE, CRON, HINDSIGHT)
ORDER = (STATIC, REACTIVE, CRON, EBBTIDE, HINDSIGHT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """One tested stretch ``[start_s, end_s)``; everything before it is the past. ``number`` counts from 0."""

    number: int
    start_s: int
    end_s: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plans:
    """The schedule that windows are scored by, each policy's settings by workload, and what it chose, in words.

    ``planned`` are policies whose nodes are known beforehand.
    """

    schedule: Schedule
    settings: Mapping[str, Mapping[str, Setting]]
    planned: Mapping[str, Realised]
    notes: Mapping[str, str]


def plans_of(fleet: Fleet, demand: Demand, fold: Fold, against: tuple[str, ...], *, seed: int, stage: Stage) -> Plans:
    """The plans of a fold. Raises ``InputError`` where the past holds no day for a window."""
    past = part(demand, None, fold.start_s)
    stage(f"planning, {_name(fold)}", 0, 1)
    tuning = tuned(fleet, past)
    schedule = _schedule(fleet, past, tuning, fold)
    planned = {EBBTIDE: _scheduled(fleet, schedule, fold)}
    notes = {EBBTIDE: f"margin {tuning}"}
    if HINDSIGHT in against:
        own = part(demand, fold.start_s, fold.end_s)
        bare = replace(tuning, margins=dict.fromkeys(own.series, NO_MARGIN))
        planned[HINDSIGHT] = _scheduled(fleet, _schedule(fleet, own, bare, fold), fold)
        notes[HINDSIGHT] = "planned on the tested days' own rates, without margin"
    settings: dict[str, Mapping[str, Setting]] = {name: one.capacity for name, one in planned.items()}
    if {STATIC, CRON, REACTIVE} & set(against):
        _simple(fleet, past, fold, against, settings, notes, seed=seed, stage=stage)
    return Plans(schedule=schedule, settings=settings, planned=planned, notes=notes)


def realised_of(fleet: Fleet, fold: Fold, name: str, plans: Plans, played: Mapping[str, Played]) -> Realised:
    """What a policy gave, once its runs are over: planned nodes, or those for the replicas that came of it."""
    if name in plans.planned:
        return plans.planned[name]
    capacity = {workload: one.capacity for workload, one in played.items()}
    pods = {workload: one.pods for workload, one in played.items()}
    held = on_demand(fleet, pods, end_s=float(fold.end_s), ready_ahead=name != REACTIVE)
    return realised(fleet, capacity, held, pods=pods)


def part(demand: Demand, start_s: int | None, end_s: int) -> Demand:
    """The demand that was seen on a stretch: what a planner knows who knows no more."""
    series = {name: part_of(one, start_s, end_s) for name, one in demand.series.items()}
    traces = {
        name: replace(trace, series={key: part_of(one, start_s, end_s) for key, one in trace.series.items()})
        for name, trace in demand.traces.items()
    }
    return Demand(traces=traces, series=series, records=demand.records)


def part_of(series: Series, start_s: int | None, end_s: int) -> Series:
    """The intervals of a series that begin in ``[start_s, end_s)``; None: from its beginning."""
    first = 0 if start_s is None else max(-(-(start_s - series.start_s) // series.interval_s), 0)
    last = min(max(-(-(end_s - series.start_s) // series.interval_s), 0), len(series.seen))
    inside = slice(first, last)

    def cut(values: Floats | None) -> Floats | None:
        return None if values is None else values[inside]

    return replace(
        series,
        start_s=series.start_s + series.interval_s * first,
        rate_rps=series.rate_rps[inside],
        seen=series.seen[inside],
        arrival_scv=cut(series.arrival_scv),
        service_mean_s=cut(series.service_mean_s),
        service_scv=cut(series.service_scv),
    )


def _schedule(fleet: Fleet, known: Demand, tuning: Tuning, fold: Fold) -> Schedule:
    begin, end = (Instant.from_timestamp(at).to_tz(fleet.time_zone) for at in (fold.start_s, fold.end_s))
    planned = Planned(fleet=fleet, demand=known, tuning=tuning)
    whole = plan_fleet(fleet, planned, at=begin.to_fixed_offset(), valid_until=end.to_fixed_offset(), progress=_silent)
    return schedule_of(whole, valid_until=end.to_fixed_offset())


def _scheduled(fleet: Fleet, schedule: Schedule, fold: Fold) -> Realised:
    return scheduled(fleet, schedule, start_s=fold.start_s, end_s=fold.end_s)


def _simple(
    fleet: Fleet,
    past: Demand,
    fold: Fold,
    against: tuple[str, ...],
    settings: dict[str, Mapping[str, Setting]],
    notes: dict[str, str],
    *,
    seed: int,
    stage: Stage,
) -> None:
    """Static, cron and reactive, those that are asked for."""
    pasts = [past_needs(one, past.series[one.name], time_zone=fleet.time_zone) for one in fleet.workloads]
    static = {one.workload.name: static_replicas(one, fleet.confidence) for one in pasts}
    if STATIC in against:
        settings[STATIC] = _steady(static, fold)
        notes[STATIC] = "all day the replicas of each workload's worst past window"
    if CRON in against:
        chosen = hand_set(pasts, fleet.confidence)
        settings[CRON] = _two_windows(fleet, chosen.windows, (chosen.day, chosen.night), fold)
        notes[CRON] = (
            f"day from {chosen.starts_h:02}:00 to {chosen.ends_h:02}:00, held {chosen.held_share:.1%} of past windows "
            f"(static {chosen.static_share:.1%})"
        )
    if REACTIVE in against:
        tunings = {}
        for number, one in enumerate(fleet.workloads):
            stage(f"tuning the autoscaler, {_name(fold)}", number, len(fleet.workloads))
            own, own_seed = past.series[one.name], (seed, fold.number, number, 1)
            tunings[one.name] = tuned_target(fleet, one, own, static[one.name], seed=own_seed)
        settings[REACTIVE] = {one.name: autoscaler_of(fleet, one, tunings[one.name].target) for one in fleet.workloads}
        notes[REACTIVE] = "; ".join(f"{name} {tuning}" for name, tuning in tunings.items())


def _steady(replicas: Mapping[str, int], fold: Fold) -> dict[str, Setting]:
    start = np.array([float(fold.start_s)])
    return {
        name: Capacity(starts_s=start, replicas=np.array([count], dtype=np.int64)) for name, count in replicas.items()
    }


def _two_windows(
    fleet: Fleet, windows: tuple[Window, ...], parts: tuple[Mapping[str, int], Mapping[str, int]], fold: Fold
) -> Mapping[str, Setting]:
    starts_s, window = window_starts(windows, start_s=fold.start_s, end_s=fold.end_s, time_zone=fleet.time_zone)
    counts: dict[str, Ints] = {
        one.name: np.array([part[one.name] for part in parts], dtype=np.int64)[window] for one in fleet.workloads
    }
    return steps_of(starts_s, counts)


def _name(fold: Fold) -> str:
    return f"stretch {fold.number + 1}"


def _silent(name: str, done: int, total: int) -> None:
    """Planning inside a fold is one step."""
