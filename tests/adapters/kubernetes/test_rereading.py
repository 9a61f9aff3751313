"""An object that a kubelet or an autoscaler wrote between our look and our write is read again, not given up."""

from __future__ import annotations

import pytest

from ebbtide.adapters.kubernetes.autoscalers import Autoscaler
from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.node_acts import cordon
from ebbtide.adapters.kubernetes.problems import ApiError, Kind
from ebbtide.adapters.kubernetes.replica_acts import set_bounds
from ebbtide.adapters.kubernetes.rereading import ATTEMPTS, rereading
from ebbtide.control.state import Bounds

NODE, CHANGED = "/api/v1/nodes/a", {"kind": "Status", "message": "the object has been modified"}
HPA = "/apis/autoscaling/v2/namespaces/x/horizontalpodautoscalers/chat"


def node(version: str) -> dict[str, object]:
    return {"metadata": {"name": "a", "resourceVersion": version}, "spec": {}}


def test_a_node_that_was_written_meanwhile_is_read_again(script, cluster: Cluster):
    for version in ("1", "2"):
        script.say("GET", NODE, node(version))
    script.say("PATCH", NODE, CHANGED, status=409)
    script.say("PATCH", NODE, node("3"))
    rereading(lambda: cordon(cluster, "a"))
    assert [body["metadata"]["resourceVersion"] for body in script.bodies] == ["1", "2"]


def test_a_conflict_without_end_is_said_after_a_few_attempts(script, cluster: Cluster):
    script.say("GET", NODE, node("1"))
    script.say("PATCH", NODE, CHANGED, status=409)
    with pytest.raises(ApiError) as caught:
        rereading(lambda: cordon(cluster, "a"))
    assert caught.value.why is Kind.CONFLICT
    assert len(script.bodies) == ATTEMPTS


def test_other_refusals_are_not_tried_again(script, cluster: Cluster):
    script.say("GET", NODE, node("1"))
    script.say("PATCH", NODE, {"message": "forbidden"}, status=403)
    with pytest.raises(ApiError):
        rereading(lambda: cordon(cluster, "a"))
    assert len(script.bodies) == 1


def hpa(version: str, least: int) -> dict[str, object]:
    return {
        "metadata": {"name": "chat", "namespace": "x", "resourceVersion": version},
        "spec": {"minReplicas": least, "maxReplicas": 8, "scaleTargetRef": {"kind": "Deployment", "name": "chat"}},
    }


SEEN = Autoscaler(
    name="HorizontalPodAutoscaler x/chat",
    path=HPA,
    least_field="minReplicas",
    most_field="maxReplicas",
    bounds=Bounds(least=1, most=8),
    lowest_least=1,
    resource_version="1",
    set_by="",
)


def test_bounds_are_written_though_only_the_status_changed(script, cluster: Cluster):
    script.say("PATCH", HPA, CHANGED, status=409)
    script.say("PATCH", HPA, hpa("3", 4))
    script.say("GET", HPA, hpa("2", 1))
    written = set_bounds(cluster, SEEN, Bounds(least=4, most=8))
    assert (written.bounds, written.resource_version) == (Bounds(least=4, most=8), "3")
    assert [body["metadata"]["resourceVersion"] for body in script.bodies] == ["1", "2"]


def test_bounds_that_somebody_else_changed_are_a_conflict(script, cluster: Cluster):
    script.say("PATCH", HPA, CHANGED, status=409)
    script.say("GET", HPA, hpa("2", 3))
    with pytest.raises(ApiError) as caught:
        set_bounds(cluster, SEEN, Bounds(least=4, most=8))
    assert caught.value.why is Kind.CONFLICT
    assert len(script.bodies) == 1
