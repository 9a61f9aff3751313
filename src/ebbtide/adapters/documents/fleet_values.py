"""A Fleet document completed: defaults that depend on other fields, and the way to the core's values."""

from __future__ import annotations

from pathlib import Path

from ebbtide.adapters.demand.source import DemandSource
from ebbtide.adapters.documents.digest import fleet_digest
from ebbtide.adapters.documents.fleet_models import (
    DemandSpec,
    ExceptionSpec,
    FleetForm,
    FleetSpec,
    PoolSpec,
    ResearchSpec,
    TargetSpec,
    WindowsSpec,
    WorkloadSpec,
)
from ebbtide.adapters.documents.operations_values import (
    clusters_value,
    drain_value,
    live_value,
    provider_value,
    quota_value,
    scale_target_value,
)
from ebbtide.fleet.fingerprint import Fingerprint
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import WEEK, Choose, DatedException, DayPattern, Weekday
from ebbtide.fleet.operations import Mode
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.workload import Balancing, Claimed, DemandRef, Service, Target, TargetKind, Workload


def fleet_value(form: FleetForm) -> Fleet:
    """The Fleet of a checked document."""
    spec = form.spec
    return Fleet(
        name=form.metadata.name,
        digest=fleet_digest(spec),
        time_zone=spec.time_zone,
        confidence=spec.confidence,
        patterns=tuple(_pattern(windows) for windows in spec.windows),
        pools=tuple(_pool(pool) for pool in spec.pools),
        workloads=tuple(_workload(workload, spec) for workload in spec.workloads),
        research=_research(spec.research),
        exceptions=tuple(_exception(exception) for exception in spec.exceptions),
        mode=Mode(spec.mode),
        clusters=clusters_value(spec.clusters),
        live_demand=live_value(spec),
    )


def source_values(form: FleetForm, folder: Path) -> tuple[DemandSource, ...]:
    """The demand sources of a checked document that lies in a folder, but those that are read live."""
    return tuple(_source(source, form.spec, folder) for source in form.spec.planned_demand)


def _source(source: DemandSpec, spec: FleetSpec, folder: Path) -> DemandSource:
    return DemandSource(
        name=source.name,
        file=source.file,
        table=source.table,
        columns=source.columns.model_dump(by_alias=True, exclude_none=True),
        origin=source.origin,
        time_zone=source.time_zone or spec.time_zone,
        interval_s=None if source.interval is None else int(source.interval),
        folder=folder,
    )


def _pattern(windows: WindowsSpec) -> DayPattern:
    days = tuple(day for day in WEEK if day.value in windows.days)
    if windows.starts:
        return DayPattern(days=days, starts=tuple(windows.starts))
    choose = windows.choose
    given = Choose() if choose is None else Choose(at_most=choose.at_most, shortest_s=choose.shortest)
    return DayPattern(days=days, choose=given)


def _pool(pool: PoolSpec) -> Pool:
    return Pool(
        name=pool.name,
        gpus_per_node=pool.gpus_per_node,
        nodes=pool.nodes,
        reserved_nodes=pool.reserved_nodes,
        min_production_nodes=pool.min_production_nodes,
        yield_time_s=pool.yield_time,
        reclaim_time_s=pool.reclaim_time,
        moves_at_once=pool.moves_at_once,
        node_selector=tuple(sorted(pool.node_selector.items())),
        gpu_resource=pool.gpu_resource,
        provider=provider_value(pool.provider),
    )


def _workload(workload: WorkloadSpec, spec: FleetSpec) -> Workload:
    service = workload.service
    return Workload(
        name=workload.name,
        demand=DemandRef(
            source=workload.demand.source or spec.planned_demand[0].name, key=workload.demand.key or workload.name
        ),
        pool=workload.pool or spec.pools[0].name,
        gpus_per_replica=workload.gpus_per_replica,
        service=Service(
            time_s=service.time,
            scv=service.scv,
            concurrency=service.concurrency,
            claim=None if service.claim is None else Claimed(name=service.claim),
        ),
        targets=tuple(target_value(target) for target in workload.targets),
        balancing=Balancing(workload.balancing),
        patience_s=workload.patience,
        weight=workload.weight,
        waiting_cost_usd_per_request_h=workload.waiting_cost_usd_per_request_hour,
        min_replicas=workload.min_replicas,
        max_replicas=workload.max_replicas,
        startup_time_s=workload.startup_time,
        scale_target=scale_target_value(workload),
        drain=drain_value(workload.drain),
        expects=Fingerprint(**workload.expects.model_dump()),
    )


def target_value(target: TargetSpec) -> Target:
    """The one bound of a checked target."""
    kind, bound_s = next((name, bound_s) for name, bound_s in target.bounds.items() if bound_s is not None)
    return Target(kind=TargetKind(kind), bound_s=bound_s, percentile=target.percentile)


def _research(research: ResearchSpec) -> Research:
    value = research.value_usd_per_gpu_hour
    return Research(
        value_usd_per_gpu_h=1.0 if value is None else value,
        checkpoint_interval_s=research.checkpoint_interval,
        value_given=value is not None,
        minimum_run_time_s=research.minimum_run_time,
        quota=quota_value(research.quota),
    )


def _exception(exception: ExceptionSpec) -> DatedException:
    return DatedException(
        name=exception.name,
        start=exception.from_,
        until=exception.until,
        like=None if exception.like is None else Weekday(exception.like),
        workloads=tuple(exception.workloads),
        demand_factor=exception.demand_factor,
    )
