"""The rates of a whole plan in one search against the rates one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ebbtide.allocate.held import _held
from ebbtide.fleet.workload import Balancing, DemandRef, Service, Target, TargetKind, Workload
from ebbtide.queueing.curves import StationShape, held_rate_rps


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
def test_one_search_gives_the_rates_that_many_give(balancing: Balancing, patience_s: float) -> None:
    wait = Target(kind=TargetKind.WAIT, bound_s=2.0, percentile=0.9)
    tight = Target(kind=TargetKind.WAIT, bound_s=0.1, percentile=0.5)
    latency = Target(kind=TargetKind.LATENCY, bound_s=30.0)
    workloads = [workload(1, balancing, patience_s, wait, latency), workload(16, balancing, patience_s, tight, latency)]
    counts = np.array([1.0, 3.0, 40.0])
    rows = np.column_stack([counts, np.full(3, 6.0), np.ones(3), np.full(3, 2.0)])
    rates = _held(workloads, np.array([3, 3]), np.concatenate([rows, rows]))
    for one, found in zip(workloads, np.split(rates, 2), strict=True):
        shape = StationShape(slots=one.service.concurrency, balancing=balancing, patience_s=patience_s)
        expected = held_rate_rps(
            shape,
            one.targets,
            service_time_s=6.0,
            service_scv=1.0,
            arrival_scv=2.0,
            replicas=counts.astype(np.int64),
        )
        assert found == pytest.approx(expected, rel=2e-6)
