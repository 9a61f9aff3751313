"""Rules on the Fleet's fields that the controller reads: one of several, names that are there, nothing owned twice."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ebbtide.adapters.documents.cluster_names import LABEL_KEY
from ebbtide.adapters.documents.fleet_models import DemandSpec, FleetSpec, PoolSpec
from ebbtide.adapters.documents.operations_models import ClusterApiSpec, ClusterSpec, QuotaSpec
from ebbtide.adapters.documents.problems import Problem, one_of, unknown
from ebbtide.adapters.documents.yaml_text import Path

_FILE_FIELDS = ("columns", "origin", "time_zone", "interval")


def operations_problems(spec: FleetSpec) -> list[Problem]:
    """Everything that is wrong between those fields."""
    problems = [*_clusters(spec), *_live(spec), *_scale_targets(spec)]
    for index, pool in enumerate(spec.pools):
        problems += _pool(pool, ("spec", "pools", index))
    if spec.research.quota is not None:
        problems += _quota(spec.research.quota, [pool.name for pool in spec.pools])
    return problems


def _clusters(spec: FleetSpec) -> Iterator[Problem]:
    if spec.clusters is None:
        return
    sides: dict[str, ClusterSpec] = {"production": spec.clusters.production, "research": spec.clusters.research}
    for side, cluster in sides.items():
        given = {"context": cluster.context, "inCluster": cluster.in_cluster}
        yield from one_of(("spec", "clusters", side), given)


def _live(spec: FleetSpec) -> Iterator[Problem]:
    names = [source.name for source in spec.demand if source.promql is not None]
    if spec.live_demand is not None and spec.live_demand not in names:
        path: Path = ("spec", "liveDemand")
        yield unknown(
            path,
            kind="unknown_source",
            word=spec.live_demand,
            known=names,
            what="no demand source with promql is named",
        )
    for index, source in enumerate(spec.demand):
        if source.promql is not None:
            yield from _live_source(source, spec, ("spec", "demand", index))


def _live_source(source: DemandSpec, spec: FleetSpec, path: Path) -> Iterator[Problem]:
    for name in _FILE_FIELDS:
        if name in source.model_fields_set and getattr(source, name) is not None:
            yield Problem(
                path=path,
                kind="conflicting_fields",
                message=f"has promql and {type(source).model_fields[name].alias}, which is for files and tables",
                hint="remove it",
            )
    if spec.live_demand != source.name:
        yield Problem(
            path=path,
            kind="unused_source",
            message="is read for live demand only, and liveDemand does not name it",
            hint=f"write liveDemand: {source.name}, or remove it",
        )


def _pool(pool: PoolSpec, path: Path) -> Iterator[Problem]:
    for key in pool.node_selector:
        if not re.fullmatch(LABEL_KEY, key):
            yield Problem(path=(*path, "nodeSelector", key), kind="bad_name", message="is no label's key")
    provider = {"relabel": pool.provider.relabel, "clusterapi": pool.provider.clusterapi}
    yield from one_of((*path, "provider"), provider)
    if pool.provider.clusterapi is not None:
        yield from _machine_deployments(pool.provider.clusterapi, (*path, "provider", "clusterapi"))


def _machine_deployments(spec: ClusterApiSpec, path: Path) -> Iterator[Problem]:
    one, other = spec.production, spec.research
    held = (one.cluster or "production", other.cluster or "research")
    if (one.namespace, one.name) == (other.namespace, other.name) and held[0] == held[1]:
        message = f"names one MachineDeployment for both sides, {one.namespace}/{one.name}"
        yield Problem(path=path, kind="conflicting_fields", message=message, hint="each side has one of its own")


def _scale_targets(spec: FleetSpec) -> Iterator[Problem]:
    held: dict[tuple[str, str, str], str] = {}
    for index, workload in enumerate(spec.workloads):
        target = workload.scale_target_ref
        name = target.name or workload.name
        key = (target.kind, target.namespace, name)
        if key in held and held[key] != workload.name:
            yield Problem(
                path=("spec", "workloads", index, "scaleTargetRef"),
                kind="scaled_twice",
                message=f"is {target.kind} {target.namespace}/{name}, which {held[key]} scales already",
                hint="each workload has an object of its own",
            )
        held.setdefault(key, workload.name)


def _quota(spec: QuotaSpec, pools: list[str]) -> Iterator[Problem]:
    held: dict[str, str] = {}
    seen: set[str] = set()
    for index, flavor in enumerate(spec.flavors):
        path: Path = ("spec", "research", "quota", "flavors", index)
        if flavor.pool not in pools:
            at = (*path, "pool")
            yield unknown(at, kind="unknown_pool", word=flavor.pool, known=pools, what="no pool is named")
        if flavor.pool in seen:
            message = f'the pool "{flavor.pool}" is given twice'
            yield Problem(path=(*path, "pool"), kind="duplicate_name", message=message)
        seen.add(flavor.pool)
        for field, name in (("ephemeral", flavor.ephemeral), ("reserved", flavor.reserved)):
            if name is not None and name in held:
                message = f'is the flavor "{name}", which is {held[name]} already'
                yield Problem(path=(*path, field), kind="conflicting_fields", message=message)
            elif name is not None:
                held[name] = f"{flavor.pool}'s {field} one"
