"""The Fleet document, field by field: the one table behind its reader, JSON Schema, reference page and CRD.

What belongs here: every field's name, type, unit, default, meaning and own bounds. What doesn't: rules between fields
(``fleet_rules``), completing (``fleet_values``), fields that this version does not obey (``not_yet``).
"""

from __future__ import annotations

from typing import Literal

from ebbtide.adapters.documents.cluster_names import LabelValue, ResourceName
from ebbtide.adapters.documents.model import Document, DocumentModel, described
from ebbtide.adapters.documents.operations_models import (
    ClustersSpec,
    DrainSpec,
    ProviderSpec,
    QuotaSpec,
    RelabelSpec,
    ScaleTargetSpec,
)
from ebbtide.adapters.documents.quantities import (
    ClockTime,
    DateText,
    Day,
    Duration,
    Label,
    Patience,
    Percentile,
    PositiveDuration,
    TimeZone,
    WallClock,
    WholeSeconds,
)
from ebbtide.adapters.documents.status_models import FleetStatusSpec
from ebbtide.fleet.horizon import WEEK

MAX_WORKLOADS = 2_000
MAX_WINDOWS = 336  # half-hours of a week
MAX_COUNT = 1_000_000  # more nodes, GPUs or replicas than any fleet; keeps products within 64 bits
MAX_NUMBER = 1e12
ALL_DAYS: list[Day] = [day.value for day in WEEK]


class ChooseSpec(DocumentModel):
    """Boundaries are ebbtide's to choose so that the plan costs least."""

    at_most: int = described("Most windows a day.", default=6, ge=1, le=MAX_WINDOWS)
    shortest: PositiveDuration = described("No window is shorter.", default=7200.0, unit="duration")


class WindowsSpec(DocumentModel):
    """Weekdays that share their windows: given by starts, or chosen."""

    days: list[Day] = described("The weekdays; every one in exactly one item.", default=ALL_DAYS, max_length=7)
    starts: list[ClockTime] = described(
        "Window starts, each running to the next, the last to the next day's first.",
        default=[],
        unit="clock time",
        completed="chosen",
        max_length=MAX_WINDOWS,
    )
    choose: ChooseSpec | None = described(
        "Let ebbtide choose the boundaries.", default=None, completed="{atMost: 6, shortest: 2h} without starts"
    )


class ColumnsSpec(DocumentModel):
    """A demand file's columns by role, where they are not found by their names."""

    time: str | None = described("When: an instant, or seconds from the origin.", default=None, completed="found")
    workload: str | None = described("Which workload's series the row is of.", default=None, completed="found")
    rate: str | None = described("Requests per second over the row's interval.", default=None, completed="found")
    count: str | None = described("Requests in the row's interval.", default=None, completed="found")
    service_time: str | None = described("A request's service time in seconds.", default=None, completed="found")
    input_tokens: str | None = described("A request's input tokens.", default=None, completed="found")
    output_tokens: str | None = described("A request's output tokens.", default=None, completed="found")
    cv: str | None = described("Coefficient of variation of inter-arrival times.", default=None, completed="found")


class DemandSpec(DocumentModel):
    """One demand source: files, a table of the SQL engine, or a query of Prometheus for live demand."""

    name: Label = described("The source's name.")
    file: str | None = described(
        "CSV (also .gz) or Parquet, or a glob; relative to the Fleet's folder.", default=None, completed="none"
    )
    table: str | None = described("A table of the engine in EBBTIDE_SQL_URL.", default=None, completed="none")
    promql: str | None = described(
        "A query at EBBTIDE_PROMETHEUS_URL, requests/s by workload; read for live demand only.",
        default=None,
        completed="none",
        min_length=1,
        max_length=4_096,
    )
    columns: ColumnsSpec = described("Columns by role.", default=ColumnsSpec(), completed="found")
    origin: WallClock | None = described(
        "The wall-clock instant of t = 0; needed for relative times.", default=None, completed="none"
    )
    time_zone: TimeZone | None = described(
        "Zone of times without an offset.", default=None, completed="spec.timeZone", unit="IANA zone"
    )
    interval: WholeSeconds | None = described(
        "Length of the trace's intervals.", default=None, completed="found", unit="duration"
    )


class PoolSpec(DocumentModel):
    """Nodes of one shape that may stand in either cluster."""

    name: Label = described("The pool's name.")
    gpus_per_node: int = described("GPUs of a node.", unit="GPUs", ge=1, le=1_024)
    nodes: int = described("Nodes, both sides together.", unit="nodes", ge=1, le=MAX_COUNT)
    reserved_nodes: int = described(
        "Nodes that stand in research for good.", default=0, unit="nodes", ge=0, le=MAX_COUNT
    )
    min_production_nodes: int = described(
        "Nodes that never leave production.", default=0, unit="nodes", ge=0, le=MAX_COUNT
    )
    yield_time: Duration = described(
        "A node's way from production to research, until measured.", default=1800.0, unit="duration"
    )
    reclaim_time: Duration = described(
        "A node's way from research to production, until measured.", default=3600.0, unit="duration"
    )
    moves_at_once: int = described("Most nodes in motion together.", default=4, unit="nodes", ge=1, le=MAX_COUNT)
    node_selector: dict[str, LabelValue] = described(
        "Labels of its nodes.", default={}, completed="{ebbtide.dev/pool: its name}", max_length=16
    )
    gpu_resource: ResourceName = described("The resource that a GPU is one of.", default="nvidia.com/gpu")
    provider: ProviderSpec = described(
        "How its nodes get to the other side.", default=ProviderSpec(relabel=RelabelSpec())
    )


class WorkloadDemandSpec(DocumentModel):
    """Which series is the workload's demand."""

    source: Label | None = described("A demand source's name.", default=None, completed="the only source")
    key: str | None = described(
        "The workload's name in the source.", default=None, completed="the workload's name", min_length=1
    )


class ObservedSpec(DocumentModel):
    """Taken from the trace; an empty map."""


class ServiceSpec(DocumentModel):
    """What one request asks of a slot: a mean time, or what the trace shows; or what a claim says a replica holds."""

    time: PositiveDuration | None = described(
        "Mean service time of a request; this, observed or claim.", default=None, unit="duration", completed="none"
    )
    observed: ObservedSpec | None = described("Measure mean and SCV in the trace: {}.", default=None, completed="none")
    claim: str | None = described(
        "What a replica holds, by a CapacityClaim: its file relative to the Fleet's folder, or the name of "
        "claims/NAME.yaml there.",
        default=None,
        completed="none",
        min_length=1,
    )
    scv: float | None = described(
        "Squared coefficient of variation of the service time.",
        default=None,
        completed="the trace's, else 1",
        ge=0,
        le=1e6,
    )
    concurrency: int = described("Requests that a replica serves at once.", default=1, unit="slots", ge=1, le=MAX_COUNT)


class TargetSpec(DocumentModel):
    """A share of the requests is to have a wait, a latency or a time to the first token of at most a bound."""

    wait: PositiveDuration | None = described(
        "Bound on the wait before service; one of the three.", default=None, unit="duration", completed="none"
    )
    latency: PositiveDuration | None = described(
        "Bound on wait plus service.", default=None, unit="duration", completed="none"
    )
    first_token: PositiveDuration | None = described(
        "Bound on the time to the first token; only a claim says when it comes.",
        default=None,
        unit="duration",
        completed="none",
    )
    percentile: Percentile = described("Share of the requests that is to be within the bound.", default=0.95)

    @property
    def bounds(self) -> dict[str, float | None]:
        """The three by their names; None where not given."""
        return {"wait": self.wait, "latency": self.latency, "firstToken": self.first_token}


class ExpectsSpec(DocumentModel):
    """What a claim must have been measured on and with; what is not given may be anything."""

    gpu_model: str | None = described("The GPUs' model.", default=None, completed="any", min_length=1)
    driver: str | None = described("Their driver.", default=None, completed="any", min_length=1)
    image_digest: str | None = described("The container image's digest.", default=None, completed="any", min_length=1)
    model_revision: str | None = described("The model's revision.", default=None, completed="any", min_length=1)
    flags: str | None = described("The server's flags.", default=None, completed="any", min_length=1)


class WorkloadSpec(DocumentModel):
    """One inference service."""

    name: Label = described("The workload's name.")
    demand: WorkloadDemandSpec = described(
        "Its demand.", default=WorkloadDemandSpec(), completed="its name in the only source"
    )
    pool: Label | None = described("The pool it stands in.", default=None, completed="the only pool")
    gpus_per_replica: int = described("GPUs of a replica.", unit="GPUs", ge=1, le=MAX_COUNT)
    service: ServiceSpec = described("What a request asks.")
    balancing: Literal["pooled", "leastLoaded", "random"] = described(
        "How requests find a replica's slots.", default="leastLoaded"
    )
    patience: Patience = described(
        "Mean time after which a waiting user gives up.", default=float("inf"), unit="duration", completed="unlimited"
    )
    targets: list[TargetSpec] = described("What users are promised.", min_length=1, max_length=16)
    weight: float = described("Who goes short last when the fleet is short.", default=1.0, gt=0, le=MAX_NUMBER)
    waiting_cost_usd_per_request_hour: float = described(
        "What an hour of one request's waiting costs.", default=0.0, unit="USD/request-hour", ge=0, le=MAX_NUMBER
    )
    min_replicas: int = described("Never fewer.", default=1, unit="replicas", ge=0, le=MAX_COUNT)
    max_replicas: int | None = described(
        "Never more.", default=None, unit="replicas", completed="none", ge=1, le=MAX_COUNT
    )
    startup_time: Duration = described("From scaling up to serving.", default=300.0, unit="duration")
    scale_target_ref: ScaleTargetSpec = described(
        "The object that holds its replicas.", default=ScaleTargetSpec(), completed="the Deployment of its name"
    )
    drain: DrainSpec = described("How its leaving replicas end.", default=DrainSpec())
    expects: ExpectsSpec = described(
        "What its claim must match.", default=ExpectsSpec(), completed="any hardware and settings"
    )


class ResearchSpec(DocumentModel):
    """What the other side of the tide is worth."""

    value_usd_per_gpu_hour: float | None = described(
        "What a GPU-hour is worth to research.",
        default=None,
        unit="USD/GPU-hour",
        completed="1 (then the unit of money is a GPU-hour)",
        gt=0,
        le=MAX_NUMBER,
    )
    checkpoint_interval: Duration = described(
        "Between two checkpoints; half of it is lost on a reclaim.", default=3600.0, unit="duration"
    )
    minimum_run_time: Duration = described("A shorter run is of no use.", default=0.0, unit="duration")
    quota: QuotaSpec | None = described("The quota in Kueue that is ebbtide's.", default=None, completed="none")


class ExceptionSpec(DocumentModel):
    """Days that differ: a holiday, a launch."""

    name: Label = described("The exception's name.")
    from_: DateText = described("First day.", unit="date", alias="from")
    until: DateText = described("The day after the last.", unit="date")
    like: Day | None = described("Plan these days as this weekday.", default=None, completed="as they are")
    workloads: list[Label] = described(
        "The workloads it concerns.", default=[], completed="all", max_length=MAX_WORKLOADS
    )
    demand_factor: float = described("Their demand is this many times the usual.", default=1.0, gt=0, le=1e6)


class FleetSpec(DocumentModel):
    """Everything the planner knows of the hardware, the services and the horizon."""

    time_zone: TimeZone = described("Zone of all clock times.", unit="IANA zone")
    confidence: Percentile = described("Share of past days on which a window is to hold (§5.3).", default=0.95)
    windows: list[WindowsSpec] = described(
        "The windows of the cycle; every weekday once.",
        default=[WindowsSpec()],
        completed="all days, chosen",
        min_length=1,
        max_length=7,
    )
    demand: list[DemandSpec] = described("Where demand is read.", min_length=1, max_length=64, merge_by="name")
    pools: list[PoolSpec] = described("The hardware.", min_length=1, max_length=64, merge_by="name")
    workloads: list[WorkloadSpec] = described("The services.", min_length=1, max_length=MAX_WORKLOADS, merge_by="name")
    research: ResearchSpec = described("What research is worth.", default=ResearchSpec())
    exceptions: list[ExceptionSpec] = described(
        "Days that differ.", default=[], completed="none", max_length=256, merge_by="name"
    )
    mode: Literal["Shadow", "Active"] = described("Whether the controller acts, or only computes.", default="Shadow")
    clusters: ClustersSpec | None = described("The two clusters.", default=None, completed="the settings'")
    live_demand: Label | None = described(
        "The demand source that the live guard reads (§6.7).", default=None, completed="none"
    )

    @property
    def planned_demand(self) -> list[DemandSpec]:
        """The sources that a plan is made from: all but those that are read live."""
        return [source for source in self.demand if source.promql is None or source.file or source.table]


class FleetForm(Document):
    """A Fleet: pools, workloads, demand and the horizon."""

    kind: Literal["Fleet"] = described("The document's kind.")
    spec: FleetSpec = described("The fleet.")
    status: FleetStatusSpec | None = described(
        "Where the nodes stand; the controller's alone.", default=None, completed="none"
    )
