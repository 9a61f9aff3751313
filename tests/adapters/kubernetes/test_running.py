"""What pods run, from what a server would send."""

from __future__ import annotations

from ebbtide.adapters.kubernetes.bindings import PoolBinding, WorkloadBinding
from ebbtide.adapters.kubernetes.running import look_at
from ebbtide.capacity.running import Running

CHAT = WorkloadBinding(name="chat", pool="h100", namespace="serving")
POOL = PoolBinding(name="h100", gpus_per_node=8)
ROOT = "/apis/apps/v1/namespaces/serving/deployments/chat"


def deployment() -> dict[str, object]:
    selector = {"matchLabels": {"app": "chat"}, "matchExpressions": [{"key": "canary", "operator": "DoesNotExist"}]}
    return {"metadata": {"name": "chat"}, "spec": {"replicas": 2, "selector": selector}, "status": {"replicas": 2}}


def pod(name: str, digest: str, *, phase: str = "Running", **labels: str) -> dict[str, object]:
    proxy = {"name": "proxy", "image": "proxy:1", "args": ["--quiet"]}
    model = {
        "name": "model",
        "image": "vllm:1",
        "command": ["vllm", "serve"],
        "args": ["--tp", "2"],
        "resources": {"limits": {"nvidia.com/gpu": "2"}},
    }
    statuses = [
        {"name": "proxy", "imageID": "docker.io/proxy@sha256:9"},
        {"name": "model", "imageID": f"docker-pullable://registry/vllm@{digest}"},
    ]
    return {
        "metadata": {"name": name, "namespace": "serving", "labels": {"app": "chat", **labels}},
        "spec": {"nodeName": "node-" + name, "containers": [proxy, model]},
        "status": {"phase": phase, "containerStatuses": statuses},
    }


def node(name: str, **labels: str) -> dict[str, object]:
    return {"metadata": {"name": name, "labels": labels}}


def test_the_container_with_the_gpus_of_running_pods_and_their_nodes(script, cluster) -> None:
    script.say("GET", ROOT, deployment())
    pods = [
        pod("a", "sha256:1"),
        pod("b", "sha256:1"),
        pod("c", "sha256:2", phase="Succeeded"),
        pod("d", "sha256:3", canary="yes"),
    ]
    script.say("GET", "/api/v1/namespaces/serving/pods", {"metadata": {}, "items": pods})
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/cuda.driver-version.full": "550.54.15"}
    script.say("GET", "/api/v1/nodes/node-a", node("node-a", **labels))
    script.say("GET", "/api/v1/nodes/node-b", node("node-b", **labels))
    assert look_at(cluster, CHAT, POOL) == Running(
        pods=2,
        image_digests=("sha256:1",),
        arguments=(("vllm", "serve", "--tp", "2"),),
        gpus=(2,),
        gpu_models=("NVIDIA-H100-80GB-HBM3",),
        drivers=("550.54.15",),
    )
    listed = next(request for request in script.asked if request.url.path.endswith("/pods"))
    assert listed.url.params["labelSelector"] == "app=chat"


def test_what_is_not_there_and_what_says_nothing(script, cluster) -> None:
    assert look_at(cluster, CHAT, POOL) is None
    script.say("GET", ROOT, deployment())
    bare = {"metadata": {"name": "a", "namespace": "serving", "labels": {"app": "chat"}}}
    bare |= {
        "spec": {"nodeName": "gone", "containers": [{"name": "m", "image": "vllm:1"}]},
        "status": {"phase": "Running"},
    }
    script.say("GET", "/api/v1/namespaces/serving/pods", {"metadata": {}, "items": [bare]})
    assert look_at(cluster, CHAT, POOL) == Running(pods=1)
    assert all(request.method == "GET" for request in script.asked)
