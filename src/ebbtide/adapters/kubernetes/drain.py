"""Emptying a node: evictions that budgets may refuse, and deletion when production wins (§6.5, fact 19)."""

from __future__ import annotations

from collections.abc import Iterable

from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.objects import Pod
from ebbtide.adapters.kubernetes.problems import ApiError, Kind
from ebbtide.adapters.kubernetes.readings import LIVING, is_daemon, is_deleted


def pods_on(cluster: Cluster, node: str) -> list[Pod]:
    """The pods that a drain has to end; none where the node is gone."""
    found = cluster.list("/api/v1/pods", Pod, fields=f"spec.nodeName={node},{LIVING}")
    return [pod for pod in found if not is_daemon(pod)]


def drain(cluster: Cluster, node: str) -> None:
    """Ask for the eviction of every pod that is not Terminating yet; a refusal is raised after all were asked."""
    refusal: ApiError | None = None
    for pod in _there(pods_on(cluster, node)):
        meta = pod.metadata
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": meta.name, "namespace": meta.namespace},
            "deleteOptions": {"preconditions": {"uid": meta.uid}},
        }
        try:
            cluster.create(f"{pod_path(pod)}/eviction", body)
        except ApiError as problem:
            if problem.why not in (Kind.BUDGET, Kind.MISSING, Kind.CONFLICT):
                raise
            if problem.why is Kind.BUDGET:
                refusal = problem
    if refusal is not None:
        raise refusal


def _there(pods: Iterable[Pod]) -> list[Pod]:
    return [pod for pod in pods if not is_deleted(pod)]


def delete_pods(cluster: Cluster, node: str) -> None:
    """Delete what is left with the shortest grace that still lets the kubelet confirm.

    A grace of 0 would drop the object while its containers run on: a second pod of a StatefulSet, or a job on a GPU
    that is still held. A kubelet that is dead confirms nothing: then the pods stay, and are seen to be stuck.
    """
    for pod in pods_on(cluster, node):
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 1,
            "preconditions": {"uid": pod.metadata.uid},
        }
        cluster.delete(pod_path(pod), body)


def pod_path(pod: Pod) -> str:
    """Where a Pod object is."""
    return f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}"
