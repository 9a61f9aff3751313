"""How often a server is asked for workloads in many namespaces: a bounded number of times, and nothing is missed."""

from __future__ import annotations

import pytest

from ebbtide.adapters.kubernetes.bindings import WorkloadBinding
from ebbtide.adapters.kubernetes.kinds import Kinds
from ebbtide.adapters.kubernetes.namespaces import SEPARATE
from ebbtide.adapters.kubernetes.readings import Reading
from ebbtide.adapters.kubernetes.replica_sight import read_production

DEPLOYMENTS, HPAS, BUDGETS = "/apis/apps/v1", "/apis/autoscaling/v2", "/apis/policy/v1"


def answer_all(script, spaces):
    """A Deployment ``chat``, its autoscaler and its budget in each namespace, and the same in a stranger's."""
    chat = {"spec": {"replicas": 3, "selector": {"matchLabels": {"app": "chat"}}}}
    hpa = {"spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "chat"}}}
    hpa["spec"] |= {"minReplicas": 1, "maxReplicas": 9}
    budget = {"spec": {"selector": {"matchLabels": {"app": "chat"}}}, "status": {"disruptionsAllowed": 0}}
    script.say("GET", "/apis", {"groups": []})
    for root, plural, body in (
        (DEPLOYMENTS, "deployments", chat),
        (HPAS, "horizontalpodautoscalers", hpa),
        (BUDGETS, "poddisruptionbudgets", budget),
    ):
        there = [{"metadata": {"name": "chat", "namespace": space}, **body} for space in [*spaces, "strangers"]]
        script.say("GET", f"{root}/{plural}", {"items": there})
        for one in there:
            space = one["metadata"]["namespace"]
            script.say("GET", f"{root}/namespaces/{space}/{plural}", {"items": [one]})
            script.say("GET", f"{root}/namespaces/{space}/{plural}/chat", one)


@pytest.mark.parametrize(("count", "calls"), [(1, 3), (SEPARATE, 3 * SEPARATE), (SEPARATE + 1, 3), (200, 3)])
def test_beyond_some_namespaces_a_kind_is_one_list(script, cluster, count, calls):
    spaces = [f"team-{k}" for k in range(count)]
    answer_all(script, spaces)
    workloads = tuple(
        WorkloadBinding(name=f"w{k}", pool="h100", namespace=s, target="chat") for k, s in enumerate(spaces)
    )
    found = read_production(cluster, Kinds(cluster), workloads, Reading(nodes={}, pods=[]))
    asked = [one.url.path for one in script.asked if one.url.path != "/apis"]
    assert len(asked) == calls
    assert set(found.replicas) == {one.name for one in workloads}
    for one in workloads:
        assert found.scales[one.name].path == f"{DEPLOYMENTS}/namespaces/{one.namespace}/deployments/chat"
        assert found.autoscalers[one.name].name == f"HorizontalPodAutoscaler {one.namespace}/chat"
        assert found.replicas[one.name].wanted == 3
