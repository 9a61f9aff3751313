"""`ebbtide jobs`: jobs with deadlines planned into a schedule's research capacity (§7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from whenever import Instant

from ebbtide.adapters.documents.batch_plan import PlanDocument, plan_output, read_plan
from ebbtide.adapters.documents.files import Output, make_folder, refuse_foreign, write_together
from ebbtide.adapters.documents.jobs import read_jobs
from ebbtide.adapters.documents.reading import document_bytes
from ebbtide.adapters.slurm import is_slurm, waiting_jobs
from ebbtide.batch.hollows import Hollow
from ebbtide.batch.instance import PLANNED_CONFIDENCE, instance_of
from ebbtide.batch.job import Job
from ebbtide.batch.neighbourhoods import Effort
from ebbtide.batch.plan import BatchPlan
from ebbtide.batch.relief import reliefs
from ebbtide.batch.replan import Running, promised, replanned
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
    keep: Path | None = None,
    report: bool = False,
) -> PlannedJobs:
    """Plan the jobs of a file (a BatchJobs document, or an export of Slurm's) and write ``plan.yaml``, if to a folder.

    The plan looks ``days`` ahead, or to the last deadline; the search takes ``seconds`` at most.
    ``keep``: a plan that stands; its promises are kept (§7.6), and its jobs that should run now are taken to. Raises
    ``InputError`` for wrong input; nothing is written.
    """
    capacity = research_capacity(schedule_file, fleet_file)
    at_s = instant_of(at, capacity.schedule.time_zone)
    read = _read(jobs_file, capacity, at_s, days)
    deadlines = [job.deadline_s for job in read.jobs if job.deadline_s is not None]
    until_s = min(max([at_s + days * DAY_S, *deadlines]), at_s + MOST_DAYS * DAY_S)
    hollows = capacity.hollows(from_s=at_s, until_s=until_s)
    ends_s = monotonic() + seconds
    search = _Search(at_s=at_s, confidence=confidence, seed=seed, seconds=seconds, stop=lambda: monotonic() > ends_s)
    if keep is None:
        plan = search.afresh(read.jobs, hollows)
    else:
        plan = search.kept(standing_plan(keep, capacity, schedule_file), read.jobs, hollows)
    document = PlanDocument(
        name=read.name,
        schedule_name=capacity.schedule.name,
        fleet_digest=capacity.schedule.fleet_digest,
        time_zone=capacity.schedule.time_zone,
        plan=plan,
    )
    talk = (*capacity.remarks, *read.remarks)
    page = () if not report else (_page(folder or Path(), document, hollows, talk),)
    written = _written(folder, document, *page) if folder is not None or report else ()
    return PlannedJobs(document=document, hollows=hollows, talk=talk, written=written)


def effort_of(seconds: float) -> Effort:
    """The steps that a search of so many seconds has time for on a slow machine."""
    steps = max(round(seconds * REINSERTIONS_A_SECOND), 1)
    return Effort(reinsertions=steps, models=max(round(seconds), 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """How to plan: from when on, how sure, and for how long to search."""

    at_s: float
    confidence: float
    seed: int
    seconds: float
    stop: Callable[[], bool]

    def afresh(self, jobs: tuple[Job, ...], hollows: tuple[Hollow, ...]) -> BatchPlan:
        """The best plan of all jobs; every start is a promise from now on."""
        instance = instance_of(jobs, hollows, at_s=self.at_s, confidence=self.confidence)
        rule, placing = searched(instance, seed=self.seed, effort=effort_of(self.seconds), stop=self.stop)
        plan = described(placing, rule=rule, seed=self.seed, bound=bound_of(placing))
        return promised(replace(plan, reliefs=reliefs(placing, seed=self.seed)))

    def kept(self, standing: BatchPlan, jobs: tuple[Job, ...], hollows: tuple[Hollow, ...]) -> BatchPlan:
        """The plan nearest to the one that stands; jobs whose planned time is over are done."""
        over = {one.job.name for one in standing.jobs if one.place is not None and one.place.finish_s <= self.at_s}
        running = {
            one.job.name: Running(since_s=one.place.start_s)
            for one in standing.jobs
            if one.place is not None and one.place.start_s < self.at_s < one.place.finish_s
        }
        left = [job for job in jobs if job.name not in over]
        effort = effort_of(self.seconds)
        return replanned(
            standing, left, hollows, at_s=self.at_s, running=running, seed=self.seed, effort=effort, stop=self.stop
        )


def standing_plan(path: Path, capacity: ResearchCapacity, schedule_file: Path) -> BatchPlan:
    standing = read_plan(path)
    if standing.fleet_digest != capacity.schedule.fleet_digest:
        raise InputError(
            f"was made for another Fleet than {schedule_file}",
            kind="other_fleet",
            place=Place(file=str(path)),
            hint="plan anew with `ebbtide jobs plan`",
        )
    return standing.plan


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


def _page(folder: Path, document: PlanDocument, hollows: tuple[Hollow, ...], talk: tuple[str, ...]) -> Output:
    from ebbtide.adapters.report.jobs import render_jobs_page  # jinja2: imported only when used
    from ebbtide.workflows.jobs_page import jobs_page

    return Output(path=folder / "jobs.html", content=render_jobs_page(jobs_page(document, hollows, talk)).encode())


def _written(folder: Path | None, document: PlanDocument, *pages: Output) -> tuple[Path, ...]:
    """The plan, where a folder was named, and the page, where one is wanted."""
    outputs = pages if folder is None else (plan_output(folder / "plan.yaml", document), *pages)
    make_folder(folder or Path())
    for output in outputs:
        refuse_foreign(output.path)
    write_together(outputs)
    return tuple(output.path for output in outputs)
