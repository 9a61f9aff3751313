"""What actions do to workloads: their scale, their autoscaler's bounds, which of their pods go first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ebbtide.adapters.kubernetes import marks
from ebbtide.adapters.kubernetes.autoscalers import Autoscaler, read_again
from ebbtide.adapters.kubernetes.clients import JSON_PATCH, MERGE_PATCH, Cluster
from ebbtide.adapters.kubernetes.drain import pod_path
from ebbtide.adapters.kubernetes.objects import Pod
from ebbtide.adapters.kubernetes.problems import ApiError, Kind
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


def set_bounds(cluster: Cluster, autoscaler: Autoscaler, bounds: Bounds) -> Autoscaler:
    """Both bounds in one write, if they still are what was seen; least above most is refused (fact 17).

    The autoscaler as it is now. Its status changes every few seconds and its resourceVersion with it, so an object
    that changed is read again, and only other bounds than those seen are a conflict.
    """
    try:
        return _write_bounds(cluster, autoscaler, bounds)
    except ApiError as problem:
        found = read_again(cluster, autoscaler) if problem.why is Kind.CONFLICT else None
        if found is None or found.bounds != autoscaler.bounds:
            raise
        return _write_bounds(cluster, found, bounds)


def _write_bounds(cluster: Cluster, autoscaler: Autoscaler, bounds: Bounds) -> Autoscaler:
    body: dict[str, Any] = {
        "metadata": {"resourceVersion": autoscaler.resource_version},
        "spec": {autoscaler.least_field: bounds.least, autoscaler.most_field: bounds.most},
    }
    version = str(cluster.patch(autoscaler.path, body, MERGE_PATCH)["metadata"]["resourceVersion"])
    return replace(autoscaler, bounds=bounds, resource_version=version)


def lower_cost(cluster: Cluster, namespace: str, scaled: Scaled, nodes: frozenset[str]) -> None:
    """Give the pods on these nodes our negative cost, and take it from those on others; another's cost is left."""
    for pod in cluster.list(f"/api/v1/namespaces/{namespace}/pods", Pod, labels=_text(scaled)):
        if is_deleted(pod) or not matches(scaled.selector, pod.metadata.labels):
            continue
        wanted = pod.spec.node_name in nodes
        if wanted is not is_lowered(pod):
            _set_cost(cluster, pod, marks.LOWERED if wanted else None)


def _set_cost(cluster: Cluster, pod: Pod, cost: str | None) -> None:
    """A pod that went meanwhile needs no cost."""
    try:
        cluster.patch(pod_path(pod), {"metadata": {"annotations": {marks.DELETION_COST: cost}}}, MERGE_PATCH)
    except ApiError as problem:
        if problem.why is not Kind.MISSING:
            raise


def _text(scaled: Scaled) -> str:
    """The equal labels of its selector, for the server to filter by; the rest is matched here."""
    return ",".join(f"{key}={value}" for key, value in sorted(scaled.selector.match_labels.items()))
