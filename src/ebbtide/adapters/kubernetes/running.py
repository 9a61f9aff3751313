"""What a workload's pods really run, and on what: image digests, arguments, the GPUs that its nodes say they have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from ebbtide.adapters.kubernetes.bindings import PoolBinding, WorkloadBinding
from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.kinds import Kinds
from ebbtide.adapters.kubernetes.objects import Meta, Read, Resources, Selector, whole
from ebbtide.adapters.kubernetes.readings import matches
from ebbtide.adapters.kubernetes.scales import read_scales
from ebbtide.capacity.running import Running

# Labels that NVIDIA's and AMD's feature discovery put on nodes.
MODEL_LABELS = ("nvidia.com/gpu.product", "amd.com/gpu.product-name")
DRIVER_LABELS = ("nvidia.com/cuda.driver-version.full", "amd.com/gpu.driver-version")
MOST_NODES = 50  # that are asked, one by one; pods of one workload stand on nodes of one shape

Value = TypeVar("Value")


class RunContainer(Read, frozen=True):
    """A container as its pod asks for it."""

    name: str = ""
    image: str = ""
    command: list[str] | None = None
    args: list[str] | None = None
    resources: Resources = Resources()


class RunSpec(Read, frozen=True):
    node_name: str = ""
    containers: list[RunContainer] | None = None


class RunState(Read, frozen=True):
    """A container as its node runs it."""

    name: str = ""
    image_id: str = msgspec.field(default="", name="imageID")


class RunStatus(Read, frozen=True):
    phase: str = ""
    container_statuses: list[RunState] | None = None


class RunPod(Read, frozen=True):
    metadata: Meta
    spec: RunSpec = RunSpec()
    status: RunStatus = RunStatus()


class LabelledNode(Read, frozen=True):
    metadata: Meta


def look_at(cluster: Cluster, workload: WorkloadBinding, pool: PoolBinding) -> Running | None:
    """What runs of the workload; None where its object is not there. Raises ``ApiError``."""
    scaled = read_scales(cluster, Kinds(cluster), [workload]).get(workload.name)
    if scaled is None:
        return None
    first = ",".join(f"{key}={value}" for key, value in sorted(scaled.selector.match_labels.items()))
    pods = cluster.list(f"/api/v1/namespaces/{workload.namespace}/pods", RunPod, labels=first)
    ours = running_pods(scaled.selector, pods)
    names = sorted({pod.spec.node_name for pod in ours if pod.spec.node_name})[:MOST_NODES]
    nodes = [cluster.find(f"/api/v1/nodes/{name}", LabelledNode) for name in names]
    return running_of(ours, [node.metadata.labels for node in nodes if node is not None], pool.gpu_resource)


def running_pods(selector: Selector, pods: Iterable[RunPod]) -> list[RunPod]:
    """Those of a selector that run."""
    return [pod for pod in pods if pod.status.phase == "Running" and matches(selector, pod.metadata.labels)]


def running_of(pods: Sequence[RunPod], labels: Iterable[dict[str, str]], gpu_resource: str) -> Running:
    """What the pods say, each with the container that takes the GPUs (its first where none does)."""
    nodes = list(labels)
    mains = [(pod, _main(pod.spec.containers, gpu_resource)) for pod in pods if pod.spec.containers]
    return Running(
        pods=len(pods),
        image_digests=_distinct(_digest(pod, one) for pod, one in mains),
        arguments=_distinct((*(one.command or ()), *(one.args or ())) for _, one in mains),
        gpus=_distinct(whole(one.resources.limits.get(gpu_resource)) for _, one in mains),
        gpu_models=_distinct(_label(one, MODEL_LABELS) for one in nodes),
        drivers=_distinct(_label(one, DRIVER_LABELS) for one in nodes),
    )


def _main(containers: list[RunContainer], gpu_resource: str) -> RunContainer:
    with_gpus = [one for one in containers if whole(one.resources.limits.get(gpu_resource))]
    return (with_gpus or containers)[0]


def _digest(pod: RunPod, container: RunContainer) -> str:
    """As the node pulled it; as the pod names it where the node says none. A tag says nothing.

    ``imageID`` is ``registry/name@sha256:…``, with ``docker-pullable://`` before it on old nodes.
    """
    state = next((one for one in pod.status.container_statuses or [] if one.name == container.name), RunState())
    for text in (state.image_id, container.image):
        _, at, digest = text.rpartition("@")
        if at and digest.startswith("sha256:"):
            return digest
    return state.image_id if state.image_id.startswith("sha256:") else ""


def _label(labels: dict[str, str], names: Sequence[str]) -> str:
    return next((labels[name] for name in names if name in labels), "")


def _distinct(values: Iterable[Value]) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(value for value in values if value))
