"""The plan that follows what is seen: what runs stays, what was promised stays, the rest is planned anew (§7.6).

All that must outlive this process stands on the Workloads themselves: a plan that is lost is laid again from the
promises there.

What belongs here: when the plan is made anew, and from what. What doesn't: what follows from it (``decide``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ebbtide.batch.door.early import earlier
from ebbtide.batch.door.estimates import MOST_AHEAD_S, Known, jobs_of
from ebbtide.batch.door.laying import standing_of
from ebbtide.batch.door.ledger import Ledger
from ebbtide.batch.door.work import Stage, Work
from ebbtide.batch.hollows import Hollow, Tenure
from ebbtide.batch.plan import BatchPlan, PlannedJob, Promise
from ebbtide.batch.replan import replanned
from ebbtide.units import DAY_S

LOOKED_AHEAD_S = 7 * DAY_S
NO_MOVE_S = 60.0  # from looking to starting passes some time, and starts are whole seconds
NOTHING_KNOWN = Ledger()
AGAIN_S = 600.0  # promises of an hour ago may help a missed deadline, and steps of the schedule come into sight


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """The plan as it stands, and why some Workloads have none. ``seen``: what it was made from."""

    plan: BatchPlan
    jobs: Mapping[str, Known]
    problems: Mapping[str, str] = field(default_factory=dict)
    seen: object = None


def horizon_s(works: Sequence[Work], at_s: float) -> float:
    """How far the plan looks: a week, or to the last deadline, at most sixty days."""
    deadlines = [work.wishes.deadline_s for work in works if work.wishes and work.wishes.deadline_s is not None]
    return min(max([at_s + LOOKED_AHEAD_S, *deadlines]), at_s + MOST_AHEAD_S)


def followed(
    before: Following | None,
    works: Sequence[Work],
    hollows: Sequence[Hollow],
    *,
    at_s: float,
    ledger: Ledger = NOTHING_KNOWN,
    seed: int = 1,
) -> Following:
    """The plan from ``at_s`` (whole seconds) on; the one before where nothing changed that it stands on.

    ``hollows`` are named by flavor and begin at ``at_s``. ``ledger``: what the teams' runs took, which corrects what is
    said of new ones.
    """
    seen = _seen(works, hollows)
    if before is not None and before.seen == seen and _holds(before.plan, works, at_s):
        return before
    known = {} if before is None else before.jobs
    jobs, problems = jobs_of(known, works, ledger, at_s)
    standing, kept, running = standing_of(None if before is None else before.plan, known, works, jobs, hollows, at_s)
    if not kept:
        empty = replace(standing, at_s=at_s, jobs=())
        return Following(plan=empty, jobs=jobs, problems=problems, seen=seen)
    plan = replanned(standing, kept, hollows, at_s=at_s, running=running, seed=seed)
    waiting = frozenset(work.name for work in works if work.stage is Stage.HELD)
    plan = _as_near(earlier(plan, hollows, at_s, waiting), standing)
    return Following(plan=plan, jobs=jobs, problems=problems, seen=seen)


def _as_near(plan: BatchPlan, standing: BatchPlan) -> BatchPlan:
    """The plan without moves of promises that nobody would call one: a start that is earlier, or later by a moment."""
    before = standing.by_name
    return replace(plan, jobs=tuple(_near(one, before[one.job.name].promise) for one in plan.jobs))


def _near(one: PlannedJob, promise: Promise | None) -> PlannedJob:
    if promise is None or one.place is None or one.place.start_s > promise.start_s + NO_MOVE_S:
        return one
    return replace(one, promise=promise)


def _seen(works: Sequence[Work], hollows: Sequence[Hollow]) -> object:
    """What a plan stands on, without the passing of time."""
    steps = [(one.pool, one.tenure, one.gpus_per_node, one.edges_s[1:-1], one.nodes) for one in hollows]
    found = [
        (one.name, one.stage, one.pods, one.gpus_per_pod, one.flavors, one.wishes, one.flavor, one.since_s, one.ran_s)
        for one in works
        if one.stage in (Stage.HELD, Stage.RUNNING) or one.released
    ]
    return steps, sorted(found, key=lambda one: one[0])


def _holds(plan: BatchPlan, works: Sequence[Work], at_s: float) -> bool:
    """Whether the plan is fresh, and nothing runs longer than it says."""
    running = {work.name for work in works if work.stage is Stage.RUNNING}
    overrun = any(one.place is not None and one.place.finish_s <= at_s for one in plan.jobs if one.job.name in running)
    return not overrun and 0.0 <= at_s - plan.at_s < AGAIN_S


def by_flavor(hollows: Sequence[Hollow], flavors: Mapping[tuple[str, Tenure], str]) -> tuple[Hollow, ...]:
    """The hollows named by the flavor that stands for their pool and tenure; those without one are left out.

    >>> tide = Hollow(pool="h100", tenure=Tenure.EPHEMERAL, gpus_per_node=8, edges_s=(0, 5), nodes=(2,))
    >>> [one.pool for one in by_flavor([tide], {("h100", Tenure.EPHEMERAL): "tide"})]
    ['tide']
    """
    return tuple(
        replace(one, pool=flavors[one.pool, one.tenure]) for one in hollows if flavors.get((one.pool, one.tenure))
    )
