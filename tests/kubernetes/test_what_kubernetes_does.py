"""What the controller builds on, seen on the real thing: eviction, scale, autoscalers, deletion cost, budgets, sizes.

The numbers are those of the facts in tests/kubelab/README.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from kubelab.api import Api, ApiError, Json
from kubelab.cluster import Cluster, is_true
from kubelab.nodes import set_allocatable_gpus
from kubelab.objects import autoscaler, budget, deployment, job, running_pods, standing_pods
from kubelab.waiting import steadily, until

NewNode = Callable[..., Json]
NewNamespace = Callable[[Cluster], str]


@pytest.fixture
def api(production: Cluster) -> Api:
    """The production cluster's."""
    return production.api


@pytest.fixture
def namespace(production: Cluster, new_namespace: NewNamespace) -> str:
    """One for the test."""
    return new_namespace(production)


def _deploy(api: Api, namespace: str, body: Json) -> str:
    """The Deployment's path, once all its replicas are Ready."""
    collection = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    api.create(collection, body)
    path = f"{collection}/{body['metadata']['name']}"
    _wait_ready(api, path, body["spec"]["replicas"])
    return path


def _wait_ready(api: Api, path: str, replicas: int) -> None:
    def right() -> bool:
        status = api.get(path).get("status", {})
        return bool(status.get("readyReplicas", 0) == replicas == status.get("replicas", 0))

    until(right, f"{replicas} ready replicas of {path}")


def _run_job(api: Api, namespace: str, body: Json) -> tuple[str, str]:
    """The Job's path and the name of its one running pod."""
    collection = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    api.create(collection, body)
    pods = until(lambda: running_pods(api, namespace), "the job's pod runs")
    return f"{collection}/{body['metadata']['name']}", pods[0]["metadata"]["name"]


def test_an_evicted_job_without_retries_fails_for_good_after_its_grace(
    api: Api, production: Cluster, namespace: str, new_node: NewNode
) -> None:
    """Fact 5; and the pretended kubelet waits for the grace period as a real one does."""
    new_node(production, "evict-1")
    path, pod = _run_job(api, namespace, job("train", backoff_limit=0, grace_s=2))
    pods = f"/api/v1/namespaces/{namespace}/pods"
    version = api.get(pods)["metadata"]["resourceVersion"]
    begun = time.monotonic()
    api.evict(namespace, pod)
    until(lambda: is_true(api.get(path), "Failed"), "the job failed")
    assert time.monotonic() - begun >= 1.5
    until(lambda: api.find(f"{pods}/{pod}") is None, "the pod is gone")
    phases = [event["object"]["status"]["phase"] for event in _until_deleted(api.watch(pods, version))]
    assert phases[0] == "Running"
    assert phases[-1] == "Failed"
    assert not is_true(api.get(path), "Complete")


def _until_deleted(events: Iterator[Json]) -> Iterator[Json]:
    """Everything that a watch says up to the first deletion."""
    for event in events:
        yield event
        if event["type"] == "DELETED":
            return


def test_an_evicted_trainer_that_exits_zero_counts_as_complete(
    api: Api, production: Cluster, namespace: str, new_node: NewNode
) -> None:
    """Fact 5: its work is lost silently.

    Always with this podReplacementPolicy; by default when it exits before the Job's controller looks, within a second.
    """
    new_node(production, "evict-2")
    body = job("train", backoff_limit=0, annotations={"lab/exit-zero-on-term": "true"})
    body["spec"]["podReplacementPolicy"] = "Failed"
    path, pod = _run_job(api, namespace, body)
    api.evict(namespace, pod)
    until(lambda: is_true(api.get(path), "Complete"), "the job counts as complete")


def test_an_evicted_job_with_retries_runs_again(
    api: Api, production: Cluster, namespace: str, new_node: NewNode
) -> None:
    """Fact 5: it costs one retry."""
    new_node(production, "evict-3")
    path, pod = _run_job(api, namespace, job("train", backoff_limit=3))
    api.evict(namespace, pod)

    def again() -> bool:
        return any(other["metadata"]["name"] != pod for other in running_pods(api, namespace))

    until(again, "another pod runs")
    until(lambda: api.get(path)["status"].get("failed") == 1, "one failure counted")


def test_a_stuck_pod_stays_terminating_until_it_is_deleted_without_grace(
    api: Api, production: Cluster, namespace: str, new_node: NewNode
) -> None:
    new_node(production, "stuck-1")
    _, pod = _run_job(api, namespace, job("train", annotations={"lab/stuck": "true"}))
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}"
    api.evict(namespace, pod)
    steadily(lambda: "deletionTimestamp" in api.get(path)["metadata"], "Terminating, past its grace of 1 s", for_s=3)
    api.delete(path, grace_s=0)

    def let_go() -> bool:
        left = api.find(path)  # the Job's finalizer is its controller's to take away
        return left is None

    until(let_go, "the pod is gone")


def test_scale_by_patch_with_a_version_is_refused_when_stale_and_apply_conflicts(
    api: Api, production: Cluster, namespace: str, new_node: NewNode
) -> None:
    """Fact 16: so scale is written by update or patch with resourceVersion."""
    new_node(production, "scale-1")
    path = _deploy(api, namespace, deployment("chat", replicas=1))
    seen = api.get(f"{path}/scale")["metadata"]["resourceVersion"]
    api.merge(f"{path}/scale", {"metadata": {"resourceVersion": seen}, "spec": {"replicas": 3}})
    _wait_ready(api, path, 3)
    with pytest.raises(ApiError) as stale:
        api.merge(f"{path}/scale", {"metadata": {"resourceVersion": seen}, "spec": {"replicas": 2}})
    assert stale.value.reason == "Conflict"
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "chat"}, "spec": {"replicas": 2}}
    with pytest.raises(ApiError) as taken:
        api.apply(f"{path}/scale", scale, manager="another", force=False)
    assert taken.value.code == 409
    assert api.get(f"{path}/scale")["spec"]["replicas"] == 3


def test_a_forced_apply_by_the_owner_takes_the_scale_back(
    api: Api, production: Cluster, namespace: str, new_node: NewNode
) -> None:
    """Fact 16: what a GitOps loop does every three minutes."""
    new_node(production, "scale-2")
    body = deployment("chat", replicas=1)
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/chat"
    api.apply(path, body, manager="gitops")
    api.merge(f"{path}/scale", {"spec": {"replicas": 3}}, manager="ebbtide")
    with pytest.raises(ApiError) as conflict:
        api.apply(path, body, manager="gitops", force=False)
    assert conflict.value.code == 409
    api.apply(path, body, manager="gitops", force=True)
    assert api.get(f"{path}/scale")["spec"]["replicas"] == 1


def test_an_autoscaler_enforces_its_bounds_refuses_nonsense_and_sleeps_at_zero(
    api: Api, production: Cluster, namespace: str, new_node: NewNode
) -> None:
    """Fact 17."""
    new_node(production, "hpa-1")
    path = _deploy(api, namespace, deployment("chat", replicas=1))
    collection = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"
    api.create(collection, autoscaler("chat", least=1, most=8))
    api.merge(f"{collection}/chat", {"spec": {"minReplicas": 4, "maxReplicas": 5}})
    _wait_ready(api, path, 4)
    with pytest.raises(ApiError) as refused:
        api.merge(f"{collection}/chat", {"spec": {"minReplicas": 6}})
    assert refused.value.code == 422
    api.merge(f"{path}/scale", {"spec": {"replicas": 7}})
    _wait_ready(api, path, 5)
    api.merge(f"{path}/scale", {"spec": {"replicas": 0}})
    steadily(lambda: api.get(f"{path}/scale")["spec"].get("replicas", 0) == 0, "left at 0 by the autoscaler", for_s=5)


def test_scale_down_takes_the_pods_of_the_leaving_node_only_with_a_deletion_cost(
    api: Api, production: Cluster, namespace: str, new_node: NewNode
) -> None:
    """Fact 18: with the cost, exactly those."""
    for name in ("cost-1", "cost-2"):
        new_node(production, name)
    path = _deploy(api, namespace, deployment("chat", replicas=8, gpus=2))
    by_node = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in standing_pods(api, namespace)}
    leaving = [pod for pod, node in by_node.items() if node == "cost-1"]
    assert len(leaving) == 4
    cost = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-1000"}}}
    for pod in leaving:
        api.merge(f"/api/v1/namespaces/{namespace}/pods/{pod}", cost)
    api.merge(f"{path}/scale", {"spec": {"replicas": 4}})
    _wait_ready(api, path, 4)
    assert {pod["spec"]["nodeName"] for pod in standing_pods(api, namespace)} == {"cost-2"}


def test_a_budget_of_all_replicas_lets_a_pod_go_only_after_a_surge_by_one(
    api: Api, production: Cluster, namespace: str, new_node: NewNode
) -> None:
    """Fact 19."""
    new_node(production, "budget-1")
    path = _deploy(api, namespace, deployment("chat", replicas=2))
    budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    api.create(budgets, budget("chat", min_available=2))
    until(lambda: api.get(f"{budgets}/chat").get("status", {}).get("currentHealthy") == 2, "the budget counts")
    pod = standing_pods(api, namespace)[0]["metadata"]["name"]
    with pytest.raises(ApiError) as refused:
        api.evict(namespace, pod)
    assert refused.value.code == 429
    api.merge(f"{path}/scale", {"spec": {"replicas": 3}})
    until(lambda: api.get(f"{budgets}/chat")["status"]["disruptionsAllowed"] == 1, "one may go")
    api.evict(namespace, pod)


def test_two_budgets_on_one_pod_answer_500(api: Api, production: Cluster, namespace: str, new_node: NewNode) -> None:
    """Fact 19: not 429, and waiting does not help."""
    new_node(production, "budget-2")
    _deploy(api, namespace, deployment("chat", replicas=2))
    budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    for name in ("one", "two"):
        api.create(budgets, budget("chat", min_available=0) | {"metadata": {"name": name}})
    with pytest.raises(ApiError) as refused:
        api.evict(namespace, standing_pods(api, namespace)[0]["metadata"]["name"])
    assert refused.value.code == 500


def test_a_ready_node_without_its_device_plugin_has_no_gpus(
    api: Api, production: Cluster, namespace: str, new_node: NewNode
) -> None:
    """Fact 21: so usable is more than Ready."""
    new_node(production, "plugin-1")
    set_allocatable_gpus(api, "plugin-1", 0)
    api.create(f"/apis/apps/v1/namespaces/{namespace}/deployments", deployment("chat", replicas=1))
    until(lambda: standing_pods(api, namespace), "a pod")
    until(lambda: _unschedulable(api, namespace), "the pod cannot be placed")
    assert is_true(api.get("/api/v1/nodes/plugin-1"), "Ready")
    set_allocatable_gpus(api, "plugin-1", 8)
    until(lambda: running_pods(api, namespace), "the pod runs once the GPUs are there")


def _unschedulable(api: Api, namespace: str) -> bool:
    return any(
        condition.get("reason") == "Unschedulable"
        for pod in standing_pods(api, namespace)
        for condition in pod["status"].get("conditions", ())
    )
