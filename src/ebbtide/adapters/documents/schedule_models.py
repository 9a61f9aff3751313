"""The Schedule document, field by field: the one table behind its reader, JSON Schema, reference page and CRD.

``spec`` is what the controller obeys. ``explanation`` says why and changes no decision; its columns have three
significant digits. In both, every column has one entry per window, in the windows' order.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema

from ebbtide.adapters.documents.fleet_models import MAX_COUNT, MAX_WINDOWS, MAX_WORKLOADS, TargetSpec
from ebbtide.adapters.documents.model import Document, DocumentModel, described
from ebbtide.adapters.documents.override_models import OverrideSpec, PauseSpec
from ebbtide.adapters.documents.quantities import (
    UNSTABLE,
    ClockTime,
    DateText,
    Day,
    Duration,
    Instant,
    Label,
    ObservedWait,
    Percentile,
    TimeZone,
    refused,
    shown,
)
from ebbtide.adapters.documents.status_models import ScheduleStatusSpec


def _figure(value: Any) -> float:
    if value is None:
        return float("nan")
    if value == UNSTABLE:
        return float("inf")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise refused("wrong_type", f"is {shown(value)}, but a number, {UNSTABLE} or null is needed")
    return float(value)


def _figure_plain(value: float) -> float | str | None:
    return None if value != value else UNSTABLE if value == float("inf") else value


Figure = Annotated[
    float,
    PlainValidator(_figure),
    PlainSerializer(_figure_plain),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"const": UNSTABLE}, {"type": "null"}]}),
]
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Rate = Annotated[float, Field(ge=0, le=1e12)]
BoundWord = Literal["target", "floor", "minimum", "maximum", "gain", "room", "move", "shortage"]
MAX_SHORTAGES = MAX_WORKLOADS * MAX_WINDOWS
_COLUMN: dict[str, Any] = {"max_length": MAX_WINDOWS}


class FleetRefSpec(DocumentModel):
    """The Fleet that the schedule was made for; for another nothing moves."""

    name: Label = described("The Fleet's name.")
    digest: str = described("The digest of its spec.", pattern="^sha256:[0-9a-f]{64}$")


class WindowSpec(DocumentModel):
    """A part of the cycle with one fixed allocation."""

    name: Label = described("The window's name.")
    days: list[Day] = described("The weekdays on which it starts.", min_length=1, max_length=7)
    start: ClockTime = described("Where it starts.", unit="clock time")
    end: ClockTime = described("Where it ends; at or before the start: on the next day.", unit="clock time")
    from_: DateText | None = described(
        "First day of a dated window, which wins over an undated one.",
        default=None,
        unit="date",
        completed="not dated",
        alias="from",
    )
    until: DateText | None = described("The day after its last.", default=None, unit="date", completed="not dated")


class ScheduleWorkloadSpec(DocumentModel):
    """One workload's columns."""

    name: Label = described("The workload's name.")
    replicas: list[Count] = described("Replicas in each window.", unit="replicas", **_COLUMN)
    holds_rps: list[Rate] = described(
        "The arrival rate that they hold at target, rounded down: the live guard's limit.", unit="requests/s", **_COLUMN
    )


class SchedulePoolSpec(DocumentModel):
    """One pool's columns."""

    name: Label = described("The pool's name.")
    production_nodes: list[Count] = described("Nodes in production.", unit="nodes", **_COLUMN)
    ephemeral_nodes: list[Count] = described("Movable nodes in research.", unit="nodes", **_COLUMN)
    ephemeral_quota_gpus: list[Count] = described("Research's quota on them.", unit="GPUs", **_COLUMN)
    lead: list[Duration] = described(
        "How long before the window its moves begin; 0s without reclaims (§5.9).", unit="duration", **_COLUMN
    )


class ScheduleSpec(DocumentModel):
    """What the controller obeys."""

    fleet: FleetRefSpec = described("The Fleet that it was made for.")
    time_zone: TimeZone = described("Zone of all clock times.", unit="IANA zone")
    valid_until: Instant = described("After it nothing is yielded any more.", unit="instant")
    windows: list[WindowSpec] = described("The columns' order.", min_length=1, max_length=MAX_WINDOWS)
    workloads: list[ScheduleWorkloadSpec] = described("Replicas.", min_length=1, max_length=MAX_WORKLOADS)
    pools: list[SchedulePoolSpec] = described("Nodes.", min_length=1, max_length=64)
    overrides: list[OverrideSpec] = described(
        "People's wishes, each with an end.", default=[], completed="none", max_length=64, merge_by="name"
    )
    pause: PauseSpec | None = described("Somebody paused it.", default=None, completed="not paused")


class SourceRecordSpec(DocumentModel):
    """One demand source as it was read."""

    source: str = described("The source's name.")
    sha256: str = described("Digest of the files' bytes; empty for a table.")
    from_: str = described("First interval that was read.", alias="from")
    until: str = described("End of the last.")
    missing: Count = described("Intervals without an observation.", unit="intervals")
    outages: Count = described("Stretches in which the collector saw nothing; left out.")
    outage_intervals: Count = described("Their intervals.", unit="intervals")
    outage_share: Figure = described("Their share of all.", unit="share")
    planned_share: Figure = described("Share of the source's demand that the Fleet's workloads are.", unit="share")


class ClaimRecordSpec(DocumentModel):
    """A claim that a workload was planned on."""

    workload: Label = described("The workload's name.")
    claim: str = described("The claim, as the Fleet names it.", min_length=1)
    sha256: str = described("Digest of its file.", pattern="^sha256:[0-9a-f]{64}$")
    measured_at: Instant = described("When it was measured.", unit="instant")
    valid_until: Instant = described("From then on it is no ground for a plan.", unit="instant")
    low_rps: Figure = described("What a replica holds.", unit="requests/s")
    accepted: list[str] = described(
        "What it was accepted in spite of (`--accept-claim`).", default=[], completed="nothing", max_length=32
    )


class ProvenanceSpec(DocumentModel):
    """Who made the schedule, when, from what, and how sure it is."""

    version: str = described("The version of ebbtide.")
    at: Instant = described("When it was made.", unit="instant")
    forecaster: str = described("How demand was forecast.")
    confidence: Percentile = described("Share of past days on which a window was to hold.", unit="share")
    supported_confidence: Figure = described("What the days seen support (§5.3).", unit="share")
    margin: str = described("The margin on past rates, in words.")
    demand: list[SourceRecordSpec] = described("The demand sources.", max_length=64)
    claims: list[ClaimRecordSpec] = described(
        "The claims planned on.", default=[], completed="none", max_length=MAX_WORKLOADS
    )


class GpuHoursSpec(DocumentModel):
    """GPU-hours a day, a mean over the cycle."""

    production: Figure = described("In production.", unit="GPU-hours/day")
    research: Figure = described("In research.", unit="GPU-hours/day")
    moving: Figure = described("On the way.", unit="GPU-hours/day")
    freed: Figure = described("Against static peak.", unit="GPU-hours/day")
    static_nodes: Count = described("Nodes that static peak holds.", unit="nodes")
    static_missing_nodes: Count = described(
        "Nodes that it would need beyond those that there are.", default=0, unit="nodes"
    )


class BoundSpec(DocumentModel):
    """Distance to a proven lower bound (§5.11)."""

    unit: str = described("Unit of the two sums.")
    objective: Figure = described("What the schedule costs.")
    lower_bound: Figure = described("What no schedule falls below.")
    gap: Figure = described("(objective − lower bound) / objective.", unit="share")
    few_windows: Figure | None = described(
        "Price of few windows against the finest grid; below 0 where longer windows, whose targets are to hold over all"
        " their requests, cost less.",
        default=None,
        unit="share",
        completed="windows were given",
    )


class ShortageSpec(DocumentModel):
    """A target that the fleet cannot meet in a window."""

    workload: Label = described("Who goes short.")
    window: Label = described("When.")
    missing_gpus: int | None = described(
        "GPUs that the target would take in addition; null where no number is enough.", unit="GPUs", ge=0
    )
    wait: ObservedWait = described(
        "The wait (or latency) at the target's percentile; null where not observed.", unit="duration"
    )
    attainment: Figure = described("Share of requests within target.", unit="share")
    required: Figure = described("The share that is asked for.", unit="share")


class ReasonColumnsSpec(DocumentModel):
    """Why a workload has its replicas, window by window: floor, last given, first refused (§5.12)."""

    name: Label = described("The workload's name.")
    gpus_per_replica: int | None = described(
        "GPUs of a replica.", default=None, unit="GPUs", completed="not said", ge=1, le=MAX_COUNT
    )
    targets: list[TargetSpec] = described("Its targets.", default=[], completed="not said", max_length=16)
    replica_holds_rps: Rate | None = described(
        "What a replica holds by its claim; then no wait is observed.",
        default=None,
        unit="requests/s",
        completed="no claim",
    )
    rate_rps: list[Figure] = described("Mean rate that was seen.", unit="requests/s", **_COLUMN)
    peak_rps: list[Figure] = described("Highest rate that was planned for.", unit="requests/s", **_COLUMN)
    target_share: list[Figure] = described(
        "Wait as a share of its target; null where not observed.", unit="share", **_COLUMN
    )
    bound: list[BoundWord] = described("What held the number.", **_COLUMN)
    least_replicas: list[Count | None] | None = described(
        "The fewest that meet all targets; null where no such count is known.",
        default=None,
        unit="replicas",
        completed="not said",
        **_COLUMN,
    )
    replicas: list[Count] = described("The replicas that are explained.", unit="replicas", **_COLUMN)
    wait: list[ObservedWait] = described(
        "Their wait at the target's percentile; null where not observed, as by a claim.", unit="duration", **_COLUMN
    )
    waiting: list[Figure] = described("Mean requests waiting.", unit="requests", **_COLUMN)
    attainment: list[Figure] = described("Share within target.", unit="share", **_COLUMN)
    last_given: list[Figure] = described("What the last one given saves.", unit="money/h", **_COLUMN)
    floor_replicas: list[Count] = described("The stability floor.", unit="replicas", **_COLUMN)
    floor_wait: list[ObservedWait] = described("Wait at the floor.", unit="duration", **_COLUMN)
    floor_waiting: list[Figure] = described("Mean requests waiting at the floor.", unit="requests", **_COLUMN)
    floor_attainment: list[Figure] = described("Share within target at the floor.", unit="share", **_COLUMN)
    floor_gain: list[Figure] = described("What the floor's last one saves.", unit="money/h", **_COLUMN)
    refused_replicas: list[Count | None] = described(
        "The first count refused; null where the maximum stands.", unit="replicas", **_COLUMN
    )
    refused_wait: list[ObservedWait] = described("Wait with it.", unit="duration", **_COLUMN)
    refused_waiting: list[Figure] = described("Mean requests waiting with it.", unit="requests", **_COLUMN)
    refused_attainment: list[Figure] = described("Share within target with it.", unit="share", **_COLUMN)
    first_refused: list[Figure] = described("What it would save.", unit="money/h", **_COLUMN)
    refused_cost: list[Figure] = described("What it would cost research.", unit="money/h", **_COLUMN)


class ColumnsFileSpec(DocumentModel):
    """The file beside the schedule that holds the explanation's columns, where they are too long for it."""

    file: str = described("Its name.", pattern=r"^[^/\\]{1,200}\.json\.gz$")
    sha256: str = described("Digest of its bytes.", pattern="^[0-9a-f]{64}$")


class ExplanationSpec(DocumentModel):
    """Why the schedule is as it is; obeyed by nobody."""

    provenance: ProvenanceSpec = described("Who, when, from what.")
    gpu_hours_per_day: GpuHoursSpec = described("What the fleet does in a day.", unit="GPU-hours/day")
    bound: BoundSpec = described("Distance to the bound.")
    shortages: list[ShortageSpec] = described(
        "Targets that can't be met.", default=[], completed="none", max_length=MAX_SHORTAGES
    )
    warnings: list[str] = described("What a reader should know.", default=[], completed="none", max_length=10_000)
    workloads: list[ReasonColumnsSpec] = described(
        "Reasons by workload.", default=[], completed="in the columns file", max_length=MAX_WORKLOADS
    )
    columns: ColumnsFileSpec | None = described("Where the reasons are, if not here.", default=None, completed="here")


class ScheduleForm(Document):
    """A Schedule: what stands where in each window, and why."""

    kind: Literal["Schedule"] = described("The document's kind.")
    spec: ScheduleSpec = described("What the controller obeys.")
    explanation: ExplanationSpec | None = described(
        "Why; removing it changes no decision.", default=None, completed="none"
    )
    status: ScheduleStatusSpec | None = described(
        "Where it stands; the controller's alone.", default=None, completed="none"
    )


class ReasonsForm(DocumentModel):
    """The columns file: a JSON object."""

    written_by: str = described("Mark of an output of ebbtide.")
    workloads: list[ReasonColumnsSpec] = described("Reasons by workload.", max_length=MAX_WORKLOADS)
