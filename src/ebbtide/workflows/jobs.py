"""`ebbtide jobs`: jobs with deadlines planned into a schedule's research capacity (§7)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from whenever import Instant

from ebbtide.adapters.documents.batch_plan import PlanDocument, plan_output
from ebbtide.adapters.documents.files import Output, make_folder, refuse_foreign, write_together
from ebbtide.adapters.documents.jobs import read_jobs
from ebbtide.adapters.documents.reading import document_bytes
from ebbtide.adapters.slurm import is_slurm, waiting_jobs
from ebbtide.batch.hollows import Hollow
from ebbtide.batch.instance import PLANNED_CONFIDENCE, instance_of
from ebbtide.batch.job import Job
from ebbtide.batch.neighbourhoods import Effort
from ebbtide.batch.relief import reliefs
from ebbtide.batch.search import bound_of, described, searched
from ebbtide.errors import InputError, Place
from ebbtide.units import DAY_S
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
