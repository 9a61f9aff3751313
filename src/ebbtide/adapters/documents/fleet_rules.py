"""Rules between a Fleet's fields: references, bounds that depend on each other, names, windows over the week (§5.1).

What belongs here: checks on a Fleet whose fields are each right by themselves. What doesn't: types and bounds of one
field (the models), and what the fleet can't meet: that is an answer of the planner, not an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from whenever import Date

from ebbtide.adapters.documents.fleet_models import (
    DemandSpec,
    ExceptionSpec,
    FleetSpec,
    PoolSpec,
    ServiceSpec,
    TargetSpec,
    WorkloadSpec,
)
from ebbtide.adapters.documents.operations_rules import operations_problems
from ebbtide.adapters.documents.problems import Problem, one_of, unknown
from ebbtide.adapters.documents.quantities import duration_text
from ebbtide.adapters.documents.window_rules import window_problems
from ebbtide.adapters.documents.yaml_text import Path

# Four times the largest cluster that anybody has spoken of; what a plan takes in time and memory grows with the nodes.
MOST_POOL_GPUS = 2_000_000
FIRST_DATE, LAST_DATE = Date(1971, 1, 1), Date(2200, 1, 1)  # the years that a trace's times may lie in


def fleet_problems(spec: FleetSpec) -> list[Problem]:
    """Everything that is wrong between the fields of a Fleet."""
    return [
        *window_problems(spec.windows),
        *_demand(spec),
        *_pools(spec),
        *_workloads(spec),
        *_exceptions(spec),
        *operations_problems(spec),
    ]


def _duplicates(items: Sequence[Any], root: Path) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        if item.name in seen:
            yield Problem(
                path=(*root, index, "name"), kind="duplicate_name", message=f'the name "{item.name}" is given twice'
            )
        seen.add(item.name)


def _demand(spec: FleetSpec) -> Iterator[Problem]:
    root: Path = ("spec", "demand")
    yield from _duplicates(spec.demand, root)
    used = {workload.demand.source for workload in spec.workloads}
    if not spec.planned_demand:
        message = "has no file or table: live demand alone is nothing to plan from"
        yield Problem(path=root, kind="missing_field", message=message, hint="give the past demand as well")
    for index, source in enumerate(spec.demand):
        yield from one_of((*root, index), {"file": source.file, "table": source.table, "promql": source.promql})
        yield from _columns(source, (*root, index, "columns"))
        if len(spec.planned_demand) > 1 and source.name not in used and source.promql is None:
            yield Problem(
                path=(*root, index),
                kind="unused_source",
                message="no workload takes its demand from this source",
                hint="name it in a workload's demand.source, or remove it",
            )


def _columns(source: DemandSpec, path: Path) -> Iterator[Problem]:
    columns = source.columns
    if columns.rate is not None and columns.count is not None:
        yield from one_of(path, {"rate": columns.rate, "count": columns.count})
    given: dict[str, str] = {}
    for role, column in columns.model_dump(by_alias=True, exclude_none=True).items():
        if column in given:
            message = f'is the column "{column}", which is {given[column]} already'
            yield Problem(path=(*path, role), kind="conflicting_fields", message=message)
        given.setdefault(column, role)


def _pools(spec: FleetSpec) -> Iterator[Problem]:
    root: Path = ("spec", "pools")
    yield from _duplicates(spec.pools, root)
    used = {workload.pool for workload in spec.workloads}
    for index, pool in enumerate(spec.pools):
        yield from _size(pool, (*root, index))
        yield from _nodes(pool, (*root, index))
        if len(spec.pools) > 1 and pool.name not in used:
            yield Problem(
                path=(*root, index),
                kind="unused_pool",
                message="no workload stands in this pool",
                hint="name it in a workload's pool, or remove it",
            )


def _size(pool: PoolSpec, path: Path) -> Iterator[Problem]:
    gpus = pool.nodes * pool.gpus_per_node
    if gpus > MOST_POOL_GPUS:
        yield Problem(
            path=(*path, "nodes"),
            kind="pool_too_large",
            message=f"is {pool.nodes}, with {pool.gpus_per_node} GPUs each: {gpus:,} GPUs; "
            f"a pool has at most {MOST_POOL_GPUS:,}",
            hint="split the pool, or look for a digit too many",
        )


def _nodes(pool: PoolSpec, path: Path) -> Iterator[Problem]:
    movable = pool.nodes - pool.reserved_nodes
    if movable < 0:
        yield Problem(
            path=(*path, "reservedNodes"),
            kind="out_of_range",
            message=f"is {pool.reserved_nodes}, but the pool has {pool.nodes} nodes",
        )
    elif pool.min_production_nodes > movable:
        yield Problem(
            path=(*path, "minProductionNodes"),
            kind="out_of_range",
            message=f"is {pool.min_production_nodes}, but {pool.nodes} nodes less {pool.reserved_nodes} reserved ones "
            f"leave {movable}",
        )


def _workloads(spec: FleetSpec) -> Iterator[Problem]:
    root: Path = ("spec", "workloads")
    yield from _duplicates(spec.workloads, root)
    pools = {pool.name: pool for pool in spec.pools}
    sources = [source.name for source in spec.planned_demand]
    for index, workload in enumerate(spec.workloads):
        path = (*root, index)
        name = workload.demand.source
        yield from _reference((*path, "demand", "source"), "source", name, sources)
        yield from _reference((*path, "pool"), "pool", workload.pool, list(pools))
        pool = pools.get(workload.pool) if workload.pool else spec.pools[0]
        if pool is not None:
            yield from _width(workload, pool, path)
        yield from _service(workload.service, (*path, "service"))
        yield from _claimed(workload, path)
        yield from _targets(workload, path)
        yield from _replicas(workload, path)


def _reference(path: Path, what: str, name: str | None, known: list[str]) -> Iterator[Problem]:
    if name is None and len(set(known)) > 1:
        message = f"missing: there is more than one {what}"
        yield Problem(path=path, kind="missing_field", message=message, hint=f"name one of {', '.join(known[:12])}")
    elif name is not None and name not in known:
        yield unknown(path, kind=f"unknown_{what}", word=name, known=known, what=f"no {what} is named")


def _width(workload: WorkloadSpec, pool: PoolSpec, path: Path) -> Iterator[Problem]:
    # A replica wider than a node takes whole nodes (§5.8), so GPUs suffice for the comparison.
    nodes = max(0, pool.nodes - pool.reserved_nodes)
    if workload.gpus_per_replica > nodes * pool.gpus_per_node:
        yield Problem(
            path=(*path, "gpusPerReplica"),
            kind="replica_wider_than_pool",
            message=f"is {workload.gpus_per_replica}, but the {nodes} nodes of {pool.name} that may serve have "
            f"{nodes * pool.gpus_per_node} GPUs",
        )


def _service(service: ServiceSpec, path: Path) -> Iterator[Problem]:
    yield from one_of(path, {"time": service.time, "observed": service.observed, "claim": service.claim})
    for name in ("scv", "concurrency") if service.claim is not None else ():
        if name in service.model_fields_set:
            message = "is given, but a claim holds a replica's rate whatever its slots and times are"
            yield Problem(
                path=(*path, name), kind="conflicting_fields", message=message, hint=f"remove {name}, or give time"
            )
    if service.observed is not None and service.scv is not None:
        yield Problem(
            path=(*path, "scv"),
            kind="conflicting_fields",
            message="is given, but observed takes the SCV from the trace",
            hint="remove scv, or give time",
        )


def _claimed(workload: WorkloadSpec, path: Path) -> Iterator[Problem]:
    if workload.service.claim is None:
        if "expects" in workload.model_fields_set:
            message = "is what a claim must match, but service names no claim"
            yield Problem(path=(*path, "expects"), kind="conflicting_fields", message=message)
        return
    if workload.waiting_cost_usd_per_request_hour > 0.0:
        cost = workload.waiting_cost_usd_per_request_hour
        yield Problem(
            path=(*path, "waitingCostUsdPerRequestHour"),
            kind="conflicting_fields",
            message=f"is {cost:g}, but a claim does not say how long requests wait",
            hint="remove it, or give service.time",
        )


def _targets(workload: WorkloadSpec, path: Path) -> Iterator[Problem]:
    for index, target in enumerate(workload.targets):
        here = (*path, "targets", index)
        yield from one_of(here, target.bounds)
        if target.first_token is not None and workload.service.claim is None:
            message = "is what no service time tells: only a claim says when the first token comes"
            hint = "name a claim in service, or bound wait or latency"
            yield Problem(path=(*here, "firstToken"), kind="conflicting_fields", message=message, hint=hint)
        yield from _reachable(target, workload.service, (*here, "latency"))


def _reachable(target: TargetSpec, service: ServiceSpec, path: Path) -> Iterator[Problem]:
    if target.latency is not None and service.time is not None and target.latency < service.time:
        yield Problem(
            path=path,
            kind="latency_below_service",
            message=f"is {duration_text(target.latency)}, but the service alone takes {duration_text(service.time)} "
            "on average: no fleet can hold that",
            hint="raise the latency, or bound the wait instead",
        )


def _replicas(workload: WorkloadSpec, path: Path) -> Iterator[Problem]:
    if workload.max_replicas is not None and workload.min_replicas > workload.max_replicas:
        said = "" if "min_replicas" in workload.model_fields_set else " (the default)"
        yield Problem(
            path=(*path, "minReplicas"),
            kind="minimum_above_maximum",
            message=f"is {workload.min_replicas}{said}, but maxReplicas is {workload.max_replicas}",
        )


def _exceptions(spec: FleetSpec) -> Iterator[Problem]:
    root: Path = ("spec", "exceptions")
    yield from _duplicates(spec.exceptions, root)
    names = [workload.name for workload in spec.workloads]
    for index, exception in enumerate(spec.exceptions):
        yield from _exception(exception, names, (*root, index))


def _exception(exception: ExceptionSpec, names: Iterable[str], path: Path) -> Iterator[Problem]:
    if exception.until <= exception.from_:
        yield Problem(
            path=(*path, "until"),
            kind="out_of_range",
            message=f"is {exception.until}, not after {exception.from_}; until is the day after the last",
        )
    for name, date in (("from", exception.from_), ("until", exception.until)):
        if not FIRST_DATE <= date <= LAST_DATE:
            yield Problem(
                path=(*path, name),
                kind="out_of_range",
                message=f"is {date}; must lie between {FIRST_DATE} and {LAST_DATE}",
            )
    if exception.like is None and exception.demand_factor == 1.0:
        yield Problem(
            path=path, kind="missing_field", message="changes nothing", hint="give like, demandFactor or both"
        )
    for index, name in enumerate(exception.workloads):
        if name not in names:
            yield unknown(
                (*path, "workloads", index),
                kind="unknown_workload",
                word=name,
                known=names,
                what="no workload is named",
            )
