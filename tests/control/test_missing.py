"""Nodes that are lost for good (§6.6): written down after a while, few of them only, and found again."""

from __future__ import annotations

import pytest

from ebbtide.control.actions import Cordon, Record, SetQuota
from ebbtide.control.memory import Memory, Missing
from ebbtide.control.standing import Holds, standing
from ebbtide.control.state import Mode, Side

HOUR_S = 3600.0
NIGHT = {"chat": 37, "agents": 3}


def memory_of(decision, before):
    return next((one.memory for one in decision.actions if isinstance(one, Record)), before)


@pytest.fixture
def seen_for(scene):
    """Decisions one after the other, ``missing`` nodes short each time: the last one, and the memory after it."""

    def make(memory: Memory, *looks: tuple[float, int]):
        decision = None
        for at_s, missing in looks:
            state = scene.state(at_s, production=14 - missing, replicas=NIGHT, memory=memory)
            decision = scene.decide(state, at_s)
            memory = memory_of(decision, memory)
        return decision, memory

    return make


def test_a_node_that_stays_away_is_written_down_as_lost_and_yields_go_on(scene, pick):
    """One of 40, away for the longer of an hour and two P90s of a move (2 x 45 minutes): 90 minutes."""
    night_s = scene.at("02:00")
    memory = Memory(missing={"h100": Missing(nodes=1, since_s=night_s - 5399.0)}, difference_ticks={"h100": 4})
    state = scene.state(night_s, production=13, replicas=NIGHT, memory=memory)
    decision = scene.decide(state, night_s)
    assert pick(decision, Cordon) == []
    assert decision.next_look_s == night_s + 1.0
    memory = Memory(missing={"h100": Missing(nodes=1, since_s=night_s - 5400.0)}, difference_ticks={"h100": 4})
    state = scene.state(night_s, production=13, replicas=NIGHT, memory=memory)
    decision = scene.decide(state, night_s)
    assert {one.side for one in pick(decision, Cordon)} == {Side.PRODUCTION}
    after = memory_of(decision, memory)
    assert after.missing["h100"].lost == 1
    assert after.difference_ticks == {}
    assert [one.why.rule for one in decision.withheld if one.what == "lost nodes of h100"] == ["§6.6"]


def test_it_is_counted_from_when_so_many_were_missing(scene, seen_for):
    """A second one that goes later begins the time anew for both; one that is back does not."""
    at_s = scene.at("19:00")
    _, memory = seen_for(Memory(), (at_s, 1))
    assert memory.missing == {"h100": Missing(nodes=1, since_s=at_s)}
    _, more = seen_for(memory, (at_s + HOUR_S, 2))
    assert more.missing == {"h100": Missing(nodes=2, since_s=at_s + HOUR_S)}
    _, back = seen_for(more, (at_s + HOUR_S + 60.0, 1))
    assert back.missing == {"h100": Missing(nodes=1, since_s=at_s + HOUR_S)}
    _, all_back = seen_for(back, (at_s + HOUR_S + 120.0, 0))
    assert all_back.missing == {}


def test_a_lost_node_that_comes_back_is_lost_no_more(scene, seen_for):
    at_s = scene.at("21:00")
    lost = Memory(missing={"h100": Missing(nodes=1, since_s=at_s - 9000.0, lost=1)})
    _, memory = seen_for(lost, (at_s, 0))
    assert memory.missing == {}
    _, again = seen_for(memory, (at_s + 60.0, 1), (at_s + 120.0, 1), (at_s + 180.0, 1))
    assert again.missing == {"h100": Missing(nodes=1, since_s=at_s + 60.0)}
    assert again.difference_ticks == {"h100": 3}


@pytest.mark.parametrize(("missing", "lost"), [(4, 4), (5, 0)])
def test_many_at_once_are_a_label_that_somebody_took_away(scene, seen_for, missing, lost):
    """A tenth of 40 nodes may be lost; five are not, however long, and it is said what to look for."""
    at_s = scene.at("23:00")
    before = Memory(missing={"h100": Missing(nodes=missing, since_s=at_s - 86400.0)}, difference_ticks={"h100": 4})
    decision, memory = seen_for(before, (at_s, missing))
    assert memory.missing["h100"].lost == lost
    assert bool(memory.difference_ticks) == (lost == 0)
    (said,) = [one.why for one in decision.withheld if one.what == "lost nodes of h100"]
    assert ("correct the Fleet's nodes" in said.text) == (lost == 0)
    assert said.numbers["at_most"] == 4


def test_a_cluster_that_is_not_seen_loses_no_nodes(scene):
    at_s = scene.at("21:00")
    before = Memory(missing={"h100": Missing(nodes=1, since_s=at_s - 9000.0)})
    state = scene.state(at_s, production=13, replicas=NIGHT, memory=before, seen=(at_s, at_s - 61.0))
    assert memory_of(scene.decide(state, at_s), before).missing == before.missing


def test_a_clock_that_was_set_back_begins_the_time_anew(scene, seen_for):
    at_s = scene.at("21:00")
    _, memory = seen_for(Memory(missing={"h100": Missing(nodes=1, since_s=at_s + 9000.0)}), (at_s, 1))
    assert memory.missing == {"h100": Missing(nodes=1, since_s=at_s)}


def test_quota_is_raised_again_once_they_are_written_down(scene, pick):
    at_s = scene.at("03:00")
    for lost, raised in ((0, []), (1, [136])):
        memory = Memory(
            missing={"h100": Missing(nodes=1, since_s=at_s - 60.0, lost=lost)}, difference_ticks={"h100": 4}
        )
        state = scene.state(at_s, production=14, ephemeral=17, quota_gpus=100, replicas=NIGHT, memory=memory)
        assert [one.gpus for one in pick(scene.decide(state, at_s), SetQuota)] == raised


def test_people_are_told_to_correct_the_fleet(scene):
    at_s = scene.at("21:00")
    memory = Memory(missing={"h100": Missing(nodes=1, since_s=at_s - 9000.0, lost=1)})
    state = scene.state(at_s, production=13, replicas=NIGHT, memory=memory, mode=Mode.ACTIVE)
    told = standing(state, scene.decide(state, at_s), scene.fleet, scene.schedule, at_s)
    (one,) = [one for one in told.conditions if one.type == "NodesAddUp"]
    assert (one.holds, one.reason) == (Holds.TRUE, "Lost")
    assert one.message == "missing for long, and taken for lost: 1 of h100; correct the Fleet's nodes"
