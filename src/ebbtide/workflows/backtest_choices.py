"""What every policy chooses for one tested stretch, from the past alone; hindsight from the stretch itself.

What belongs here: schedules, autoscalers' targets, and what is said of them. What doesn't: what becomes of them
(``backtest_plans``, ``replay``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from whenever import Instant, OffsetDateTime, Time

from ebbtide.allocate.choose import DemandOf
from ebbtide.allocate.plan import plan_fleet, schedule_of
from ebbtide.errors import InputError
from ebbtide.fleet.demand import Floats, Seen, Series
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import WEEK, DatedException, DayPattern, Window, windows_of
from ebbtide.fleet.planned import WindowDemand
from ebbtide.fleet.schedule import Schedule
from ebbtide.fleet.workload import Workload
from ebbtide.forecast.margin import Tuning
from ebbtide.forecast.measured import arrival_scv
from ebbtide.forecast.seasonal import NO_MARGIN
from ebbtide.simulate.autoscaler import Autoscaler
from ebbtide.simulate.hand_schedule import hand_schedule
from ebbtide.simulate.plays import TunedTarget, autoscaler_of, tuned_target, tuning_stream
from ebbtide.simulate.policies import PastNeeds, hand_set, past_needs, static_replicas
from ebbtide.simulate.streams import rates_through_gaps
from ebbtide.workflows.backtest_span import Fold
from ebbtide.workflows.backtest_trial import CRON, EBBTIDE, HINDSIGHT, REACTIVE, STATIC, Trial
from ebbtide.workflows.demand import Demand
from ebbtide.workflows.planning import Planned, tuned
from ebbtide.workflows.side_by_side import Tell, side_by_side

ALL_DAY = windows_of(DayPattern(days=WEEK, starts=(Time(0),)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Choices:
    """By policy its schedule and what it chose, in words; by workload the autoscaler of reactive, if it takes part."""

    schedules: Mapping[str, Schedule]
    autoscalers: Mapping[str, Autoscaler]
    notes: Mapping[str, str]


def choices_of(fleet: Fleet, demand: Demand, fold: Fold, trial: Trial) -> Choices:
    """The choices for a fold; nothing that goes wrong is known yet. ``InputError`` where a window has no past day."""
    past = part(demand, None, fold.start_s)
    trial.stage(f"planning, {fold.name}", 0, 1)
    tuning = tuned(fleet, past)
    planned = Planned(fleet=fleet, demand=past, tuning=tuning)
    schedules = {EBBTIDE: _schedule(fleet, planned, fold)}
    notes = {EBBTIDE: f"margin {tuning}"}
    if HINDSIGHT in trial.against:
        schedules[HINDSIGHT] = _schedule(fleet, _hindsight(fleet, demand, fold, tuning, planned), fold)
        notes[HINDSIGHT] = "planned on the tested days' own rates, without margin"
    found = Choices(schedules=schedules, autoscalers={}, notes=notes)
    if not {STATIC, CRON, REACTIVE} & set(trial.against):
        return found
    pasts = [past_needs(one, past.series[one.name], time_zone=fleet.time_zone) for one in fleet.workloads]
    static = {one.workload.name: static_replicas(one, fleet.confidence) for one in pasts}
    _by_hand(fleet, pasts, static, fold, trial, schedules, notes)
    return _with_autoscalers(found, fleet, past, fold, trial, static) if REACTIVE in trial.against else found


def retuned(choices: Choices, fleet: Fleet, demand: Demand, fold: Fold, trial: Trial) -> Choices:
    """The same choices for a trial of another seed: only the autoscalers' targets depend on it."""
    past = part(demand, None, fold.start_s)
    pasts = (past_needs(one, past.series[one.name], time_zone=fleet.time_zone) for one in fleet.workloads)
    static = {one.workload.name: static_replicas(one, fleet.confidence) for one in pasts}
    return _with_autoscalers(choices, fleet, past, fold, trial, static)


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


def as_replayed(series: Series) -> Series:
    """The series as it is replayed: a gap at the rate interpolated over it, burstiness as the streams have it."""
    return replace(
        series,
        rate_rps=rates_through_gaps(series),
        seen=np.full(len(series.seen), Seen.OBSERVED, dtype=series.seen.dtype),
        arrival_scv=arrival_scv(series),
    )


def _hindsight(fleet: Fleet, demand: Demand, fold: Fold, tuning: Tuning, planned: Planned) -> DemandOf:
    """What the stretch itself asked of a window; of one that no day of the stretch speaks for, what is planned anyway.

    A stretch of one day says nothing of another weekday's windows, and none of them is in force in it. A night that the
    stretch's ends cut in two counts as two: both parts are replayed, and of neither the other is known.
    """
    replayed = replace(demand, series={name: as_replayed(one) for name, one in demand.series.items()})
    bare = replace(tuning, margins=dict.fromkeys(replayed.series, NO_MARGIN))
    own = Planned(fleet=fleet, demand=part(replayed, fold.start_s, fold.end_s), tuning=bare, least_observed=0.0)

    def demand_of(workload: str, window: Window, exception: DatedException | None, /) -> WindowDemand:
        try:
            return own(workload, window, exception)
        except InputError as error:
            if error.kind != "no_past_days":
                raise
            return planned(workload, window, exception)

    return demand_of


def _schedule(fleet: Fleet, demand_of: DemandOf, fold: Fold) -> Schedule:
    begin = Instant.from_timestamp(fold.start_s).to_tz(fleet.time_zone).to_fixed_offset()
    end = _end(fleet, fold)
    return schedule_of(plan_fleet(fleet, demand_of, at=begin, valid_until=end, progress=_silent), valid_until=end)


def _end(fleet: Fleet, fold: Fold) -> OffsetDateTime:
    return Instant.from_timestamp(fold.end_s).to_tz(fleet.time_zone).to_fixed_offset()


def _by_hand(
    fleet: Fleet,
    pasts: Sequence[PastNeeds],
    static: Mapping[str, int],
    fold: Fold,
    trial: Trial,
    schedules: dict[str, Schedule],
    notes: dict[str, str],
) -> None:
    """Adds the schedules of static and cron, those that are asked for."""
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


def _with_autoscalers(
    choices: Choices, fleet: Fleet, past: Demand, fold: Fold, trial: Trial, static: Mapping[str, int]
) -> Choices:
    tunings = _tunings(fleet, past, fold, trial, static)
    note = "; ".join(f"{name} {tuning}" for name, tuning in tunings.items())
    return replace(
        choices,
        autoscalers={one.name: autoscaler_of(fleet, one, tunings[one.name].target) for one in fleet.workloads},
        notes={**choices.notes, REACTIVE: note},
    )


def _tunings(
    fleet: Fleet, past: Demand, fold: Fold, trial: Trial, static: Mapping[str, int]
) -> Mapping[str, TunedTarget]:
    """Every workload's target, each for itself."""

    def tell(share: float) -> None:
        trial.stage(f"tuning the autoscaler, {fold.name}", int(1000 * share), 1000)

    tell(0.0)
    found = side_by_side(
        [
            partial(
                _tuned_one, fleet, one, past.series[one.name], static[one.name], (trial.seed, fold.number, number, 1)
            )
            for number, one in enumerate(fleet.workloads)
        ],
        weights=[tuning_stream(one, past.series[one.name]).expected_requests for one in fleet.workloads],
        tell=tell,
    )
    return {one.name: tuning for one, tuning in zip(fleet.workloads, found, strict=True)}


def _tuned_one(
    fleet: Fleet, workload: Workload, series: Series, static: int, seed: tuple[int, ...], tell: Tell
) -> TunedTarget:
    return tuned_target(fleet, workload, series, static, seed=seed, progress=tell)


def _silent(name: str, done: int, total: int) -> None:
    """Planning inside a fold is one step."""
