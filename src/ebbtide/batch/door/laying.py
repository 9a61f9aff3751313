"""The plan that stands, laid out of what is seen: what runs, what was let in, what was promised (§7.6).

What belongs here: places as they are now. What doesn't: planning the rest (``batch.replan``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ebbtide.batch.door.estimates import Known
from ebbtide.batch.door.work import Stage, Work
from ebbtide.batch.hollows import Hollow
from ebbtide.batch.instance import PLANNED_CONFIDENCE, instance_of
from ebbtide.batch.job import Job
from ebbtide.batch.plan import BatchPlan, Bound, Cause, Place, PlannedJob, Promise, Reason, Run
from ebbtide.batch.replan import Running
from ebbtide.batch.standing import placing_of

_UNTOLD = Reason(cause=Cause.AT_ONCE)
_NO_BOUND = Bound(value_usd=0.0, bound_usd=0.0, method="none")


def standing_of(
    before: BatchPlan | None,
    known: Mapping[str, Known],
    works: Sequence[Work],
    jobs: Mapping[str, Known],
    hollows: Sequence[Hollow],
    at_s: float,
) -> tuple[BatchPlan, list[Job], dict[str, Running]]:
    """What stands: a plan with the places of what runs, is let in, or was promised; the jobs; what runs.

    ``known``: the jobs of the plan ``before``, to whom its promises were given.
    """
    by_flavor = {one.pool: one for one in hollows}
    last = {} if before is None else before.by_name
    planned: list[PlannedJob] = []
    running: dict[str, Running] = {}
    for work in works:
        if work.name not in jobs:
            continue
        job = jobs[work.name][1]
        place = _place_of(work, job, last.get(work.name), by_flavor, at_s)
        if work.stage is Stage.RUNNING:
            running[work.name] = Running(since_s=work.since_s, done_s=work.ran_s)
        promise = _promise_of(work, last.get(work.name))
        planned.append(PlannedJob(job=_as_promised(work, job, known), place=place, reason=_UNTOLD, promise=promise))
    lost = _without_a_node(planned, running, hollows, at_s)
    planned = [one for one in planned if one.job.name not in lost]
    kept = [jobs[one.job.name][1] for one in planned]
    until_s = max((one.edges_s[-1] for one in hollows), default=at_s)
    plan = BatchPlan(at_s=at_s, until_s=until_s, confidence=PLANNED_CONFIDENCE, jobs=tuple(planned), bound=_NO_BOUND)
    return plan, kept, {name: one for name, one in running.items() if name not in lost}


def _promise_of(work: Work, last: PlannedJob | None) -> Promise | None:
    """The last one: that of the plan in force, which may not have been written yet, else the one on the Workload."""
    return work.told.promise if last is None or last.promise is None else last.promise


def _as_promised(work: Work, job: Job, known: Mapping[str, Known]) -> Job:
    """The job that the promise was given to: one that changed since breaks it (§7.6)."""
    return known[work.name][1] if work.stage is Stage.HELD and work.name in known else job


def _place_of(
    work: Work, job: Job, last: PlannedJob | None, by_flavor: Mapping[str, Hollow], at_s: float
) -> Place | None:
    """Where a job stands: what runs where it is, what is let in now, what was promised as it was planned."""
    if work.stage is Stage.RUNNING:
        return _from(work, job, work.flavor, by_flavor, at_s, begun_s=work.since_s, ran_s=work.ran_s)
    if work.released:
        flavor = work.flavor or work.told.flavor
        return _from(work, job, flavor, by_flavor, at_s, begun_s=at_s, ran_s=work.ran_s)
    if last is not None and last.place is not None:
        due = last.place.start_s < at_s  # its time has come, and it is still here: now, before anybody else
        return _from(work, job, last.place.pool, by_flavor, at_s, begun_s=at_s, ran_s=work.ran_s) if due else last.place
    promise = work.told.promise
    if promise is None:
        return None
    begun_s = max(promise.start_s, at_s)
    return _from(work, job, work.told.flavor, by_flavor, at_s, begun_s=begun_s, ran_s=work.ran_s)


def _from(
    work: Work,
    job: Job,
    flavor: str,
    by_flavor: Mapping[str, Hollow],
    at_s: float,
    *,
    begun_s: float,
    ran_s: float,
) -> Place | None:
    """A place on a flavor from an instant on, for its planned length, until its nodes leave at most."""
    hollow = by_flavor.get(flavor)
    nodes = None if hollow is None else job.shapes[0].nodes(hollow.gpus_per_node)
    if hollow is None or nodes is None:
        return None
    end_s = begun_s + job.duration.quantile_s(PLANNED_CONFIDENCE)
    if ran_s or end_s <= at_s:
        end_s = at_s + job.duration.remaining_quantile_s(PLANNED_CONFIDENCE, ran_s + max(at_s - begun_s, 0.0))
    end_s = min(end_s, hollow.edges_s[-1])
    if job.preemptible or work.stage is Stage.RUNNING:
        end_s = min(end_s, max(hollow.falls_below(nodes, max(begun_s, at_s)), begun_s + 1.0))
    run = Run(start_s=begun_s, end_s=float(int(end_s)))
    return Place(pool=flavor, tenure=hollow.tenure, pods=job.pods, gpus_per_pod=job.gpus_per_pod, runs=(run,))


def _without_a_node(
    planned: Sequence[PlannedJob], running: Mapping[str, object], hollows: Sequence[Hollow], at_s: float
) -> frozenset[str]:
    """What runs on nodes that the schedule no longer has: it holds nothing that others could be given."""
    run = {one.job.name: one for one in planned if one.job.name in running}
    if not run:
        return frozenset()
    places = {name: one.place for name, one in run.items() if one.place is not None}
    instance = instance_of([one.job for one in run.values()], hollows, at_s=at_s, confidence=PLANNED_CONFIDENCE)
    _, broken = placing_of(instance, places)
    return frozenset(broken) | (run.keys() - places.keys())
