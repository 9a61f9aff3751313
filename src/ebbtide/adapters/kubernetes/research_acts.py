"""What actions do to research's work: parked with our mark, and activated where the mark is ours (§7.5)."""

from __future__ import annotations

from ebbtide.adapters.kubernetes import marks
from ebbtide.adapters.kubernetes.clients import MERGE_PATCH, Cluster
from ebbtide.adapters.kubernetes.objects import Queued
from ebbtide.adapters.kubernetes.problems import ApiError, Asked, Kind
from ebbtide.adapters.kubernetes.research_sight import is_parked


def park(cluster: Cluster, path: str, pool: str) -> None:
    """Mark it and set it inactive, in one write; what is gone or inactive need not be ended, and keeps its mark."""
    one = cluster.find(path, Queued)
    if one is None or not one.spec.active:
        return
    body = {
        "metadata": {"annotations": {marks.PARKED: pool}, "resourceVersion": one.metadata.resource_version},
        "spec": {"active": False},
    }
    cluster.patch(path, body, MERGE_PATCH)


def activate(cluster: Cluster, path: str) -> None:
    """Let it requeue, and take the mark away; what others deactivated is refused, what is active is done."""
    one = cluster.find(path, Queued)
    if one is None or one.spec.active:
        return
    if not is_parked(one):
        asked = Asked(cluster=cluster.name, verb="patch", resource="workloads", namespace=one.metadata.namespace)
        raise ApiError(Kind.INVALID, asked, f"{one.metadata.name} was not deactivated by us")
    body = {
        "metadata": {"annotations": {marks.PARKED: None}, "resourceVersion": one.metadata.resource_version},
        "spec": {"active": True},
    }
    cluster.patch(path, body, MERGE_PATCH)
