"""Others at work in the middle of a move, and outages: told, safe, and it goes on without a hand (§6.6-§6.8)."""

from __future__ import annotations

import signal
import threading

import pytest

from ebbtide.control.state import Side
from kubelab.objects import QUEUES
from worlds.on_kubernetes import now_s


def wanted(small_papers):
    path = f"/apis/apps/v1/namespaces/{small_papers.fleet.space}/deployments/chat"
    return small_papers.fleet.api(Side.PRODUCTION).get(path)["spec"]["replicas"]


def standing(state):
    return {side: len([one for one in state.sight(side).pool("h100").nodes if not one.joining]) for side in Side}


def test_a_person_who_scales_is_set_right_once_and_left_alone_when_they_insist(small_papers, controller):
    api, scale = small_papers.fleet.api(Side.PRODUCTION), f"{controller.chat_path}/scale"
    controller.plan(replicas=3, production=3)
    controller.until(lambda *_: wanted(small_papers) == 3, "the plan's replicas")
    controller.rests()
    for _ in range(controller.limits.reverts):
        api.merge(scale, {"spec": {"replicas": 4}}, manager="kubectl-scale")
        controller.until(lambda state, _: state.memory.reverts.get("workload/chat:replicas"), "seen")
        controller.tick()
        controller.tick()
    controller.until(lambda *_: controller.heard("workload/chat:replicas", "kubectl-scale sets it back"), "told who")
    count = len(controller.wrote)
    for _ in range(5):
        controller.tick()
    assert len(controller.wrote) == count
    assert wanted(small_papers) == 4


def test_a_gitops_loop_is_named_and_not_fought(small_papers, controller):
    api, scale, ended = small_papers.fleet.api(Side.PRODUCTION), f"{controller.chat_path}/scale", threading.Event()
    controller.plan(replicas=2, production=3)
    controller.until(lambda *_: wanted(small_papers) == 2, "the plan's replicas")
    controller.rests()

    def put_back():
        while not ended.wait(0.3):
            if api.get(scale)["spec"]["replicas"] != 4:
                api.merge(scale, {"spec": {"replicas": 4}}, manager="argocd-controller")

    thread = threading.Thread(target=put_back)
    thread.start()
    try:
        controller.until(lambda *_: controller.heard("argocd-controller sets it back"), "told who")
        count = len(controller.wrote)
        for _ in range(10):
            controller.tick()
        assert len(controller.wrote) == count
    finally:
        ended.set()
        thread.join()


def test_a_node_uncordoned_by_a_person_is_not_taken_from_them_twice(small_papers, controller):
    api = small_papers.fleet.api(Side.PRODUCTION)
    controller.plan(replicas=12, production=3)
    controller.until(lambda state, _: state.production.replicas["chat"].ready == 12, "all are there")
    controller.plan(replicas=12, production=2)  # every node is full: no replacement has room, and a person has time
    controller.until(lambda state, _: any(is_cordoned(state, one.node) for one in state.memory.moves), "one is leaving")
    (move,) = controller.world.last.memory.moves
    for _ in range(controller.limits.reverts + 1):
        controller.until(lambda state, _: is_cordoned(state, move.node) or controller.heard("uncordons"), "cordoned")
        if controller.heard("uncordons"):
            break
        api.merge(f"/api/v1/nodes/{move.node}", {"spec": {"unschedulable": None}}, manager="kubectl-uncordon")
        controller.tick()
    controller.until(lambda state, _: move.id not in {one.id for one in state.memory.moves}, "given up")
    assert standing(controller.world.last)[Side.RESEARCH] == 2 or not is_cordoned(controller.world.last, move.node)


def is_cordoned(state, name):
    return any(one.name == name and one.cordoned for one in state.production.pool("h100").nodes)


def test_an_edited_quota_is_set_right_once_and_then_left_to_who_insists(small_papers, controller):
    api, queue = small_papers.fleet.api(Side.RESEARCH), f"{QUEUES}/clusterqueues/{small_papers.fleet.space}"
    pointer = "/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota"
    controller.plan(replicas=2, production=2)
    controller.until(lambda state, _: state.research.quota_gpus.get("h100") == 24, "the plan's quota")
    controller.rests()
    for _ in range(controller.limits.reverts):
        api.edit(queue, [{"op": "replace", "path": pointer, "value": "99"}], manager="kubectl-edit")
        controller.tick()
        controller.tick()
        controller.tick()
    controller.until(lambda *_: controller.heard("quota/h100:gpus", "kubectl-edit sets it back"), "told who")


def test_a_node_that_is_deleted_stops_yields_but_no_growth_and_its_return_is_noticed(small_papers, controller):
    api = small_papers.fleet.api(Side.RESEARCH)
    node = next(
        one
        for one in small_papers.fleet.nodes(Side.RESEARCH)
        if one["metadata"]["labels"]["ebbtide.dev/side"] == "research"
    )
    path = f"/api/v1/nodes/{node['metadata']['name']}"
    api.delete(path)
    limit = controller.limits.difference_ticks
    controller.until(lambda state, _: state.memory.difference_ticks.get("h100", 0) > limit, "it does not add up")
    controller.plan(replicas=6, production=2)
    controller.until(lambda *_: controller.heard("yield of", "nodes do not add up"), "told")
    controller.until(lambda *_: wanted(small_papers) == 6, "growth goes on")
    assert not controller.world.last.memory.moves
    for key in ("resourceVersion", "uid", "creationTimestamp", "managedFields"):
        node["metadata"].pop(key, None)
    api.create("/api/v1/nodes", node)
    controller.until(lambda state, _: not state.memory.difference_ticks, "it adds up again")
    controller.plan(replicas=2, production=2)
    controller.until(lambda state, _: standing(state)[Side.PRODUCTION] == 2, "yields go on")


@pytest.mark.own_control_plane
def test_a_dark_research_cluster_stops_moves_and_no_growth_and_comes_back_by_itself(small_papers, controller, research):
    server = research.process("kube-apiserver")
    research.processes.kill(server)
    try:
        stale_s = controller.limits.stale_after_s
        controller.until(lambda state, _: now_s() - state.research.seen_at_s > stale_s, "research is not seen", 60.0)
        controller.plan(replicas=6, production=2)
        controller.until(lambda *_: wanted(small_papers) == 6, "production grows")
        controller.until(lambda *_: controller.heard("yield of", "research cluster is not seen"), "told")
        assert not controller.world.last.memory.moves
    finally:
        research.processes.restart(server)
        research.wait_ready()
    controller.plan(replicas=4, production=2)
    controller.until(lambda state, _: standing(state) == {Side.PRODUCTION: 2, Side.RESEARCH: 3}, "it goes on", 120.0)


@pytest.mark.own_control_plane
def test_the_home_s_api_server_hangs_and_is_killed_in_the_middle_of_a_yield(small_papers, controller, production):
    server = production.process("kube-apiserver")
    controller.plan(replicas=2, production=2)
    controller.until(lambda state, _: state.memory.moves, "a move began")
    production.processes.send(server, signal.SIGSTOP)
    production.processes.send(server, signal.SIGCONT)
    production.processes.kill(server)
    for _ in range(3):
        with_no_home(controller)
    production.processes.restart(server)
    production.wait_ready()
    controller.until(lambda state, _: standing(state) == {Side.PRODUCTION: 2, Side.RESEARCH: 3}, "it goes on", 120.0)
    assert controller.world.last.memory.next_move == 2  # one move in all


def with_no_home(controller):
    """Nothing can be written, nothing is: neither a traceback nor an act."""
    done = controller.tick()
    assert {str(result) for _, result in done.results} <= {"failed"}
