"""Request streams: rates, burstiness, repeatability, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.simulate.arrivals import Requests, patience_times_s, request_arrivals_s, service_times_s

RATES = st.lists(st.sampled_from([0.0, 0.01, 0.7, 3.0, 20.0]), min_size=1, max_size=8)
SCVS = st.sampled_from([0.0, 0.3, 1.0, 4.0, 58.0])


@given(rates=RATES, data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_arrivals_are_in_order_and_only_where_the_rate_is_above_zero(
    rates: list[float], data: st.DataObject, seed: int
) -> None:
    scvs = data.draw(st.lists(SCVS, min_size=len(rates), max_size=len(rates)))
    lengths = data.draw(st.lists(st.floats(0.5, 50.0), min_size=len(rates), max_size=len(rates)))
    edges = np.concatenate(([5.0], 5.0 + np.cumsum(lengths)))
    arrivals = request_arrivals_s(edges, rates, arrival_scv=scvs, rng=np.random.default_rng(seed))
    assert np.all(np.diff(arrivals) >= 0.0)
    if len(arrivals):
        assert arrivals[0] >= edges[0]
        assert arrivals[-1] < edges[-1]
    inside = np.searchsorted(edges, arrivals, side="right") - 1
    assert np.all(np.asarray(rates)[inside] > 0.0)


@pytest.mark.parametrize("scv", [0.0, 0.25, 1.0, 4.0, 20.0])
def test_each_interval_has_its_own_rate_and_burstiness(scv: float) -> None:
    edges, rates = [0.0, 20_000.0, 50_000.0], [10.0, 2.0]
    arrivals = request_arrivals_s(edges, rates, arrival_scv=scv, rng=np.random.default_rng(11))
    for begin, end, rate in zip(edges[:-1], edges[1:], rates, strict=True):
        gaps = np.diff(arrivals[(arrivals >= begin) & (arrivals < end)])
        count = len(gaps)
        assert gaps.mean() * rate == pytest.approx(1.0, abs=5.0 * math.sqrt(scv / count) + 1e-3)
        # The estimate's own error: kurtosis of a gamma gap is 6·SCV.
        assert gaps.var() * rate**2 == pytest.approx(scv, rel=5.0 * math.sqrt((2.0 + 6.0 * scv) / count), abs=1e-9)


@pytest.mark.parametrize("scv", [0.0, 0.3, 9.0])
def test_short_intervals_hold_the_expected_number_in_the_mean(scv: float) -> None:
    # Alternating SCVs make every interval its own run: without the start in equilibrium the count would be off
    # by about (SCV − 1)/2 a run, 4 requests of 6 for SCV 9.
    intervals = 20_000
    edges = np.arange(intervals + 1) * 2.0
    scvs = np.where(np.arange(intervals) % 2 == 0, scv, scv + 1e-6)
    arrivals = request_arrivals_s(edges, np.full(intervals, 3.0), arrival_scv=scvs, rng=np.random.default_rng(3))
    counts = np.histogram(arrivals, edges)[0]
    assert counts.mean() == pytest.approx(6.0, abs=5.0 * counts.std() / math.sqrt(intervals) + 1e-12)


def test_poisson_counts_have_variance_equal_to_their_mean() -> None:
    counts = np.histogram(
        request_arrivals_s([0.0, 40_000.0], [4.0], rng=np.random.default_rng(8)), np.arange(0.0, 40_001.0, 2.0)
    )[0]
    assert counts.var() / counts.mean() == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("scv", [0.0, 0.5, 1.0, 3.0])
def test_service_times_have_the_mean_and_scv_asked_for(scv: float) -> None:
    times = service_times_s(200_000, 7.0, scv=scv, rng=np.random.default_rng(2))
    assert times.mean() == pytest.approx(7.0, rel=5.0 * math.sqrt(scv / 200_000) + 1e-12)
    assert times.var() / 49.0 == pytest.approx(scv, rel=0.05, abs=1e-12)


def test_the_same_seed_gives_the_same_stream_and_another_seed_another() -> None:
    first, again, other = (
        request_arrivals_s([0.0, 9.0, 30.0], [5.0, 50.0], arrival_scv=[2.0, 0.5], rng=np.random.default_rng(seed))
        for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first[:5], other[:5])


def test_patience_is_exponential_or_the_state_unlimited() -> None:
    rng = np.random.default_rng(4)
    assert patience_times_s(10, math.inf, rng=rng) is None
    drawn = patience_times_s(100_000, 30.0, rng=rng)
    assert drawn is not None
    assert drawn.mean() == pytest.approx(30.0, rel=0.02)
    assert drawn.std() == pytest.approx(30.0, rel=0.02)


@pytest.mark.parametrize(
    ("edges", "rates", "scv", "message"),
    [
        ([0.0, 1.0], [math.nan], 1.0, "rates must be finite"),
        ([0.0, 1.0], [-1.0], 1.0, "rates must be finite"),
        ([0.0, 1.0], [1.0], -0.1, "SCVs must be finite"),
        ([0.0, 1.0], [1.0, 2.0], 1.0, "one edge more"),
        ([1.0, 1.0], [1.0], 1.0, "ascend"),
    ],
)
def test_impossible_streams_are_refused(edges: list[float], rates: list[float], scv: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        request_arrivals_s(edges, rates, arrival_scv=scv, rng=np.random.default_rng(1))


def test_requests_that_do_not_fit_together_are_refused() -> None:
    two = np.array([0.0, 1.0])
    with pytest.raises(ValueError, match="in order"):
        Requests(arrival_s=two[::-1], service_s=two)
    with pytest.raises(ValueError, match="2 arrivals but service times"):
        Requests(arrival_s=two, service_s=np.ones(3))
    with pytest.raises(ValueError, match="patience times must be"):
        Requests(arrival_s=two, service_s=two, patience_s=np.array([1.0, math.nan]))
    with pytest.raises(ValueError, match="mean above 0"):
        service_times_s(1, 0.0, rng=np.random.default_rng(1))
    with pytest.raises(ValueError, match="patience must be above 0"):
        patience_times_s(1, math.nan, rng=np.random.default_rng(1))
