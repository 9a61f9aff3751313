"""What can be promised to a job before it is submitted: when it would start and end, how sure, and what would help.

What belongs here: one more job beside a plan that stands. What doesn't: planning all jobs anew (``search``), keeping a
promise (``replan``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ebbtide.batch.fitting import Placing, place
from ebbtide.batch.hollows import Hollow
from ebbtide.batch.instance import Instance, instance_of
from ebbtide.batch.job import Job
from ebbtide.batch.neighbourhoods import Effort, improved
from ebbtide.batch.outcomes import probabilities
from ebbtide.batch.plan import BatchPlan, PlannedJob, Relief, places_of
from ebbtide.batch.relief import reliefs
from ebbtide.batch.standing import placing_of
from ebbtide.batch.waits import reasons

CHECKPOINT_S = 1800.0  # what "if it could be interrupted" assumes
_TRY = Effort(reinsertions=200, models=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change that would let the job be done sooner (or in time): to itself, or to others whose deadlines still hold.

    ``preemptible``: the job checkpoints every half hour. ``moved``: these jobs start at another time. ``planned``: what
    the job then gets.
    """

    planned: PlannedJob
    preemptible: bool = False
    moved: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What the job gets beside all others as they are planned, and what would help where that is late or nothing.

    ``changes``: without more hardware; ``reliefs``: a later deadline, or nodes. The cheapest first in both.
    ``lost``: jobs of the standing plan whose place does not hold any more, so that nothing was kept for them.
    """

    planned: PlannedJob
    changes: tuple[Change, ...] = ()
    reliefs: tuple[Relief, ...] = ()
    lost: tuple[str, ...] = ()


def offer(job: Job, standing: BatchPlan | None, hollows: Sequence[Hollow], *, at_s: float, seed: int = 1) -> Offer:
    """The earliest place of one more job beside the standing plan (None: there is none).

    Jobs of the plan whose planned finish is over are gone; all others keep their places. ``ValueError`` where the plan
    has a job of that name.
    """
    others = [] if standing is None else [one for one in standing.jobs if _ahead(one, at_s)]
    if any(one.job.name == job.name for one in others):
        raise ValueError(f"the plan has a job {job.name} already")
    confidence = 0.9 if standing is None else standing.confidence
    before = _Before(others, hollows, at_s, confidence, seed)
    placing, lost = before.beside(job)
    planned = _planned(placing, seed)
    if planned.in_time and planned.reason.cause.value == "at_once":
        return Offer(planned=planned, lost=lost)
    changes = [one for one in (before.preemptible(job, planned), before.moving(job, placing)) if one is not None]
    helps = () if planned.in_time else reliefs(placing, seed=seed)
    return Offer(planned=planned, changes=tuple(changes), reliefs=helps, lost=lost)


class _Before:
    """The plan that stands, to be asked about one more job in several ways."""

    def __init__(
        self, others: Sequence[PlannedJob], hollows: Sequence[Hollow], at_s: float, confidence: float, seed: int
    ) -> None:
        self._others, self._hollows = others, hollows
        self._at_s, self._confidence, self._seed = at_s, confidence, seed

    def beside(self, job: Job) -> tuple[Placing, tuple[str, ...]]:
        """The job where all others stay as they are; the names of those that could not."""
        instance = self._instance(job)
        places = {one.job.name: one.place for one in self._others if one.place is not None}
        standing, lost = placing_of(instance, places)
        return place(instance, np.array([len(instance.jobs) - 1]), standing=standing), lost

    def preemptible(self, job: Job, planned: PlannedJob) -> Change | None:
        """What the job would get if it could be interrupted; None where that is no sooner."""
        if job.preemptible:
            return None
        placing, _ = self.beside(replace(job, checkpoint_interval_s=CHECKPOINT_S))
        other = _planned(placing, self._seed)
        return Change(planned=other, preemptible=True) if _sooner(other, planned) else None

    def moving(self, job: Job, placing: Placing) -> Change | None:
        """What it would get if others that have not begun moved, their deadlines still held; None where no sooner."""
        number = len(placing.instance.jobs) - 1
        if job.deadline_s is None or placing.in_time[number]:
            return None
        held = placing.in_time
        free = np.flatnonzero(placing.start_s > self._at_s)
        worth = [replace(one, value_usd=1.0) for one in placing.instance.jobs]
        even = replace(placing, instance=self._as(worth, placing.instance))
        found = improved(even, seed=self._seed, effort=_TRY, movable=np.union1d(free, [number]))
        if not found.in_time[number] or (held & ~found.in_time).any():
            return None
        moved = np.flatnonzero((found.start_s != placing.start_s) & (np.arange(len(held)) != number))
        names = tuple(placing.instance.jobs[one].name for one in moved)
        return Change(planned=_planned(found, self._seed), moved=names)

    def _instance(self, job: Job) -> Instance:
        known = {one.job.name for one in self._others}
        jobs = [
            replace(
                one.job,
                after=tuple(name for name in one.job.after if name in known),
                deadline_s=one.job.deadline_s
                if one.in_time
                else None,  # what is missed anyway is not to be helped here
            )
            for one in self._others
        ]
        return self._as([*jobs, job], None)

    def _as(self, jobs: Sequence[Job], like: Instance | None) -> Instance:
        at_s = self._at_s if like is None else float(like.at_s)
        return instance_of(jobs, self._hollows, at_s=at_s, confidence=self._confidence)


def _ahead(one: PlannedJob, at_s: float) -> bool:
    return one.place is not None and one.place.finish_s > at_s


def _planned(placing: Placing, seed: int) -> PlannedJob:
    """The last job of a placing as it is planned."""
    instance = placing.instance
    number = len(instance.jobs) - 1
    return PlannedJob(
        job=instance.jobs[number],
        place=places_of(placing)[number],
        reason=reasons(placing)[number],
        probability=float(probabilities(placing, seed=seed)[number]),
    )


def _sooner(one: PlannedJob, other: PlannedJob) -> bool:
    if one.place is None:
        return False
    return other.place is None or (one.in_time and not other.in_time) or one.place.finish_s < other.place.finish_s
