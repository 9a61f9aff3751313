"""The margin is chosen on past days only: cheapest that held, and honest about few days."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product, starmap

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
from ebbtide.forecast.margin import ASSUMED, BELOW_STATIC, Tuning, tune_margins
from ebbtide.forecast.needs import Past
from ebbtide.forecast.seasonal import Margin, window_demand
from ebbtide.forecast.trials import CEILINGS, FACTORS, NEIGHBOURS_S, try_margins
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


def tune(*pasts: Past, confidence: float = 0.95, wished: float | None = None) -> Tuning:
    return tune_margins(pasts, WINDOWS, time_zone="UTC", confidence=confidence, wished=wished)


def needs(one: Past, margin: Margin, days: int, *, hours: int = 0) -> Ints:
    """Oracle: the worst of the first ``days`` days' needs, by window, each scenario sized on its own.

    The last window's later neighbours reach ``hours`` into the next day.
    """
    end = 24 * days + hours
    series = replace(one.series, rate_rps=one.series.rate_rps[:end], seen=one.series.seen[:end])
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
    assert tune(growing, wished=1.0).margins["growing"] == Margin(factor=1.1)


def test_a_morning_that_comes_early_some_days_is_met_by_neighbours_where_that_is_cheaper() -> None:
    day = np.where((np.arange(24) >= 8) & (np.arange(24) < 20), 10.0, 1.0)
    early_day = np.where((np.arange(24) >= 7) & (np.arange(24) < 20), 10.0, 1.0)  # no factor lifts 1 to 10
    rates = np.concatenate([early_day if number in (3, 5, 8, 11) else day for number in range(12)])
    on_time = past("morning", [6.0] * 12)
    tuning = tune(Past(workload=on_time.workload, series=replace(on_time.series, rate_rps=rates)), wished=1.0)
    assert tuning.held_share == 1.0
    assert tuning.margins["morning"] == Margin(neighbour_s=1800)  # with intervals of an hour as good as an hour


def test_what_every_margin_held_and_cost_is_what_planning_day_by_day_gives() -> None:
    rng = np.random.default_rng(3)
    one = past("chat", list(6.0 * rng.uniform(0.7, 1.4, 6)), wave=0.4)
    true = [needs(Past(workload=one.workload, series=_day(one.series, day)), Margin(), 1) for day in range(6)]

    def held_and_cost(neighbour_s: int, factor: float, ceiling: float) -> tuple[int, int]:
        ceilings = [ceiling * busiest_rps(one, day) for day in range(2, 6)]
        margins = [Margin(neighbour_s=neighbour_s, factor=factor, ceiling_rps=rps) for rps in ceilings]
        plans = [needs(one, margin, day, hours=1) for day, margin in enumerate(margins, start=2)]
        pairs = list(zip(plans, true[2:], strict=True))
        return sum(int((plan >= need).sum()) for plan, need in pairs), sum(int(plan.sum()) for plan in plans)

    outcomes = np.array(list(starmap(held_and_cost, product(NEIGHBOURS_S, FACTORS, CEILINGS))))
    tried = try_margins(one, WINDOWS, "UTC", 0.95, ())
    assert tried.held.ravel().tolist() == outcomes[:, 0].tolist()
    assert tried.gpu_h.ravel().tolist() == (outcomes[:, 1] * 4.0 * one.workload.gpus_per_replica).tolist()
    assert tried.busiest_rps == pytest.approx(busiest_rps(one, 6))
    assert len(set(outcomes[:, 1].tolist())) > 30  # the margins are told apart
    tuning = tune(one, confidence=1.0, wished=0.9)
    chosen = [place for place in np.ndindex(tried.held.shape) if tried.margin(*place) == tuning.margins["chat"]]
    held, gpu_h = tried.held[chosen[0]], tried.gpu_h[chosen[0]]
    assert tuning.held_shares["chat"] == held / tried.count >= 0.9
    assert not ((tried.held >= held) & (tried.gpu_h < gpu_h)).any()


def busiest_rps(one: Past, days: int) -> float:
    """Oracle: the greatest mean rate of a window of the first ``days`` days; the windows are four hours long."""
    return float(one.series.rate_rps[: 24 * days].reshape(-1, 4).mean(axis=1).max())


def _day(series: Series, day: int) -> Series:
    part = slice(24 * day, 24 * (day + 1))
    return replace(series, start_s=86_400 * day, rate_rps=series.rate_rps[part], seen=series.seen[part])


def static_held(*pasts: Past) -> tuple[int, int]:
    """Oracle: trials, and those that the worst window of the days before had the replicas for, day by day."""
    held = trials = 0
    for one in pasts:
        days = len(one.series.rate_rps) // 24
        true = [needs(Past(workload=one.workload, series=_day(one.series, day)), Margin(), 1) for day in range(days)]
        for day in range(2, days):
            held += int((np.max(true[:day]) >= true[day]).sum())
            trials += len(WINDOWS)
    return held, trials


def test_the_static_share_is_what_the_worst_window_of_the_days_before_would_have_held() -> None:
    rng = np.random.default_rng(7)
    two = past("chat", list(6.0 * rng.uniform(0.7, 1.4, 7)), wave=0.1), past("wild", [4.0, 6.0, 3.0, 8.0, 5.0, 9.0])
    held, trials = static_held(*two)
    assert 0 < held < trials
    tuning = tune(*two)
    assert (tuning.trials, tuning.static_share) == (trials, pytest.approx(held / trials))


def test_where_a_static_peak_holds_more_than_the_confidence_half_a_point_less_than_it_is_wished() -> None:
    wavy = past("wavy", [6.0, 7.0, 5.5, 6.5, 7.0, 6.0, 5.0, 6.9], wave=0.6)
    low = tune(wavy, confidence=0.6)
    assert low.static_share > 0.8
    assert low.wished_share == low.static_share - BELOW_STATIC
    assert low.held_share >= low.wished_share


def test_where_a_static_peak_holds_less_than_the_confidence_the_confidence_is_wished() -> None:
    growing = past("growing", [6.0 * 1.1**day for day in range(8)])
    tuning = tune(growing, confidence=0.9)
    assert tuning.static_share == 0.0
    assert tuning.wished_share == 0.9
    assert tuning.held_share >= 0.9


def test_of_fewer_than_twenty_days_the_worst_counts_at_the_default_confidence_as_at_one() -> None:
    rng = np.random.default_rng(5)
    chat = past("chat", list(6.0 * rng.uniform(0.7, 1.4, 19)), wave=0.4)
    default, worst = (tune(chat, confidence=confidence, wished=0.98) for confidence in (0.95, 1.0))
    assert default == worst
    longer = past("chat", [12.0, *([6.0] * 22), 9.0])  # on the last of 24 days 95 % of the others needed less
    assert tune(longer, confidence=1.0).static_share == 1.0
    assert tune(longer, confidence=0.95).static_share == pytest.approx(21 / 22)


def test_a_flat_service_whose_windows_swap_is_capped_at_its_busiest_instead_of_lifted_everywhere() -> None:
    """What one window needs today any other may need tomorrow, and none ever more: a static peak is the best plan."""
    flat = past("flat", [6.0] * 9)
    rates = flat.series.rate_rps.copy().reshape(9, 6, 4)
    rng = np.random.default_rng(1)
    for day in range(9):
        rates[day, rng.integers(6)] *= 1.9
    swapping = Past(workload=flat.workload, series=replace(flat.series, rate_rps=rates.ravel()))
    tuning = tune(swapping, wished=1.0)
    assert tuning.margins["flat"] == Margin(factor=2.0, ceiling_rps=6.0 * 1.9)
    assert tuning.held_share == 1.0


def test_a_service_that_has_no_load_at_first_is_tried_without_a_warning() -> None:
    tuning = tune(past("launched", [0.0, 0.0, 0.0, 0.0, 5e-324, 6.0, 6.0]))
    assert tuning.trials == 5 * len(WINDOWS)


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
    tuning = tune(wild, past("young", [6.0]), wished=1.0)
    assert tuning.margins["young"] == tuning.margins["wild"]
    assert tuning.margins["young"].factor > 1.0
    assert "young" not in tuning.held_shares


def test_a_steady_workload_does_not_pay_for_a_wild_one_in_full() -> None:
    wild = past("wild", [4.0, 6.0, 3.0, 8.0, 5.0, 10.0, 4.0, 12.0])
    tuning = tune(wild, past("steady", [6.0] * 8), wished=0.9)
    assert tuning.margins["steady"].factor < tuning.margins["wild"].factor


def test_a_share_that_no_margin_reaches_gives_the_greatest_that_one_reaches() -> None:
    leaping = past("leaping", [2.0 * 3.0**day for day in range(6)])
    tuning = tune(leaping, wished=1.0)
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


@settings(max_examples=15)
@given(levels=st.lists(st.floats(1.0, 20.0), min_size=6, max_size=9), wished=st.floats(0.5, 1.0))
def test_the_wished_share_is_held_wherever_the_widest_margin_holds_it(levels: list[float], wished: float) -> None:
    tuning = tune(past("chat", levels), wished=wished)
    widest = tune(past("chat", levels), wished=1.0)
    assert tuning.held_share >= min(wished, widest.held_share) - 1e-9
