"""`ebbtide jobs when`: what one more job can be promised before it is submitted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ebbtide.batch.durations import USUAL_SPREAD, Duration
from ebbtide.batch.job import Job
from ebbtide.batch.offer import Offer, offer
from ebbtide.errors import InputError, Place
from ebbtide.units import DAY_S, parse_duration_s
from ebbtide.workflows.instants import parse_instant_s
from ebbtide.workflows.jobs import DAYS_AHEAD, MOST_DAYS, instant_of, standing_plan
from ebbtide.workflows.research_capacity import ResearchCapacity, research_capacity


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Offered:
    """What `jobs when` answers; ``talk`` is what a person is told beside it."""

    offer: Offer
    at_s: float
    time_zone: str
    talk: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A job that is not submitted yet, as options say it. ``gpus_per_pod`` None: as many as a node has, at most."""

    gpus: int
    hours: float
    p90_hours: float | None = None
    gpus_per_pod: int | None = None
    deadline: str | None = None
    checkpoint_interval_s: float | None = None
    pool: str | None = None


def when(
    wish: Wish,
    schedule_file: Path,
    *,
    plan_file: Path | None = None,
    fleet_file: Path | None = None,
    at: str | None = None,
    seed: int = 1,
) -> Offered:
    """When a job could start and be done, beside the plan that stands. Raises ``InputError`` for wrong input."""
    capacity = research_capacity(schedule_file, fleet_file)
    zone = capacity.schedule.time_zone
    at_s = instant_of(at, zone)
    standing = None if plan_file is None else standing_plan(plan_file, capacity, schedule_file)
    job = _wished(wish, capacity, at_s)
    deadlines = [job.deadline_s or at_s]
    if standing is not None:
        deadlines.append(standing.until_s)
    until_s = min(max(at_s + DAYS_AHEAD * DAY_S, *deadlines), at_s + MOST_DAYS * DAY_S)
    hollows = capacity.hollows(from_s=at_s, until_s=until_s)
    found = offer(job, standing, hollows, at_s=at_s, seed=seed)
    lost = f"{len(found.lost)} jobs of the plan have lost their places: plan anew" if found.lost else ""
    return Offered(offer=found, at_s=at_s, time_zone=zone, talk=(*capacity.remarks, *([lost] if lost else [])))


def _wished(wish: Wish, capacity: ResearchCapacity, at_s: float) -> Job:
    pools = {pool.name: pool for pool in capacity.pools}
    if wish.pool is not None and wish.pool not in pools:
        raise InputError(
            f'there is no pool "{wish.pool}"',
            kind="unknown_pool",
            place=Place(field="--pool"),
            hint=f"there are {', '.join(pools)}",
        )
    on_a_node = max(pool.gpus_per_node for name, pool in pools.items() if wish.pool in (None, name))
    per_pod = wish.gpus_per_pod or min(wish.gpus, on_a_node)
    if wish.gpus % per_pod:
        message = f"is {wish.gpus}, no multiple of {per_pod} GPUs a pod"
        raise InputError(message, kind="bad_gpus", place=Place(field="--gpus"), hint="name --gpus-per-pod")
    deadline_s = None
    if wish.deadline is not None:
        zone = capacity.schedule.time_zone
        deadline_s = parse_instant_s(wish.deadline, at_s=at_s, time_zone=zone, field="--deadline")
        if deadline_s <= at_s:
            raise InputError("is over", kind="deadline_over", place=Place(field="--deadline"), hint="give a later one")
    p90_h = wish.p90_hours if wish.p90_hours is not None else USUAL_SPREAD * wish.hours
    if p90_h < wish.hours:
        raise InputError("is below --hours", kind="out_of_range", place=Place(field="--p90-hours"))
    return Job(
        name="new-job",
        pods=wish.gpus // per_pod,
        gpus_per_pod=per_pod,
        duration=Duration(expected_s=3600.0 * wish.hours, p90_s=3600.0 * p90_h),
        earliest_start_s=at_s,
        deadline_s=deadline_s,
        checkpoint_interval_s=wish.checkpoint_interval_s,
        pools=() if wish.pool is None else (wish.pool,),
    )


def checkpoint_s(text: str | None) -> float | None:
    """Seconds of ``--checkpoint``; None where it isn't given."""
    if text is None:
        return None
    try:
        seconds = parse_duration_s(text)
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        place = Place(field="--checkpoint")
        raise InputError(f'is "{text}", no duration above 0s', kind="bad_duration", place=place, hint="write 30m")
    return seconds
