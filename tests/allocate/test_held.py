"""The rates of a whole plan in one search against stations one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ebbtide.allocate.held import _held
from ebbtide.fleet.workload import Balancing, DemandRef, Service, Target, TargetKind, Workload
from ebbtide.queueing.station import Station


def workload(slots: int, balancing: Balancing, patience_s: float, *targets: Target) -> Workload:
    return Workload(
        name="w",
        demand=DemandRef(source="made", key="w"),
        pool="p",
        gpus_per_replica=1,
        service=Service(time_s=6.0, concurrency=slots),
        targets=targets,
        balancing=balancing,
        patience_s=patience_s,
    )


@pytest.mark.parametrize("patience_s", [math.inf, 30.0])
@pytest.mark.parametrize("balancing", list(Balancing))
def test_every_rate_is_the_greatest_that_single_stations_hold(balancing: Balancing, patience_s: float) -> None:
    wait = Target(kind=TargetKind.WAIT, bound_s=2.0, percentile=0.9)
    tight = Target(kind=TargetKind.WAIT, bound_s=0.1, percentile=0.5)
    latency = Target(kind=TargetKind.LATENCY, bound_s=30.0)
    workloads = [workload(1, balancing, patience_s, wait, latency), workload(16, balancing, patience_s, tight, latency)]
    counts = [0, 1, 3, 40]
    rows = np.column_stack([counts, np.full(4, 6.0), np.ones(4), np.full(4, 2.0)])
    rates = _held(workloads, np.array([4, 4]), np.concatenate([rows, rows]))
    for one, found in zip(workloads, np.split(rates, 2), strict=True):
        assert found[0] == 0.0
        for count, rate in zip(counts[1:], found[1:].tolist(), strict=True):
            assert rate == 0.0 or is_held(one, count, rate)
            assert not is_held(one, count, rate * (1 + 2e-6) + 1e-9)
        assert found[-1] > 0.0


def is_held(one: Workload, replicas: int, rate_rps: float) -> bool:
    station = Station(
        replicas=replicas,
        arrival_rate_rps=rate_rps,
        service_time_s=6.0,
        slots=one.service.concurrency,
        balancing=one.balancing,
        arrival_scv=2.0,
        patience_s=one.patience_s,
    )
    return all(float(station.attainment(t.kind, t.bound_s)) >= t.percentile for t in one.targets)
