"""The margin is chosen on past days only: cheapest that held, and honest about few days."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from whenever import Time

from ebbtide.errors import InputError
from ebbtide.fleet.demand import Seen, Series
from ebbtide.fleet.horizon import WEEK, DayPattern, windows_of
from ebbtide.fleet.planned import Ints
from ebbtide.fleet.workload import Balancing, DemandRef, Service, Target, TargetKind, Workload
from ebbtide.forecast.margin import ASSUMED, Tuning, tune_margins
from ebbtide.forecast.seasonal import Margin, window_demand
from ebbtide.forecast.trials import FACTORS, NEIGHBOURS_S, Past
from ebbtide.queueing.curves import StationShape, required_replicas

WINDOWS = windows_of(DayPattern(days=WEEK, starts=tuple(Time(hour) for hour in range(0, 24, 4))))
TARGET = Target(kind=TargetKind.WAIT, bound_s=5.0)


def past(name: str, by_day: list[float], *, wave: float = 0.0) -> Past:
    """A workload whose rate is each day's level, with a daily wave on top; hourly."""
    hour = np.arange(24 * len(by_day))
    rates = np.repeat(by_day, 24) * (1 + wave * np.sin(2 * np.pi * hour / 24))
    series = Series(key=name, start_s=0, interval_s=3600, rate_rps=rates, seen=np.zeros(len(rates), np.uint8))
    workload = Workload(
        name=name,
        demand=DemandRef(source="s", key=name),
        pool="p",
        gpus_per_replica=2,
        service=Service(time_s=10.0, scv=1.0),
        targets=(TARGET,),
        balancing=Balancing.POOLED,
    )
    return Past(workload=workload, series=series)


def tune(*pasts: Past, confidence: float = 0.95, wished_share: float | None = None) -> Tuning:
    return tune_margins(pasts, WINDOWS, time_zone="UTC", confidence=confidence, wished_share=wished_share)


def needs(one: Past, margin: Margin, days: int) -> Ints:
    """Oracle: the worst of the first ``days`` days' needs, by window, each scenario sized on its own."""
    series = replace(one.series, rate_rps=one.series.rate_rps[: 24 * days], seen=one.series.seen[: 24 * days])
    worst = []
    for window in WINDOWS:
        demand = window_demand(series, window, time_zone="UTC", margin=margin, service_time_s=10.0, service_scv=1.0)
        found = required_replicas(
            StationShape(slots=1, balancing=Balancing.POOLED, patience_s=math.inf),
            TARGET,
            rates_rps=demand.rates_rps,
            scv=demand.scv,
            service_time_s=np.full(len(demand.day), 10.0),
            service_scv=np.ones(len(demand.day)),
            offsets=demand.offsets,
            at_most=10_000,
        )
        worst.append(int(found.max()))
    return np.array(worst)


def test_days_that_are_all_alike_need_no_margin() -> None:
    tuning = tune(past("steady", [6.0] * 8, wave=0.5))
    assert tuning.margins == {"steady": Margin()}
    assert (tuning.trials, tuning.held_share, tuning.assumed) == (6 * len(WINDOWS), 1.0, False)


def test_days_that_grow_by_a_tenth_get_the_least_factor_that_covers_growth() -> None:
    growing = past("growing", [6.0 * 1.1**day for day in range(8)])
    assert tune(growing, wished_share=1.0).margins["growing"] == Margin(factor=1.1)


def test_a_wave_that_comes_early_some_days_is_met_by_neighbours_where_that_is_cheaper() -> None:
    on_time = past("wave", [6.0] * 12, wave=0.9)
    rates = on_time.series.rate_rps.copy()
    for day in (5, 8, 11):
        rates[24 * day : 24 * day + 23] = rates[24 * day + 1 : 24 * (day + 1)]  # an hour early
    rates[24 * 3 : 24 * 3 + 23] = rates[24 * 3 + 1 : 24 * 4]
    early = Past(workload=on_time.workload, series=replace(on_time.series, rate_rps=rates))
    tuning = tune(early, wished_share=1.0)
    assert tuning.held_share == 1.0
    assert tuning.margins["wave"] == Margin(neighbour_s=1800)  # with intervals of an hour as good as an hour


def test_what_it_says_it_held_and_cost_is_what_planning_day_by_day_gives() -> None:
    rng = np.random.default_rng(3)
    one = past("chat", list(6.0 * rng.uniform(0.7, 1.4, 7)), wave=0.4)
    tuning = tune(one, confidence=1.0, wished_share=0.9)
    true = [needs(Past(workload=one.workload, series=_day(one.series, day)), Margin(), 1) for day in range(7)]

    def held_and_cost(margin: Margin) -> tuple[int, int]:
        plans = [needs(one, margin, day) for day in range(2, 7)]
        pairs = list(zip(plans, true[2:], strict=True))
        return sum(int((plan >= need).sum()) for plan, need in pairs), sum(int(plan.sum()) for plan in plans)

    outcomes = {
        (neighbour_s, factor): held_and_cost(Margin(neighbour_s=neighbour_s, factor=factor))
        for neighbour_s in NEIGHBOURS_S
        for factor in FACTORS
    }
    chosen = tuning.margins["chat"]
    held, cost = outcomes[chosen.neighbour_s, chosen.factor]
    assert tuning.held_shares["chat"] == pytest.approx(held / (5 * len(WINDOWS)))
    assert held >= 0.9 * 5 * len(WINDOWS)
    assert not [place for place, (h, c) in outcomes.items() if h >= held and c < cost]


def _day(series: Series, day: int) -> Series:
    part = slice(24 * day, 24 * (day + 1))
    return replace(series, start_s=86_400 * day, rate_rps=series.rate_rps[part], seen=series.seen[part])


def test_later_days_never_change_the_margin_of_earlier_ones() -> None:
    days = [6.0, 7.0, 5.0, 8.0, 6.5, 7.5]
    known = tune(past("chat", days))
    longer = past("chat", [*days, 60.0])
    cut = replace(longer.series, rate_rps=longer.series.rate_rps[: 24 * 6], seen=longer.series.seen[: 24 * 6])
    assert tune(Past(workload=longer.workload, series=cut)).margins == known.margins


def test_few_days_give_the_assumed_margin_and_say_so() -> None:
    tuning = tune(past("young", [6.0, 7.0]), past("new", [6.0]))
    assert (tuning.assumed, tuning.trials) == (True, 0)
    assert tuning.margins == {"young": ASSUMED, "new": ASSUMED}
    assert "assumed" in str(tuning)


def test_a_young_workload_among_others_is_judged_by_them() -> None:
    wild = past("wild", [4.0, 6.0, 3.0, 8.0, 5.0, 10.0, 4.0, 12.0])
    tuning = tune(wild, past("young", [6.0]), wished_share=1.0)
    assert tuning.margins["young"] == tuning.margins["wild"]
    assert tuning.margins["young"].factor > 1.0
    assert "young" not in tuning.held_shares


def test_a_steady_workload_does_not_pay_for_a_wild_one_in_full() -> None:
    wild = past("wild", [4.0, 6.0, 3.0, 8.0, 5.0, 10.0, 4.0, 12.0])
    tuning = tune(wild, past("steady", [6.0] * 8), wished_share=0.9)
    assert tuning.margins["steady"].factor < tuning.margins["wild"].factor


def test_a_share_that_no_margin_reaches_gives_the_greatest_that_one_reaches() -> None:
    leaping = past("leaping", [2.0 * 3.0**day for day in range(6)])
    tuning = tune(leaping, wished_share=1.0)
    assert tuning.held_share < 1.0
    assert not tuning.assumed


def test_outages_are_no_trials() -> None:
    seen = past("chat", [6.0] * 6)
    seen.series.seen[24 * 4 : 24 * 5] = Seen.OUTAGE
    seen.series.rate_rps[24 * 4 : 24 * 5] = np.nan
    assert tune(seen).trials == 3 * len(WINDOWS)


def test_no_past_day_is_refused() -> None:
    empty = past("chat", [6.0])
    empty.series.seen[:] = Seen.MISSING
    with pytest.raises(InputError, match="no past day"):
        tune(empty)


@settings(max_examples=15, deadline=None)
@given(levels=st.lists(st.floats(1.0, 20.0), min_size=6, max_size=9), wished=st.floats(0.5, 1.0))
def test_the_wished_share_is_held_wherever_the_widest_margin_holds_it(levels: list[float], wished: float) -> None:
    tuning = tune(past("chat", levels), wished_share=wished)
    widest = tune(past("chat", levels), wished_share=1.0)
    assert tuning.held_share >= min(wished, widest.held_share) - 1e-9
