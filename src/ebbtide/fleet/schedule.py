"""The schedule: what the controller obeys; and the explanation beside it, which changes no decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from whenever import OffsetDateTime

from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import Window
from ebbtide.fleet.operations import Override, Pause
from ebbtide.fleet.workload import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadColumn:
    """One workload's replicas in every window, and the arrival rate that they hold at target."""

    name: str
    replicas: tuple[int, ...]
    holds_rps: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolColumn:
    """One pool's nodes in production and its movable nodes in research in every window, and the window's lead."""

    name: str
    production_nodes: tuple[int, ...]
    ephemeral_nodes: tuple[int, ...]
    ephemeral_quota_gpus: tuple[int, ...]
    lead_s: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The windows of a cycle with their allocation, made for one Fleet (by digest), valid until an instant.

    ``overrides`` and ``pause`` (None: not paused) are people's; no plan makes them.
    """

    name: str
    fleet_name: str
    fleet_digest: str
    time_zone: str
    valid_until: OffsetDateTime
    windows: tuple[Window, ...]
    workloads: tuple[WorkloadColumn, ...]
    pools: tuple[PoolColumn, ...]
    overrides: tuple[Override, ...] = ()
    pause: Pause | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What one count of replicas does for a workload in a window.

    ``wait_s`` is the wait (or latency) at the tightest target's percentile, infinite where the count is unstable;
    ``waiting`` the mean number of requests waiting; both NaN where not observed, as by a claim. ``attainment`` is the
    share within target on the day that ``confidence`` asks for, ``gain_usd_per_h`` what the last replica of this count
    saves per hour against one fewer.
    """

    replicas: int
    wait_s: float
    waiting: float
    attainment: float
    gain_usd_per_h: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadReason:
    """Why a workload has this many replicas in one window (§5.12).

    ``bound`` says what held the number: ``target``, ``floor``, ``minimum``, ``maximum``, ``gain`` (the last one saves
    what research would pay for it), ``room`` (it does not, but GPUs were left on nodes that stand here anyway),
    ``move`` (nodes stay away or stay here because moving them costs more), or ``shortage``. ``cost_usd_per_h`` is what
    the refused replica would cost research. ``target_share`` is NaN where the wait is not observed. ``least_replicas``
    is the fewest that meet all targets, None where no such count is known: no number does, or it is far beyond the
    pool.
    """

    rate_rps: float
    peak_rps: float
    target_share: float
    floor: Standing
    given: Standing
    refused: Standing | None
    bound: str
    cost_usd_per_h: float
    least_replicas: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadFacts:
    """What the Fleet says of a workload that its reasons are read against.

    ``replica_holds_rps``: what a replica holds by its claim; None where it has none.
    """

    gpus_per_replica: int
    targets: tuple[Target, ...]
    replica_holds_rps: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """A target that the fleet cannot meet in a window: who, when, by how much.

    ``missing_gpus`` is None where no number of GPUs is enough: service alone is longer than the target too often.
    """

    workload: str
    window: str
    missing_gpus: int | None
    attainment: float
    required: float
    wait_s: float  # NaN: not observed


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Distance to a proven lower bound (§5.11); ``gap`` = (objective − lower_bound) / objective.

    ``unit`` is ``USD per cycle`` or ``GPU-h per cycle``. ``few_windows`` is the price of few windows: the objective
    over the finest grid's, minus 1, where boundaries were chosen. It is below 0 where windows of several base
    intervals cost less: their targets are to hold over all their requests, the finest grid's interval by interval.
    """

    unit: str
    objective: float
    lower_bound: float
    gap: float
    few_windows: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuHours:
    """GPU-hours a day, a mean over the cycle: they sum to the fleet's.

    ``freed`` is against static peak on ``static_nodes``; it would need ``static_missing_nodes`` beyond those, which the
    fleet has not got.
    """

    production: float
    moving: float
    research: float
    freed: float
    static_nodes: int
    static_missing_nodes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord:
    """Where the numbers came from: one demand source."""

    source: str
    sha256: str
    start: str
    end: str
    missing_intervals: int
    outages: int
    outage_intervals: int
    outage_share: float
    planned_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRecord:
    """A claim that a workload was planned on; ``accepted``: what it was accepted in spite of, in words."""

    workload: str
    claim: str
    sha256: str
    measured_at: OffsetDateTime
    valid_until: OffsetDateTime
    low_rps: float
    accepted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Who made the schedule, when, from what, and how sure it is."""

    version: str
    at: OffsetDateTime
    forecaster: str
    confidence: float
    supported_confidence: float
    margin: str
    demand: tuple[SourceRecord, ...]
    claims: tuple[ClaimRecord, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The why of a schedule. ``reasons[workload][i]`` belongs to window ``i``.

    ``facts`` (by workload; ``facts_of`` makes them) let the reasons be told without the Fleet at hand.
    """

    provenance: Provenance
    gpu_hours_per_day: GpuHours
    bound: Bound
    shortages: tuple[Shortage, ...]
    reasons: Mapping[str, tuple[WorkloadReason, ...]]
    warnings: tuple[str, ...] = field(default=())
    facts: dict[str, WorkloadFacts] = field(default_factory=dict)


def facts_of(fleet: Fleet) -> dict[str, WorkloadFacts]:
    """The facts of all of a Fleet's workloads, by name."""
    return {
        workload.name: WorkloadFacts(
            gpus_per_replica=workload.gpus_per_replica,
            targets=workload.targets,
            replica_holds_rps=workload.service.holds_rps,
        )
        for workload in fleet.workloads
    }
