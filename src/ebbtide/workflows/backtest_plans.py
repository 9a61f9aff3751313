"""What every policy sets for one tested stretch, from the past alone; hindsight from the stretch itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from whenever import Instant, OffsetDateTime, Time

from ebbtide.allocate.plan import plan_fleet, schedule_of
from ebbtide.fleet.demand import Floats, Series
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import WEEK, DayPattern, windows_of
from ebbtide.fleet.schedule import Schedule
from ebbtide.forecast.margin import Tuning
from ebbtide.forecast.seasonal import NO_MARGIN
from ebbtide.simulate.driven import driven, live_demand
from ebbtide.simulate.hand_schedule import hand_schedule
from ebbtide.simulate.plays import Played, Setting, autoscaler_of, tuned_target
from ebbtide.simulate.policies import hand_set, past_needs, static_replicas
from ebbtide.simulate.realised import Realised, on_demand, realised
from ebbtide.simulate.world.demand import LiveDemand
from ebbtide.simulate.world.troubles import Troubles
from ebbtide.workflows.backtest_span import Fold
from ebbtide.workflows.demand import Demand, Stage
from ebbtide.workflows.planning import Planned, tuned

EBBTIDE, STATIC, REACTIVE, CRON, HINDSIGHT = "ebbtide", "static", "reactive", "cron", "hindsight"
TROUBLES = {"none": Troubles(), "usual": Troubles.usual(), "wild": Troubles.wild()}
RIVALS = (STATIC, REACTIVE, CRON, HINDSIGHT)
ORDER = (STATIC, REACTIVE, CRON, EBBTIDE, HINDSIGHT)
ALL_DAY = windows_of(DayPattern(days=WEEK, starts=(Time(0),)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How a backtest is run: which rivals take part, by what seed, and what goes wrong, by its name in ``TROUBLES``."""

    against: tuple[str, ...]
    seed: int
    troubles: str = "none"
    stage: Stage


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plans:
    """The schedule that windows are scored by, each policy's settings by workload, and what it chose, in words.

    ``driven`` are policies with a schedule, as the controller drove it.
    """

    schedule: Schedule
    settings: Mapping[str, Mapping[str, Setting]]
    driven: Mapping[str, Realised]
    notes: Mapping[str, str]


def plans_of(fleet: Fleet, demand: Demand, fold: Fold, trial: Trial) -> Plans:
    """The plans of a fold, and what became of them. ``InputError`` where the past holds no day for a window."""
    past = part(demand, None, fold.start_s)
    trial.stage(f"planning, {_name(fold)}", 0, 1)
    tuning = tuned(fleet, past)
    schedules = {EBBTIDE: _schedule(fleet, past, tuning, fold)}
    notes = {EBBTIDE: f"margin {tuning}"}
    if HINDSIGHT in trial.against:
        own = part(demand, fold.start_s, fold.end_s)
        bare = replace(tuning, margins=dict.fromkeys(own.series, NO_MARGIN))
        schedules[HINDSIGHT] = _schedule(fleet, own, bare, fold)
        notes[HINDSIGHT] = "planned on the tested days' own rates, without margin"
    autoscalers: Mapping[str, Setting] = {}
    if {STATIC, CRON, REACTIVE} & set(trial.against):
        autoscalers = _simple(fleet, past, fold, trial, schedules, notes)
    live = live_demand(demand.series, start_s=fold.start_s, end_s=fold.end_s)
    ran = {}
    for number, (name, schedule) in enumerate(schedules.items()):
        trial.stage(f"moving nodes, {_name(fold)}", number, len(schedules))
        ran[name] = _driven(fleet, schedule, fold, trial, live if name == EBBTIDE else None)
    settings: dict[str, Mapping[str, Setting]] = {name: one.capacity for name, one in ran.items()}
    if autoscalers:
        settings[REACTIVE] = autoscalers
    return Plans(schedule=schedules[EBBTIDE], settings=settings, driven=ran, notes=notes)


def _driven(fleet: Fleet, schedule: Schedule, fold: Fold, trial: Trial, live: LiveDemand | None) -> Realised:
    """What the controller makes of a schedule; every policy meets the same dice."""
    seed = int(np.random.SeedSequence((trial.seed, fold.number)).generate_state(1)[0])
    return driven(
        fleet,
        schedule,
        start_s=fold.start_s,
        end_s=fold.end_s,
        seed=seed,
        live=live,
        troubles=TROUBLES[trial.troubles],
    )


def realised_of(fleet: Fleet, fold: Fold, name: str, plans: Plans, played: Mapping[str, Played]) -> Realised:
    """What a policy gave, once its runs are over: the controller's run, or nodes for the pods that came of it."""
    if name in plans.driven:
        return plans.driven[name]
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
    begin = Instant.from_timestamp(fold.start_s).to_tz(fleet.time_zone).to_fixed_offset()
    end = _end(fleet, fold)
    planned = Planned(fleet=fleet, demand=known, tuning=tuning)
    whole = plan_fleet(fleet, planned, at=begin, valid_until=end, progress=_silent)
    return schedule_of(whole, valid_until=end)


def _end(fleet: Fleet, fold: Fold) -> OffsetDateTime:
    return Instant.from_timestamp(fold.end_s).to_tz(fleet.time_zone).to_fixed_offset()


def _simple(
    fleet: Fleet, past: Demand, fold: Fold, trial: Trial, schedules: dict[str, Schedule], notes: dict[str, str]
) -> Mapping[str, Setting]:
    """Schedules of static and cron, those that are asked for; the autoscalers of reactive, if it is."""
    pasts = [past_needs(one, past.series[one.name], time_zone=fleet.time_zone) for one in fleet.workloads]
    static = {one.workload.name: static_replicas(one, fleet.confidence) for one in pasts}
    until = _end(fleet, fold)
    if STATIC in trial.against:
        always = {name: (count,) for name, count in static.items()}
        schedules[STATIC] = hand_schedule(fleet, ALL_DAY, always, valid_until=until)
        notes[STATIC] = "all day the replicas of each workload's worst past window"
    if CRON in trial.against:
        chosen = hand_set(pasts, fleet.confidence)
        parts = {name: (chosen.day[name], chosen.night[name]) for name in static}
        schedules[CRON] = hand_schedule(fleet, chosen.windows, parts, valid_until=until)
        notes[CRON] = (
            f"day from {chosen.starts_h:02}:00 to {chosen.ends_h:02}:00, held {chosen.held_share:.1%} of past windows "
            f"(static {chosen.static_share:.1%})"
        )
    if REACTIVE not in trial.against:
        return {}
    tunings = {}
    for number, one in enumerate(fleet.workloads):
        trial.stage(f"tuning the autoscaler, {_name(fold)}", number, len(fleet.workloads))
        own, own_seed = past.series[one.name], (trial.seed, fold.number, number, 1)
        tunings[one.name] = tuned_target(fleet, one, own, static[one.name], seed=own_seed)
    notes[REACTIVE] = "; ".join(f"{name} {tuning}" for name, tuning in tunings.items())
    return {one.name: autoscaler_of(fleet, one, tunings[one.name].target) for one in fleet.workloads}


def _name(fold: Fold) -> str:
    return f"stretch {fold.number + 1}"


def _silent(name: str, done: int, total: int) -> None:
    """Planning inside a fold is one step."""
