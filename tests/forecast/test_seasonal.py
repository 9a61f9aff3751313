"""Which past intervals speak for a window, and what stands in where nothing was seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from whenever import Date, Time

from ebbtide.errors import InputError
from ebbtide.fleet.demand import Seen, Series
from ebbtide.fleet.horizon import WEEK, DatedException, Weekday, Window
from ebbtide.fleet.planned import WindowDemand
from ebbtide.forecast.calendar import instant_s
from ebbtide.forecast.seasonal import Margin, window_demand

SHANGHAI = "Asia/Shanghai"
MONDAY_S = instant_s(Date(2026, 8, 31), Time(0), SHANGHAI)
MORNING = Window(name="all-0800", days=WEEK, start=Time(8), end=Time(10))


def hours(days: int, *, interval_s: int = 3600, **measured: object) -> Series:
    """Rates that name their interval: day × 100 + hour of the day."""
    count = days * 86_400 // interval_s
    t_s = np.arange(count) * interval_s
    rates = (t_s // 86_400 * 100 + t_s % 86_400 / 3600).astype(float)
    return Series(
        key="m/c5", start_s=MONDAY_S, interval_s=interval_s, rate_rps=rates, seen=np.zeros(count, np.uint8), **measured
    )


def plan(series: Series, window: Window = MORNING, **options: object) -> WindowDemand:
    known = {"time_zone": SHANGHAI, "service_time_s": 10.0, "service_scv": 1.0}
    return window_demand(series, window, **(known | options))


def hide(series: Series, *intervals: int, state: Seen = Seen.OUTAGE) -> Series:
    series.seen[list(intervals)] = state
    series.rate_rps[list(intervals)] = np.nan
    return series


def by_scenario(demand: WindowDemand) -> list[list[float]]:
    return [part.tolist() for part in np.split(demand.rates_rps, demand.offsets[1:-1])]


def test_each_past_day_is_a_scenario() -> None:
    demand = plan(hours(3))
    assert by_scenario(demand) == [[8, 9], [108, 109], [208, 209]]
    assert demand.day.tolist() == [0, 1, 2]
    assert (demand.days, demand.service_time_s) == (3, 10.0)


def test_the_margin_adds_shifted_scenarios_of_the_same_day_and_a_factor_but_no_money() -> None:
    demand = plan(hours(2, interval_s=7200), margin=Margin(neighbour_s=1800, factor=2.0))
    assert by_scenario(demand) == [[16], [216], [16], [216], [20], [220]]
    assert demand.day.tolist() == [0, 1, 0, 1, 0, 1]
    assert demand.value_rates_rps.tolist() == [8, 108]


def test_outages_are_missing_and_a_day_of_which_less_than_half_was_seen_is_no_day() -> None:
    demand = plan(hide(hours(3, interval_s=1800), 16, 48 + 16, 48 + 17, 48 + 18))  # one of four, then three of four
    assert by_scenario(demand) == [[8.5, 9, 9.5], [208, 208.5, 209, 209.5]]
    assert demand.day.tolist() == [0, 1]
    assert np.isfinite(demand.rates_rps).all()


def test_a_day_that_counts_by_its_neighbours_only_does_not_count() -> None:
    demand = plan(hide(hours(2), 8, 9), margin=Margin(neighbour_s=1800))
    assert by_scenario(demand) == [[108, 109], [108, 109], [109, 110]]
    assert demand.days == 1


def test_half_a_window_at_the_end_of_the_trace_counts_and_less_does_not() -> None:
    whole = hours(2)
    for kept, days in ((24 + 9, 2), (24 + 8, 1)):
        cut = Series(key="k", start_s=MONDAY_S, interval_s=3600, rate_rps=whole.rate_rps[:kept], seen=whole.seen[:kept])
        assert plan(cut).days == days


def test_intervals_longer_than_the_window_speak_where_they_overlap_it() -> None:
    quarter = Window(name="w", days=WEEK, start=Time(8, 45), end=Time(9, 15))
    assert by_scenario(plan(hours(1), quarter)) == [[9]]  # the interval that starts inside
    inside = Window(name="w", days=WEEK, start=Time(8, 15), end=Time(8, 45))
    assert by_scenario(plan(hours(1), inside)) == [[8]]
    across = Window(name="w", days=WEEK, start=Time(7), end=Time(9))
    assert by_scenario(plan(hours(1, interval_s=6 * 3600), across)) == [[6]]


def test_a_day_of_25_hours_has_25() -> None:
    start_s = instant_s(Date(2014, 11, 2), Time(0), "America/New_York")
    series = Series(key="taxi", start_s=start_s, interval_s=3600, rate_rps=np.arange(49.0), seen=np.zeros(49, np.uint8))
    night = Window(name="w", days=WEEK, start=Time(0), end=Time(4))
    demand = plan(series, night, time_zone="America/New_York")
    assert by_scenario(demand) == [[0, 1, 2, 3, 4], [25, 26, 27, 28]]


def test_a_past_exception_counts_as_its_like_and_is_divided_by_its_factor() -> None:
    holiday = DatedException(
        name="h", start=Date(2026, 9, 3), until=Date(2026, 9, 4), like=Weekday.SUN, demand_factor=0.5
    )
    sunday = Window(name="w", days=(Weekday.SUN,), start=Time(8), end=Time(10))
    assert by_scenario(plan(hours(7), sunday, exceptions=(holiday,))) == [[616, 618], [608, 609]]


def test_a_planned_factor_scales_money_too() -> None:
    demand = plan(hours(1), demand_factor=2.0, margin=Margin(factor=1.5))
    assert (demand.rates_rps.tolist(), demand.value_rates_rps.tolist()) == ([24, 27], [16, 18])


def test_burstiness_is_the_intervals_own_then_the_series_median_then_poisson() -> None:
    scv = np.full(24, 1.5)
    scv[9] = np.nan
    assert plan(hours(1, arrival_scv=scv)).scv.tolist() == [1.5, 1.5]
    scv[8] = 7.0
    assert plan(hours(1, arrival_scv=scv)).value_scv.tolist() == [7.0, 1.5]
    assert plan(hours(1)).scv.tolist() == [1, 1]


def test_the_trace_gives_the_service_time_of_the_window_else_of_the_day() -> None:
    mean_s = np.full(24, np.nan)
    mean_s[[8, 20]] = 3.0, 4.0
    series = hours(1, service_mean_s=mean_s, service_scv=np.full(24, 0.5))
    demand = plan(series, service_time_s=None, service_scv=None)
    assert (demand.service_time_s, demand.service_scv) == (3.0, 0.5)
    mean_s[8] = np.nan
    assert plan(series, service_time_s=None).service_time_s == 4.0


def test_a_window_too_quiet_for_an_scv_of_its_own_takes_the_whole_logs() -> None:
    rng = np.random.default_rng(7)
    requests = np.where(np.arange(24) < 12, 20, 4000)  # by night fewer than an SCV can be taken of
    service_s = [rng.gamma(2.0, 3.0, count) for count in requests]  # SCV 0.5
    mean_s = np.array([part.mean() for part in service_s])
    scv = np.array([part.var() / part.mean() ** 2 if len(part) >= 100 else np.nan for part in service_s])
    series = replace(hours(1), rate_rps=requests / 3600, service_mean_s=mean_s, service_scv=scv)
    night = plan(series, service_time_s=None, service_scv=None)
    assert night.service_scv == pytest.approx(0.5, rel=0.05)
    assert night.service_time_s == pytest.approx(mean_s[8:10].mean())  # the mean is the window's own
    unmeasured = replace(series, service_scv=np.full(24, np.nan))
    assert plan(unmeasured, service_time_s=None, service_scv=None).service_scv == 1.0


def test_service_times_that_are_all_alike_have_an_scv_of_zero_not_one() -> None:
    alike = hours(1, service_mean_s=np.full(24, 0.1), service_scv=np.zeros(24))
    assert plan(alike, service_time_s=None, service_scv=None).service_scv == pytest.approx(0.0, abs=1e-12)


def test_errors_say_what_is_missing() -> None:
    with pytest.raises(InputError, match="holds no service time") as caught:
        plan(hours(1), service_time_s=None)
    assert caught.value.kind == "no_service_time"
    saturday = Window(name="sat-0800", days=(Weekday.SAT,), start=Time(8), end=Time(10))
    with pytest.raises(InputError, match=r"chat.*sat-0800.*2026-08-31 to 2026-09-03.*100% of it observed") as caught:
        plan(hours(4), saturday, workload="chat")
    assert caught.value.kind == "no_past_days"
