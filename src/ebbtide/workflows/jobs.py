"""`ebbtide jobs`: jobs with deadlines planned into a schedule's research capacity (§7)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from whenever import Instant

from ebbtide.adapters.documents.batch_plan import PlanDocument, plan_output, read_plan
from ebbtide.adapters.documents.files import Output, make_folder, refuse_foreign, write_together
from ebbtide.adapters.documents.jobs import read_jobs
from ebbtide.adapters.documents.reading import document_bytes
from ebbtide.adapters.slurm import is_slurm, waiting_jobs
from ebbtide.batch.durations import USUAL_SPREAD, Duration
from ebbtide.batch.hollows import Hollow
from ebbtide.batch.instance import PLANNED_CONFIDENCE, instance_of
from ebbtide.batch.job import Job
from ebbtide.batch.neighbourhoods import Effort
from ebbtide.batch.offer import Offer, offer
from ebbtide.batch.relief import reliefs
from ebbtide.batch.search import bound_of, described, searched
from ebbtide.errors import InputError, Place
from ebbtide.units import DAY_S, parse_duration_s
from ebbtide.workflows.instants import parse_instant_s
from ebbtide.workflows.research_capacity import ResearchCapacity, research_capacity

DAYS_AHEAD = 7
MOST_DAYS = 60
SECONDS = 10.0
REINSERTIONS_A_SECOND = 200  # fewer than a machine does: the answer is to depend on the seed, not on the machine


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlannedJobs:
    """What `jobs plan` made and wrote; ``talk`` is what a person is told beside it."""

    document: PlanDocument
    hollows: tuple[Hollow, ...]
    talk: tuple[str, ...]
    written: tuple[Path, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Jobs:
    name: str
    jobs: tuple[Job, ...]
    remarks: tuple[str, ...]


def plan_jobs(
    jobs_file: Path,
    schedule_file: Path,
    *,
    fleet_file: Path | None = None,
    at: str | None = None,
    folder: Path | None = None,
    days: int = DAYS_AHEAD,
    confidence: float = PLANNED_CONFIDENCE,
    seed: int = 1,
    seconds: float = SECONDS,
) -> PlannedJobs:
    """Plan the jobs of a file (a BatchJobs document, or an export of Slurm's) and write ``plan.yaml``, if to a folder.

    The plan looks ``days`` ahead, or to the last deadline; the search takes ``seconds`` at most. Raises
    ``InputError`` for wrong input; nothing is written.
    """
    capacity = research_capacity(schedule_file, fleet_file)
    at_s = instant_of(at, capacity.schedule.time_zone)
    read = _read(jobs_file, capacity, at_s, days)
    deadlines = [job.deadline_s for job in read.jobs if job.deadline_s is not None]
    until_s = min(max([at_s + days * DAY_S, *deadlines]), at_s + MOST_DAYS * DAY_S)
    hollows = capacity.hollows(from_s=at_s, until_s=until_s)
    instance = instance_of(read.jobs, hollows, at_s=at_s, confidence=confidence)
    ends_s = monotonic() + seconds
    rule, placing = searched(instance, seed=seed, effort=effort_of(seconds), stop=lambda: monotonic() > ends_s)
    plan = replace(
        described(placing, rule=rule, seed=seed, bound=bound_of(placing)), reliefs=reliefs(placing, seed=seed)
    )
    document = PlanDocument(
        name=read.name,
        schedule_name=capacity.schedule.name,
        fleet_digest=capacity.schedule.fleet_digest,
        time_zone=capacity.schedule.time_zone,
        plan=plan,
    )
    written = _written(folder, document) if folder is not None else ()
    return PlannedJobs(document=document, hollows=hollows, talk=(*capacity.remarks, *read.remarks), written=written)


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
    standing = None if plan_file is None else read_plan(plan_file)
    if standing is not None and standing.fleet_digest != capacity.schedule.fleet_digest:
        raise InputError(
            f"was made for another Fleet than {schedule_file}",
            kind="other_fleet",
            place=Place(file=str(plan_file)),
            hint="plan anew with `ebbtide jobs plan`",
        )
    job = _wished(wish, capacity, at_s)
    deadlines = [job.deadline_s or at_s]
    if standing is not None:
        deadlines.append(standing.plan.until_s)
    until_s = min(max(at_s + DAYS_AHEAD * DAY_S, *deadlines), at_s + MOST_DAYS * DAY_S)
    hollows = capacity.hollows(from_s=at_s, until_s=until_s)
    found = offer(job, None if standing is None else standing.plan, hollows, at_s=at_s, seed=seed)
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


def effort_of(seconds: float) -> Effort:
    """The steps that a search of so many seconds has time for on a slow machine."""
    steps = max(round(seconds * REINSERTIONS_A_SECOND), 1)
    return Effort(reinsertions=steps, models=max(round(seconds), 1))


def instant_of(at: str | None, time_zone: str) -> float:
    """The instant that ``--at`` names, in whole seconds; now where it isn't given."""
    now_s = float(Instant.now().timestamp())
    return now_s if at is None else parse_instant_s(at, at_s=now_s, time_zone=time_zone, field="--at")


def _read(path: Path, capacity: ResearchCapacity, at_s: float, days: int) -> _Jobs:
    content = document_bytes(path)  # once: what comes through a pipe is gone then
    zone = capacity.schedule.time_zone
    text = content.decode("utf-8", errors="replace")
    if is_slurm(text):
        jobs, remarks = waiting_jobs(text, file=str(path), at_s=at_s, time_zone=zone)
        if not jobs:
            raise InputError(
                "holds no waiting job that asks for GPUs",
                kind="no_jobs",
                place=Place(file=str(path)),
                hint="export pending ones: sacct --parsable2 --state=PENDING, or squeue",
            )
        return _Jobs(name="slurm", jobs=jobs, remarks=remarks)
    found = read_jobs(path, at_s=at_s, until_s=at_s + days * DAY_S, time_zone=zone, content=content)
    if not found.jobs:
        raise InputError(
            f"holds no job that may start within {days} days",
            kind="no_jobs",
            place=Place(file=str(path)),
            hint="look further ahead with --days",
        )
    return _Jobs(name=found.name, jobs=found.jobs, remarks=())


def _written(folder: Path, document: PlanDocument, *more: Output) -> tuple[Path, ...]:
    outputs = (plan_output(folder / "plan.yaml", document), *more)
    make_folder(folder)
    for output in outputs:
        refuse_foreign(output.path)
    write_together(outputs)
    return tuple(output.path for output in outputs)
