"""The document of a Schedule → the core's values."""

from __future__ import annotations

from ebbtide.adapters.documents.fleet_values import target_value
from ebbtide.adapters.documents.override_models import OverrideSpec
from ebbtide.adapters.documents.schedule_models import (
    BoundSpec,
    ExplanationSpec,
    ProvenanceSpec,
    ReasonColumnsSpec,
    ScheduleForm,
    ShortageSpec,
    SourceRecordSpec,
    WindowSpec,
)
from ebbtide.fleet.horizon import WEEK, Window
from ebbtide.fleet.operations import Override, OverrideKind, Pause
from ebbtide.fleet.schedule import (
    Bound,
    ClaimRecord,
    Explanation,
    GpuHours,
    PoolColumn,
    Provenance,
    Schedule,
    Shortage,
    SourceRecord,
    Standing,
    WorkloadColumn,
    WorkloadFacts,
    WorkloadReason,
)


def schedule_value(form: ScheduleForm) -> Schedule:
    """The Schedule of a checked document."""
    spec = form.spec
    return Schedule(
        name=form.metadata.name,
        fleet_name=spec.fleet.name,
        fleet_digest=spec.fleet.digest,
        time_zone=spec.time_zone,
        valid_until=spec.valid_until,
        windows=tuple(_window(window) for window in spec.windows),
        workloads=tuple(
            WorkloadColumn(name=column.name, replicas=tuple(column.replicas), holds_rps=tuple(column.holds_rps))
            for column in spec.workloads
        ),
        pools=tuple(
            PoolColumn(
                name=column.name,
                production_nodes=tuple(column.production_nodes),
                ephemeral_nodes=tuple(column.ephemeral_nodes),
                ephemeral_quota_gpus=tuple(column.ephemeral_quota_gpus),
                lead_s=tuple(column.lead),
            )
            for column in spec.pools
        ),
        overrides=tuple(override_value(override) for override in spec.overrides),
        pause=None if spec.pause is None else Pause(reason=spec.pause.reason),
    )


def explanation_value(spec: ExplanationSpec, columns: list[ReasonColumnsSpec]) -> Explanation:
    """The Explanation of a checked document and its columns, wherever those lay."""
    hours = spec.gpu_hours_per_day
    return Explanation(
        provenance=_provenance(spec.provenance),
        gpu_hours_per_day=GpuHours(
            production=hours.production,
            moving=hours.moving,
            research=hours.research,
            freed=hours.freed,
            static_nodes=hours.static_nodes,
            static_missing_nodes=hours.static_missing_nodes,
        ),
        bound=_bound(spec.bound),
        shortages=tuple(_shortage(shortage) for shortage in spec.shortages),
        reasons={column.name: _reasons(column) for column in columns},
        warnings=tuple(spec.warnings),
        facts={
            column.name: WorkloadFacts(
                gpus_per_replica=column.gpus_per_replica,
                targets=tuple(target_value(target) for target in column.targets),
                replica_holds_rps=column.replica_holds_rps,
            )
            for column in columns
            if column.gpus_per_replica is not None
        },
    )


def override_value(spec: OverrideSpec) -> Override:
    """One override of a checked document."""
    kind, what = OverrideKind.HOLD, ""
    if spec.window is not None:
        kind, what = OverrideKind.WINDOW, spec.window
    if spec.release is not None:
        kind, what = OverrideKind.RELEASE, spec.release
    return Override(name=spec.name, kind=kind, until_s=spec.until.timestamp(), reason=spec.reason, what=what)


def _window(window: WindowSpec) -> Window:
    return Window(
        name=window.name,
        days=tuple(day for day in WEEK if day.value in window.days),
        start=window.start,
        end=window.end,
        valid_from=window.from_,
        valid_until=window.until,
    )


def _provenance(spec: ProvenanceSpec) -> Provenance:
    return Provenance(
        version=spec.version,
        at=spec.at,
        forecaster=spec.forecaster,
        confidence=spec.confidence,
        supported_confidence=spec.supported_confidence,
        margin=spec.margin,
        demand=tuple(_source(record) for record in spec.demand),
        claims=tuple(
            ClaimRecord(
                workload=record.workload,
                claim=record.claim,
                sha256=record.sha256,
                measured_at=record.measured_at,
                valid_until=record.valid_until,
                low_rps=record.low_rps,
                accepted=tuple(record.accepted),
            )
            for record in spec.claims
        ),
    )


def _source(record: SourceRecordSpec) -> SourceRecord:
    return SourceRecord(
        source=record.source,
        sha256=record.sha256,
        start=record.from_,
        end=record.until,
        missing_intervals=record.missing,
        outages=record.outages,
        outage_intervals=record.outage_intervals,
        outage_share=record.outage_share,
        planned_share=record.planned_share,
    )


def _bound(spec: BoundSpec) -> Bound:
    return Bound(
        unit=spec.unit,
        objective=spec.objective,
        lower_bound=spec.lower_bound,
        gap=spec.gap,
        few_windows=spec.few_windows,
    )


def _shortage(spec: ShortageSpec) -> Shortage:
    return Shortage(
        workload=spec.workload,
        window=spec.window,
        missing_gpus=spec.missing_gpus,
        attainment=spec.attainment,
        required=spec.required,
        wait_s=spec.wait,
    )


def _reasons(column: ReasonColumnsSpec) -> tuple[WorkloadReason, ...]:
    return tuple(_reason(column, window) for window in range(len(column.rate_rps)))


def _reason(column: ReasonColumnsSpec, window: int) -> WorkloadReason:
    return WorkloadReason(
        rate_rps=column.rate_rps[window],
        peak_rps=column.peak_rps[window],
        target_share=column.target_share[window],
        floor=Standing(
            replicas=column.floor_replicas[window],
            wait_s=column.floor_wait[window],
            waiting=column.floor_waiting[window],
            attainment=column.floor_attainment[window],
            gain_usd_per_h=column.floor_gain[window],
        ),
        given=Standing(
            replicas=column.replicas[window],
            wait_s=column.wait[window],
            waiting=column.waiting[window],
            attainment=column.attainment[window],
            gain_usd_per_h=column.last_given[window],
        ),
        refused=_refused(column, window),
        bound=column.bound[window],
        cost_usd_per_h=column.refused_cost[window],
        least_replicas=None if column.least_replicas is None else column.least_replicas[window],
    )


def _refused(column: ReasonColumnsSpec, window: int) -> Standing | None:
    replicas = column.refused_replicas[window]
    if replicas is None:
        return None
    return Standing(
        replicas=replicas,
        wait_s=column.refused_wait[window],
        waiting=column.refused_waiting[window],
        attainment=column.refused_attainment[window],
        gain_usd_per_h=column.first_refused[window],
    )
