"""A job whose GPUs are free before its promised start begins then, where that takes no other job's place.

Most runs end before their planned end, which nine of ten keep to; nobody minds an early start, and no promise moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ebbtide.batch.fitting import place
from ebbtide.batch.hollows import Hollow
from ebbtide.batch.instance import instance_of
from ebbtide.batch.plan import BatchPlan, Cause, Reason, places_of
from ebbtide.batch.standing import placing_of

EARLY_TRIES = 60  # jobs that are tried after a change: free GPUs hold only so many


def earlier(plan: BatchPlan, hollows: Sequence[Hollow], at_s: float, waiting: frozenset[str]) -> BatchPlan:
    """The plan with jobs begun now that would begin later, where that takes no other job's place."""
    later = [
        one
        for one in plan.jobs
        if one.job.name in waiting
        and one.place is not None
        and one.place.start_s > at_s
        and one.job.earliest_start_s <= at_s
        and not one.job.after
    ]
    if not later or _all_taken(plan, hollows, at_s):
        return plan
    jobs = [one.job for one in plan.jobs]
    instance = instance_of(jobs, hollows, at_s=at_s, confidence=plan.confidence)
    placing, _ = placing_of(instance, {one.job.name: one.place for one in plan.jobs if one.place is not None})
    later.sort(key=lambda one: one.place.start_s if one.place else at_s)
    moved: set[int] = set()
    for one in later[:EARLY_TRIES]:
        number = instance.number(one.job.name)
        found = place(instance, np.array([number]), thrift=False, standing=placing, late=False)
        if found.way_of[number] >= 0 and found.start_s[number] <= at_s and found.end_s[number] <= placing.end_s[number]:
            placing = found
            moved.add(number)
    if not moved:
        return plan
    places = places_of(placing)
    return replace(
        plan,
        jobs=tuple(
            replace(one, place=places[number], reason=Reason(cause=Cause.AT_ONCE)) if number in moved else one
            for number, one in enumerate(plan.jobs)
        ),
    )


def _all_taken(plan: BatchPlan, hollows: Sequence[Hollow], at_s: float) -> bool:
    """Whether no GPU is free now: then no start can be earlier."""
    there = sum(one.nodes_at(at_s) * one.gpus_per_node for one in hollows)
    taken = sum(
        one.place.gpus for one in plan.jobs if one.place is not None and one.place.start_s <= at_s < one.place.finish_s
    )
    return taken >= there
