"""A yield on real clusters takes no ready replica from a service that does not shrink, budget or none (§6.3)."""

from __future__ import annotations

import pytest

from ebbtide.control.state import Side
from kubelab.recorder import Recorder

REPLICAS = 8  # of 2 GPUs: two nodes hold them, three at first


def serving(event):
    """Ready pods of chat that nobody has told to go, as an event of its Deployment's status says."""
    return event.thing.get("status", {}).get("availableReplicas", 0)


@pytest.fixture
def recorded(small_papers, controller):
    """The Deployment's every state from when its replicas are spread over three nodes."""
    controller.plan(replicas=REPLICAS, production=3)
    controller.until(lambda state, _: state.production.replicas["chat"].ready == REPLICAS, "all are there")
    controller.rests()
    path = f"/apis/apps/v1/namespaces/{small_papers.fleet.space}/deployments"
    with Recorder({"production": small_papers.fleet.api(Side.PRODUCTION)}, [path]) as recorder:
        yield recorder


def test_a_service_without_a_budget_has_all_its_replicas_ready_through_a_yield(controller, recorded):
    on_three = controller.world.last.production.replicas["chat"].on
    assert len(on_three) == 3, "every node has some of them: one cannot leave without them"
    controller.plan(replicas=REPLICAS, production=2)
    controller.until(lambda state, _: len(state.production.pool("h100").nodes) == 2, "one has left")
    controller.rests()
    seen = controller.world.last.production.replicas["chat"]
    assert (seen.wanted, seen.ready, len(seen.on)) == (REPLICAS, REPLICAS, 2)
    assert recorded.holes == []
    states = [event for event in recorded.events if event.kind != "DELETED"]
    assert min(map(serving, states)) == REPLICAS
    assert max(event.thing["spec"]["replicas"] for event in states) > REPLICAS
