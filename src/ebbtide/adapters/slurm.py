"""Jobs and past runs from Slurm's exports: `sacct` and `squeue` with `--parsable2` (or fields divided by `|`).

What belongs here: columns by their Slurm names, Slurm's forms of time, states, GPUs in TRES and GRES. What doesn't:
planning. Slurm is only read: nothing is submitted (Slurm 24.05, sacct(1) and squeue(1) name the fields).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from whenever import PlainDateTime

from ebbtide.batch.durations import Duration, duration_of_past
from ebbtide.batch.job import Job
from ebbtide.errors import InputError, Place

_ELAPSED = re.compile(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+)(?:\.\d+)?|(\d+)-(\d+)(?::(\d+))?")
_GPUS = re.compile(r"(?:^|,)(?:gres/)?gpu(?::[^=:,]+)?[=:](\d+)")
_BOM = "\ufeff"
_FINISHED = frozenset({"COMPLETED"})
_WAITING = frozenset({"PENDING", "PD", "REQUEUED"})
_NOTHING = frozenset({"", "Unknown", "N/A", "None", "NONE", "UNLIMITED", "Partition_Limit", "(null)", "INVALID"})
_NAME_CHARACTERS = re.compile(r"[^a-z0-9-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A job's line: its fields by their names in lower case without `_`, and the line's number."""

    line: int
    fields: Mapping[str, str]

    def first(self, *names: str) -> str:
        """The first of the fields that says something; empty where none does."""
        return next((text for name in names if (text := self.fields.get(name, "")) not in _NOTHING), "")


def is_slurm(text: str) -> bool:
    """Whether a text looks like such an export: a head line of several fields, the job's number among them.

    >>> is_slurm("JobID|JobName|State|Elapsed"), is_slurm("kind: BatchJobs")
    (True, False)
    """
    names = _head(text.removeprefix(_BOM).split("\n", 1)[0])
    return len(names) > 1 and "jobid" in names


def finished_runs(text: str, *, file: str) -> dict[str, tuple[float, ...]]:
    """Seconds of every completed run by job name; failed, cancelled and unfinished ones say nothing of a whole run."""
    found: dict[str, list[float]] = {}
    for row in rows(text, file=file):
        if row.first("state", "st").split(" ")[0] in _FINISHED:
            seconds = _elapsed_s(row, file, "elapsedraw", "elapsed")
            if seconds is not None and seconds > 0:
                found.setdefault(row.first("jobname", "name"), []).append(seconds)
    return {name: tuple(runs) for name, runs in found.items()}


def waiting_jobs(text: str, *, file: str, at_s: float, time_zone: str) -> tuple[tuple[Job, ...], tuple[str, ...]]:
    """The jobs that wait, and sentences on what was left out.

    A job's duration is what finished runs of its name in the same export show, else its time limit as the 90th
    percentile (its author's own bound; half of the runs are taken to end within 1/1.3 of it). A deadline that is over
    is none. Nothing says what a job is worth: its value is 0.
    """
    known = {name: duration_of_past(runs) for name, runs in finished_runs(text, file=file).items()}
    jobs, without_gpus, without_time = [], 0, 0
    last = {row.fields["jobid"]: row for row in rows(text, file=file)}  # a requeued job has a line for every time
    for row in last.values():
        if row.first("state", "st").split(" ")[0] not in _WAITING:
            continue
        pods, gpus = _gang(row)
        limit_s = _elapsed_s(row, file, "timelimitraw", "timelimit", minutes=("timelimitraw",))
        duration = known.get(row.first("jobname", "name"))
        if duration is None and limit_s:
            duration = Duration(expected_s=limit_s / 1.3, p90_s=limit_s)
        if gpus == 0:
            without_gpus += 1
        elif duration is None:
            without_time += 1
        else:
            jobs.append(_job(row, pods, gpus, duration, file=file, at_s=at_s, time_zone=time_zone))
    arrays = sum("[" in number and row.first("state", "st").split(" ")[0] in _WAITING for number, row in last.items())
    return tuple(jobs), tuple(_left_out(without_gpus, without_time, arrays))


def rows(text: str, *, file: str) -> Iterator[Row]:
    """The lines of jobs; steps (`12.batch`) are left out. ``InputError`` where a line has not the head's fields."""
    lines = text.removeprefix(_BOM).splitlines()
    names = _head(lines[0]) if lines else []
    if "jobid" not in names:
        raise InputError(
            "has no column JobID",
            kind="unknown_columns",
            place=Place(file=file, line=1),
            hint="export with `sacct --parsable2` or `squeue --Format`, head line included",
        )
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        cells = line.rstrip("|").split("|") if len(line.split("|")) != len(names) else line.split("|")
        if len(cells) != len(names):
            message = f"has {len(cells)} fields, the head line {len(names)}"
            raise InputError(message, kind="wrong_fields", place=Place(file=file, line=number))
        row = Row(line=number, fields=dict(zip(names, (cell.strip() for cell in cells), strict=True)))
        if "." not in row.fields["jobid"]:
            yield row


def _head(line: str) -> list[str]:
    return [name.strip().lower().replace("_", "").replace(" ", "") for name in line.strip("\r\n|").split("|")]


def _elapsed_s(row: Row, file: str, *names: str, minutes: Sequence[str] = ()) -> float | None:
    """Seconds of the first of the fields that says something: a plain number, or `[days-]hours:minutes:seconds`."""
    for name in names:
        text = row.first(name)
        if not text:
            continue
        if text.isdigit():
            return float(text) * (60.0 if name in minutes else 1.0)
        seconds = elapsed_s(text)
        if seconds is None:
            place = Place(file=file, line=row.line, field=name)
            raise InputError(f"is {text!r}, no time", kind="bad_duration", place=place)
        return seconds
    return None


def elapsed_s(text: str) -> float | None:
    """Seconds of Slurm's `[days-]hours:minutes:seconds`, `minutes:seconds` or `days-hours`; None for other text.

    >>> elapsed_s("1-02:00:30"), elapsed_s("05:30"), elapsed_s("2-12"), elapsed_s("soon")
    (93630.0, 330.0, 216000.0, None)
    """
    match = _ELAPSED.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups()[:4])
    if match[5] is not None:
        days, hours, minutes = int(match[5]), int(match[6]), int(match[7] or 0)
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _gang(row: Row) -> tuple[int, int]:
    """Pods and GPUs of each: a node of Slurm's is a pod."""
    nodes = row.first("reqnodes", "nnodes", "nodes", "numnodes").split("-")[0]
    pods = max(int(nodes), 1) if nodes.isdigit() else 1
    total = _count(row.first("reqtres", "alloctres", "tres", "tresalloc"))
    if total:
        return (pods, total // pods) if total % pods == 0 else (1, total)
    return pods, _count(row.first("trespernode", "gres", "reqgres"))


def _count(text: str) -> int:
    return max((int(found) for found in _GPUS.findall(text)), default=0)


def _job(row: Row, pods: int, gpus: int, duration: Duration, *, file: str, at_s: float, time_zone: str) -> Job:
    start_s = _instant_s(row, file, time_zone, "eligible", "eligibletime")
    deadline_s = _instant_s(row, file, time_zone, "deadline")
    name = _NAME_CHARACTERS.sub("-", f"{row.first('jobname', 'name')}-{row.fields['jobid']}".lower()).strip("-")
    return Job(
        name=name[-63:].strip("-"),
        pods=pods,
        gpus_per_pod=gpus,
        duration=duration,
        earliest_start_s=max(at_s, start_s if start_s is not None else at_s),
        deadline_s=deadline_s if deadline_s is not None and deadline_s > at_s else None,
    )


def _instant_s(row: Row, file: str, time_zone: str, *names: str) -> float | None:
    text = row.first(*names)
    if not text:
        return None
    try:
        return float(PlainDateTime.parse_iso(text).assume_tz(time_zone).timestamp())
    except ValueError:
        place = Place(file=file, line=row.line, field=names[0])
        raise InputError(f"is {text!r}, no time such as 2026-09-01T08:00:00", kind="bad_instant", place=place) from None


def _left_out(without_gpus: int, without_time: int, arrays: int) -> Iterator[str]:
    if arrays:
        yield f"{arrays} waiting arrays count as one task each; export with `squeue --array`, or `sacct --array`"
    if without_gpus:
        yield f"{without_gpus} waiting jobs ask for no GPU and are left out"
    if without_time:
        yield f"{without_time} waiting jobs have neither a time limit nor finished runs and are left out"
