"""Rules between a BatchJobs document's fields: names, references, circles, instants that can still be kept."""

from __future__ import annotations

from collections.abc import Iterator

from whenever import OffsetDateTime

from ebbtide.adapters.documents.jobs_models import BatchJobsSpec, JobSpec
from ebbtide.adapters.documents.problems import Problem, one_of, unknown
from ebbtide.adapters.documents.quantities import duration_text
from ebbtide.adapters.documents.yaml_text import Path

_ROOT: Path = ("spec", "jobs")


def jobs_problems(spec: BatchJobsSpec, *, at_s: float) -> list[Problem]:
    """Everything that is wrong between the fields, at an instant: a deadline may be over by now."""
    problems = [*_names(spec), *_after(spec)]
    for index, job in enumerate(spec.jobs):
        problems += [*_duration(job, (*_ROOT, index)), *_times(job, (*_ROOT, index), at_s), *_widths(job, index)]
    if not problems:
        problems += _circles(spec)
    return problems


def _names(spec: BatchJobsSpec) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, job in enumerate(spec.jobs):
        if job.name in seen:
            message = f'the name "{job.name}" is given twice'
            yield Problem(path=(*_ROOT, index, "name"), kind="duplicate_name", message=message)
        seen.add(job.name)


def _after(spec: BatchJobsSpec) -> Iterator[Problem]:
    names = {job.name: job for job in spec.jobs}
    for index, job in enumerate(spec.jobs):
        for place, name in enumerate(job.after):
            path: Path = (*_ROOT, index, "after", place)
            if name not in names:
                yield unknown(path, kind="unknown_job", word=name, known=names, what="there is no job")
            elif job.repeat is None and names[name].repeat is not None:
                yield Problem(
                    path=path,
                    kind="conflicting_fields",
                    message=f"{name} recurs, and {job.name} does not: which of its runs is meant?",
                    hint=f"give {job.name} a repeat of the same days, or {name} none",
                )


def _duration(job: JobSpec, path: Path) -> Iterator[Problem]:
    duration = job.duration
    yield from one_of((*path, "duration"), {"expected": duration.expected, "history": duration.history})
    if duration.p90 is not None and duration.expected is not None and duration.p90 < duration.expected:
        yield Problem(
            path=(*path, "duration", "p90"),
            kind="out_of_range",
            message=f"is {duration_text(duration.p90)}, below the expected {duration_text(duration.expected)}: "
            "nine of ten runs end within p90, half of them within expected",
        )


def _times(job: JobSpec, path: Path, at_s: float) -> Iterator[Problem]:
    start, deadline = job.earliest_start, job.deadline
    if job.repeat is not None and start is not None:
        yield from one_of(path, {"earliestStart": start, "repeat": job.repeat})
    if isinstance(deadline, OffsetDateTime):
        if job.repeat is not None:
            message = "is an instant, but the job recurs: each time needs its own"
            yield Problem(
                path=(*path, "deadline"), kind="conflicting_fields", message=message, hint="write it as a duration"
            )
        elif deadline.timestamp() <= at_s:
            message = f"is {deadline}, which is over"
            yield Problem(
                path=(*path, "deadline"),
                kind="deadline_over",
                message=message,
                hint="give a later one, or drop the job",
            )
        elif isinstance(start, OffsetDateTime) and deadline <= start:
            message = f"is {deadline}, not after the earliest start, {start}"
            yield Problem(path=(*path, "deadline"), kind="out_of_range", message=message)
    elif deadline is not None and deadline <= 0:
        message = "is 0s: the job would have to be done when it starts"
        yield Problem(path=(*path, "deadline"), kind="out_of_range", message=message)


def _widths(job: JobSpec, index: int) -> Iterator[Problem]:
    seen = {job.pods}
    for place, width in enumerate(job.widths):
        if width.pods in seen:
            message = f"is {width.pods}, which is given already"
            yield Problem(path=(*_ROOT, index, "widths", place, "pods"), kind="conflicting_fields", message=message)
        seen.add(width.pods)


def _circles(spec: BatchJobsSpec) -> list[Problem]:
    """The first circle of jobs that wait for each other."""
    after = {job.name: job.after for job in spec.jobs}
    done: set[str] = set()
    for index, job in enumerate(spec.jobs):
        circle = _circle(job.name, after, done)
        if circle:
            message = f"waits for itself: {' after '.join(circle)}"
            return [Problem(path=(*_ROOT, index, "after"), kind="dependency_circle", message=message)]
    return []


def _circle(name: str, after: dict[str, list[str]], done: set[str]) -> list[str]:
    """A circle through ``name`` or what it waits for; those without one join ``done``.

    Without recursion: chains may be long.
    """
    trail: dict[str, None] = {}
    stack = [(name, False)]
    while stack:
        one, leaving = stack.pop()
        if leaving:
            trail.popitem()
            done.add(one)
        elif one in trail:
            names = list(trail)
            return [*names[names.index(one) :], one]
        elif one not in done:
            trail[one] = None
            stack.append((one, True))
            stack += [(before, False) for before in after[one]]
    return []
