"""Objects in the controller's words, from what a server would send; no server."""

from __future__ import annotations

import pytest

from ebbtide.adapters.kubernetes.autoscalers import read_autoscalers
from ebbtide.adapters.kubernetes.bindings import PoolBinding, WorkloadBinding
from ebbtide.adapters.kubernetes.kinds import Kinds
from ebbtide.adapters.kubernetes.node_sight import Changes, nodes_of
from ebbtide.adapters.kubernetes.objects import NodeObject, Pod, Queued, Selector
from ebbtide.adapters.kubernetes.pods_of import pods_by_owner
from ebbtide.adapters.kubernetes.readings import Reading
from ebbtide.adapters.kubernetes.research_sight import is_parked
from ebbtide.control.state import Bounds, Side, Tenure

POOL = PoolBinding(name="h100", gpus_per_node=8)


def node_body(**more):
    body = {
        "metadata": {"name": "n", "uid": "u", "labels": {"ebbtide.dev/tenure": "ephemeral"}, "annotations": {}},
        "spec": {"providerID": "cloud://1"},
        "status": {
            "allocatable": {"nvidia.com/gpu": "8", "cpu": "63500m"},
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:01:00Z"}],
        },
    }
    for key, value in more.items():
        body[key] = {**body[key], **value}
    return body


@pytest.fixture
def look(read):
    changes = Changes()

    def make(body, *, at_s=100.0, pods=(), leaving=frozenset(), cluster_of=Side.PRODUCTION):
        reading = Reading(
            nodes={"h100": [read(NodeObject, body)]}, pods=[], by_node={"n": [read(Pod, one) for one in pods]}
        )
        return nodes_of(
            reading, POOL, Side.PRODUCTION, cluster_of=cluster_of, changes=changes, leaving=leaving, at_s=at_s
        )

    return make


def test_a_node_reads_as_it_is(look):
    (node,) = look(node_body())
    assert (node.tenure, node.gpus, node.ready, node.since_s) == (Tenure.EPHEMERAL, 8, True, 60.0)
    assert node.provider_id == "cloud://1"
    assert not any((node.cordoned, node.joining, node.startup_taint, node.marked, node.leaving))


def test_since_when_is_the_servers_first_and_then_our_own_memory(look):
    look(node_body())
    fewer = node_body(status={"allocatable": {"nvidia.com/gpu": "7"}})
    assert look(fewer, at_s=200.0)[0].since_s == 200.0
    assert look(fewer, at_s=300.0)[0].since_s == 200.0
    assert look(node_body(metadata={"uid": "new"}), at_s=400.0)[0].since_s == 400.0  # another machine of that name


def test_a_clock_behind_the_servers_sees_nothing_from_the_future(look):
    assert look(node_body(), at_s=10.0)[0].since_s == 10.0


@pytest.mark.parametrize(
    ("taint", "startup", "joining"),
    [
        ("node.kubernetes.io/not-ready", True, False),
        ("node.cloudprovider.kubernetes.io/uninitialized", True, False),
        ("node.cilium.io/agent-not-ready", True, False),
        ("nvidia.com/gpu", False, False),
        ("ebbtide.dev/tenure", False, False),
        ("ebbtide.dev/joining", False, True),
    ],
)
def test_taints_that_go_by_themselves_are_told_from_those_that_stay(look, taint, startup, joining):
    (node,) = look(node_body(spec={"taints": [{"key": taint, "effect": "NoSchedule"}]}))
    assert (node.startup_taint, node.joining) == (startup, joining)


def cordoned_by(*managers):
    fields = {"f:spec": {"f:unschedulable": {}}}
    return node_body(
        metadata={
            "annotations": {"ebbtide.dev/cordoned-by": "ebbtide"},
            "managedFields": [
                {"manager": who, "time": f"2026-01-0{day}T00:00:00Z", "fieldsV1": fields}
                for day, who in enumerate(managers, 1)
            ],
        },
        spec={"unschedulable": True},
    )


def test_a_cordon_is_ours_by_our_mark_until_somebody_cordons_anew(look):
    assert look(cordoned_by("ebbtide"))[0].cordoned_by_us
    (node,) = look(cordoned_by("ebbtide", "kubectl-cordon"))
    assert node.cordoned
    assert not node.cordoned_by_us
    assert not look(node_body(spec={"unschedulable": True}))[0].cordoned_by_us


def test_a_nodes_side_is_its_label_then_its_clusters_and_none_is_neither(look):
    tenure = {"ebbtide.dev/tenure": "ephemeral"}
    there = {**tenure, "ebbtide.dev/side": "production"}
    neither = {**tenure, "ebbtide.dev/side": "none"}
    assert look(node_body(metadata={"labels": there}), cluster_of=None)
    assert look(node_body(metadata={"labels": tenure}))
    assert not look(node_body(metadata={"labels": tenure}), cluster_of=None)
    assert not look(node_body(metadata={"labels": neither}))


def pod(name, *, owner="ReplicaSet", deleted="", annotations=None, labels=None):
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": labels or {},
            "annotations": annotations or {},
            "ownerReferences": [{"kind": owner, "name": "o", "uid": "o"}],
            **({"deletionTimestamp": deleted} if deleted else {}),
        },
        "spec": {"nodeName": "n"},
    }


def test_daemons_and_mirrors_do_not_count_and_a_pod_beyond_its_grace_is_stuck(look):
    pods = [
        pod("a"),
        pod("daemon", owner="DaemonSet"),
        pod("mirror", annotations={"kubernetes.io/config.mirror": "x"}),
        pod("going", deleted="1970-01-01T00:01:30Z"),
        pod("stuck", deleted="1970-01-01T00:01:00Z"),
    ]
    (node,) = look(node_body(), at_s=100.0, pods=pods)
    assert (node.pods, node.stuck_pods) == (3, 1)


def test_pods_are_found_by_namespace_and_selector(read):
    pods = [
        read(Pod, pod(str(k), labels={"app": app, "tier": tier})) for k, (app, tier) in enumerate(["ab", "ac", "bb"])
    ]
    selectors = {
        "first": ("default", read(Selector, {"matchLabels": {"app": "a"}})),
        "narrow": (
            "default",
            read(Selector, {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["b"]}]}),
        ),
        "elsewhere": ("other", read(Selector, {"matchLabels": {"app": "a"}})),
    }
    found = pods_by_owner(selectors, pods)
    assert {name: [one.metadata.name for one in those] for name, those in found.items()} == {
        "first": ["0", "1"],
        "narrow": ["1"],
        "elsewhere": [],
    }


def parked(active, manager="ebbtide", mark=True):
    return {
        "metadata": {
            "name": "w",
            "annotations": {"ebbtide.dev/parked": "h100"} if mark else {},
            "managedFields": [
                {"manager": manager, "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:spec": {"f:active": {}}}}
            ],
        },
        "spec": {"active": active},
    }


def test_work_is_parked_by_us_only_while_it_is_inactive_with_our_mark_and_by_our_hand(read):
    assert is_parked(read(Queued, parked(active=False)))
    assert not is_parked(read(Queued, parked(active=True)))
    assert not is_parked(read(Queued, parked(active=False, manager="kubectl-edit")))
    assert not is_parked(read(Queued, parked(active=False, mark=False)))


CHAT = WorkloadBinding(name="chat", pool="h100")
HPAS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
SCALED = "/apis/keda.sh/v1alpha1/namespaces/default/scaledobjects"


def test_a_scaled_object_speaks_before_the_hpa_that_keda_made_of_it(script, cluster):
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "chat"}
    hpa = {
        "metadata": {"name": "keda-hpa-chat", "namespace": "default"},
        "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 9},
    }
    mine = {
        "metadata": {"name": "chat", "namespace": "default", "resourceVersion": "7"},
        "spec": {"scaleTargetRef": {"name": "chat"}, "maxReplicaCount": 12},
    }
    script.say("GET", HPAS, {"items": [hpa]})
    script.say("GET", "/apis", {"groups": []})
    found = read_autoscalers(cluster, Kinds(cluster), [CHAT])
    assert (found["chat"].name, found["chat"].bounds) == (
        "HorizontalPodAutoscaler default/keda-hpa-chat",
        Bounds(least=1, most=9),
    )
    script.answers["GET", "/apis"] = [
        (200, {"groups": [{"name": "keda.sh", "versions": [{"version": "v1alpha1"}]}]}, {})
    ]
    script.say("GET", SCALED, {"items": [mine]})
    one = read_autoscalers(cluster, Kinds(cluster), [CHAT])["chat"]
    assert (one.name, one.bounds, one.most_field) == (
        "ScaledObject default/chat",
        Bounds(least=0, most=12),
        "maxReplicaCount",
    )
