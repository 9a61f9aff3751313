"""Which days a backtest replays: all, the last ones asked for, or as many as have not too many requests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from whenever import Time

from ebbtide.fleet.demand import Seen, Series, Trace
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import WEEK, DayPattern
from ebbtide.fleet.workload import DemandRef, Service, Target, TargetKind, Workload
from ebbtide.workflows.backtest_span import days_of, days_that_fit, folds_of, last_days
from ebbtide.workflows.demand import Demand

DAY_S = 86_400


def case(days: int, rps: float) -> tuple[Fleet, Demand]:
    chat = Workload(
        name="chat",
        demand=DemandRef(source="s", key="chat"),
        pool="h100",
        gpus_per_replica=1,
        service=Service(time_s=6.0, scv=1.0),
        targets=(Target(kind=TargetKind.WAIT, bound_s=2.0),),
    )
    fleet = Fleet(
        name="f", digest="", time_zone="UTC", confidence=0.9, patterns=(), pools=(), workloads=(chat,), research=None
    )
    count = days * 24
    series = Series(
        key="chat",
        start_s=0,
        interval_s=3600,
        rate_rps=np.full(count, rps),
        seen=np.full(count, Seen.OBSERVED, dtype=np.uint8),
    )
    trace = Trace(source="s", files=(), sha256="", interval_s=3600, series={"chat": series})
    return fleet, Demand(traces={"s": trace}, series={"chat": series}, records=())


def test_the_last_days_are_cut_out_and_all_before_them_is_past() -> None:
    fleet, demand = case(21, 1.0)
    unit, folds = folds_of(fleet, demand)
    assert (unit, [one.start_s // DAY_S for one in folds]) == ("week", [7, 14])
    two = last_days(fleet, folds, 2)
    assert [(one.number, one.start_s // DAY_S, one.end_s // DAY_S) for one in two] == [(1, 19, 21)]
    nine = last_days(fleet, folds, 9)
    assert [(one.start_s // DAY_S, one.end_s // DAY_S) for one in nine] == [(12, 14), (14, 21)]
    assert last_days(fleet, folds, 99) == folds
    assert (days_of(two), days_of(nine), days_of(folds)) == (2, 9, 14)


@pytest.mark.parametrize(("rps", "days"), [(1.0, 7), (40e6 / DAY_S / 3, 3), (1e6, 1)])
def test_as_many_days_as_have_forty_million_requests(rps: float, days: int) -> None:
    fleet, demand = case(14, rps * (1 - 1e-9))
    assert days_that_fit(fleet, demand, folds_of(fleet, demand)[1]) == days


def test_the_first_days_tested_have_a_past_for_every_weekday_pattern() -> None:
    fleet, demand = case(9, 1.0)  # from a Thursday on
    week = replace(
        fleet, patterns=(DayPattern(days=WEEK[:5], starts=(Time(0),)), DayPattern(days=WEEK[5:], starts=(Time(0),)))
    )
    assert folds_of(fleet, demand)[1][0].start_s == 2 * DAY_S
    assert folds_of(week, demand)[1][0].start_s == 3 * DAY_S
    short = replace(week, patterns=(replace(week.patterns[0]), replace(week.patterns[1], days=WEEK[3:4])))
    assert len(folds_of(short, case(4, 1.0)[1])[1]) >= 1, "planning says by name which window has no past"
