"""What hindsight plans on: all that is replayed, and nothing of it twice or not at all."""

from __future__ import annotations

import numpy as np
from whenever import Time

from ebbtide.fleet.demand import Seen, Series, Trace
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import WEEK, DayPattern
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.schedule import Schedule
from ebbtide.fleet.workload import DemandRef, Service, Target, TargetKind, Workload
from ebbtide.simulate.streams import stream_of
from ebbtide.workflows.backtest_choices import as_replayed, choices_of
from ebbtide.workflows.backtest_span import folds_of, last_days
from ebbtide.workflows.backtest_trial import EBBTIDE, HINDSIGHT, Trial
from ebbtide.workflows.demand import Demand

HOURS = np.arange(24)
DAY = np.where(HOURS < 8, 1.0, np.where(HOURS < 17, 2.0, 10.0))  # requests a second: quiet, busy, an evening's peak
SERVICE_S = 6.0


def fleet(*patterns: DayPattern) -> Fleet:
    chat = Workload(
        name="chat",
        demand=DemandRef(source="s", key="chat"),
        pool="h100",
        gpus_per_replica=1,
        service=Service(time_s=SERVICE_S, scv=1.0),
        targets=(Target(kind=TargetKind.WAIT, bound_s=2.0),),
    )
    return Fleet(
        name="f",
        digest="",
        time_zone="UTC",
        confidence=0.9,
        patterns=patterns,
        pools=(Pool(name="h100", gpus_per_node=8, nodes=20),),
        workloads=(chat,),
        research=Research(),
    )


def demand(days: list[float], lost: slice | None = None) -> Demand:
    """Days of the same shape at different heights; ``lost`` hours were not observed. Day 0 is a Thursday."""
    rates = np.concatenate([height * DAY for height in days])
    seen = np.full(len(rates), Seen.OBSERVED, dtype=np.uint8)
    if lost is not None:
        rates[lost], seen[lost] = np.nan, Seen.OUTAGE
    series = Series(key="chat", start_s=0, interval_s=3600, rate_rps=rates, seen=seen)
    trace = Trace(source="s", files=(), sha256="", interval_s=3600, series={"chat": series})
    return Demand(traces={"s": trace}, series={"chat": series}, records=())


def last_day(fleet: Fleet, demand: Demand) -> dict[str, Schedule]:
    fold = last_days(fleet, folds_of(fleet, demand)[1], 1)[0]
    trial = Trial(against=(HINDSIGHT,), seed=1, stage=lambda name, done, total: None)
    return dict(choices_of(fleet, demand, fold, trial).schedules)


def replicas(schedule: Schedule) -> dict[str, int]:
    return dict(
        zip((str(window.start)[:5] for window in schedule.windows), schedule.workloads[0].replicas, strict=True)
    )


def test_a_night_that_the_days_ends_cut_is_planned_for_both_of_its_parts() -> None:
    night = fleet(DayPattern(days=WEEK, starts=(Time(8), Time(17))))
    found = last_day(night, demand([1.0, 1.0, 1.0, 2.0]))
    assert replicas(found[HINDSIGHT])["17:00"] > 2 * 10.0 * SERVICE_S, "the evening of the day itself"
    assert replicas(found[EBBTIDE])["17:00"] < 2 * 10.0 * SERVICE_S, "which no past day foretold"


def test_an_hour_that_nobody_saw_is_planned_as_it_is_replayed() -> None:
    hourly = fleet(DayPattern(days=WEEK, starts=(Time(0), Time(8), Time(9), Time(17))))
    holed = demand([1.0, 1.0, 1.0, 1.0], lost=slice(3 * 24 + 8, 3 * 24 + 9))
    filled = as_replayed(holed.series["chat"])
    stream = stream_of(hourly.workloads[0], holed.series["chat"], start_s=3 * 86400, end_s=4 * 86400)
    assert filled.observed.all()
    assert filled.rate_rps[72:].tolist() == stream.rates_rps.tolist()
    assert replicas(last_day(hourly, holed)[HINDSIGHT])["08:00"] >= 1.5 * SERVICE_S


def test_a_day_says_nothing_of_other_weekdays_windows_and_need_not() -> None:
    week = fleet(DayPattern(days=WEEK[:5], starts=(Time(0),)), DayPattern(days=WEEK[5:], starts=(Time(0),)))
    found = last_day(week, demand([1.0, 1.0, 1.0, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0]))  # Thursday to Friday
    by_days = {
        "+".join(window.days): count
        for window, count in zip(found[HINDSIGHT].windows, found[HINDSIGHT].workloads[0].replicas, strict=True)
    }
    planned = dict(zip(by_days, found[EBBTIDE].workloads[0].replicas, strict=True))
    assert by_days["Sat+Sun"] == planned["Sat+Sun"]
    assert by_days["Mon+Tue+Wed+Thu+Fri"] < planned["Sat+Sun"]
