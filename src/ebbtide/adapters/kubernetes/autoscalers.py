"""Who else sets a workload's scale, and within which bounds: HorizontalPodAutoscaler, KEDA ScaledObject (§6.8)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ebbtide.adapters.kubernetes.bindings import WorkloadBinding
from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.kinds import Kinds
from ebbtide.adapters.kubernetes.namespaces import list_by_namespace
from ebbtide.adapters.kubernetes.objects import Hpa, Manager, ScaledObject, TargetRef, last_writer
from ebbtide.control.state import Bounds

_HPAS = "/apis/autoscaling/v2"
KEDA_MOST = 100  # maxReplicaCount where a ScaledObject has none, in KEDA's own documentation


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaler:
    """One of them: where it is, what its bounds' fields are called, their values, and who wrote those last.

    ``lowest_least``: an API server refuses a HorizontalPodAutoscaler with a least of 0; KEDA goes to 0 by itself.
    """

    name: str
    path: str
    least_field: str
    most_field: str
    bounds: Bounds
    lowest_least: int
    resource_version: str
    set_by: str


def read_autoscalers(cluster: Cluster, kinds: Kinds, workloads: Iterable[WorkloadBinding]) -> dict[str, Autoscaler]:
    """By workload. A ScaledObject comes before the HPA that KEDA made of it: KEDA would put that one's bounds back."""
    ours = {
        (one.namespace, one.api_version.partition("/")[0], one.kind, one.object_name): one.name for one in workloads
    }
    spaces = {space for space, *_ in ours}
    found: dict[str, Autoscaler] = {}
    for space, hpas in list_by_namespace(cluster, _HPAS, "horizontalpodautoscalers", spaces, Hpa).items():
        for hpa in hpas:
            name = ours.get((space, *_key(hpa.spec.scale_target_ref)))
            if name is not None:
                found[name] = _of_hpa(f"{_HPAS}/namespaces/{space}/horizontalpodautoscalers", hpa)
    if kinds.keda is None:
        return found
    for space, objects in list_by_namespace(cluster, kinds.keda, "scaledobjects", spaces, ScaledObject).items():
        for scaled in objects:
            name = ours.get((space, *_key(scaled.spec.scale_target_ref)))
            if name is not None:
                found[name] = _of_scaled_object(f"{kinds.keda}/namespaces/{space}/scaledobjects", scaled)
    return found


def read_again(cluster: Cluster, one: Autoscaler) -> Autoscaler:
    """The same one as it reads now."""
    root = one.path.rpartition("/")[0]
    if one.least_field == "minReplicas":
        return _of_hpa(root, cluster.get(one.path, Hpa))
    return _of_scaled_object(root, cluster.get(one.path, ScaledObject))


def _key(ref: TargetRef) -> tuple[str, str, str]:
    """Group, kind and name; a ScaledObject that names neither means a Deployment."""
    return (ref.api_version or "apps/v1").partition("/")[0], ref.kind or "Deployment", ref.name


def _of_hpa(root: str, hpa: Hpa) -> Autoscaler:
    meta, spec = hpa.metadata, hpa.spec
    return Autoscaler(
        name=f"HorizontalPodAutoscaler {meta.namespace}/{meta.name}",
        path=f"{root}/{meta.name}",
        least_field="minReplicas",
        most_field="maxReplicas",
        bounds=Bounds(least=1 if spec.min_replicas is None else spec.min_replicas, most=spec.max_replicas),
        lowest_least=1,
        resource_version=meta.resource_version,
        set_by=_writer(meta.managed_fields, "minReplicas", "maxReplicas"),
    )


def _of_scaled_object(root: str, scaled: ScaledObject) -> Autoscaler:
    meta, spec = scaled.metadata, scaled.spec
    return Autoscaler(
        name=f"ScaledObject {meta.namespace}/{meta.name}",
        path=f"{root}/{meta.name}",
        least_field="minReplicaCount",
        most_field="maxReplicaCount",
        bounds=Bounds(
            least=spec.min_replica_count or 0,
            most=KEDA_MOST if spec.max_replica_count is None else spec.max_replica_count,
        ),
        lowest_least=0,
        resource_version=meta.resource_version,
        set_by=_writer(meta.managed_fields, "minReplicaCount", "maxReplicaCount"),
    )


def _writer(managers: list[Manager], least: str, most: str) -> str:
    """Who wrote the bounds, where both are somebody's: a stranger before us."""
    writers = {last_writer(managers, "spec", field) for field in (least, most)} - {""}
    strangers = sorted(writers - {"ebbtide"})
    return strangers[0] if strangers else next(iter(writers), "")
