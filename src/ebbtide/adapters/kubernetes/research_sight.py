"""Research's work as the controller's ``ResearchWork``: Kueue Workloads with pods or quota, and pods outside Kueue."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from ebbtide.adapters.kubernetes import marks
from ebbtide.adapters.kubernetes.bindings import PoolBinding
from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.kinds import Kinds
from ebbtide.adapters.kubernetes.objects import Pod, Queued, condition, instant_s, is_true, last_writer, whole
from ebbtide.adapters.kubernetes.promises import Promise
from ebbtide.adapters.kubernetes.readings import Reading, is_daemon
from ebbtide.control.state import ResearchWork

WORKLOAD_OF_POD = "kueue.x-k8s.io/workload"  # annotation that Kueue gives pods of work with a topology
_REPLACED = frozenset({"ReplicaSet", "StatefulSet", "ReplicationController"})  # their pods come back when evicted


@dataclass(frozen=True, slots=True, kw_only=True)
class Research:
    """What was seen of the work, and where each Workload is: ``paths`` and ``uids`` by the name of the work."""

    work: tuple[ResearchWork, ...]
    paths: dict[str, str]
    uids: dict[str, str] = field(default_factory=dict)


def read_research(
    cluster: Cluster, kinds: Kinds, pools: tuple[PoolBinding, ...], reading: Reading, at_s: float
) -> Research:
    """All work on the pools' nodes or in their flavors."""
    root = kinds.kueue
    queued = [] if root is None else cluster.list(f"{root}/workloads", Queued)
    pool_of_node = {node.metadata.name: pool for pool, nodes in reading.nodes.items() for node in nodes}
    pods, rest = _pods_of_work(queued, reading, pool_of_node)
    work: list[ResearchWork] = []
    paths: dict[str, str] = {}
    uids: dict[str, str] = {}
    for one in queued:
        key = (one.metadata.namespace, one.metadata.name)
        seen = _work(one, pods.get(key, []), pools, pool_of_node, at_s)
        if seen is not None:
            work.append(seen)
            uids[seen.name] = one.metadata.uid
            paths[seen.name] = f"{root}/namespaces/{one.metadata.namespace}/workloads/{one.metadata.name}"
    work += _outside(rest, pools, pool_of_node)
    return Research(work=tuple(sorted(work, key=lambda one: one.name)), paths=paths, uids=uids)


def _pods_of_work(
    queued: Iterable[Queued], reading: Reading, pool_of_node: dict[str, str]
) -> tuple[dict[tuple[str, str], list[Pod]], list[Pod]]:
    """Pods on the pools' nodes by Workload; the others. Kueue names it on the pod, or both have one owner."""
    queued = list(queued)
    known = {(one.metadata.namespace, one.metadata.name) for one in queued}
    by_owner = {
        owner.uid: (one.metadata.namespace, one.metadata.name)
        for one in queued
        for owner in one.metadata.owner_references
    }
    found: dict[tuple[str, str], list[Pod]] = defaultdict(list)
    rest = []
    for node in pool_of_node:
        for pod in reading.by_node.get(node, ()):
            key = (pod.metadata.namespace, pod.metadata.annotations.get(WORKLOAD_OF_POD, ""))
            uids = [pod.metadata.uid, *(owner.uid for owner in pod.metadata.owner_references)]
            owned = next((by_owner[uid] for uid in uids if uid in by_owner), None)
            if key in known:
                found[key].append(pod)
            elif owned is not None:
                found[owned].append(pod)
            elif not is_daemon(pod):
                rest.append(pod)
    return found, rest


def _work(
    one: Queued, pods: list[Pod], pools: tuple[PoolBinding, ...], pool_of_node: dict[str, str], at_s: float
) -> ResearchWork | None:
    """One Workload; None where it has neither pods here nor quota of ours, and we did not end it."""
    meta, conditions = one.metadata, one.status.conditions if one.status else None
    if is_true(conditions, "Finished") and not pods:
        return None
    has_quota = is_true(conditions, "QuotaReserved")
    pool = _pool_of(one, pools) if has_quota else None
    nodes = tuple(sorted({pod.spec.node_name for pod in pods}))
    parked = is_parked(one)
    if pool is None and nodes:
        pool = next(each for each in pools if each.name == pool_of_node[nodes[0]])
    if pool is None and parked:
        pool = next((each for each in pools if each.name == meta.annotations[marks.PARKED]), pools[0])
    if pool is None:
        return None
    started_s = _started_s(one, pods, at_s)
    promise = Promise(said=_said(one, pods))
    return ResearchWork(
        name=f"{meta.namespace}/{meta.name}",
        pool=pool.name,
        gpus=_gpus(one, pool) or _gpus_of(pods, pool.gpu_resource),
        nodes=nodes,
        preemptible=promise.preemptible,
        checkpointed_s=promise.checkpointed_s(started_s, at_s),
        ends_s=promise.ends_s(started_s),
        requeues=all(owner.kind != "Pod" for owner in meta.owner_references) and bool(meta.owner_references),
        active=one.spec.active,
        parked_by_us=parked,
        has_quota=has_quota,
        managed=marks.is_managed(meta.labels, meta.annotations),
    )


def is_parked(one: Queued) -> bool:
    """Whether it is inactive by us: our mark is there, and nobody wrote ``active`` after us (§7.5)."""
    if one.spec.active or marks.PARKED not in one.metadata.annotations:
        return False
    return last_writer(one.metadata.managed_fields, "spec", "active") in ("", marks.US)


def _pool_of(one: Queued, pools: tuple[PoolBinding, ...]) -> PoolBinding | None:
    """The pool whose flavor holds its quota."""
    if one.status is None or one.status.admission is None:
        return None
    flavors = {name for each in one.status.admission.pod_set_assignments for name in each.flavors.values()}
    return next((pool for pool in pools if flavors & ({pool.ephemeral, pool.reserved} - {""})), None)


def _started_s(one: Queued, pods: list[Pod], at_s: float) -> float:
    """When its pods began; where it has none, when it was admitted."""
    begun = [began_s for pod in pods if (began_s := instant_s(pod.status.start_time)) is not None]
    if begun:
        return min(*begun, at_s) if len(begun) > 1 else min(begun[0], at_s)
    admitted = condition(one.status.conditions if one.status else None, "Admitted")
    since_s = instant_s(admitted.last_transition_time) if admitted is not None else None
    return at_s if since_s is None else min(since_s, at_s)


def _said(one: Queued, pods: list[Pod]) -> dict[str, str]:
    said: dict[str, str] = {}
    for pod_set in one.spec.pod_sets:
        said.update(pod_set.template.metadata.annotations)
    said.update(one.metadata.annotations)
    for pod in pods:
        said.update(pod.metadata.annotations)
    return said


def _gpus(one: Queued, pool: PoolBinding) -> int:
    if one.status is None or one.status.admission is None:
        return 0
    return sum(whole(each.resource_usage.get(pool.gpu_resource)) for each in one.status.admission.pod_set_assignments)


def _gpus_of(pods: list[Pod], resource: str) -> int:
    return sum(whole(each.resources.limits.get(resource)) for pod in pods for each in pod.spec.containers)


def _outside(pods: list[Pod], pools: tuple[PoolBinding, ...], pool_of_node: dict[str, str]) -> Iterable[ResearchWork]:
    """Pods outside Kueue that hold GPUs or belong to a Job: ending them loses their work (§7.5)."""
    together: dict[tuple[str, str, str], list[Pod]] = defaultdict(list)
    for pod in pods:
        owner = next((one for one in pod.metadata.owner_references if one.controller), None)
        if owner is not None and owner.kind in _REPLACED:
            continue
        kind, name = ("Pod", pod.metadata.name) if owner is None else (owner.kind, owner.name)
        together[pod.metadata.namespace, kind, name].append(pod)
    for (space, kind, name), group in sorted(together.items()):
        pool = next(each for each in pools if each.name == pool_of_node[group[0].spec.node_name])
        gpus = _gpus_of(group, pool.gpu_resource)
        if gpus or kind == "Job":
            begun = [began_s for pod in group if (began_s := instant_s(pod.status.start_time)) is not None]
            promise = Promise(said={key: value for pod in group for key, value in pod.metadata.annotations.items()})
            started_s = min(begun, default=0.0)
            yield ResearchWork(
                name=f"{space}/{kind}/{name}",
                pool=pool.name,
                gpus=gpus,
                nodes=tuple(sorted({pod.spec.node_name for pod in group})),
                preemptible=promise.preemptible,
                checkpointed_s=promise.checkpointed_s(started_s, started_s),
                ends_s=promise.ends_s(started_s),
                requeues=False,
                has_quota=False,
            )
