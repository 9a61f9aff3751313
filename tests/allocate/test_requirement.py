"""Order statistics over past days, against plain sorting."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.allocate.requirement import day_peak, window_deficits, window_needs
from ebbtide.allocate.samples import WorkloadSamples, samples_of
from ebbtide.fleet.planned import WindowDemand


def window(days: list[list[float]]) -> WindowDemand:
    """A window whose scenarios hold one sample each: ``days[d]`` are the rates of day d's scenarios."""
    rates = np.array([rate for day in days for rate in day], dtype=float)
    return WindowDemand(
        rates_rps=rates,
        scv=np.ones(len(rates)),
        offsets=np.arange(len(rates) + 1),
        day=np.array([d for d, day in enumerate(days) for _ in day], dtype=np.int64),
        days=len(days),
        value_rates_rps=rates,
        value_scv=np.ones(len(rates)),
        service_time_s=1.0,
        service_scv=1.0,
    )


rates = st.integers(0, 9).map(float)
windows = st.lists(st.lists(st.lists(rates, min_size=0, max_size=3), min_size=1, max_size=8), min_size=1, max_size=4)


def wild(rates_rps: np.ndarray) -> np.ndarray:
    """Needs that do not grow with the rate, as where service times differ between days."""
    return (rates_rps * 7).astype(np.int64) % 11


def rank(days: int, confidence: float) -> int:
    return min(days, max(1, math.ceil(confidence * days - 1e-9)))


@settings(max_examples=200)
@given(windows, st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99]))
def test_need_holds_on_the_asked_share_of_days(fleet: list[list[list[float]]], confidence: float) -> None:
    samples = samples_of([window(days) for days in fleet])
    needs = wild(samples.rates_rps)
    need, deciding = window_needs(samples, needs, confidence)
    peaks = day_peak(samples, samples.scenario_mean_rps, deciding)
    for k, days in enumerate(fleet):
        by_day = [max((int(wild(np.array(rate))) for rate in day), default=0) for day in days]
        holding = [sum(one <= count for one in by_day) for count in range(20)]
        least = next(count for count in range(20) if holding[count] >= rank(len(days), confidence))
        assert need[k] == least == by_day[deciding[k]]
        assert peaks[k] == max(days[deciding[k]], default=0.0)
        # Of days that need the same the one with more load counts as the harder.
        harder = sorted(range(len(days)), key=lambda day: (by_day[day], max(days[day], default=0.0)))
        assert deciding[k] == harder[rank(len(days), confidence) - 1]


def test_of_days_that_need_the_same_the_busier_one_is_the_harder() -> None:
    samples = samples_of([window([[5.0], [3.0], [4.0]])])
    for confidence, busy in ((0.3, 3.0), (0.6, 4.0), (0.9, 5.0)):
        _, deciding = window_needs(samples, np.array([2, 2, 2]), confidence)
        assert day_peak(samples, samples.scenario_mean_rps, deciding).tolist() == [busy]


@settings(max_examples=200)
@given(windows, st.sampled_from([0.5, 0.8, 0.95]), st.integers(0, 3))
def test_deficit_is_zero_exactly_from_the_need_on(fleet: list[list[list[float]]], confidence: float, low: int) -> None:
    samples = samples_of([window(days) for days in fleet])
    needs = np.ceil(samples.rates_rps).astype(np.int64)
    need, _ = window_needs(samples, needs, confidence)
    first = max(low, 1)
    counts = np.arange(first, 12)
    # One target: a scenario attains the share min(1, n / need) · 0.9, so its target of 0.9 is met from its need on.
    attained = np.minimum(1.0, counts[None, :] / np.maximum(needs, 1)[:, None]) * 0.9
    starts = np.arange(len(needs) + 1) * len(counts)
    run = np.full(len(fleet), 12 - low)
    found = window_deficits(
        samples,
        attained.reshape(1, -1),
        starts,
        np.full((1, len(fleet)), 0.9),
        first=np.full(len(fleet), first),
        low=np.full(len(fleet), low),
        lengths=run,
        confidence=confidence,
    ).reshape(len(fleet), 12 - low)
    for k in range(len(fleet)):
        assert [value == 0.0 for value in found[k]] == [count >= need[k] for count in range(low, 12)]
        assert (np.diff(found[k]) <= 0.0).all()


def test_picked_windows_are_the_same_as_their_own_batch() -> None:
    fleet = [window([[1.0, 2.0], [3.0]]), window([[4.0]]), window([[5.0], [], [6.0, 7.0]])]
    picked, alone = samples_of(fleet).pick(np.array([2, 0])), samples_of([fleet[2], fleet[0]])
    for name in WorkloadSamples.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(picked, name), getattr(alone, name))
