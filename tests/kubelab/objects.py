"""Objects that tests make: Deployments, Jobs, budgets, autoscalers and Kueue's queues, as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping

from kubelab.api import Api, Json
from kubelab.nodes import GPU
from kubelab.waiting import until

QUEUES = "/apis/kueue.x-k8s.io/v1beta2"
QUEUE_NAME = "kueue.x-k8s.io/queue-name"


def pod_spec(*, gpus: int, grace_s: int, node_selector: Mapping[str, str] | None, restart: str = "Always") -> Json:
    """One container that wants so many GPUs; tolerates whatever hardware taint a GPU node has."""
    return {
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": grace_s,
        "nodeSelector": dict(node_selector or {}),
        "tolerations": [{"key": GPU, "operator": "Exists"}],
        "containers": [
            {"name": "main", "image": "example.com/model", "resources": {"limits": {GPU: str(gpus)} if gpus else {}}}
        ],
    }


def deployment(
    name: str,
    *,
    replicas: int,
    gpus: int = 1,
    grace_s: int = 1,
    node_selector: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Json:
    """A Deployment whose pods carry the label ``app: <name>``."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}, "annotations": dict(annotations or {})},
                "spec": pod_spec(gpus=gpus, grace_s=grace_s, node_selector=node_selector),
            },
        },
    }


def job(
    name: str,
    *,
    gpus: int = 1,
    pods: int = 1,
    completions: int | None = None,
    queue: str = "",
    backoff_limit: int = 6,
    grace_s: int = 1,
    indexed: bool = False,
    annotations: Mapping[str, str] | None = None,
) -> Json:
    """A Job of ``pods`` at once; with a LocalQueue it is Kueue's. ``annotations`` steer the pretended kubelet."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {QUEUE_NAME: queue} if queue else {}},
        "spec": {
            "parallelism": pods,
            "completions": completions or pods,
            "completionMode": "Indexed" if indexed else "NonIndexed",
            "backoffLimit": backoff_limit,
            "template": {
                "metadata": {"annotations": dict(annotations or {})},
                "spec": pod_spec(gpus=gpus, grace_s=grace_s, node_selector=None, restart="Never"),
            },
        },
    }


def budget(name: str, *, min_available: int) -> Json:
    """A PodDisruptionBudget over the pods of the Deployment of that name."""
    spec = {"minAvailable": min_available, "selector": {"matchLabels": {"app": name}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}


def autoscaler(name: str, *, least: int, most: int) -> Json:
    """A HorizontalPodAutoscaler of the Deployment of that name (no metrics arrive here: only its bounds work)."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {"scaleTargetRef": target, "minReplicas": least, "maxReplicas": most, "metrics": [cpu]},
    }


def flavor(name: str, *, node_labels: Mapping[str, str], taints: tuple[Json, ...] = ()) -> Json:
    """A ResourceFlavor; with ``taints`` only jobs that tolerate them get it."""
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": name},
        "spec": {"nodeLabels": dict(node_labels), "nodeTaints": list(taints)},
    }


def cluster_queue(name: str, quotas: Mapping[str, int]) -> Json:
    """A ClusterQueue with nominal GPU quotas by flavor, in that order."""
    flavors = [{"name": it, "resources": [{"name": GPU, "nominalQuota": str(n)}]} for it, n in quotas.items()]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": {
            "namespaceSelector": {},
            "queueingStrategy": "BestEffortFIFO",
            "preemption": {"withinClusterQueue": "LowerPriority"},
            "resourceGroups": [{"coveredResources": [GPU], "flavors": flavors}],
        },
    }


def local_queue(name: str, clusters_queue: str, *, stop_policy: str = "None") -> Json:
    """A LocalQueue; with ``stop_policy`` Hold its jobs wait without quota."""
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": name},
        "spec": {"clusterQueue": clusters_queue, "stopPolicy": stop_policy},
    }


def workload_of(api: Api, namespace: str, job_name: str) -> Json:
    """Kueue's Workload of a Job, as soon as there is one."""

    def find() -> Json | None:
        for found in api.items(f"{QUEUES}/namespaces/{namespace}/workloads"):
            if any(owner["name"] == job_name for owner in found["metadata"].get("ownerReferences", ())):
                return found
        return None

    found = until(find, f"Workload of {job_name}")
    assert found is not None
    return found


def standing_pods(api: Api, namespace: str, labels: str = "") -> list[Json]:
    """Pods that are neither ended nor being deleted."""
    pods = api.items(f"/api/v1/namespaces/{namespace}/pods", labels)
    return [
        pod
        for pod in pods
        if not pod["metadata"].get("deletionTimestamp") and pod["status"].get("phase") in ("Pending", "Running")
    ]


def running_pods(api: Api, namespace: str, labels: str = "") -> list[Json]:
    """Those of them that run."""
    return [pod for pod in standing_pods(api, namespace, labels) if pod["status"]["phase"] == "Running"]
