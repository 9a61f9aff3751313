"""Jobs drawn from real traces, and a week of research capacity at a given load: what the batch benchmarks plan.

Gang sizes and durations are Philly's (two virtual clusters, and the slice with deadlines that Chronus made of it);
deadlines are durations times the ratio of a Chronus job drawn with them; see ``data/ATTRIBUTION.md``. Releases are
uniform over the week, what a GPU-hour is worth is log-normal (median 2 USD, sigma 0.7): no trace says. Half of the jobs
may be interrupted. Jobs of 300 s to 24 h.
"""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ebbtide.batch.durations import Duration
from ebbtide.batch.hollows import Hollow, Tenure
from ebbtide.batch.instance import instance_of
from ebbtide.batch.job import Job

SAMPLE = Path(__file__).parent / "data" / "philly_jobs_sample.csv.gz"
WEEK_S = 7 * 86_400
H = 3600.0
GPUS_PER_NODE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """One job of a trace: its GPUs, how long it ran, and its deadline from its submission (0: none)."""

    gpus: int
    duration_s: float
    deadline_s: float


def traced_jobs(path: Path = SAMPLE) -> list[Traced]:
    """All jobs of the sample."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [
            Traced(
                gpus=int(row["gpus"]), duration_s=float(row["duration_s"]), deadline_s=float(row["deadline_s"] or "0")
            )
            for row in csv.DictReader(file)
        ]


def drawn_jobs(count: int, *, seed: int) -> list[Job]:
    """So many jobs; gangs of more than a node's GPUs are pods of whole nodes."""
    rng = np.random.default_rng(seed)
    traced = [one for one in traced_jobs() if 300 <= one.duration_s <= 86_400]
    ratios = [one.deadline_s / one.duration_s for one in traced if one.deadline_s]
    jobs = []
    for number in range(count):
        one = traced[rng.integers(len(traced))]
        ratio = one.deadline_s / one.duration_s if one.deadline_s else ratios[rng.integers(len(ratios))]
        duration = Duration.usual(one.duration_s / 1.3)
        length_s = duration.quantile_s(0.9)
        start_s = float(rng.uniform(0.0, WEEK_S - ratio * length_s)) if ratio * length_s < WEEK_S else 0.0
        pods, per_pod = (-(-one.gpus // GPUS_PER_NODE), GPUS_PER_NODE) if one.gpus > GPUS_PER_NODE else (1, one.gpus)
        jobs.append(
            Job(
                name=f"job-{number:05}",
                pods=pods,
                gpus_per_pod=per_pod,
                duration=duration,
                earliest_start_s=float(int(start_s)),
                deadline_s=start_s + max(ratio, 1.05) * length_s,
                value_usd=round(2.0 * float(rng.lognormal(0.0, 0.7)) * one.gpus * length_s / H, 2),
                checkpoint_interval_s=1800.0 if rng.random() < 0.5 else None,
            )
        )
    return jobs


def week_of_capacity(jobs: list[Job], *, load: float) -> list[Hollow]:
    """Hollows of which the jobs take so large a part by plan: two fifths reserved, the rest a nightly tide."""
    work_gpu_h = sum(job.gpus * job.duration.quantile_s(0.9) for job in jobs) / H
    nodes = work_gpu_h / load / (WEEK_S / H) / GPUS_PER_NODE
    reserved = max(round(0.4 * nodes), 1)
    night_h, day_share = 12.0, 0.25  # by day a quarter of the night's nodes are left
    rest = max(nodes - reserved, 1.0)
    night = max(round(rest * 24 / (night_h + day_share * (24 - night_h))), 1)
    edges, counts = [0.0], []
    for day in range(7):
        edges += [day * 86_400 + 8 * H, day * 86_400 + 20 * H]
        counts += [night, max(round(day_share * night), 0)]
    counts.append(night)
    return [
        Hollow(pool="h100", tenure=Tenure.RESERVED, gpus_per_node=8, edges_s=(0.0, WEEK_S), nodes=(reserved,)),
        Hollow(
            pool="h100", tenure=Tenure.EPHEMERAL, gpus_per_node=8, edges_s=(*edges, float(WEEK_S)), nodes=tuple(counts)
        ),
    ]


def load_of(jobs: list[Job], hollows: list[Hollow]) -> float:
    """Planned GPU-hours of the jobs over those of the hollows."""
    work = instance_of(jobs, hollows, at_s=0.0).work_gpu_s
    return float(work[np.isfinite(work)].sum()) / H / sum(one.gpu_hours for one in hollows)
