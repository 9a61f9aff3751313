"""Plans made by hand for the report: the day of the documentation's session, and harder ones."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, sync_playwright
from whenever import OffsetDateTime, Time, hours

from ebbtide.adapters.report.inputs import ReportInput
from ebbtide.adapters.report.profiles import demand_profiles
from ebbtide.fleet.demand import Series
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import WEEK, DayPattern, Window, windows_of
from ebbtide.fleet.pool import Pool, Research
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
    WorkloadReason,
)
from ebbtide.fleet.workload import DemandRef, Service, Target, TargetKind, Workload

DAY = DayPattern(days=WEEK, starts=tuple(Time(hour) for hour in (0, 2, 6, 9, 13, 19)))
NAMES = ("chat", "assist", "search", "agents", "reason", "report")
REPLICAS = (
    (37, 16, 25, 36, 42, 81),
    (7, 1, 13, 12, 12, 15),
    (2, 1, 2, 3, 3, 2),
    (3, 6, 9, 27, 27, 11),
    (13, 7, 6, 12, 13, 14),
    (1, 1, 1, 10, 4, 3),
)
GPUS = (1, 1, 1, 2, 2, 8)
PRODUCTION = (14, 8, 11, 25, 24, 24)
H100 = Pool(
    name="h100",
    gpus_per_node=8,
    nodes=40,
    reserved_nodes=8,
    yield_time_s=1200.0,
    reclaim_time_s=2700.0,
    moves_at_once=8,
)


def workload(name: str, gpus: int, pool: str = "h100", **fields: Any) -> Workload:
    """A workload with one wait target."""
    return Workload(
        name=name,
        demand=DemandRef(source="small", key=f"m-small/{name}"),
        pool=pool,
        gpus_per_replica=gpus,
        service=Service(time_s=8.0, concurrency=16),
        targets=(Target(kind=TargetKind.WAIT, bound_s=5.0),),
        waiting_cost_usd_per_request_h=0.01,
        **fields,
    )


def reason(replicas: int, share: float, bound: str = "target") -> WorkloadReason:
    """A plausible why."""
    floor = Standing(replicas=max(replicas - 1, 1), wait_s=71.0, waiting=1221.0, attainment=0.4, gain_usd_per_h=99.0)
    given = Standing(replicas=replicas, wait_s=share * 5, waiting=8.2, attainment=0.97, gain_usd_per_h=12.1)
    refused = Standing(replicas=replicas + 1, wait_s=share, waiting=1.0, attainment=0.99, gain_usd_per_h=0.07)
    return WorkloadReason(
        rate_rps=replicas * 1.7,
        peak_rps=replicas * 1.93,
        target_share=share,
        floor=floor,
        given=given,
        refused=refused,
        bound=bound,
        cost_usd_per_h=4.0,
    )


def wave_series(name: str, replicas: tuple[int, ...], windows: tuple[Window, ...], days: int = 14) -> Series:
    """Two weeks at 10 minutes under the allocation: a smooth wave, noise by day, an outage on one morning."""
    rng = np.random.default_rng(len(name) + replicas[0])
    knots = np.array([window.start.hour * 60 + window.nominal_hours * 30 for window in windows if "Mon" in window.days])
    height = np.array([replicas[i] for i, window in enumerate(windows) if "Mon" in window.days], dtype=float)
    order = np.argsort(knots)
    minutes = np.arange(144) * 10
    shape = np.interp(minutes, knots[order], height[order], period=1440)
    day_factor = rng.normal(1.0, 0.05, size=(days, 1))
    rates = 1.35 * shape * day_factor * rng.normal(1.0, 0.03, size=(days, 144))
    rates = rates.clip(0).ravel()
    seen = np.zeros(len(rates), dtype=np.uint8)
    seen[150:156], rates[150:156] = 2, np.nan
    start = OffsetDateTime(2026, 9, 1, offset=hours(8)).timestamp()
    return Series(key=name, start_s=start, interval_s=600, rate_rps=rates, seen=seen)


def node_hours(windows: tuple[Window, ...], nodes: tuple[int, ...]) -> float:
    """Node-hours a day, by the windows' lengths: an account that knows nothing of charts."""
    total = sum(count * window.nominal_hours * len(window.days) for window, count in zip(windows, nodes, strict=True))
    return total / 7


def moved_node_hours(windows: tuple[Window, ...], nodes: tuple[int, ...], pool: Pool) -> float:
    """Node-hours a day in motion: every change from window to window along the week, each for its move time."""
    spells = sorted(
        (WEEK.index(day) * 1440 + window.start.hour * 60 + window.start.minute, count)
        for window, count in zip(windows, nodes, strict=True)
        for day in window.days
    )
    changes = np.diff([count for _, count in [*spells, spells[0]]])
    seconds = changes.clip(0).sum() * pool.reclaim_time_s - changes.clip(None, 0).sum() * pool.yield_time_s
    return float(seconds) / 3600 / 7


def build(
    *,
    workloads: tuple[Workload, ...],
    replicas: tuple[tuple[int, ...], ...],
    pools: tuple[Pool, ...],
    production: tuple[tuple[int, ...], ...],
    patterns: tuple[DayPattern, ...] = (DAY,),
    leads: tuple[float, ...] | None = None,
    shares: dict[tuple[str, int], float] | None = None,
    shortages: tuple[Shortage, ...] = (),
    warnings: tuple[str, ...] = (),
    files: str = "servegen_msmall_services_10min.csv.gz",
    value_given: bool = True,
    demand_days: int = 14,
) -> ReportInput:
    """A whole report's input, its GPU-hours counted by hand."""
    windows = tuple(window for pattern in patterns for window in windows_of(pattern))
    fleet = Fleet(
        name="day-and-night",
        digest="sha256:4be1" + "0" * 60,
        time_zone="Asia/Shanghai",
        confidence=0.95,
        patterns=patterns,
        pools=pools,
        workloads=workloads,
        research=Research(value_usd_per_gpu_h=2.0, value_given=value_given),
    )
    columns = tuple(
        PoolColumn(
            name=pool.name,
            production_nodes=nodes,
            ephemeral_nodes=tuple(pool.max_production_nodes - n for n in nodes),
            ephemeral_quota_gpus=tuple((pool.max_production_nodes - n) * pool.gpus_per_node for n in nodes),
            lead_s=leads or (0.0,) * len(windows),
        )
        for pool, nodes in zip(pools, production, strict=True)
    )
    schedule = Schedule(
        name="day-and-night",
        fleet_name="day-and-night",
        fleet_digest=fleet.digest,
        time_zone=fleet.time_zone,
        valid_until=OffsetDateTime(2026, 9, 29, offset=hours(8)),
        windows=windows,
        workloads=tuple(
            WorkloadColumn(name=w.name, replicas=row, holds_rps=tuple(n * 2.0 for n in row))
            for w, row in zip(workloads, replicas, strict=True)
        ),
        pools=columns,
    )
    parts = [
        (pool.gpus_per_node * node_hours(windows, nodes), pool.gpus_per_node * moved_node_hours(windows, nodes, pool))
        for pool, nodes in zip(pools, production, strict=True)
    ]
    held, moving = sum(part[0] for part in parts), sum(part[1] for part in parts)
    total = 24.0 * sum(pool.nodes * pool.gpus_per_node for pool in pools)
    rng = np.random.default_rng(7)
    given = shares or {}
    explanation = Explanation(
        provenance=Provenance(
            version="0.1.0",
            at=OffsetDateTime(2026, 9, 15, 8, 30, offset=hours(8)),
            forecaster="seasonal quantiles",
            confidence=0.95,
            supported_confidence=14 / 15,
            margin="worst past day with its neighbouring hour × 1.15",
            demand=(
                SourceRecord(
                    source=files,
                    sha256="9f" * 32,
                    start="2026-09-01T00:00+08:00",
                    end="2026-09-15T00:00+08:00",
                    missing_intervals=4,
                    outages=12,
                    outage_intervals=37,
                    outage_share=0.018,
                    planned_share=0.83,
                ),
            ),
        ),
        gpu_hours_per_day=GpuHours(
            production=held, moving=moving, research=total - held - moving, freed=2341.0, static_nodes=32
        ),
        bound=Bound(unit="USD per cycle", objective=7754.2, lower_bound=7730.9, gap=0.003, few_windows=0.012),
        shortages=shortages,
        reasons={
            w.name: tuple(reason(n, given.get((w.name, i), float(rng.uniform(0.05, 0.9)))) for i, n in enumerate(row))
            for w, row in zip(workloads, replicas, strict=True)
        },
        warnings=warnings,
    )
    series = {
        w.name: wave_series(w.name, row, windows, demand_days) for w, row in zip(workloads, replicas, strict=True)
    }
    return ReportInput(fleet=fleet, schedule=schedule, explanation=explanation, profiles=demand_profiles(fleet, series))


@pytest.fixture(scope="session")
def day_plan() -> ReportInput:
    """The day of the documentation: six workloads, six windows, forty nodes."""
    return build(
        workloads=tuple(workload(name, gpus) for name, gpus in zip(NAMES, GPUS, strict=True)),
        replicas=REPLICAS,
        pools=(H100,),
        production=(PRODUCTION,),
        leads=(0.0, 0.0, 3000.0, 5700.0, 0.0, 0.0),
    )


@pytest.fixture(scope="session")
def short_plan() -> ReportInput:
    """The same on a fleet that is too small: two targets are missed, one is unstable."""
    shares = {("reason", 3): 1.43, ("chat", 5): math.inf, ("agents", 4): 1.001}
    return build(
        workloads=tuple(workload(name, gpus) for name, gpus in zip(NAMES, GPUS, strict=True)),
        replicas=REPLICAS,
        pools=(H100,),
        production=(PRODUCTION,),
        leads=(0.0, 0.0, 3000.0, 5700.0, 0.0, 0.0),
        shares=shares,
        shortages=(
            Shortage(workload="reason", window="all-0900", missing_gpus=4, attainment=0.71, required=0.95, wait_s=7.2),
            Shortage(
                workload="chat", window="all-1900", missing_gpus=12, attainment=0.9497, required=0.95, wait_s=math.inf
            ),
        ),
        warnings=("14 past days support a confidence of 0.933; 0.95 rests on the margin.",),
    )


@pytest.fixture(scope="session")
def week_plan() -> ReportInput:
    """Sixty workloads, 168 windows of an hour, three pools, one of them without research."""
    patterns = tuple(DayPattern(days=(day,), starts=tuple(Time(hour) for hour in range(24))) for day in WEEK)
    pools = (
        Pool(name="h100", gpus_per_node=8, nodes=2500, reserved_nodes=200, reclaim_time_s=900.0, yield_time_s=600.0),
        Pool(name="a100", gpus_per_node=4, nodes=60, reclaim_time_s=900.0, yield_time_s=600.0),
        Pool(name="l40s", gpus_per_node=2, nodes=30, min_production_nodes=30),
    )
    rng = np.random.default_rng(3)
    hour = np.tile(np.arange(24), 7)
    weekend = np.repeat([1.0, 1.0, 1.0, 1.0, 1.0, 0.6, 0.55], 24)
    wave = (1 - 0.7 * np.cos((hour - 4) / 24 * 2 * np.pi)) * weekend
    names = tuple(f"service-with-a-rather-long-name-{i:02}" for i in range(60))
    of_pool = tuple(("h100", "h100", "a100", "l40s")[i % 4] for i in range(60))
    sizes = rng.integers(5, 190, size=60)
    replicas = tuple(tuple(int(n) for n in np.ceil(size * wave).clip(1)) for size in sizes)
    production = (
        tuple(int(n) for n in np.ceil(1250 * wave)),
        tuple(int(n) for n in np.ceil(30 * wave)),
        (30,) * 168,
    )
    return build(
        workloads=tuple(workload(name, 1, pool) for name, pool in zip(names, of_pool, strict=True)),
        replicas=replicas,
        pools=pools,
        production=production,
        patterns=patterns,
    )


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """A real browser: Debian's chromium, or the one that EBBTIDE_CHROMIUM names. Its absence fails the test."""
    path = os.environ.get("EBBTIDE_CHROMIUM") or shutil.which("chromium")
    if path is None:
        pytest.fail("no browser: install chromium (apt-get install chromium) or set EBBTIDE_CHROMIUM to one")
    flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
    flags += ["--disable-component-update", "--disable-sync"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        yield browser
        browser.close()
