"""A yield on real clusters takes no ready replica from a service that does not shrink, budget or none (§6.3)."""

from __future__ import annotations

import pytest

from ebbtide.control.state import Side
from kubelab.objects import autoscaler
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


def assert_never_short(recorded):
    """As many as planned served all the time, more were wanted for a while, and no state was missed."""
    assert recorded.holes == []
    states = [event for event in recorded.events if event.kind != "DELETED"]
    assert min(map(serving, states)) == REPLICAS
    assert max(event.thing["spec"]["replicas"] for event in states) > REPLICAS


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


def test_under_an_autoscaler_its_least_is_raised_until_the_old_pods_are_evicted(small_papers, controller, recorded):
    """Only its bounds work here, for it has no metrics: what it is told to have at least it makes (fact 17)."""
    api, space = small_papers.fleet.api(Side.PRODUCTION), small_papers.fleet.space
    hpas = f"/apis/autoscaling/v2/namespaces/{space}/horizontalpodautoscalers"
    api.create(hpas, autoscaler("chat", least=1, most=99))

    def bounds():
        spec = api.get(f"{hpas}/chat")["spec"]
        return spec["minReplicas"], spec["maxReplicas"]

    controller.until(lambda *_: bounds() == (REPLICAS, 12), "the plan's least, and as many as three nodes hold")
    controller.plan(replicas=REPLICAS, production=2)
    controller.until(lambda *_: bounds()[0] > REPLICAS, "its least is raised")
    controller.until(lambda state, _: len(state.production.pool("h100").nodes) == 2, "one has left")
    controller.until(lambda *_: bounds() == (REPLICAS, REPLICAS), "the plan's again, and as many as two nodes hold")
    controller.until(lambda state, _: state.production.replicas["chat"].wanted == REPLICAS, "as many as it may have")
    controller.rests()
    assert controller.world.last.production.replicas["chat"].ready == REPLICAS
    assert_never_short(recorded)
    assert controller.world.last.memory.written["workload/chat:bounds"].before == "1..99"
