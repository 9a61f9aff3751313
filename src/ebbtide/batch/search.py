"""From jobs and hollows to a batch plan: list rules, search, bound, probabilities, reasons (§7.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ebbtide.batch.bound import METHOD, value_bound
from ebbtide.batch.fitting import Placing, best_of_rules
from ebbtide.batch.hollows import Hollow
from ebbtide.batch.instance import PLANNED_CONFIDENCE, Instance, instance_of
from ebbtide.batch.job import Job
from ebbtide.batch.neighbourhoods import Effort, improved
from ebbtide.batch.outcomes import probabilities
from ebbtide.batch.plan import BatchPlan, Bound, PlannedJob, places_of
from ebbtide.batch.waits import reasons

USUAL = Effort()


def never() -> bool:
    """The stop of a search that has all the time it wants."""
    return False


def plan_batch(
    jobs: Sequence[Job],
    hollows: Sequence[Hollow],
    *,
    at_s: float,
    confidence: float = PLANNED_CONFIDENCE,
    seed: int = 1,
    effort: Effort = USUAL,
    stop: Callable[[], bool] = never,
) -> BatchPlan:
    """The best plan that was found; the same for the same arguments, unless ``stop`` (asked between steps) ends it.

    ``confidence``: the share of a job's runs that its planned length covers. ``ValueError`` where jobs wait for each
    other in a circle, ``KeyError`` where one waits for a job that there is not.
    """
    instance = instance_of(jobs, hollows, at_s=at_s, confidence=confidence)
    rule, placing = searched(instance, seed=seed, effort=effort, stop=stop)
    return described(placing, rule=rule, seed=seed, bound=bound_of(placing))


def searched(
    instance: Instance, *, seed: int, effort: Effort = USUAL, stop: Callable[[], bool] = never
) -> tuple[str, Placing]:
    """The best list rule's name and the placing that the search made of its answer."""
    rule, placing = best_of_rules(instance)
    return rule, improved(placing, seed=seed, effort=effort, stop=stop)


def described(placing: Placing, *, rule: str, seed: int, bound: Bound) -> BatchPlan:
    """A placing as a plan: places, probabilities and reasons of all jobs."""
    instance = placing.instance
    chances = probabilities(placing, seed=seed)
    rows = zip(instance.jobs, places_of(placing), reasons(placing), chances, strict=True)
    return BatchPlan(
        at_s=float(instance.at_s),
        until_s=float(instance.until_s),
        confidence=instance.confidence,
        jobs=tuple(
            PlannedJob(job=job, place=place, reason=reason, probability=float(chance))
            for job, place, reason, chance in rows
        ),
        bound=bound,
        rule=rule,
    )


def quick_bound_of(placing: Placing) -> Bound:
    """How far a placing is from all jobs that fit at all being in time: true, and at once there."""
    value = placing.score.value_usd
    ways = np.diff(placing.instance.way_first) > 0
    possible = round(float(placing.instance.values_usd[ways].sum()), 6)
    return Bound(value_usd=value, bound_usd=max(possible, value), method="every job that fits in time")


def bound_of(placing: Placing) -> Bound:
    """How far a placing is from what no plan exceeds."""
    quick = quick_bound_of(placing)
    value = quick.value_usd
    if value >= quick.bound_usd:
        return quick
    bound = max(round(value_bound(placing.instance), 6), value)
    return Bound(value_usd=value, bound_usd=bound, method=METHOD)
