"""Read a BatchJobs document (DOCUMENTS §3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from whenever import OffsetDateTime

from ebbtide.adapters.documents.jobs_models import BatchJobsForm, JobSpec
from ebbtide.adapters.documents.jobs_rules import jobs_problems
from ebbtide.adapters.documents.problems import document_errors, field_name, raise_errors
from ebbtide.adapters.documents.reading import Read, read_document
from ebbtide.adapters.history import past_runs
from ebbtide.batch.durations import USUAL_SPREAD, Duration, duration_of_past
from ebbtide.batch.job import Job, Width
from ebbtide.batch.recurring import Occurrence, occurrences
from ebbtide.errors import DocumentError, Place
from ebbtide.fleet.horizon import Weekday


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsDocument:
    """The jobs of a document, recurring ones once for each time; ``lines``: where each field is written."""

    path: Path
    name: str
    jobs: tuple[Job, ...]
    lines: Mapping[str, int] = field(default_factory=dict, repr=False)

    def place(self, job: str, field_path: str = "") -> Place:
        """The place of a job in the document, or of one of its fields."""
        name = f"jobs[{job}]{'.' if field_path else ''}{field_path}"
        return Place(file=str(self.path), line=self.lines.get(name, self.lines.get(f"jobs[{job}]")), field=name)


def read_jobs(
    path: Path | str, *, at_s: float, until_s: float, time_zone: str, content: bytes | None = None
) -> JobsDocument:
    """The jobs in a file, every default completed. ``at_s`` is now; recurring jobs are those that may start until
    ``until_s``, by the clock of ``time_zone``.

    Raises ``DocumentError`` where something is wrong with it (``DocumentErrors`` where several things are, with a line
    for each), ``InputError`` where there is no such file.
    """
    read = _read(Path(path), at_s, content)
    raise_errors(read.errors)
    assert read.form is not None  # without errors there is a form
    lines = {field_name(at, read.tree.data): line for at, line in read.tree.lines.items() if at}
    document = JobsDocument(path=Path(path), name=read.form.metadata.name, jobs=(), lines=lines)
    jobs: list[Job] = []
    for spec in read.form.spec.jobs:
        duration = _duration(spec, document)
        for occurrence in _occurrences(spec, at_s=at_s, until_s=until_s, time_zone=time_zone):
            jobs.append(_job(spec, duration, occurrence, at_s))
    present = {job.name for job in jobs}
    kept = tuple(_without_missing(job, present) for job in jobs)
    return JobsDocument(path=document.path, name=document.name, jobs=kept, lines=lines)


def _read(path: Path, at_s: float, content: bytes | None) -> Read[BatchJobsForm]:
    read = read_document(path, BatchJobsForm, kind="BatchJobs", content=content)
    if read.form is None:
        return read
    errors = document_errors(jobs_problems(read.form.spec, at_s=at_s), read.tree, read.file)
    return Read(file=read.file, tree=read.tree, form=read.form, errors=tuple(errors))


def _duration(spec: JobSpec, document: JobsDocument) -> Duration:
    given = spec.duration
    if given.expected is not None:
        p90_s = given.p90 if given.p90 is not None else USUAL_SPREAD * given.expected
        return Duration(expected_s=given.expected, p90_s=p90_s)
    assert given.history is not None  # the rules saw to it that one of the two is given
    wanted = given.history.job or spec.name
    runs_s = past_runs(document.path.parent / given.history.file).get(wanted, ())
    if not runs_s:
        raise DocumentError(
            f'{given.history.file} holds no finished run of "{wanted}"',
            kind="no_history",
            place=document.place(spec.name, "duration.history"),
            hint="name the job as the file does, or give expected and p90",
        )
    found = duration_of_past(runs_s)
    return found if given.p90 is None else Duration(expected_s=min(found.expected_s, given.p90), p90_s=given.p90)


def _occurrences(spec: JobSpec, *, at_s: float, until_s: float, time_zone: str) -> Sequence[Occurrence]:
    if spec.repeat is None:
        start = spec.earliest_start
        if start is None:
            return (Occurrence(suffix="", start_s=at_s),)
        return (
            Occurrence(suffix="", start_s=start.timestamp() if isinstance(start, OffsetDateTime) else at_s + start),
        )
    days = tuple(Weekday(day) for day in spec.repeat.days)
    return occurrences(days, spec.repeat.at, time_zone=time_zone, from_s=at_s, until_s=until_s)


def _job(spec: JobSpec, duration: Duration, occurrence: Occurrence, at_s: float) -> Job:
    start_s = max(occurrence.start_s, at_s)
    deadline_s: float | None = None
    if isinstance(spec.deadline, OffsetDateTime):
        deadline_s = float(spec.deadline.timestamp())
    elif spec.deadline is not None:
        deadline_s = start_s + spec.deadline
    return Job(
        name=spec.name + occurrence.suffix,
        pods=spec.pods,
        gpus_per_pod=spec.gpus_per_pod,
        duration=duration,
        earliest_start_s=start_s,
        deadline_s=deadline_s,
        value_usd=spec.value_usd,
        checkpoint_interval_s=None if spec.preemptible is None else spec.preemptible.checkpoint_interval,
        after=tuple(name + occurrence.suffix for name in spec.after),
        widths=tuple(Width(pods=one.pods, speedup=one.speedup) for one in spec.widths),
        pools=tuple(spec.pools),
    )


def _without_missing(job: Job, present: set[str]) -> Job:
    """A recurring job waits for the same date's run of another, or for the one that doesn't recur, if there is one."""
    dated = job.name.rpartition("-")[0]
    after = tuple(
        name if name in present else name.rpartition("-")[0]
        for name in job.after
        if name in present or (dated and name.rpartition("-")[0] in present)
    )
    return job if after == job.after else replace(job, after=after)
