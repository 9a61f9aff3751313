"""Reasons of all windows at once are those of each window alone, and those that single stations give."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict

import numpy as np
import pytest

from ebbtide.allocate.pool_window import PoolWindow, pool_windows
from ebbtide.fleet.planned import WindowDemand
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.workload import Balancing, DemandRef, Service, Target, TargetKind, Workload
from ebbtide.queueing.station import Station

WINDOWS, DAYS = 5, 4
HOURS = 2.0
WAIT = Target(kind=TargetKind.WAIT, bound_s=2.0, percentile=0.95)
STRICT = Target(kind=TargetKind.WAIT, bound_s=0.5, percentile=0.8)
LATENCY = Target(kind=TargetKind.LATENCY, bound_s=20.0, percentile=0.9)
KINDS: dict[str, dict[str, object]] = {
    "plain": {},
    "pooled": {"balancing": Balancing.POOLED, "min_replicas": 4},
    "two targets": {"targets": (WAIT, STRICT, LATENCY)},
    "latency": {"targets": (LATENCY,), "balancing": Balancing.RANDOM},
    "patience": {"patience_s": 15.0},
    "patient latency": {"patience_s": 15.0, "targets": (LATENCY,)},
    "maximum": {"max_replicas": 2, "min_replicas": 0},
}


def workload(**changes: object) -> Workload:
    fields: dict[str, object] = {
        "name": "chat",
        "demand": DemandRef(source="log", key="chat"),
        "pool": "h100",
        "gpus_per_replica": 1,
        "service": Service(time_s=4.0, scv=1.0, concurrency=4),
        "targets": (WAIT,),
        "waiting_cost_usd_per_request_h": 1.0,
    }
    return Workload(**(fields | changes))


def planned(**changes: object) -> tuple[PoolWindow, ...]:
    """Five windows of one workload, two scenarios a day; nobody comes in the second window."""
    rng = np.random.default_rng(7)
    scenarios, each = 2 * DAYS, 3
    demand = []
    for k in range(WINDOWS):
        rates = rng.uniform(0.2, 4.0, scenarios * each) * (k != 1)
        demand.append(
            WindowDemand(
                rates_rps=rates * 1.1,
                scv=rng.choice([1.0, 1.7], len(rates)),
                offsets=np.arange(0, len(rates) + 1, each),
                day=np.tile(np.arange(DAYS), 2),
                days=DAYS,
                value_rates_rps=rates[: DAYS * each],
                value_scv=np.ones(DAYS * each),
                service_time_s=4.0,
                service_scv=1.0,
            )
        )
    pool = Pool(name="h100", gpus_per_node=8, nodes=4)
    hours, research = np.full(WINDOWS, HOURS), Research(value_usd_per_gpu_h=2.0)
    return pool_windows(pool, (workload(**changes),), (demand,), hours=hours, research=research, confidence=0.75)


def figures(value: object) -> Iterator[object]:
    """The leaves of nested dicts."""
    if isinstance(value, dict):
        for each in value.values():
            yield from figures(each)
    else:
        yield value


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("more", [-2, 0, 1])
def test_all_windows_at_once_are_each_alone(name: str, more: int) -> None:
    windows = planned(**KINDS[name])
    given = np.array([max(0, int(window.required[0]) + more) for window in windows])
    together = windows[0].context.cases(0, np.arange(WINDOWS)).reasons(given)
    for window, count, reason in zip(windows, given.tolist(), together, strict=True):
        alone = window.reason(0, count)
        for one, other in zip(figures(asdict(reason)), figures(asdict(alone)), strict=True):
            assert type(one) is type(other)
            assert one == (pytest.approx(other, rel=1e-9, abs=1e-9) if isinstance(other, float) else other)


@pytest.mark.parametrize("name", KINDS)
def test_waits_and_shares_are_those_of_single_stations(name: str) -> None:
    windows = planned(**KINDS[name])
    one = windows[0].context.workloads[0]
    given = np.array([int(window.required[0]) for window in windows])
    for k, reason in enumerate(windows[0].context.cases(0, np.arange(WINDOWS)).reasons(given)):
        waits = [_wait_s(windows[k], target, int(given[k])) for target in one.targets]
        shares = [wait_s / target.bound_s for wait_s, target in zip(waits, one.targets, strict=True)]
        assert reason.target_share == pytest.approx(max(shares), rel=1e-9, abs=1e-9)
        tightest = int(np.argmax(shares))
        assert reason.given.wait_s == pytest.approx(waits[tightest], rel=1e-9, abs=1e-9)
        attained = _attained(windows[k], one.targets[tightest], int(given[k]))
        assert reason.given.attainment == pytest.approx(attained, rel=1e-9)


def _scenarios(window: PoolWindow) -> Iterator[tuple[int, Callable[[TargetKind, int, float], float]]]:
    """Day, and what a scenario's requests attain by kind, replicas and bound, each rate a station of its own."""
    samples, one = window.context.curves.needs.samples[0], window.context.workloads[0]
    for g in range(int(samples.windows[window.index]), int(samples.windows[window.index + 1])):
        rows = slice(int(samples.offsets[g]), int(samples.offsets[g + 1]))
        rates, scvs = samples.rates_rps[rows].tolist(), samples.scv[rows].tolist()

        def attained(
            kind: TargetKind, count: int, bound_s: float, rates: list[float] = rates, scvs: list[float] = scvs
        ) -> float:
            total = 0.0
            for rate, scv in zip(rates, scvs, strict=True):
                station = Station(
                    replicas=count,
                    arrival_rate_rps=rate,
                    service_time_s=4.0,
                    slots=4,
                    balancing=one.balancing,
                    arrival_scv=scv,
                    patience_s=one.patience_s,
                )
                total += rate * float(station.attainment(kind, bound_s))
            return total / sum(rates)

        if sum(rates) > 0.0:
            yield int(samples.day[g]), attained


def _wait_s(window: PoolWindow, target: Target, count: int) -> float:
    """By bisection of the mixture, the hardest scenario of the deciding day."""
    deciding = int(window.context.curves.needs.day[0, window.index])
    waits = [0.0]
    for day, attained in _scenarios(window):
        if day == deciding:
            low, high = 0.0, 1e4
            if attained(target.kind, count, high) < target.percentile:
                return math.inf
            while high - low > 1e-11:
                middle = 0.5 * (low + high)
                is_met = attained(target.kind, count, middle) >= target.percentile
                low, high = (low, middle) if is_met else (middle, high)
            waits.append(high)
    return max(waits)


def _attained(window: PoolWindow, target: Target, count: int) -> float:
    """What the third best of four days attains: confidence is 0.75."""
    by_day = [1.0] * DAYS
    for day, attained in _scenarios(window):
        by_day[day] = min(by_day[day], attained(target.kind, count, target.bound_s))
    return sorted(by_day, reverse=True)[2]
