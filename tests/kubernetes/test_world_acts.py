"""The controller's world between strangers: what a real API server makes of its writes, and of theirs."""

from __future__ import annotations

import pytest

from ebbtide.adapters.kubernetes.problems import ApiError, Kind
from ebbtide.control import actions as act
from ebbtide.control.state import Bounds, Side
from ebbtide.control.world import Result
from kubelab.cluster import delete_quietly
from kubelab.objects import QUEUES, autoscaler, budget, workload_of
from kubelab.waiting import until
from worlds.on_kubernetes import now_s, small_fleet

WHY = act.Why(rule="§6", text="by hand")


class Hands:
    def __init__(self, fleet, world):
        self.fleet, self.world = fleet, world
        self.production, self.research = fleet.api(Side.PRODUCTION), fleet.api(Side.RESEARCH)
        self.chat = f"/apis/apps/v1/namespaces/{fleet.space}/deployments/chat"
        self.queue = f"{QUEUES}/clusterqueues/{fleet.space}"

    def see(self):
        return self.world.observe(now_s())

    def do(self, kind, **fields):
        return self.world.apply(kind(why=WHY, **fields), now_s())

    def replicas(self):
        return self.see().production.replicas["chat"]

    def node(self, name):
        return next(one for one in self.see().production.pool("h100").nodes if one.name == name)

    def until_ready(self, count):
        until(lambda: self.replicas().ready == count, f"{count} ready")


@pytest.fixture
def hands(production, research, new_namespace):
    space = new_namespace(production)
    research.api.create("/api/v1/namespaces", {"metadata": {"name": space}})
    with small_fleet(production, research, space) as fleet:
        fleet.stand_nodes(2, 1)
        fleet.cloud.stalled = True  # nobody moves: nobody needs to look
        fleet.stand_chat(2)
        fleet.stand_queue(8)
        with fleet.world() as world:
            made = Hands(fleet, world)
            made.until_ready(2)
            yield made
    delete_quietly(research.api, f"/api/v1/namespaces/{space}")


@pytest.fixture
def no_scaling(hands):
    """A policy of the cluster's owner: in this namespace nobody scales anything today."""
    name = hands.fleet.space
    root = "/apis/admissionregistration.k8s.io/v1"
    scales = {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["*/scale"], "operations": ["UPDATE"]}
    policy = {
        "matchConstraints": {"resourceRules": [scales]},
        "validations": [{"expression": "false", "message": "frozen", "reason": "Forbidden"}],
    }
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}
    binding = {"policyName": name, "validationActions": ["Deny"], "matchResources": here}
    for plural, spec in (("validatingadmissionpolicies", policy), ("validatingadmissionpolicybindings", binding)):
        hands.production.create(f"{root}/{plural}", {"metadata": {"name": name}, "spec": spec})
    yield
    for plural in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
        delete_quietly(hands.production, f"{root}/{plural}/{name}")


def test_what_a_policy_denies_of_one_object_stops_that_action_alone(hands, no_scaling):
    """A 403 as a missing right is, but nothing of ours is missing: the rest of the cluster is served."""

    def denied():
        hands.see()
        assert hands.do(act.SetReplicas, workload="chat", replicas=hands.replicas().wanted + 1) in Result
        return [one for one in hands.world.take_problems() if "frozen" in str(one)]

    (problem,) = until(denied, "the policy is in force")
    assert (problem.why, problem.result) == (Kind.DENIED, Result.REFUSED)
    assert hands.do(act.Cordon, side=Side.PRODUCTION, node=first_node(hands)) is Result.DONE


def first_node(hands):
    return hands.see().production.pool("h100").nodes[0].name


def test_a_persons_cordon_stays_a_persons(hands):
    name = first_node(hands)
    hands.production.merge(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}}, manager="kubectl-cordon")
    assert hands.do(act.Cordon, side=Side.PRODUCTION, node=name) is Result.DONE
    assert (hands.node(name).cordoned_by_us, hands.node(name).marked) == (False, True)
    hands.do(act.Uncordon, side=Side.PRODUCTION, node=name)
    assert (hands.node(name).cordoned, hands.node(name).marked) == (True, False)


def test_a_node_that_a_person_uncordoned_and_cordoned_is_no_longer_ours(hands):
    name = first_node(hands)
    hands.do(act.Cordon, side=Side.PRODUCTION, node=name)
    assert hands.node(name).cordoned_by_us
    for unschedulable in (None, True):
        hands.production.merge(
            f"/api/v1/nodes/{name}", {"spec": {"unschedulable": unschedulable}}, manager="kubectl-cordon"
        )
    assert (hands.node(name).cordoned, hands.node(name).cordoned_by_us) == (True, False)


def test_a_scale_that_somebody_changed_since_is_a_conflict_and_they_are_named(hands):
    hands.see()
    hands.production.merge(f"{hands.chat}/scale", {"spec": {"replicas": 3}}, manager="argocd-controller")
    assert hands.do(act.SetReplicas, workload="chat", replicas=4) is Result.CONFLICT
    seen = hands.replicas()
    assert (seen.wanted, seen.set_by) == (3, "argocd-controller")
    assert hands.do(act.SetReplicas, workload="chat", replicas=4) is Result.DONE
    assert (hands.replicas().wanted, hands.replicas().set_by) == (4, "ebbtide")


def test_scaling_is_possible_while_it_is_being_followed_and_out_of_zero(hands):
    hands.see()
    for count in (4, 3, 0, 2):  # each write changes the object under the next one
        assert hands.do(act.SetReplicas, workload="chat", replicas=count) is Result.DONE
    hands.until_ready(2)


def test_a_quota_that_somebody_edited_since_is_a_conflict_and_they_are_named(hands):
    hands.see()
    pointer = "/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota"
    hands.research.edit(hands.queue, [{"op": "replace", "path": pointer, "value": "4"}], manager="kubectl-edit")
    assert hands.do(act.SetQuota, pool="h100", gpus=16) is Result.CONFLICT
    seen = hands.see().research
    assert (seen.quota_gpus["h100"], seen.quota_set_by["h100"]) == (4, "kubectl-edit")
    assert hands.do(act.SetQuota, pool="h100", gpus=16) is Result.DONE
    assert hands.see().research.quota_gpus["h100"] == 16


def test_in_a_cohort_the_flavor_neither_borrows_nor_lends_more_than_it_has(hands):
    limits = [{"op": "add", "path": "/spec/cohortName", "value": hands.fleet.space}]
    one = "/spec/resourceGroups/0/flavors/0/resources/0"
    limits.append({"op": "add", "path": f"{one}/lendingLimit", "value": "8"})
    hands.research.edit(hands.queue, limits)
    hands.see()
    assert hands.do(act.SetQuota, pool="h100", gpus=0) is Result.DONE
    resource = hands.research.get(hands.queue)["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]
    assert (resource["nominalQuota"], resource["borrowingLimit"], resource["lendingLimit"]) == ("0", "0", "0")


def test_bounds_are_set_in_one_write_refused_upside_down_and_restored(hands):
    space = hands.fleet.space
    hpas = f"/apis/autoscaling/v2/namespaces/{space}/horizontalpodautoscalers"
    hands.production.create(hpas, autoscaler("chat", least=1, most=3))
    seen = hands.replicas()
    assert (seen.autoscaler, seen.bounds) == (f"HorizontalPodAutoscaler {space}/chat", Bounds(least=1, most=3))
    assert hands.do(act.SetBounds, workload="chat", bounds=Bounds(least=4, most=6)) is Result.DONE
    assert (hands.replicas().bounds, hands.replicas().set_by) == (Bounds(least=4, most=6), "ebbtide")
    hands.until_ready(4)
    assert hands.do(act.SetBounds, workload="chat", bounds=Bounds(least=6, most=5)) in (Result.REFUSED, Result.CONFLICT)
    until(
        lambda: hands.see() and hands.do(act.Restore, what="workload/chat:bounds", value="1..3") is Result.DONE,
        "restored",
    )
    assert hands.replicas().bounds == Bounds(least=1, most=3)


def test_a_budget_that_lets_none_go_refuses_the_drain_until_there_is_one_more(hands):
    space = hands.fleet.space
    hands.production.create(f"/apis/policy/v1/namespaces/{space}/poddisruptionbudgets", budget("chat", min_available=2))
    until(lambda: hands.replicas().disruptions_allowed == 0, "a budget that lets none go")
    name = next(iter(hands.replicas().on))
    hands.do(act.Cordon, side=Side.PRODUCTION, node=name)
    assert hands.do(act.Drain, side=Side.PRODUCTION, node=name) is Result.REFUSED
    assert [problem.why for problem in hands.world.take_problems() if isinstance(problem, ApiError)] == [Kind.BUDGET]
    assert hands.do(act.Surge, workload="chat", replicas=3) is Result.DONE
    until(lambda: hands.replicas().disruptions_allowed == 1, "one may go")
    until(lambda: hands.do(act.Drain, side=Side.PRODUCTION, node=name) is Result.DONE, "none refused")
    until(lambda: hands.do(act.Drain, side=Side.PRODUCTION, node=name) and hands.node(name).pods == 0, "drained")


def test_what_others_deactivated_is_not_activated(hands):
    space = hands.fleet.space
    hands.fleet.stand_job("train")
    found = workload_of(hands.research, space, "train")
    until(lambda: any(one.nodes for one in hands.see().research.work), "it runs")
    path = f"{QUEUES}/namespaces/{space}/workloads/{found['metadata']['name']}"
    hands.research.merge(path, {"spec": {"active": False}}, manager="kubectl-edit")
    name = f"{space}/{found['metadata']['name']}"
    assert hands.do(act.Park, work=name) is Result.DONE
    assert hands.do(act.Activate, work=name) is Result.REFUSED
    assert hands.research.get(path)["spec"]["active"] is False


def test_only_pods_on_nodes_that_are_there_count_as_ready(hands):
    name = next(iter(hands.replicas().on))
    on = hands.replicas().on[name]
    hands.production.delete(f"/api/v1/nodes/{name}")
    seen = hands.replicas()
    assert seen.ready == 2 - on  # the Deployment itself counts them for many seconds more (fact 20)


def test_who_may_not_is_told_which_verb_on_which_resource(hands, production):
    space = hands.fleet.space
    weak = production.account(space, "default")
    cluster = hands.fleet.connect(Side.PRODUCTION, token=weak.token)
    with pytest.raises(ApiError, match="list nodes of production: forbidden"):
        cluster.list("/api/v1/nodes", dict)
    cluster.close()
