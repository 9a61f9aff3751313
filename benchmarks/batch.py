"""2,000 jobs of real traces in a week of research capacity: value against EDF and the list rules, bound, replanning.

    uv run python -m benchmarks.batch

At loads 0.85 and 0.6 (planned GPU-hours over capacity), and once more with deadlines that can all be met: those of a
plan that was made first, in a random order, each with half of the job's length to spare. Limits are in ``limits.toml``,
section ``[batch]``; exit code 1 where one is broken. Compiled code and imports are warmed by a small plan first. CPU
time is of one core; the search is counted in steps, so the figures but the times are the same on every machine.
"""

from __future__ import annotations

import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.batch_jobs import WEEK_S, H, drawn_jobs, load_of, week_of_capacity
from ebbtide.batch.fitting import Placing, place
from ebbtide.batch.hollows import Hollow
from ebbtide.batch.instance import Instance, instance_of
from ebbtide.batch.job import Job
from ebbtide.batch.neighbourhoods import Effort
from ebbtide.batch.plan import BatchPlan
from ebbtide.batch.replan import Running, promised, replanned
from ebbtide.batch.rules import RULES, order_of
from ebbtide.batch.search import bound_of, described, searched

LIMITS = tomllib.loads((Path(__file__).parent / "limits.toml").read_text())["batch"]
JOBS = 2_000
SEED = 1
EFFORT = Effort(reinsertions=10_000, models=20)
FOUR = ("edf", "least-slack", "value-density", "fifo")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure and its limit: at least, or at most."""

    name: str
    value: float
    limit: float
    at_least: bool

    @property
    def holds(self) -> bool:
        """Whether it keeps its limit."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit


def rule_values(instance: Instance) -> dict[str, float]:
    """What each list rule alone has in time."""
    return {name: place(instance, order_of(instance, RULES[name](instance))).score.value_usd for name in FOUR}


def timed(work: Callable[[], tuple[str, Placing]]) -> tuple[str, Placing, float]:
    """What a search found, and its CPU time."""
    begun = time.process_time()
    rule, placing = work()
    return rule, placing, time.process_time() - begun


def at_load(load: float, count: int, effort: Effort) -> Iterator[Figure]:
    """The plan at a load against EDF and the best list rule."""
    jobs = drawn_jobs(count, seed=SEED)
    hollows = week_of_capacity(jobs, load=load)
    instance = instance_of(jobs, hollows, at_s=0.0)
    rules = rule_values(instance)
    _, placing, cpu_s = timed(lambda: searched(instance, seed=SEED, effort=effort))
    begun = time.process_time()
    bound = bound_of(placing)
    bound_cpu_s = time.process_time() - begun
    value, total = placing.score.value_usd, float(instance.values_usd.sum())
    shares = ", ".join(f"{name} {value_usd / total:.3f}" for name, value_usd in rules.items())
    print(f"load {load_of(jobs, hollows):.3f}: {shares}; search {value / total:.3f} of all value")
    print(f"  bound {bound.bound_usd / total:.3f}, gap {bound.gap:.3f} ({bound.method}; {bound_cpu_s:.1f} CPU-s)")
    key = f"{100 * load:.0f}"
    yield Figure(name=f"over_edf_{key}", value=value / rules["edf"] - 1, limit=LIMITS[f"over_edf_{key}"], at_least=True)
    yield Figure(name=f"over_rules_{key}", value=value / max(rules.values()) - 1, limit=0.0, at_least=True)
    yield Figure(name=f"cpu_s_{key}", value=cpu_s + bound_cpu_s, limit=LIMITS["cpu_s"], at_least=False)


def feasible_jobs(count: int, load: float) -> tuple[list[Job], list[Hollow]]:
    """Jobs whose deadlines can all be met: they are in a plan that was made first, in a random order."""
    jobs = drawn_jobs(count, seed=SEED)
    hollows = week_of_capacity(jobs, load=load)
    open_ended = instance_of([replace(job, deadline_s=None) for job in jobs], hollows, at_s=0.0)
    order = np.random.default_rng(SEED).permutation(len(jobs))  # the order of no rule
    planned = place(open_ended, order)
    found = []
    for job, way, end_s in zip(jobs, planned.way_of, planned.end_s, strict=True):
        if way >= 0:
            spare_s = 0.5 * job.duration.quantile_s(0.9)
            found.append(replace(job, deadline_s=min(float(end_s) + spare_s, float(WEEK_S))))
    return found, hollows


def all_met(count: int, effort: Effort) -> Iterator[Figure]:
    """Deadlines that can all be met."""
    for load in (0.6, 0.85):
        jobs, hollows = feasible_jobs(count, load)
        instance = instance_of(jobs, hollows, at_s=0.0)
        edf = int(place(instance, order_of(instance, RULES["edf"](instance))).in_time.sum())
        _, placing, cpu_s = timed(lambda instance=instance: searched(instance, seed=SEED, effort=effort))
        missed, gap = len(jobs) - int(placing.in_time.sum()), bound_of(placing).gap
        print(
            f"all can be met, load {load}: EDF misses {len(jobs) - edf} of {len(jobs)}, search {missed}; gap {gap:.4f}"
        )
        key = f"{100 * load:.0f}"
        yield Figure(name=f"missed_{key}", value=missed, limit=LIMITS[f"missed_{key}"], at_least=False)
        yield Figure(name=f"gap_{key}", value=gap, limit=LIMITS["feasible_gap"], at_least=False)
        yield Figure(name=f"feasible_cpu_s_{key}", value=cpu_s, limit=LIMITS["cpu_s"], at_least=False)


def one_change(count: int) -> Iterator[Figure]:
    """Planning again on the third day, for a job that comes late and a node's worth of jobs that run long."""
    jobs = drawn_jobs(count, seed=SEED)
    hollows = week_of_capacity(jobs, load=0.85)
    instance = instance_of(jobs, hollows, at_s=0.0)
    rule, placing = searched(instance, seed=SEED, effort=Effort(reinsertions=300, models=0))
    plan = promised(described(placing, rule=rule, seed=SEED, bound=bound_of(placing)))
    at_s = 2 * 86_400.0
    left = [one.job for one in plan.jobs if one.place is None or one.place.finish_s > at_s]
    late = replace(jobs[0], name="late", earliest_start_s=at_s, deadline_s=at_s + 24 * H, value_usd=100.0)
    begun = time.process_time()
    again = replanned(plan, [*left, late], hollows, at_s=at_s, running=_running(plan, at_s))
    cpu_s = time.process_time() - begun
    in_time = again.by_name["late"].in_time
    moved = sum(one.promise is not None and one.promise.moved_s is not None for one in again.jobs)
    print(f"one job more on the third day: {moved} of {len(left)} promises moved; it is in time: {in_time}")
    yield Figure(name="replan_cpu_s", value=cpu_s, limit=LIMITS["replan_cpu_s"], at_least=False)


def _running(plan: BatchPlan, at_s: float) -> dict[str, Running]:
    return {
        one.job.name: Running(since_s=one.place.start_s)
        for one in plan.jobs
        if one.place is not None and one.place.start_s < at_s < one.place.finish_s
    }


def main(count: int = JOBS) -> int:
    """1 where a limit does not hold."""
    list(at_load(0.6, 40, Effort(reinsertions=130, models=1)))  # warms the compiled code
    list(one_change(40))
    print(f"-- {count} jobs")
    figures = [
        *at_load(0.85, count, EFFORT),
        *at_load(0.6, count, EFFORT),
        *all_met(count, EFFORT),
        *one_change(count),
    ]
    for one in figures:
        sign = "at least" if one.at_least else "at most"
        print(f"{'' if one.holds else 'BROKEN '}{one.name} {one.value:.4g}, {sign} {one.limit}")
    return 0 if all(one.holds for one in figures) else 1


if __name__ == "__main__":
    sys.exit(main(*(int(word) for word in sys.argv[1:])))
