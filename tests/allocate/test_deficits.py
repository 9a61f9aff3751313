"""The least count that meets the targets, however large, against formulas of single queues."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ebbtide.allocate.deficits import least_above
from ebbtide.allocate.needs import required_of
from ebbtide.allocate.samples import WorkloadSamples, samples_of
from ebbtide.fleet.planned import WindowDemand
from ebbtide.fleet.workload import Balancing, DemandRef, Service, Target, TargetKind, Workload

WAIT = Target(kind=TargetKind.WAIT, bound_s=1.0, percentile=0.99)


def workload(balancing: Balancing, *targets: Target, patience_s: float = math.inf) -> Workload:
    return Workload(
        name="w",
        demand=DemandRef(source="made", key="w"),
        pool="p",
        gpus_per_replica=1,
        service=Service(time_s=10.0, scv=1.0),
        targets=targets,
        balancing=balancing,
        patience_s=patience_s,
    )


def samples(*days_rps: tuple[float, ...]) -> WorkloadSamples:
    """Windows of one sample a day; services of 10 s."""
    made = []
    for days in days_rps:
        ones, rates = np.ones(len(days)), np.array(days)
        made.append(
            WindowDemand(
                rates_rps=rates,
                scv=ones,
                offsets=np.arange(len(days) + 1),
                day=np.arange(len(days)),
                days=len(days),
                value_rates_rps=rates,
                value_scv=ones,
                service_time_s=10.0,
                service_scv=1.0,
            )
        )
    return samples_of(made)


def alone(replicas: int, rate_rps: float, service_s: float, bound_s: float) -> float:
    """P(W ≤ t) where every replica is an M/M/1 queue of its own."""
    busy = rate_rps * service_s / replicas
    return 1.0 - busy * math.exp(-(1.0 - busy) / service_s * bound_s) if busy < 1.0 else 0.0


@pytest.mark.parametrize("rate_rps", [0.1, 3.0, 3e5, 3e9])
def test_queues_of_their_own_need_a_hundred_times_the_load_however_large(rate_rps: float) -> None:
    found = int(least_above(workload(Balancing.RANDOM, WAIT), samples((rate_rps,)), np.array([0]), 0.9)[0])
    assert 80 * rate_rps * 10.0 < found < 100 * rate_rps * 10.0
    assert alone(math.ceil(found * (1 + 1e-13)), rate_rps, 10.0, 1.0) >= 0.99
    assert alone(math.floor((found - 1) * (1 - 1e-13)), rate_rps, 10.0, 1.0) < 0.99


@pytest.mark.parametrize("balancing", list(Balancing))
@pytest.mark.parametrize("patience_s", [math.inf, 20.0])
def test_it_is_the_need_that_a_bounded_search_finds(balancing: Balancing, patience_s: float) -> None:
    latency = Target(kind=TargetKind.LATENCY, bound_s=31.0, percentile=0.9)
    one = workload(balancing, Target(kind=TargetKind.WAIT, bound_s=2.0), latency, patience_s=patience_s)
    windows = samples((1.0, 2.0, 4.0, 3.0), (0.3,), (40.0, 41.0))
    need, _ = required_of(one, windows, 10_000, 0.7)
    for above in (np.zeros(3, dtype=np.int64), need - 1):
        np.testing.assert_array_equal(least_above(one, windows, above, 0.7), need)


def test_no_number_is_enough_where_service_alone_is_too_long() -> None:
    never = Target(kind=TargetKind.LATENCY, bound_s=5.0, percentile=0.9)
    assert least_above(workload(Balancing.POOLED, never), samples((1.0,)), np.array([4]), 0.9).tolist() == [-1]
