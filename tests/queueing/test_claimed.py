"""A station known by its claim alone: a step at n times the rate, and what that step stands on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from ebbtide.fleet.workload import Balancing, Target, TargetKind
from ebbtide.queueing.claimed import replicas_for
from ebbtide.queueing.curves import StationShape, attainment_curves, required_replicas, waiting_curves
from ebbtide.queueing.station import Station

TARGET = Target(kind=TargetKind.LATENCY, bound_s=5.0, percentile=0.9)


def shape(holds_rps: float) -> StationShape:
    return StationShape(slots=1, balancing=Balancing.RANDOM, patience_s=float("inf"), holds_rps=holds_rps)


def batch(groups: list[list[float]]) -> dict[str, np.ndarray]:
    rates = np.array([rate for group in groups for rate in group])
    offsets = np.concatenate([[0], np.cumsum([len(group) for group in groups])])
    ones = np.ones(len(groups))
    return {
        "rates_rps": rates,
        "scv": np.ones(len(rates)),
        "service_time_s": ones,
        "service_scv": ones,
        "offsets": offsets,
    }


rates = st.lists(st.one_of(st.just(0.0), st.floats(1e-3, 1e4)), max_size=6)


@settings(max_examples=200, deadline=None)
@given(groups=st.lists(rates, min_size=1, max_size=5), holds_rps=st.floats(0.1, 50.0))
def test_the_least_count_is_the_first_that_attains_the_target(groups: list[list[float]], holds_rps: float) -> None:
    least = required_replicas(shape(holds_rps), TARGET, **batch(groups), at_most=1_000_000)
    for group, need in zip(groups, least.tolist(), strict=True):
        peak = max(group, default=0.0)
        # By definition: the least whole number of times the rate that is not below the highest rate.
        assert need * holds_rps >= peak * (1.0 - 1e-8)
        assert need == 0 or (need - 1) * holds_rps < peak
    low = np.maximum(least - 1, 1)
    values, starts = attainment_curves(shape(holds_rps), TARGET, **batch(groups), low=low, high=low + 2)
    for g, need in enumerate(least.tolist()):
        attained = values[starts[g] : starts[g + 1]]
        counts = np.arange(low[g], low[g] + 3)
        assert ((attained >= TARGET.percentile) == (counts >= need)).all()
        assert (np.diff(attained) >= 0.0).all()


def test_a_whole_multiple_needs_no_replica_more_for_its_last_bit() -> None:
    counts = np.arange(1, 2_000)
    assert (replicas_for(counts * 0.1, 0.1) == counts).all()
    assert (replicas_for(counts * 0.1 * (1.0 + 1e-6), 0.1) == counts + 1).all()


def test_above_what_is_held_only_the_other_intervals_attain() -> None:
    values, _ = attainment_curves(shape(10.0), TARGET, **batch([[10.0, 30.0]]), low=np.array([1]), high=np.array([3]))
    assert values.tolist() == pytest.approx([0.9 * 0.25, 0.9 * 0.25, 0.9])


def test_beyond_the_most_that_is_looked_for_and_without_requests() -> None:
    least = required_replicas(shape(1.0), TARGET, **batch([[50.0], [0.0], []]), at_most=10)
    assert least.tolist() == [11, 0, 0]


def test_waits_are_refused_not_made_up() -> None:
    one = np.array([1])
    with pytest.raises(ValueError, match="nothing of waits"):
        waiting_curves(shape(1.0), **batch([[1.0]]), low=one, high=one, horizon_s=np.ones(1), stop_saving=0.0)


@pytest.mark.parametrize("balancing", Balancing)
def test_n_replicas_hold_n_times_what_one_does(balancing: Balancing) -> None:
    def attained(replicas: int, rate_rps: float) -> float:
        station = Station(
            replicas=replicas, slots=4, arrival_rate_rps=rate_rps, service_time_s=1.0, balancing=balancing
        )
        return float(station.attainment(TARGET.kind, TARGET.bound_s))

    one_rps = brentq(lambda rate: attained(1, rate) - TARGET.percentile, 1.0, 3.999)
    for replicas in (2, 5, 40):
        held = attained(replicas, replicas * one_rps)
        if balancing is Balancing.RANDOM:
            assert held == pytest.approx(TARGET.percentile, abs=1e-9)
        else:
            assert held > TARGET.percentile
