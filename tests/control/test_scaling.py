"""Replicas and bounds (§6.2, §6.3, §6.8): growth into usable nodes, leaving pods first, good neighbours, minima."""

from __future__ import annotations

import pytest

from ebbtide.control.actions import LowerDeletionCost, Record, Restore, SetBounds, SetReplicas
from ebbtide.control.state import Bounds, Override, OverrideKind, Replicas


def chat(wanted: int, **more) -> Replicas:
    return Replicas(workload="chat", wanted=wanted, ready=wanted, **more)


def agents(wanted: int, **more) -> Replicas:
    return Replicas(workload="agents", wanted=wanted, ready=wanted, **more)


def asked(decision, pick) -> dict[str, int]:
    return {one.workload: one.replicas for one in pick(decision, SetReplicas)}


def rule_of(decision, what: str) -> str:
    return next(one.why.rule for one in decision.withheld if one.what == what)


def test_growth_goes_into_usable_nodes_only_by_weight(scene, seen, change, pick):
    """09:00 wants 36 of 1 and 27 of 2 GPUs on 5 usable nodes: 40 GPUs; 22 run; the heavier grows first."""
    at_s = scene.at("09:30")
    first = asked(scene.decide(seen(at_s, chat(16), agents(3), production=5), at_s), pick)
    assert first == {"agents": 12}  # of equal weight, by name
    fleet = change(scene.fleet, workloads=(change(scene.fleet.workloads[0], weight=2.0), scene.fleet.workloads[1]))
    heavy = change(scene, fleet=fleet)
    assert asked(heavy.decide(seen(at_s, chat(16), agents(3), production=5), at_s), pick) == {"chat": 34}


@pytest.mark.parametrize("fault", [{"ready": False}, {"gpus": 0}, {"startup_taint": True}, {"cordoned": True}])
def test_nodes_that_are_not_usable_take_no_growth(scene, seen, change, pick, fault):
    at_s = scene.at("09:30")
    nodes = scene.nodes("p", 5)
    broken = (*nodes[:3], *(change(one, **fault) for one in nodes[3:]))
    assert asked(scene.decide(seen(at_s, chat(16), agents(2), production=broken), at_s), pick) == {"agents": 4}


def test_what_others_run_stands_on_the_nodes_too(scene, seen, pick):
    """A workload that has opted out, is paused, or is released keeps its GPUs: growth does not count on them."""
    at_s = scene.at("09:30")
    released = (Override(name="o", kind=OverrideKind.RELEASE, until_s=at_s + 60, reason="r", what="chat"),)
    for state in (
        seen(at_s, chat(30, managed=False), agents(3), production=5),
        seen(at_s, chat(30, paused=True), agents(3), production=5),
        seen(at_s, chat(30), agents(3), production=5, overrides=released),
    ):
        assert asked(scene.decide(state, at_s), pick) == {"agents": 5}


@pytest.mark.parametrize(
    ("more", "words"), [({"managed": False}, "it has opted out"), ({"paused": True}, "its owner paused it")]
)
def test_hands_off_what_people_hold(scene, seen, pick, more, words):
    at_s = scene.at("03:00")
    decision = scene.decide(seen(at_s, chat(30, **more), agents(6)), at_s)
    assert asked(decision, pick) == {}
    assert [one.why.text for one in decision.withheld if one.what == "replicas of chat"] == [words]


def test_a_rollout_is_not_shrunk_and_is_grown(scene, seen, pick):
    """A rollout that hangs must not keep production small in the morning."""
    at_s = scene.at("03:00")
    decision = scene.decide(seen(at_s, chat(30, rolling=True), agents(3, rolling=True)), at_s)
    assert asked(decision, pick) == {"agents": 6}
    assert rule_of(decision, "replicas of chat") == "§6.3"


def test_a_minimum_is_asked_for_whatever_is_there(scene, seen, change, pick):
    at_s = scene.at("03:00")
    fleet = change(
        scene.fleet,
        workloads=(change(scene.fleet.workloads[0], min_replicas=5), change(scene.fleet.workloads[1], min_replicas=4)),
    )
    least = change(scene, fleet=fleet)
    assert asked(least.decide(seen(at_s, chat(0), agents(0), production=0), at_s), pick) == {"chat": 5, "agents": 4}


def test_a_workload_whose_scale_is_not_there_is_said(scene, seen):
    at_s = scene.at("03:00")
    decision = scene.decide(seen(at_s, chat(16)), at_s)
    assert rule_of(decision, "replicas of agents") == "§6.8"


@pytest.mark.parametrize("autoscaler", [None, "HorizontalPodAutoscaler/chat"])
def test_pods_on_leaving_nodes_get_their_cost_lowered_before_anything_shrinks(
    scene, seen, pick, autoscaler, change, leaving
):
    """An autoscaler keeps as many more as stand there: it may not shrink at all, and then they are evicted."""
    at_s = scene.at("02:01")
    nodes = scene.nodes("p", 9)
    nodes = (change(nodes[0], cordoned=True, cordoned_by_us=True, pods=3), *nodes[1:])
    more = {"on": {"p-000": 3, "p-001": 8}, "autoscaler": autoscaler, "bounds": Bounds(least=37, most=40)}
    state = seen(at_s, chat(37, **more), agents(6), production=nodes, ephemeral=23, memory=leaving(at_s))
    decision = scene.decide(state, at_s)
    assert [(one.workload, one.nodes) for one in pick(decision, LowerDeletionCost)] == [("chat", frozenset({"p-000"}))]
    assert "chat" not in asked(decision, pick)
    lowered = chat(37, **more, lowered_cost=frozenset({"p-000"}))
    decision = scene.decide(seen(at_s, lowered, agents(6), production=nodes, ephemeral=23, memory=leaving(at_s)), at_s)
    assert pick(decision, LowerDeletionCost) == []
    if autoscaler is None:
        assert asked(decision, pick) == {"chat": 16}
    else:
        assert [one.bounds.least for one in pick(decision, SetBounds)] == [16 + 3]


def test_the_cost_is_taken_back_where_a_node_stays(scene, seen, pick):
    at_s = scene.at("02:30")
    decision = scene.decide(seen(at_s, chat(16, lowered_cost=frozenset({"p-000"})), agents(6)), at_s)
    assert [one.nodes for one in pick(decision, LowerDeletionCost)] == [frozenset()]


HPA = "HorizontalPodAutoscaler/chat"


def test_bounds_are_set_in_one_write_their_own_values_saved_first(scene, seen, pick):
    """least = planned, most = what the window's 8 nodes hold beside agents' 6 × 2: 64 − 12."""
    at_s = scene.at("03:00")
    decision = scene.decide(seen(at_s, chat(20, autoscaler=HPA, bounds=Bounds(least=2, most=90)), agents(6)), at_s)
    assert [one.bounds for one in pick(decision, SetBounds)] == [Bounds(least=16, most=52)]
    assert asked(decision, pick) == {}
    assert isinstance(decision.actions[0], Record)
    assert decision.actions[0].memory.written["workload/chat:bounds"].before == "2..90"


def test_saved_bounds_stay_those_of_before_us(scene, seen, pick):
    """The next window writes other bounds: what is restored one day is what was there first."""
    at_s = scene.at("03:00")
    first = scene.decide(seen(at_s, chat(20, autoscaler=HPA, bounds=Bounds(least=2, most=90)), agents(6)), at_s)
    later_s = scene.at("06:00")
    ours = chat(20, autoscaler=HPA, bounds=Bounds(least=16, most=52))
    state = seen(later_s, ours, agents(9), production=11, ephemeral=21, memory=first.actions[0].memory)
    second = scene.decide(state, later_s)
    assert [one.bounds for one in pick(second, SetBounds)] == [Bounds(least=25, most=70)]
    kept = second.actions[0].memory.written["workload/chat:bounds"]
    assert (kept.before, kept.value) == ("2..90", "25..70")


def test_released_bounds_are_given_back_and_taken_again_when_the_override_ends(scene, seen, pick):
    at_s = scene.at("03:00")
    taken = scene.decide(seen(at_s, chat(20, autoscaler=HPA, bounds=Bounds(least=2, most=90)), agents(6)), at_s)
    ours = chat(20, autoscaler=HPA, bounds=Bounds(least=16, most=52))
    free = (Override(name="o", kind=OverrideKind.RELEASE, until_s=at_s + 600, reason="r", what="chat"),)
    memory = taken.actions[0].memory
    decision = scene.decide(seen(at_s, ours, agents(6), memory=memory, overrides=free), at_s)
    assert [(one.what, one.value) for one in pick(decision, Restore)] == [("workload/chat:bounds", "2..90")]
    assert pick(decision, SetBounds) == []
    back = chat(20, autoscaler=HPA, bounds=Bounds(least=2, most=90))
    decision = scene.decide(seen(at_s, back, agents(6), memory=memory, overrides=free), at_s)
    assert pick(decision, Restore) == []
    memory = decision.actions[0].memory
    assert "workload/chat:bounds" not in memory.written
    assert scene.decide(seen(at_s, back, agents(6), memory=memory, overrides=free), at_s).actions == ()
    later_s = at_s + 600
    decision = scene.decide(seen(later_s, back, agents(6), memory=memory, overrides=free), later_s)
    assert [one.bounds for one in pick(decision, SetBounds)] == [Bounds(least=16, most=52)]
    assert decision.actions[0].memory.written["workload/chat:bounds"].before == "2..90"


def test_an_autoscaler_at_zero_is_started_by_a_write_of_the_scale(scene, seen, pick):
    at_s = scene.at("03:00")
    decision = scene.decide(seen(at_s, chat(0, autoscaler=HPA, bounds=Bounds(least=16, most=52)), agents(6)), at_s)
    assert asked(decision, pick) == {"chat": 16}


def test_an_autoscaler_that_takes_no_least_of_0_is_put_out_by_a_write_of_the_scale(scene, seen, change, pick):
    """Planned 0: bounds from 1, which its owner's server takes, and the scale at 0, where it does nothing."""
    at_s = scene.at("03:00")
    columns = (change(scene.schedule.workloads[0], replicas=(0,) * 6), scene.schedule.workloads[1])
    fleet = change(scene.fleet, workloads=(change(scene.fleet.workloads[0], min_replicas=0), scene.fleet.workloads[1]))
    none = change(scene, fleet=fleet, schedule=change(scene.schedule, workloads=columns))
    hpa = {"autoscaler": HPA, "lowest_least": 1}
    decision = none.decide(seen(at_s, chat(3, bounds=Bounds(least=2, most=90), **hpa), agents(6)), at_s)
    assert [one.bounds.least for one in pick(decision, SetBounds)] == [1]
    assert asked(decision, pick) == {"chat": 0}
    (record,) = pick(decision, Record)
    out = seen(at_s, chat(0, bounds=Bounds(least=1, most=52), **hpa), agents(6), memory=record.memory)
    assert not [one for one in none.decide(out, at_s).actions if not isinstance(one, Record)]
    keda = chat(3, bounds=Bounds(least=0, most=52), autoscaler="ScaledObject chat")
    assert asked(none.decide(seen(at_s, keda, agents(6)), at_s), pick) == {}


def test_an_autoscaler_without_bounds_is_left_alone_and_said(scene, seen, pick):
    at_s = scene.at("03:00")
    decision = scene.decide(seen(at_s, chat(20, autoscaler="ScaledObject/chat"), agents(6)), at_s)
    assert pick(decision, SetBounds) == []
    assert rule_of(decision, "bounds of chat") == "§6.8"


def test_a_maximum_bounds_the_autoscaler(scene, seen, change, pick):
    at_s = scene.at("03:00")
    fleet = change(scene.fleet, workloads=(change(scene.fleet.workloads[0], max_replicas=30), scene.fleet.workloads[1]))
    state = seen(at_s, chat(20, autoscaler=HPA, bounds=Bounds(least=2, most=90)), agents(6))
    assert [one.bounds for one in pick(change(scene, fleet=fleet).decide(state, at_s), SetBounds)] == [
        Bounds(least=16, most=30)
    ]
