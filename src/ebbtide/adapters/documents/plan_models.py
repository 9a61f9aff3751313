"""The BatchPlan document, field by field: when and where each job runs, and why (§7.2)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ebbtide.adapters.documents.fleet_models import MAX_NUMBER
from ebbtide.adapters.documents.jobs_models import MAX_JOBS, MAX_PODS
from ebbtide.adapters.documents.model import Document, DocumentModel, described
from ebbtide.adapters.documents.quantities import Instant, Label, Percentile, PositiveDuration, Share, TimeZone

CauseWord = Literal["at_once", "predecessor", "tide", "jobs", "promise", "no_room", "too_wide", "lost_predecessor"]
NodeNumber = Annotated[int, Field(ge=0, le=1_000_000)]


class PlanScheduleSpec(DocumentModel):
    """The Schedule that the plan was made for."""

    name: Label = described("Its name.")
    fleet_digest: str = described("The digest of the Fleet that it was made for.", pattern="^sha256:[0-9a-f]{64}$")


class PlanBoundSpec(DocumentModel):
    """What no plan can exceed."""

    value_usd: float = described("Value of the jobs that are done in time.", unit="USD", ge=0, le=MAX_NUMBER * MAX_JOBS)
    bound_usd: float = described("What no plan exceeds.", unit="USD", ge=0, le=MAX_NUMBER * MAX_JOBS)
    method: str = described("How that was proven.")


class RunSpec(DocumentModel):
    """A stretch of time without a break."""

    start: Instant = described("Its start.", unit="instant")
    finish: Instant = described("Its planned end.", unit="instant")
    nodes: list[NodeNumber] = described(
        "The node of each pod, numbered within pool and tenure; the lowest stay longest.", max_length=MAX_PODS
    )


class PlanDurationSpec(DocumentModel):
    """The job's duration."""

    expected: PositiveDuration = described("Half of its runs end within it.", unit="duration")
    p90: PositiveDuration = described("Nine of ten runs end within it.", unit="duration")


class PlanWidthSpec(DocumentModel):
    """Another number of pods that would do."""

    pods: int = described("Pods of the gang.", unit="pods", ge=1, le=MAX_PODS)
    speedup: float = described("How many times as fast it then is.", gt=0, le=1e6)


class PlaceSpec(DocumentModel):
    """Where and when a job runs."""

    pool: Label = described("The pool.")
    tenure: Literal["reserved", "ephemeral"] = described("Whether its nodes stay.")
    pods: int = described("Pods of the gang.", unit="pods", ge=1, le=MAX_PODS)
    runs: list[RunSpec] = described(
        "Its runs; more than one where the tide interrupts it.", min_length=1, max_length=64
    )


class PromiseSpec(DocumentModel):
    """A start that somebody was told; it moves at most once an hour unless it is broken (§7.6)."""

    start: Instant = described("The start.", unit="instant")
    given: Instant = described("When it was first given.", unit="instant")
    moved: Instant | None = described("When it last moved.", default=None, unit="instant", completed="never")
    reason: str = described("Why it moved.", default="", completed="it never did")


class PlannedJobSpec(DocumentModel):
    """One job and what is planned for it."""

    name: Label = described("The job's name.")
    start: Instant | None = described("Planned start.", default=None, unit="instant", completed="it has no place")
    finish: Instant | None = described(
        "Planned end: by then it is done with the plan's confidence.",
        default=None,
        unit="instant",
        completed="it has no place",
    )
    deadline: Instant | None = described("Its deadline.", default=None, unit="instant", completed="none")
    in_time: bool = described("Whether the planned end is by the deadline.")
    probability: Share | None = described(
        "That it is done by its deadline (without one: by the plan's end) if the plan is followed.",
        default=None,
        unit="share",
        completed="not simulated",
    )
    cause: CauseWord = described("Why it starts when it does, or has no place.")
    waits_for: list[Label] = described("The jobs that it waits for.", default=[], completed="none", max_length=100)
    place: PlaceSpec | None = described("Where it runs.", default=None, completed="it has no place")
    promise: PromiseSpec | None = described("What was told of its start.", default=None, completed="nothing")
    pods: int = described("Pods at its own width.", unit="pods", ge=1, le=MAX_PODS)
    gpus_per_pod: int = described("GPUs of a pod.", unit="GPUs", ge=1, le=1_024)
    duration: PlanDurationSpec = described("How long it runs.")
    earliest_start: Instant = described("It may not start before.", unit="instant")
    value_usd: float = described("What it is worth in time.", default=0.0, unit="USD", ge=0, le=MAX_NUMBER)
    checkpoint_interval: PositiveDuration | None = described(
        "Between two checkpoints.", default=None, unit="duration", completed="it must not be interrupted"
    )
    after: list[Label] = described("Jobs that must have ended before.", default=[], completed="none", max_length=100)
    widths: list[PlanWidthSpec] = described("Other widths.", default=[], completed="none", max_length=16)
    pools: list[Label] = described("Pools that it may run in.", default=[], completed="any", max_length=64)


class LaterSpec(DocumentModel):
    """A deadline that would hold."""

    job: Label = described("The job.")
    deadline: Instant = described("The earliest deadline that holds.", unit="instant")


class ReliefSpec(DocumentModel):
    """What, alone, would make the missed deadlines hold: later deadlines, or more nodes for good or for a while."""

    kind: Literal["later_deadline", "more_nodes", "move"] = described("What it is.")
    deadlines: list[LaterSpec] = described("Later deadlines.", default=[], completed="none", max_length=MAX_JOBS)
    pool: Label | None = described("The pool of the nodes.", default=None, completed="none")
    nodes: int = described("How many more.", default=0, unit="nodes", ge=0, le=1_000_000)
    gpus: int = described("Their GPUs.", default=0, unit="GPUs", ge=0, le=1_000_000_000)
    from_: Instant | None = described("Since when.", default=None, unit="instant", completed="none", alias="from")
    until: Instant | None = described("Until when.", default=None, unit="instant", completed="none")
    proven: bool = described("Whether less is proven not to do; else the search found nothing with less.")


class BatchPlanSpec(DocumentModel):
    """The plan."""

    schedule: PlanScheduleSpec = described("What it was made for.")
    time_zone: TimeZone = described("Zone of the schedule's clock times.", unit="IANA zone")
    at: Instant = described("When it was made.", unit="instant")
    until: Instant = described("How far it looks.", unit="instant")
    confidence: Percentile = described("Share of a job's runs that its planned length covers.", unit="share")
    rule: str = described("The list rule that the search began from.", default="", completed="none")
    bound: PlanBoundSpec = described("How good it is.")
    jobs: list[PlannedJobSpec] = described("The jobs.", max_length=MAX_JOBS, merge_by="name")
    reliefs: list[ReliefSpec] = described(
        "What, each alone, would make the missed deadlines hold.", default=[], completed="none", max_length=16
    )


class BatchPlanForm(Document):
    """BatchPlan: when and where each job runs."""

    kind: Literal["BatchPlan"] = described("The document's kind.")
    spec: BatchPlanSpec = described("The plan.")
