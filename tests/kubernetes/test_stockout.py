"""The provider has no capacity in the middle of a reclaim: said at once, retried, and all the rest is there (§6.7)."""

from __future__ import annotations

import pytest

from ebbtide.control.state import Side
from kubelab.cluster import delete_quietly
from worlds.controller import Controller
from worlds.on_kubernetes import small_fleet
from worlds.run_process import Papers


@pytest.fixture
def scarce(production, research, new_namespace, tmp_path):
    """One production node and three of research, by Cluster API; of two that change sides one is to be had again."""
    space = new_namespace(production)
    research.api.create("/api/v1/namespaces", {"metadata": {"name": space}})
    with small_fleet(production, research, space, "clusterapi") as fleet:
        fleet.stand_nodes(1, 3)
        fleet.stand_chat(4)
        fleet.stand_queue(24)
        papers = Papers(folder=tmp_path, fleet=fleet, nodes=4)
        papers.write_fleet("Active")
        with fleet.world() as world:
            controller = Controller(papers, world)
            controller.plan(replicas=4, production=1)
            controller.until(lambda state, _: state.production.replicas["chat"].ready == 4, "chat")
            controller.rests()
            fleet.cloud.stock = -1
            yield fleet, controller
    for side in Side:
        delete_quietly(fleet.api(side), f"/api/v1/namespaces/{space}")


def test_a_stockout_is_a_shortage_at_once_and_its_end_is_noticed(scarce):
    fleet, controller = scarce
    controller.plan(replicas=12, production=3)
    (said,) = [one.why for one in controller.tick().decision.withheld if one.what == "replicas of chat"]
    assert (said.text, said.numbers) == ("usable nodes hold no more", {"wanted": 12, "granted": 4})

    def is_out(state, _):
        return state.production.pool("h100").stock_out_s is not None

    controller.until(is_out, "the provider says so")
    done = controller.tick()
    assert [one.why.text for one in done.decision.withheld if one.what.startswith("arrival")][-1:] == [
        "has not come: the provider has no capacity"
    ]
    controller.until(lambda state, _: state.production.replicas["chat"].ready == 8, "production has all the rest")
    done = controller.tick()
    assert done.decision.shortages == {"h100": 1, "chat": 4}
    fleet.cloud.stock = 5
    controller.until(lambda state, _: state.production.replicas["chat"].ready == 12, "it comes when there is stock")
    controller.rests()
    assert controller.tick().decision.shortages == {}
    assert len(fleet.nodes(Side.PRODUCTION)) == 3
    assert len(fleet.nodes(Side.RESEARCH)) == 1
