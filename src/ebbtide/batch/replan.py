"""Planning again after a change: what runs goes on, what was promised stays, the rest is planned anew (§7.6).

A promise moves only where it is broken (its nodes are gone, a job before it runs long, its job changed), or, once an
hour at most, where a deadline would be missed otherwise. Either way the reason is recorded.

What belongs here: which jobs may move, and the promises' record. What doesn't: finding out what runs (the caller's),
the search (``neighbourhoods``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ebbtide.batch.fitting import Placing, place
from ebbtide.batch.hollows import Hollow
from ebbtide.batch.instance import Instance, Ints, instance_of
from ebbtide.batch.job import Job
from ebbtide.batch.neighbourhoods import Effort, improved
from ebbtide.batch.plan import BatchPlan, Place, PlannedJob, Promise
from ebbtide.batch.rules import earliest_deadline, order_of
from ebbtide.batch.search import described, quick_bound_of
from ebbtide.batch.standing import placing_of

PROMISE_HOLDS_S = 3600.0
QUICK = Effort(reinsertions=60, models=0)  # less than a second at 2,000 jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A job that runs: since when without a break, and what it had done before that (0 where it began afresh)."""

    since_s: float
    done_s: float = 0.0


def replanned(
    standing: BatchPlan,
    jobs: Sequence[Job],
    hollows: Sequence[Hollow],
    *,
    at_s: float,
    running: Mapping[str, Running],
    seed: int = 1,
    effort: Effort = QUICK,
    stop: Callable[[], bool] = lambda: False,
) -> BatchPlan:
    """The plan from ``at_s`` on for the jobs that are not done, kept as near to the standing one as may be.

    ``jobs``: all that are known and not over, running ones included; of those that the standing plan does not know a
    promise is given. ``running`` jobs stay where the standing plan has them, for what is left of their planned length.
    Jobs that they come after and that are not among ``jobs`` have ended.
    """
    known = {job.name for job in jobs}
    current = [replace(job, after=tuple(name for name in job.after if name in known)) for job in jobs]
    instance = instance_of(current, hollows, at_s=at_s, confidence=standing.confidence)
    before = standing.by_name
    wanted = _wanted(standing, current, running, at_s)
    fixed, broken = placing_of(instance, wanted)
    begun = _filled(fixed)
    free = _without_promise(instance, before, running, broken)
    found = improved(begun, seed=seed, effort=effort, movable=free, stop=stop)
    found = _with_old_promises(
        found,
        free,
        before,
        running,
        at_s,
        lambda start, who: improved(start, seed=seed, effort=effort, movable=who, stop=stop),
    )
    plan = described(found, rule="standing plan", seed=seed, bound=quick_bound_of(found))
    reasons = _Reasons(before, frozenset(broken), frozenset(running), at_s)
    return replace(plan, jobs=tuple(reasons.told(one) for one in plan.jobs))


def promised(plan: BatchPlan) -> BatchPlan:
    """The plan with a promise for every job that has a place and none yet, given when the plan was made."""
    return replace(plan, jobs=tuple(_given(one, plan.at_s) for one in plan.jobs))


def _given(one: PlannedJob, at_s: float) -> PlannedJob:
    if one.place is None or one.promise is not None:
        return one
    return replace(one, promise=Promise(start_s=one.place.start_s, given_s=at_s))


def _wanted(standing: BatchPlan, jobs: Sequence[Job], running: Mapping[str, Running], at_s: float) -> dict[str, Place]:
    """Where jobs are to stay: running ones first, then promised ones in the order of their starts."""
    before = standing.by_name
    found: dict[str, Place] = {}
    for job in jobs:
        planned = before.get(job.name)
        if job.name in running and planned is not None and planned.place is not None:
            found[job.name] = _going_on(job, planned.place, running[job.name], standing.confidence, at_s)
    starting = [
        (planned.place.start_s, job.name, planned.place)
        for job in jobs
        if (planned := before.get(job.name)) is not None
        and planned.place is not None
        and job.name not in running
        and planned.place.start_s >= at_s
        and _same_shape(job, planned.job)
    ]
    return found | {name: place for _, name, place in sorted(starting, key=lambda one: one[:2])}


def _going_on(job: Job, held: Place, running: Running, confidence: float, at_s: float) -> Place:
    """A running job's place from now on: as planned, as long as it keeps to its planned length.

    One that began late, or has run longer, is given what so many of the runs that have lasted so long still need.
    """
    late_s = max(running.since_s - held.start_s, 0.0) if len(held.runs) == 1 else 0.0
    runs = [
        replace(run, start_s=max(run.start_s, at_s), end_s=run.end_s + late_s)
        for run in held.runs
        if run.end_s + late_s > at_s
    ]
    if runs:
        return replace(held, runs=tuple(runs))
    shape = next((one for one in job.shapes if one.pods == held.pods), job.shapes[0])
    ran_s = running.done_s + max(at_s - running.since_s, 0.0)
    left_s = shape.duration.remaining_quantile_s(confidence, ran_s)
    return replace(held, runs=(replace(held.runs[-1], start_s=at_s, end_s=float(np.ceil(at_s + left_s))),))


def _same_shape(job: Job, other: Job) -> bool:
    """Whether what was promised to one still fits the other: a changed estimate breaks a promise."""
    return (job.gpus_per_pod, job.duration, job.widths, job.pods) == (
        other.gpus_per_pod,
        other.duration,
        other.widths,
        other.pods,
    )


def _filled(fixed: Placing) -> Placing:
    """All jobs without a place put beside those that have one, the most urgent first."""
    order = order_of(fixed.instance, earliest_deadline(fixed.instance))
    return place(fixed.instance, order[fixed.way_of[order] < 0], standing=fixed)


def _without_promise(
    instance: Instance, before: Mapping[str, PlannedJob], running: Mapping[str, Running], broken: Sequence[str]
) -> Ints:
    """The jobs that nobody was told of, and those whose promise is broken."""
    lost = frozenset(broken)
    found = [
        number
        for number, job in enumerate(instance.jobs)
        if job.name in lost
        or (job.name not in running and (job.name not in before or before[job.name].promise is None))
    ]
    return np.array(found, dtype=np.int64)


def _with_old_promises(
    placing: Placing,
    free: Ints,
    before: Mapping[str, PlannedJob],
    running: Mapping[str, Running],
    at_s: float,
    search: Callable[[Placing, Ints], Placing],
) -> Placing:
    """The same with promises of an hour ago moved, as few as may be, where that holds a deadline missed only now.

    A deadline that the standing plan missed already is no reason to move anybody.
    """
    jobs, held = placing.instance.jobs, placing.in_time
    missed = [
        number
        for number, job in enumerate(jobs)
        if job.deadline_s is not None and not held[number] and (job.name not in before or before[job.name].in_time)
    ]
    old = [
        number
        for number, job in enumerate(jobs)
        if job.name not in running
        and (one := before.get(job.name)) is not None
        and one.promise is not None
        and at_s - one.promise.since_s >= PROMISE_HOLDS_S
        and held[number]
    ]
    if not missed or not old:
        return placing
    found = search(placing, np.union1d(missed, np.union1d(old, free[held[free]])))
    if found.score.value_usd <= placing.score.value_usd and found.score.in_time <= placing.score.in_time:
        return placing
    return _moved_back(found, placing, old)


def _moved_back(found: Placing, placing: Placing, old: Sequence[int]) -> Placing:
    """Promised jobs put back to their promised starts, one by one, where they still fit."""
    starts, ends = placing.start_s, placing.end_s
    for job in old:
        if found.start_s[job] == starts[job]:
            continue
        release, latest = found.instance.release_s.copy(), found.instance.latest_s.copy()
        release[job], latest[job] = starts[job], ends[job]
        back = place(found.instance, np.array([job]), release_s=release, latest_s=latest, standing=found, late=False)
        if back.way_of[job] >= 0 and back.start_s[job] == starts[job]:
            found = back
    return found


class _Reasons:
    """Promises after planning again: kept, given, or moved with the reason."""

    def __init__(
        self, before: Mapping[str, PlannedJob], broken: frozenset[str], running: frozenset[str], at_s: float
    ) -> None:
        self._before, self._broken, self._running, self._at_s = before, broken, running, at_s

    def told(self, one: PlannedJob) -> PlannedJob:
        """The job with its promise as it now stands."""
        planned = self._before.get(one.job.name)
        promise = None if planned is None else planned.promise
        if one.job.name in self._running:
            return replace(one, promise=promise)
        if promise is None:
            return _given(one, self._at_s)
        if one.place is not None and one.place.start_s == promise.start_s:
            return replace(one, promise=promise)
        start_s = promise.start_s if one.place is None else one.place.start_s
        moved = replace(promise, start_s=start_s, moved_s=self._at_s, reason=self._why(one, planned))
        return replace(one, promise=moved)

    def _why(self, one: PlannedJob, planned: PlannedJob | None) -> str:
        if one.place is None:
            return "it has no place any more"
        if planned is not None and not _same_shape(one.job, planned.job):
            return "the job changed"
        if planned is not None and planned.place is not None and planned.place.start_s < self._at_s:
            return "it was not started when its time came"
        if one.job.name in self._broken:
            return "its GPUs are not free then any more"
        return "a deadline would be missed otherwise"
