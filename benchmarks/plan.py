"""A plan for 1,000 workloads × 96 windows × 20,000 GPUs with 25 rate samples a window: CPU time, peak memory, gap.

    uv run python -m benchmarks.plan

Fleets of several kinds of replica, all under the default balancing (least loaded): of 16 slots, of 1, of 1 to 64
mixed, and mixed with arrivals of SCV 4. Each kind twice: once a fleet that holds its targets, once the same with demand
half as large again, so that it is short of GPUs. The compiled code's cache is warmed by a small plan first. Peak
memory is the process's own, everything included. Limits are in ``limits.toml``, section ``[plan]``; exit code 1 where
one is broken. Kinds may be named: ``python -m benchmarks.plan cpu_s mixed_cpu_s``.
"""

from __future__ import annotations

import resource
import sys
import time
import tomllib
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from whenever import OffsetDateTime, Time

from ebbtide.allocate.held import held_rates_rps
from ebbtide.allocate.missed import shortages_of
from ebbtide.allocate.moves import timeline_of
from ebbtide.allocate.plan import plan
from ebbtide.allocate.pool_plan import joined
from ebbtide.allocate.pool_window import pool_windows
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import WEEK, DatedException, DayPattern, Window, minute_of, windows_of
from ebbtide.fleet.planned import WindowDemand
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.schedule import Provenance
from ebbtide.fleet.workload import DemandRef, Service, Target, TargetKind, Workload

LIMITS = tomllib.loads((Path(__file__).parent / "limits.toml").read_text())["plan"]
DAYS, PER_DAY = 5, 5  # 25 samples a window
SERVICE_S = 6.0  # of the mean workload; each has its own, from half to one and a half of it
MIXED = (1, 2, 4, 8, 16, 32, 64)
WIDTHS = np.array([1, 2, 4, 8])
SHORT = 1.6  # times the demand of a fleet that holds
SEED = 20_261_130
AT = OffsetDateTime.parse_iso("2026-11-30T00:00:00+00:00")
UNTIL = OffsetDateTime.parse_iso("2026-12-14T00:00:00+00:00")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large a benchmark fleet is."""

    workloads: int
    windows: int
    nodes: int
    demand: float
    slots: tuple[int, ...] = (16,)  # of a replica, one of these at random
    arrival_scv: float = 1.0


FULL = Size(workloads=1000, windows=96, nodes=2500, demand=1.0)
# By the name of their limit on CPU time.
KINDS = {
    "cpu_s": FULL,
    "single_cpu_s": replace(FULL, demand=0.6, slots=(1,)),
    "mixed_cpu_s": replace(FULL, demand=0.8, slots=MIXED),
    "bursty_cpu_s": replace(FULL, demand=0.6, slots=MIXED, arrival_scv=4.0),
}


def made_fleet(size: Size) -> Fleet:
    """Workloads of widths 1, 2, 4, 8 with waiting costs, on one pool of nodes of 8 GPUs."""
    rng = np.random.default_rng(SEED)
    slots = np.random.default_rng(SEED + 2).choice(size.slots, size.workloads)
    step = 1440 // size.windows
    starts = tuple(Time(*divmod(step * k, 60)) for k in range(size.windows))
    pool = Pool(
        name="h100", gpus_per_node=8, nodes=size.nodes, yield_time_s=1200, reclaim_time_s=2700, moves_at_once=64
    )
    return Fleet(
        name="benchmark",
        digest="sha256:0",
        time_zone="UTC",
        confidence=0.8,
        patterns=(DayPattern(days=WEEK, starts=starts),),
        pools=(pool,),
        workloads=tuple(
            Workload(
                name=f"w{n}",
                demand=DemandRef(source="made", key=str(n)),
                pool="h100",
                gpus_per_replica=int(rng.choice(WIDTHS, p=[0.4, 0.3, 0.2, 0.1])),
                service=Service(time_s=float(rng.uniform(0.5, 1.5)) * SERVICE_S, scv=1.0, concurrency=int(slots[n])),
                targets=(Target(kind=TargetKind.WAIT, bound_s=2.0, percentile=0.95),),
                waiting_cost_usd_per_request_h=float(rng.uniform(0.5, 4.0)),
            )
            for n in range(size.workloads)
        ),
        research=Research(value_usd_per_gpu_h=2.0, value_given=True),
    )


def made_demand(size: Size, fleet: Fleet) -> dict[str, list[WindowDemand]]:
    """A daily wave per workload with its own size and phase, days that differ and noise; the pool 3/4 full at peak."""
    rng = np.random.default_rng(SEED + 1)
    minutes = np.array([minute_of(start) for start in fleet.patterns[0].starts])
    sizes = rng.lognormal(0.0, 1.0, size.workloads)
    widths = np.array([workload.gpus_per_replica for workload in fleet.workloads])
    times_s = np.array([workload.service.time_s for workload in fleet.workloads])
    slots = np.array([workload.service.concurrency for workload in fleet.workloads])
    gpus = 0.45 * size.demand * fleet.pools[0].nodes * 8
    mean_rps = sizes * gpus / float(sizes @ widths) * slots / times_s
    made = {}
    for n, workload in enumerate(fleet.workloads):
        phase = rng.normal(15.0, 1.5) * 60.0
        wave = 1.0 + 0.6 * np.cos((minutes - phase) / 1440.0 * 2.0 * np.pi)
        days = rng.normal(1.0, 0.05, (size.windows, DAYS, 1))
        noise = rng.normal(1.0, 0.05, (size.windows, DAYS, PER_DAY))
        rates = np.maximum(0.01, mean_rps[n] * wave[:, None, None] * days * noise)
        made[workload.name] = [_window(rates[k], float(times_s[n]), size.arrival_scv) for k in range(size.windows)]
    return made


def _window(rates: np.ndarray[tuple[int, ...], np.dtype[np.float64]], service_s: float, scv: float) -> WindowDemand:
    flat = rates.ravel()
    return WindowDemand(
        rates_rps=flat * 1.1,
        scv=np.full(len(flat), scv),
        offsets=np.arange(0, len(flat) + 1, PER_DAY),
        day=np.arange(DAYS),
        days=DAYS,
        value_rates_rps=flat,
        value_scv=np.full(len(flat), scv),
        service_time_s=service_s,
        service_scv=1.0,
    )


def provenance() -> Provenance:
    """Nothing was read."""
    return Provenance(
        version="benchmark",
        at=AT,
        forecaster="seasonal",
        confidence=0.8,
        supported_confidence=0.8,
        margin="× 1.1",
        demand=(),
    )


def planned(size: Size) -> tuple[float, float, int]:
    """CPU seconds, gap, and shortages of one whole plan; progress and parts go to standard output."""
    fleet = made_fleet(size)
    demand = made_demand(size, fleet)
    number = {window.name: k for k, window in enumerate(windows_of(fleet.patterns[0]))}

    def demand_of(workload: str, window: Window, exception: DatedException | None) -> WindowDemand:
        return demand[workload][number[window.name]]

    start = time.process_time()
    schedule, explanation = plan(fleet, demand_of, at=AT, valid_until=UNTIL, provenance=provenance())
    seconds = time.process_time() - start
    nodes = schedule.pools[0].production_nodes
    print(
        f"  nodes {min(nodes)} to {max(nodes)}, {len(explanation.shortages)} shortages, "
        f"gap {explanation.bound.gap:.6%}, {seconds:.2f} CPU-s"
    )
    return seconds, explanation.bound.gap, len(explanation.shortages)


def parts(size: Size) -> None:
    """The same plan step by step, to see where time goes."""
    fleet = made_fleet(size)
    demand = made_demand(size, fleet)
    timeline = timeline_of(windows_of(fleet.patterns[0]))
    hours = np.array([window.nominal_hours for window in timeline.windows])
    pool, workloads, research = fleet.pools[0], fleet.workloads_of("h100"), fleet.research
    marks = [("", time.process_time())]
    by_workload = [demand[workload.name] for workload in workloads]
    windows = pool_windows(pool, workloads, by_workload, hours=hours, research=research, confidence=fleet.confidence)
    marks.append(("what nodes give in each window", time.process_time()))
    joint = joined(pool, workloads, windows, timeline=timeline, research=research)
    marks.append(("cycle and its bound", time.process_time()))
    _ = joint.replicas
    marks.append(("replicas", time.process_time()))
    held_rates_rps(joint)
    marks.append(("rates held", time.process_time()))
    shortages_of(joint)
    marks.append(("shortages", time.process_time()))
    for (_, before), (name, after) in pairwise(marks):
        print(f"  {name:<32}{after - before:6.2f} CPU-s")


def broken_limits(name: str, size: Size, limit_s: float, *, is_short: bool) -> list[str]:
    """Plans one fleet; the limits that it broke."""
    print(f"{name}:", flush=True)
    seconds, gap, short = planned(size)
    parts(size)
    checks = {
        f"{name}: CPU seconds": seconds <= limit_s,
        f"{name}: gap": gap <= LIMITS["gap"],
        f"{name}: shortages": (short > 0) == is_short,
    }
    return [check for check, is_held in checks.items() if not is_held]


def main(names: list[str]) -> int:
    """Run, print, compare with the limits."""
    broken = []
    for limit in names or KINDS:
        size = KINDS[limit]
        cases = {"holds": size, "short": replace(size, demand=SHORT * size.demand)}
        for case in cases.values():
            planned(replace(case, workloads=12, windows=8, nodes=60))
        for name, case in cases.items():
            label = f"{limit.removesuffix('cpu_s')}{name}"
            broken += broken_limits(label, case, LIMITS[limit], is_short=name == "short")
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    print(f"peak memory {peak_mib:.0f} MiB")
    if peak_mib > LIMITS["peak_mib"]:
        broken.append("peak memory")
    for check in broken:
        print(f"limit broken: {check}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
