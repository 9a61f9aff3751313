"""The BatchJobs document, field by field: jobs with deadlines, as people write them (§7.1)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema
from whenever import OffsetDateTime

from ebbtide.adapters.documents.fleet_models import ALL_DAYS, MAX_NUMBER
from ebbtide.adapters.documents.model import Document, DocumentModel, described
from ebbtide.adapters.documents.quantities import (
    ClockTime,
    Day,
    Label,
    PositiveDuration,
    duration_text,
    refused,
    shown,
)
from ebbtide.units import parse_duration_s

MAX_JOBS = 20_000
MAX_PODS = 100_000


def _moment(value: Any) -> OffsetDateTime | float:
    if isinstance(value, str):
        try:
            return parse_duration_s(value)
        except ValueError:
            pass
        try:
            return OffsetDateTime.parse_iso(value)
        except ValueError:
            pass
    raise refused(
        "bad_instant",
        f'is {shown(value)}: no duration and no instant; write 12h, or "2026-09-29T00:00:00+08:00", offset included',
    )


def _moment_text(value: OffsetDateTime | float) -> str:
    return str(value) if isinstance(value, OffsetDateTime) else duration_text(value)


Moment = Annotated[
    OffsetDateTime | float,
    PlainValidator(_moment),
    PlainSerializer(_moment_text),
    WithJsonSchema({"type": "string", "maxLength": 64, "examples": ["12h", "2026-09-29T00:00:00+08:00"]}),
]


class HistorySpec(DocumentModel):
    """Past runs that show how long a job takes."""

    file: str = described(
        "An export of `sacct --parsable2`, or a CSV of `job` and `duration_s`; relative to the document's folder."
    )
    job: str | None = described("The name of the job in it.", default=None, completed="the job's name", min_length=1)


class JobDurationSpec(DocumentModel):
    """How long a job runs: an estimate with its spread, or past runs that show both."""

    expected: PositiveDuration | None = described(
        "Half of its runs end within it; this or history.", default=None, unit="duration", completed="the history's"
    )
    p90: PositiveDuration | None = described(
        "Nine of ten runs end within it.", default=None, unit="duration", completed="1.3 × expected"
    )
    history: HistorySpec | None = described("Past runs.", default=None, completed="none")


class PreemptibleSpec(DocumentModel):
    """The job may be interrupted: it goes on from its last checkpoint."""

    checkpoint_interval: PositiveDuration = described("Between two checkpoints.", unit="duration")


class WidthSpec(DocumentModel):
    """Another number of pods that would do."""

    pods: int = described("Pods of the gang.", unit="pods", ge=1, le=MAX_PODS)
    speedup: float = described("How many times as fast it then is.", gt=0, le=1e6)


class RepeatSpec(DocumentModel):
    """The job recurs on weekdays: each time is a job of its own, named by its date."""

    days: list[Day] = described("On which weekdays.", default=ALL_DAYS, min_length=1, max_length=7)
    at: ClockTime = described("When it may start, in the schedule's zone.", unit="clock time")


class JobSpec(DocumentModel):
    """One job."""

    name: Label = described("The job's name.")
    pods: int = described("Pods of the gang: all run together, or none.", default=1, unit="pods", ge=1, le=MAX_PODS)
    gpus_per_pod: int = described("GPUs of a pod, all on one node.", unit="GPUs", ge=1, le=1_024)
    duration: JobDurationSpec = described("How long it runs.")
    earliest_start: Moment | None = described(
        "It may not start before: an instant, or a duration from now.", default=None, completed="now"
    )
    deadline: Moment | None = described(
        "It must be done by then: an instant, or a duration from its earliest start.", default=None, completed="none"
    )
    value_usd: float = described("What it is worth if done in time.", default=0.0, unit="USD", ge=0, le=MAX_NUMBER)
    preemptible: PreemptibleSpec | None = described("It may be interrupted.", default=None, completed="no")
    after: list[Label] = described(
        "Jobs that must have ended before; of recurring ones those of the same date.",
        default=[],
        completed="none",
        max_length=100,
    )
    widths: list[WidthSpec] = described(
        "Other numbers of pods that would do.", default=[], completed="none", max_length=16
    )
    repeat: RepeatSpec | None = described("It recurs.", default=None, completed="once")
    pools: list[Label] = described("Pools that it may run in.", default=[], completed="any", max_length=64)


class BatchJobsSpec(DocumentModel):
    """The jobs."""

    jobs: list[JobSpec] = described("The jobs.", min_length=1, max_length=MAX_JOBS, merge_by="name")


class BatchJobsForm(Document):
    """BatchJobs: jobs with deadlines, to be planned into a schedule's research capacity."""

    kind: Literal["BatchJobs"] = described("The document's kind.")
    spec: BatchJobsSpec = described("The jobs.")
