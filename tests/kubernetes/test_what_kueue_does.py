"""What the controller builds on, seen on the real Kueue: quota, ending work, waiting without quota.

The numbers are those of the facts in tests/kubelab/README.md.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from kubelab.api import Api, ApiError, Json
from kubelab.cluster import Cluster, delete_quietly, is_true
from kubelab.nodes import GPU
from kubelab.objects import (
    QUEUE_NAME,
    QUEUES,
    cluster_queue,
    flavor,
    job,
    local_queue,
    running_pods,
    standing_pods,
    workload_of,
)
from kubelab.waiting import steadily, until

QUOTA = "/spec/resourceGroups/0/flavors/1/resources/0/nominalQuota"
FLAVOR = "/spec/resourceGroups/0/flavors/1/name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """One test's research: a node of 8 GPUs, flavors `reserved` (0) and `tide` (4 GPUs), queues `live` and `held`."""

    api: Api
    namespace: str
    name: str

    @property
    def queue(self) -> str:
        """The ClusterQueue's path."""
        return f"{QUEUES}/clusterqueues/{self.name}"

    @property
    def jobs(self) -> str:
        """The collection of Jobs."""
        return f"/apis/batch/v1/namespaces/{self.namespace}/jobs"

    def submit(self, name: str, *, gpus: int = 1, pods: int = 1, queue: str = "live", **wishes: object) -> None:
        """A Job for the node."""
        body = job(name, gpus=gpus, pods=pods, queue=queue, **wishes)  # type: ignore[arg-type] # job's own keywords
        self.api.create(self.jobs, body)

    def running(self, name: str) -> list[Json]:
        """The Job's running pods."""
        return running_pods(self.api, self.namespace, f"job-name={name}")

    def standing(self, name: str) -> list[Json]:
        """The Job's pods that neither ended nor are being deleted."""
        return standing_pods(self.api, self.namespace, f"job-name={name}")

    def suspended(self, name: str) -> bool:
        """Whether Kueue holds the Job."""
        return bool(self.api.get(f"{self.jobs}/{name}")["spec"].get("suspend"))

    def workload(self, name: str) -> Json:
        """The Job's Workload."""
        return workload_of(self.api, self.namespace, name)

    def set_active(self, name: str, active: bool) -> None:
        """`spec.active` of the Job's Workload."""
        path = f"{QUEUES}/namespaces/{self.namespace}/workloads/{self.workload(name)['metadata']['name']}"
        self.api.merge(path, {"spec": {"active": active}})

    def set_quota(self, gpus: int) -> None:
        """The tide's nominal quota, by JSON Patch with a test of the flavor's name."""
        operations = [
            {"op": "test", "path": FLAVOR, "value": f"tide-{self.name}"},
            {"op": "replace", "path": QUOTA, "value": str(gpus)},
        ]
        self.api.edit(self.queue, operations)


@pytest.fixture
def desk(research: Cluster, new_namespace: Callable[..., str], new_node: Callable[..., Json]) -> Iterator[Desk]:
    """Empty, and Active."""
    api, name = research.api, f"q-{uuid.uuid4().hex[:6]}"
    here = Desk(api=api, namespace=new_namespace(research), name=name)
    new_node(research, f"{name}-node", labels={"tide": name})
    for kind, labels in (("reserved", {"reserved": name}), ("tide", {"tide": name})):
        api.create(f"{QUEUES}/resourceflavors", flavor(f"{kind}-{name}", node_labels=labels))
    api.create(f"{QUEUES}/clusterqueues", cluster_queue(name, {f"reserved-{name}": 0, f"tide-{name}": 4}))
    queues = f"{QUEUES}/namespaces/{here.namespace}/localqueues"
    api.create(queues, local_queue("live", name))
    api.create(queues, local_queue("held", name, stop_policy="Hold"))
    until(lambda: is_true(api.get(here.queue), "Active"), "the ClusterQueue is Active")
    yield here
    delete_quietly(api, f"/api/v1/namespaces/{here.namespace}")
    for path in (here.queue, *(f"{QUEUES}/resourceflavors/{kind}-{name}" for kind in ("reserved", "tide"))):
        delete_quietly(api, path)


def test_a_lower_quota_ends_nothing_and_holds_back_what_is_new(desk: Desk) -> None:
    """Fact 1."""
    desk.submit("old", pods=4)
    until(lambda: len(desk.running("old")) == 4, "the job runs")
    desk.set_quota(1)
    desk.submit("new")
    steadily(lambda: len(desk.running("old")) == 4 and desk.suspended("new"), "old runs, new waits", for_s=3)
    desk.set_quota(5)
    until(lambda: desk.running("new"), "the new one runs once quota is there")


def test_a_deactivated_workload_keeps_its_finished_indices_and_runs_again(desk: Desk) -> None:
    """Fact 2: the clean end of one Workload, and its return."""
    desk.submit("sweep", pods=2, completions=4, indexed=True)
    until(lambda: len(desk.running("sweep")) == 2, "two indices run")
    for pod in desk.running("sweep"):
        done = {"metadata": {"annotations": {"lab/complete-after": "0s"}}}
        desk.api.merge(f"/api/v1/namespaces/{desk.namespace}/pods/{pod['metadata']['name']}", done)
    until(lambda: desk.api.get(f"{desk.jobs}/sweep")["status"].get("completedIndexes") == "0,1", "0 and 1 are done")
    until(lambda: len(desk.running("sweep")) == 2, "2 and 3 run")
    desk.set_active("sweep", False)
    until(lambda: desk.suspended("sweep") and not desk.standing("sweep"), "suspended, no pods")
    until(lambda: is_true(desk.workload("sweep"), "Evicted"), "Evicted")
    until(lambda: not is_true(desk.workload("sweep"), "Admitted"), "not admitted: a moment later than Evicted")
    steadily(lambda: desk.suspended("sweep"), "it waits until somebody activates it", for_s=2)
    desk.set_active("sweep", True)
    until(lambda: len(desk.running("sweep")) == 2, "runs again")
    assert desk.api.get(f"{desk.jobs}/sweep")["status"]["completedIndexes"] == "0,1"
    assert desk.api.get(f"{desk.jobs}/sweep")["status"].get("failed", 0) == 0


def test_quota_is_free_before_the_old_pods_are_gone(desk: Desk) -> None:
    """Fact 3: the next job is admitted while the old one's pods still hold the GPUs, through their grace."""
    desk.set_quota(8)
    desk.submit("old", gpus=8, grace_s=5)
    until(lambda: desk.running("old"), "the old job runs")
    desk.submit("new", gpus=8)
    desk.set_active("old", False)
    until(lambda: not desk.suspended("new"), "the new job is admitted")
    held = desk.api.items(f"/api/v1/namespaces/{desk.namespace}/pods", "job-name=old")
    assert [bool(pod["metadata"].get("deletionTimestamp")) for pod in held] == [True]
    assert not desk.running("new")
    until(lambda: desk.running("new"), "the new job's pod runs after the grace")


def test_a_job_reactivated_while_its_node_is_not_cordoned_goes_straight_back(desk: Desk) -> None:
    """Fact 4: quota knows no nodes."""
    desk.submit("train")
    node = until(lambda: desk.running("train"), "runs")[0]["spec"]["nodeName"]
    desk.set_active("train", False)
    until(lambda: desk.suspended("train") and not desk.standing("train"), "ended")
    desk.set_active("train", True)
    assert until(lambda: desk.running("train"), "runs again")[0]["spec"]["nodeName"] == node


def test_a_job_in_a_held_queue_waits_without_quota_until_its_label_moves(desk: Desk) -> None:
    """Fact 12."""
    desk.submit("later", queue="held")
    workload = desk.workload("later")
    steadily(lambda: desk.suspended("later"), "it waits", for_s=2)
    assert "admission" not in workload.get("status", {})
    desk.submit("other", gpus=4)
    until(lambda: desk.running("other"), "all quota is free for others")
    desk.api.delete(f"{desk.jobs}/other")
    desk.api.merge(f"{desk.jobs}/later", {"metadata": {"labels": {QUEUE_NAME: "live"}}})
    until(lambda: desk.running("later"), "it runs once it is in the live queue")


def test_the_list_of_flavors_is_atomic_and_a_json_patch_with_a_test_is_not_fooled(desk: Desk) -> None:
    """Fact 15: server-side apply of one flavor drops the others; a patch says which flavor it means."""
    desk.set_quota(3)
    groups = desk.api.get(desk.queue)["spec"]["resourceGroups"]
    assert [it["resources"][0]["nominalQuota"] for it in groups[0]["flavors"]] == ["0", "3"]
    wrong = [
        {"op": "test", "path": FLAVOR, "value": f"reserved-{desk.name}"},
        {"op": "replace", "path": QUOTA, "value": "8"},
    ]
    with pytest.raises(ApiError) as refused:
        desk.api.edit(desk.queue, wrong)
    assert refused.value.code == 422
    only = cluster_queue(desk.name, {f"tide-{desk.name}": 2})
    narrow = {key: only[key] for key in ("apiVersion", "kind", "metadata")}
    desk.api.apply(desk.queue, narrow | {"spec": {"resourceGroups": only["spec"]["resourceGroups"]}}, manager="ebbtide")
    left = desk.api.get(desk.queue)["spec"]["resourceGroups"][0]["flavors"]
    assert [it["name"] for it in left] == [f"tide-{desk.name}"]
    assert left[0]["resources"] == [{"name": GPU, "nominalQuota": "2"}]
