"""Node objects with GPUs, as the pretended kubelet takes them up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubelab.api import Api, Json
from kubelab.cluster import delete_quietly, is_true
from kubelab.waiting import until

GPU = "nvidia.com/gpu"


def node(
    name: str,
    *,
    gpus: int = 8,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Json] = (),
    annotations: Mapping[str, str] | None = None,
    provider_id: str = "",
) -> Json:
    """A Node as it registers: 64 cores, 512 GiB, 110 pods and so many GPUs."""
    there = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name} | dict(labels or {}),
            "annotations": dict(annotations or {}),
        },
        "spec": {"taints": list(taints), **({"providerID": provider_id} if provider_id else {})},
        "status": {"capacity": there, "allocatable": dict(there)},
    }


def add_node(
    api: Api,
    name: str,
    *,
    gpus: int = 8,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Json] = (),
    provider_id: str = "",
) -> Json:
    """Create a node and wait until it is Ready."""
    api.create("/api/v1/nodes", node(name, gpus=gpus, labels=labels, taints=taints, provider_id=provider_id))
    path = f"/api/v1/nodes/{name}"
    until(lambda: is_true(api.get(path), "Ready"), f"{name} Ready")
    found: Json = api.get(path)
    return found


def set_allocatable_gpus(api: Api, name: str, gpus: int) -> None:
    """What the device plugin says; the capacity stays."""
    api.merge(f"/api/v1/nodes/{name}/status", {"status": {"allocatable": {GPU: str(gpus)}}})


def remove_node(api: Api, name: str) -> None:
    """Delete a node and, without grace, the pods that still stand on it."""
    delete_quietly(api, f"/api/v1/nodes/{name}")
    for pod in api.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{name}")["items"]:
        meta = pod["metadata"]
        api.delete(f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}", grace_s=0)
