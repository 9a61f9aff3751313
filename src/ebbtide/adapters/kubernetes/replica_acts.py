"""What actions do to workloads: their scale, their autoscaler's bounds, which of their pods go first."""

from __future__ import annotations

from typing import Any

from ebbtide.adapters.kubernetes import marks
from ebbtide.adapters.kubernetes.autoscalers import Autoscaler
from ebbtide.adapters.kubernetes.clients import JSON_PATCH, MERGE_PATCH, Cluster
from ebbtide.adapters.kubernetes.drain import pod_path
from ebbtide.adapters.kubernetes.objects import Pod
from ebbtide.adapters.kubernetes.readings import is_deleted, matches
from ebbtide.adapters.kubernetes.replica_sight import is_lowered
from ebbtide.adapters.kubernetes.scales import Scaled
from ebbtide.control.state import Bounds


def set_replicas(cluster: Cluster, scaled: Scaled, replicas: int) -> None:
    """Write the scale, if it still is what was seen.

    The precondition is the value, not the resourceVersion: that changes with every pod that becomes ready, and a
    scale could not be written while it is being followed.
    """
    patch = [
        {"op": "test", "path": "/spec/replicas", "value": scaled.replicas},
        {"op": "replace", "path": "/spec/replicas", "value": replicas},
    ]
    if scaled.replicas == 0:  # a scale of 0 has no such field on the wire: nothing can be tested or replaced
        patch = [{"op": "add", "path": "/spec/replicas", "value": replicas}]
    cluster.patch(f"{scaled.path}/scale", patch, JSON_PATCH)


def set_bounds(cluster: Cluster, autoscaler: Autoscaler, bounds: Bounds) -> str:
    """Both bounds in one write, if the object still is what was seen; least above most is refused (fact 17).

    The resourceVersion that it has now.
    """
    body: dict[str, Any] = {
        "metadata": {"resourceVersion": autoscaler.resource_version},
        "spec": {autoscaler.least_field: bounds.least, autoscaler.most_field: bounds.most},
    }
    return str(cluster.patch(autoscaler.path, body, MERGE_PATCH)["metadata"]["resourceVersion"])


def lower_cost(cluster: Cluster, namespace: str, scaled: Scaled, nodes: frozenset[str]) -> None:
    """Give the pods on these nodes our negative cost, and take it from those on others; another's cost is left."""
    for pod in cluster.list(f"/api/v1/namespaces/{namespace}/pods", Pod, labels=_text(scaled)):
        if is_deleted(pod) or not matches(scaled.selector, pod.metadata.labels):
            continue
        wanted = pod.spec.node_name in nodes
        if wanted is not is_lowered(pod):
            cost = marks.LOWERED if wanted else None
            cluster.patch(pod_path(pod), {"metadata": {"annotations": {marks.DELETION_COST: cost}}}, MERGE_PATCH)


def _text(scaled: Scaled) -> str:
    """The equal labels of its selector, for the server to filter by; the rest is matched here."""
    return ",".join(f"{key}={value}" for key, value in sorted(scaled.selector.match_labels.items()))
