"""Fixtures that several rooms' tests share: a schedule and its explanation as in the documentation. And one setting."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import settings
from whenever import Date, OffsetDateTime, Time, hours

from ebbtide.fleet.horizon import WEEK, DayPattern, Window, windows_of
from ebbtide.fleet.schedule import (
    Bound,
    Explanation,
    GpuHours,
    PoolColumn,
    Provenance,
    Schedule,
    Shortage,
    SourceRecord,
    Standing,
    WorkloadColumn,
    WorkloadFacts,
    WorkloadReason,
)
from ebbtide.fleet.workload import Target, TargetKind

# No example has a deadline: the first call of a numba kernel compiles for seconds, and machines are shared.
settings.register_profile("ebbtide", deadline=None)
settings.load_profile("ebbtide")

STARTS = (Time(0), Time(2), Time(6), Time(9), Time(13), Time(19))
REPLICAS = {"chat": (37, 16, 25, 36, 42, 81), "agents": (3, 6, 9, 27, 27, 11)}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests against the real control plane come last: by then it is built."""
    items.sort(key=lambda item: "lab" in getattr(item, "fixturenames", ()))


@pytest.fixture
def schedule() -> Schedule:
    """Six windows, two workloads, one pool: the session's example."""
    return Schedule(
        name="day-and-night",
        fleet_name="day-and-night",
        fleet_digest="sha256:" + "4b" * 32,
        time_zone="Asia/Shanghai",
        valid_until=OffsetDateTime(2026, 9, 29, offset=hours(8)),
        windows=windows_of(DayPattern(days=WEEK, starts=STARTS)),
        workloads=tuple(
            WorkloadColumn(name=name, replicas=counts, holds_rps=tuple(float(10 * count) for count in counts))
            for name, counts in REPLICAS.items()
        ),
        pools=(
            PoolColumn(
                name="h100",
                production_nodes=(14, 8, 11, 25, 24, 24),
                ephemeral_nodes=(18, 24, 21, 7, 8, 8),
                ephemeral_quota_gpus=(144, 192, 168, 56, 64, 64),
                lead_s=(0.0, 0.0, 3000.0, 5700.0, 0.0, 0.0),
            ),
        ),
    )


@pytest.fixture
def dated_schedule(schedule: Schedule) -> Schedule:
    """The same with one more window that holds in a week of October."""
    dated = Window(
        name="golden-week-0000",
        days=WEEK,
        start=Time(0),
        end=Time(0),
        valid_from=Date(2026, 10, 1),
        valid_until=Date(2026, 10, 8),
    )
    (pool,) = schedule.pools
    return replace(
        schedule,
        windows=(*schedule.windows, dated),
        workloads=tuple(
            replace(column, replicas=(*column.replicas, 5), holds_rps=(*column.holds_rps, 50.0))
            for column in schedule.workloads
        ),
        pools=(
            replace(
                pool,
                production_nodes=(*pool.production_nodes, 8),
                ephemeral_nodes=(*pool.ephemeral_nodes, 24),
                ephemeral_quota_gpus=(*pool.ephemeral_quota_gpus, 192),
                lead_s=(*pool.lead_s, 0.0),
            ),
        ),
    )


def _reason(replicas: int, *, bound: str = "target") -> WorkloadReason:
    """The session's ``explain``: 26 replicas miss the target, 27 meet it, 28 are refused."""
    return WorkloadReason(
        rate_rps=52.0,
        peak_rps=61.5,
        target_share=0.18,
        floor=Standing(replicas=replicas - 1, wait_s=71.0, waiting=1220.0, attainment=0.12, gain_usd_per_h=math.inf),
        given=Standing(replicas=replicas, wait_s=0.9, waiting=8.2, attainment=0.978, gain_usd_per_h=12.1),
        refused=Standing(replicas=replicas + 1, wait_s=0.1, waiting=1.0, attainment=0.996, gain_usd_per_h=0.07),
        bound=bound,
        cost_usd_per_h=4.0,
        least_replicas=replicas,
    )


@pytest.fixture
def explanation() -> Explanation:
    """Reasons of the example, every number within three digits."""
    unstable = Standing(replicas=2, wait_s=math.inf, waiting=math.inf, attainment=0.0, gain_usd_per_h=math.nan)
    reasons = {name: tuple(_reason(count) for count in counts) for name, counts in REPLICAS.items()}
    last = replace(reasons["chat"][-1], floor=unstable, refused=None, bound="maximum")
    reasons["chat"] = (*reasons["chat"][:-1], last)
    return Explanation(
        provenance=Provenance(
            version="0.1.0",
            at=OffsetDateTime(2026, 9, 15, 10, 2, offset=hours(8)),
            forecaster="seasonal quantiles",
            confidence=0.95,
            supported_confidence=0.933333,
            margin="worst past day, neighbours 1 h × 1.15",
            demand=(
                SourceRecord(
                    source="small",
                    sha256="ab" * 32,
                    start="2026-09-01T00:00+08:00",
                    end="2026-09-15T00:00+08:00",
                    missing_intervals=3,
                    outages=12,
                    outage_intervals=37,
                    outage_share=0.0183,
                    planned_share=0.71,
                ),
            ),
        ),
        gpu_hours_per_day=GpuHours(production=3656.0, moving=147.0, research=3877.0, freed=2341.0, static_nodes=32),
        bound=Bound(unit="USD per cycle", objective=5120.25, lower_bound=5104.5, gap=0.00307602, few_windows=0.012),
        shortages=(
            Shortage(
                workload="chat",
                window="all-1900",
                missing_gpus=4,
                attainment=0.91,
                required=0.95,
                wait_s=math.inf,
            ),
        ),
        reasons=reasons,
        warnings=("margin is assumed: 14 days support 93.3 %",),
        facts={
            "chat": WorkloadFacts(gpus_per_replica=1, targets=(_target(2.0),)),
            "agents": WorkloadFacts(gpus_per_replica=2, targets=(_target(5.0),)),
        },
    )


def _target(bound_s: float) -> Target:
    return Target(kind=TargetKind.WAIT, bound_s=bound_s, percentile=0.95)
