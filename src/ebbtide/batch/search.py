"""From jobs and hollows to a batch plan: list rules, search, bound, probabilities, reasons (§7.2)."""

from __future__ import annotations

from collections.abc import Sequence

from ebbtide.batch.fitting import Placing, best_of_rules
from ebbtide.batch.hollows import Hollow
from ebbtide.batch.instance import PLANNED_CONFIDENCE, instance_of
from ebbtide.batch.job import Job
from ebbtide.batch.outcomes import probabilities
from ebbtide.batch.plan import BatchPlan, Bound, PlannedJob, places_of
from ebbtide.batch.waits import reasons


def plan_batch(
    jobs: Sequence[Job],
    hollows: Sequence[Hollow],
    *,
    at_s: float,
    confidence: float = PLANNED_CONFIDENCE,
    seed: int = 1,
) -> BatchPlan:
    """The best plan that was found; the same for the same arguments.

    ``confidence``: the share of a job's runs that its planned length covers. ``ValueError`` where jobs wait for each
    other in a circle, ``KeyError`` where one waits for a job that there is not.
    """
    instance = instance_of(jobs, hollows, at_s=at_s, confidence=confidence)
    rule, placing = best_of_rules(instance)
    return described(placing, rule=rule, seed=seed, bound=_all_in_time(placing))


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


def _all_in_time(placing: Placing) -> Bound:
    total = float(placing.instance.values_usd.sum())
    return Bound(value_usd=placing.score.value_usd, bound_usd=round(total, 6), method="all jobs in time")
