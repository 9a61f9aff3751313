"""The real world keeps the contract: on two API servers with Kueue, by relabelling; what moves also by Cluster API."""

from __future__ import annotations

import time

import pytest

from kubelab.cluster import delete_quietly
from worlds.contract import *  # noqa: F403 # the contract's tests are this module's
from worlds.contract import Bench
from worlds.on_kubernetes import now_s, small_fleet

WITHIN_S = 60.0
MOVING = {
    "test_a_named_node_leaves_its_pool_and_asked_again_no_other_does",
    "test_a_node_changes_sides_and_joins_under_a_taint_that_admitting_takes_away",
}


class KubernetesBench(Bench):
    """Time passes by itself: a wait is a second at most, however long it is in a world that pretends."""

    def __init__(self, world):
        self.world = world
        self._now_s = now_s()

    @property
    def now_s(self):
        return self._now_s

    def wait(self, seconds):
        time.sleep(min(seconds / 50.0, 1.0))
        self._now_s = now_s()

    def settle(self):
        """Until as many pods serve as are wanted, none is Terminating, and all work runs that may."""
        self.wait_until(self._calm)

    def _calm(self, state):
        chat = state.production.replicas["chat"]
        pods = sum(node.pods for node in state.production.pool("h100").nodes)
        running = all(one.nodes for one in state.research.work if one.active)
        return chat.ready == chat.wanted == sum(chat.on.values()) == pods and running

    def wait_until(self, holds, within_s=WITHIN_S):
        super().wait_until(holds, within_s)


def pytest_generate_tests(metafunc):
    """Machines are dear: what says nothing of moving runs with one provider."""
    if "provider" in metafunc.fixturenames:
        moving = metafunc.function.__name__ in MOVING
        metafunc.parametrize("provider", ["relabel", "clusterapi"] if moving else ["relabel"])


@pytest.fixture
def bench(request, provider, production, research, new_namespace):
    space = new_namespace(production)
    research.api.create("/api/v1/namespaces", {"metadata": {"name": space}})
    with small_fleet(production, research, space, provider) as fleet:
        fleet.stand_nodes(6, 4)
        fleet.cloud.stalled = request.node.originalname not in MOVING  # nobody moves: nobody needs to look
        fleet.stand_chat(8)
        fleet.stand_queue(32)
        for name in ("one", "two", "three", "four"):
            fleet.stand_job(name)
        with fleet.world() as world:
            made = KubernetesBench(world)
            made.wait_until(lambda state: "chat" in state.production.replicas)
            made.wait_until(lambda state: sum(len(one.nodes) for one in state.research.work) == 4)
            made.settle()
            yield made
    delete_quietly(research.api, f"/api/v1/namespaces/{space}")
