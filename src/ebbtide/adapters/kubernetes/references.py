"""Which object an action is about: where its Event goes."""

from __future__ import annotations

from typing import Any

from ebbtide.adapters.kubernetes.bindings import Bindings
from ebbtide.adapters.kubernetes.events import Reference
from ebbtide.adapters.kubernetes.quota import Quota
from ebbtide.adapters.kubernetes.replica_sight import Production
from ebbtide.adapters.kubernetes.research_sight import Research
from ebbtide.control import actions as act


def reference_of(
    action: act.Action, bindings: Bindings, production: Production, research: Research, quota: Quota | None
) -> Reference | None:
    """The object, None where the action is about none in particular (the record, sizes of pools)."""
    node = getattr(action, "node", "")
    if node:  # a node's Events name it by its name, as the kubelet's do: `kubectl describe node` looks for both
        return Reference(api_version="v1", kind="Node", name=node, uid=node)
    work = getattr(action, "work", "")
    if work:
        return _work(work, research)
    workload = getattr(action, "workload", "")
    if workload:
        return _workload(workload, bindings, production)
    if isinstance(action, act.SetQuota) and bindings.quota is not None and quota is not None:
        version = f"kueue.x-k8s.io/{quota.path.split('/')[3]}"
        return Reference(api_version=version, kind=bindings.quota.kind, name=bindings.quota.name, uid=quota.uid)
    return None


def _work(name: str, research: Research) -> Reference | None:
    space, _, own = name.partition("/")
    if name not in research.paths:
        return None
    version = research.paths[name].split("/")[3]
    return Reference(
        api_version=f"kueue.x-k8s.io/{version}",
        kind="Workload",
        name=own,
        namespace=space,
        uid=research.uids.get(name, ""),
    )


def _workload(name: str, bindings: Bindings, production: Production) -> Reference:
    binding: Any = bindings.workload(name)
    scaled = production.scales.get(name)
    return Reference(
        api_version=binding.api_version,
        kind=binding.kind,
        name=binding.object_name,
        namespace=binding.namespace,
        uid="" if scaled is None else scaled.object.metadata.uid,
    )
