"""Demand folded onto the cycle: zones, missing intervals, weeks, and the sum of several workloads."""

from __future__ import annotations

import numpy as np
import pytest
from whenever import Instant

from ebbtide.adapters.report.inputs import DemandProfile, across_turns
from ebbtide.adapters.report.profiles import demand_profiles, zone_offsets_s
from ebbtide.adapters.report.wave import wave_of
from ebbtide.fleet.demand import Series
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import WEEK, DayPattern
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.workload import DemandRef, Service, Target, TargetKind, Workload


def fleet_of(time_zone: str, *, weekly: bool = False, time_s: float | None = 8.0) -> Fleet:
    workload = Workload(
        name="chat",
        demand=DemandRef(source="s", key="chat"),
        pool="p",
        gpus_per_replica=2,
        service=Service(time_s=time_s, concurrency=4),
        targets=(Target(kind=TargetKind.WAIT, bound_s=1.0),),
    )
    patterns = (DayPattern(days=WEEK[:5]), DayPattern(days=WEEK[5:])) if weekly else (DayPattern(days=WEEK),)
    return Fleet(
        name="f",
        digest="sha256:0",
        time_zone=time_zone,
        confidence=0.95,
        patterns=patterns,
        pools=(Pool(name="p", gpus_per_node=8, nodes=1),),
        workloads=(workload,),
        research=Research(),
    )


def series_of(start: Instant, rates: list[float], interval_s: int = 1800, seen: list[int] | None = None) -> Series:
    return Series(
        key="chat",
        start_s=start.timestamp(),
        interval_s=interval_s,
        rate_rps=np.array(rates, dtype=float),
        seen=np.array(seen or [0] * len(rates), dtype=np.uint8),
    )


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Shanghai", "Australia/Lord_Howe", "UTC", "Asia/Kathmandu"])
def test_offsets_are_the_zones_own_at_every_interval_of_two_years(zone: str) -> None:
    starts = Instant.from_utc(2025, 1, 1).timestamp() + 900 * np.arange(2 * 365 * 96, dtype=np.int64)[::7]
    offsets = zone_offsets_s(starts, zone)
    for at, offset in zip(starts.tolist()[::13], offsets.tolist()[::13], strict=True):
        local = Instant.from_timestamp(at).to_tz(zone).to_plain().assume_utc().timestamp()
        assert offset == local - at


def test_a_day_of_25_hours_averages_the_hour_it_repeats() -> None:
    """New York, 2026-11-01: 01:00 comes twice."""
    start = Instant.from_utc(2026, 11, 1, 4)
    (profile,) = demand_profiles(fleet_of("America/New_York"), {"chat": series_of(start, list(range(50)))})
    assert profile.rates_rps.shape == (1, 48)
    assert profile.rates_rps[0, :6].tolist() == [0, 1, 3, 4, 6, 7]
    assert profile.rates_rps[0, -1] == 49


def test_a_day_of_23_hours_lacks_the_hour_it_skips() -> None:
    """New York, 2026-03-08: no 02:00."""
    start = Instant.from_utc(2026, 3, 8, 5)
    (profile,) = demand_profiles(fleet_of("America/New_York"), {"chat": series_of(start, list(range(46)))})
    assert profile.rates_rps.shape == (1, 48)
    assert np.flatnonzero(np.isnan(profile.rates_rps[0])).tolist() == [4, 5]
    assert profile.rates_rps[0, 6] == 4


def test_what_was_not_observed_takes_no_part() -> None:
    start = Instant.from_utc(2026, 9, 1)
    seen = [1, 2, *[0] * 94]
    rates = [float("nan"), float("nan"), *range(2, 96)]
    (profile,) = demand_profiles(fleet_of("UTC"), {"chat": series_of(start, rates, seen=seen)})
    assert profile.low_rps[:3].tolist() == [48, 49, 2]
    assert profile.median_rps[:3].tolist() == [48, 49, 26]
    assert profile.high_rps[:3].tolist() == [48, 49, 50]


def test_a_weekly_fleet_folds_on_mondays() -> None:
    start = Instant.from_utc(2026, 9, 2)  # a Wednesday
    (profile,) = demand_profiles(
        fleet_of("UTC", weekly=True), {"chat": series_of(start, [float(i) for i in range(48)])}
    )
    assert len(profile.minutes) == 336
    assert np.flatnonzero(~np.isnan(profile.rates_rps[0])).tolist() == list(range(96, 144))


def test_gpus_follow_the_service_time_and_a_replicas_slots() -> None:
    series = series_of(Instant.from_utc(2026, 9, 1), [1.0] * 48)
    (profile,) = demand_profiles(fleet_of("UTC"), {"chat": series})
    assert profile.gpus_per_rps == pytest.approx(8.0 * 2 / 4)
    observed = Series(
        key="chat",
        start_s=series.start_s,
        interval_s=1800,
        rate_rps=np.array([1.0, 3.0]),
        seen=np.zeros(2, dtype=np.uint8),
        service_mean_s=np.array([2.0, 4.0]),
    )
    (profile,) = demand_profiles(fleet_of("UTC", time_s=None), {"chat": observed})
    assert profile.gpus_per_rps == pytest.approx(3.5 * 2 / 4)
    (profile,) = demand_profiles(fleet_of("UTC", time_s=None), {"chat": observed}, service_times_s={"chat": 10.0})
    assert profile.gpus_per_rps == pytest.approx(5.0)


def test_across_turns_equals_numpys_quantile_of_what_was_seen() -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(size=(9, 40))
    values[rng.random(values.shape) < 0.3] = np.nan
    values[0] = 1.0
    for share in (0.0, 0.25, 0.5, 1.0):
        np.testing.assert_allclose(across_turns(values, share), np.nanquantile(values, share, axis=0), rtol=1e-12)


def profile_of(name: str, turns: list[int], rows: list[list[float]], minutes: int = 720) -> DemandProfile:
    return DemandProfile(
        workload=name,
        minutes=np.arange(0, 1440, minutes, dtype=np.int64),
        turns=np.array(turns),
        rates_rps=np.array(rows, dtype=float),
        gpus_per_rps=1.0,
    )


def test_workloads_are_summed_day_by_day_before_the_highest_is_taken() -> None:
    """Two that never peak together: their sum is flat, which the sum of their own highest days would hide."""
    a = profile_of("a", [1, 2], [[9, 1], [1, 9]])
    b = profile_of("b", [1, 2], [[1, 9], [9, 1]])
    wave = wave_of([a, b])
    assert wave is not None
    assert wave.high_gpus.tolist() == wave.low_gpus.tolist() == [10, 10]


def test_workloads_that_share_no_day_are_summed_by_their_quantiles() -> None:
    wave = wave_of([profile_of("a", [1], [[2, 4]]), profile_of("b", [2], [[1, 1]])])
    assert wave is not None
    assert wave.median_gpus.tolist() == [3, 5]


def test_a_coarse_series_joins_a_fine_one_on_the_fine_grid() -> None:
    wave = wave_of([profile_of("a", [1], [[1, 2, 3, 4]], 360), profile_of("b", [1], [[10, 20]])])
    assert wave is not None
    assert wave.median_gpus.tolist() == [11, 12, 23, 24]


def test_no_demand_is_no_wave() -> None:
    assert wave_of([]) is None
