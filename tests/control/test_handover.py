"""Handing over (§6.3): pods on leaving nodes are replaced before they go; no yield leaves a service short of them."""

from __future__ import annotations

import pytest

from ebbtide.control.actions import Cordon, Drain, Record, SetBounds, SetReplicas, Surge
from ebbtide.control.handover import handed_over
from ebbtide.control.memory import Direction, Memory, Move, Stage
from ebbtide.control.state import Bounds, Replicas, Side

HPA = "HorizontalPodAutoscaler/chat"
LOWERED = frozenset({"p-000"})


def chat(wanted: int, *, on: dict[str, int], ready: int | None = None, **more: object) -> Replicas:
    """As seen in the window of 02:00, which wants 16."""
    here = frozenset(name for name in on if name == "p-000")
    ready = wanted if ready is None else ready
    return Replicas(workload="chat", wanted=wanted, ready=ready, on=on, **{"lowered_cost": here, **more})


@pytest.fixture
def after(scene, seen, change, leaving, pick):
    """What is decided 10 s (or ``age_s``) after the yield of p-000 began or reached its stage, and the move then."""

    def make(one: Replicas, age_s: float = 10.0, stage: Stage = Stage.EMPTYING, pods: int = 3, others: int = 6):
        at_s = scene.at("02:10")
        nodes = scene.nodes("p", 9)
        nodes = (change(nodes[0], cordoned=True, cordoned_by_us=True, pods=pods), *nodes[1:])
        beside = Replicas(workload="agents", wanted=others, ready=others, managed=False)
        memory = leaving(at_s - age_s, stage=stage)
        state = seen(at_s, one, beside, production=nodes, ephemeral=23, memory=memory)
        decision = scene.decide(state, at_s)
        record = next((one.memory for one in pick(decision, Record)), memory)
        return decision, record.moves[0]

    return make


def asked(decision) -> dict[str, int]:
    return {one.workload: one.replicas for one in decision.actions if isinstance(one, SetReplicas | Surge)}


def withheld(decision, what: str) -> str:
    return next(one.why.text for one in decision.withheld if one.what == what)


def test_a_service_that_does_not_shrink_has_its_pods_replaced_before_they_go(after, pick):
    """16 wanted, 3 on the leaving node: 19; when all are ready 16 again, and those 3 cost least."""
    decision, move = after(chat(16, on={"p-000": 3, "p-003": 13}))
    assert [(one.workload, one.replicas) for one in pick(decision, Surge)] == [("chat", 19)]
    assert move.stage is Stage.EMPTYING
    decision, move = after(chat(19, on={"p-000": 3, "p-003": 16}, ready=18))
    assert asked(decision) == {}, "one replacement is still starting"
    assert move.stage is Stage.EMPTYING
    decision, move = after(chat(19, on={"p-000": 3, "p-003": 16}))
    assert asked(decision) == {"chat": 16}
    assert move.stage is Stage.EMPTYING, "nothing is evicted that a scale-down ends"
    _, move = after(chat(16, on={"p-003": 16}), pods=1)
    assert move.stage is Stage.DRAINING, "what is left is nobody's replica"


def test_pods_that_are_on_their_way_out_are_not_replaced_again(after):
    decision, _ = after(chat(16, on={"p-000": 3, "p-003": 16}))
    assert asked(decision) == {}


def test_replacements_are_no_more_than_staying_nodes_have_room_for(after, pick):
    """Of 64 GPUs others hold 48 or 52, and 13 replicas of one GPU stand there."""
    decision, _ = after(chat(16, on={"p-000": 3, "p-003": 13}), others=24)
    assert asked(decision) == {"chat": 19}
    decision, _ = after(chat(16, on={"p-000": 3, "p-003": 13}), others=25)
    assert asked(decision) == {"chat": 17}
    decision, _ = after(chat(16, on={"p-000": 3, "p-003": 13}), others=26)
    assert pick(decision, Surge) == []


@pytest.mark.parametrize(("most", "replicas"), [(16, {}), (17, {"chat": 17}), (30, {"chat": 19})])
def test_replacements_keep_to_the_maximum(scene, seen, leaving, change, most, replicas):
    at_s = scene.at("02:10")
    fleet = change(
        scene.fleet, workloads=(change(scene.fleet.workloads[0], max_replicas=most), scene.fleet.workloads[1])
    )
    nodes = scene.nodes("p", 9)
    nodes = (change(nodes[0], cordoned=True, cordoned_by_us=True, pods=3), *nodes[1:])
    there = chat(16, on={"p-000": 3, "p-003": 13})
    others = Replicas(workload="agents", wanted=6, ready=6)
    state = seen(at_s, there, others, production=nodes, ephemeral=23, memory=leaving(at_s - 10.0))
    assert asked(change(scene, fleet=fleet).decide(state, at_s)) == replicas


def test_a_node_that_cannot_be_emptied_in_time_stays(after, pick):
    """A replacement's start (5 minutes) and the grace (10) later: the node turns back, and is spared for an hour."""
    stuck = chat(16, on={"p-000": 3, "p-003": 13})
    for age_s, stage in ((899.0, Stage.EMPTYING), (900.0, Stage.RETURNING)):
        decision, move = after(stuck, age_s=age_s, others=26)
        assert move.stage is stage
        assert pick(decision, Drain) == []
    assert withheld(decision, "yield of p-000") == "too few replicas of chat are ready on other nodes"
    (record,) = pick(decision, Record)
    assert "p-000" in record.memory.spared


def test_requests_in_flight_have_their_grace_before_anything_is_evicted(after, pick):
    """The scale went down and its pods finish what they serve: those that hang are drained when all time is over."""
    for age_s, drained in ((10.0, False), (899.0, False), (900.0, True)):
        decision, move = after(chat(16, on={"p-000": 3, "p-003": 16}, ready=19), age_s=age_s)
        assert (move.stage is Stage.DRAINING) == drained
        assert pick(decision, Drain) == []


def test_an_autoscaler_keeps_more_until_the_pods_on_the_leaving_node_are_evicted(after, pick):
    """Whatever it would rather have: least 19, and with 19 ready the node is drained; then 16 again."""
    hpa = {"autoscaler": HPA, "bounds": Bounds(least=16, most=52)}
    decision, move = after(chat(16, on={"p-000": 3, "p-003": 13}, **hpa))
    assert [one.bounds for one in pick(decision, SetBounds)] == [Bounds(least=19, most=67)]
    assert move.stage is Stage.EMPTYING
    assert withheld(decision, "drain of p-000") == "too few replicas of chat are ready on other nodes"
    hpa["bounds"] = Bounds(least=19, most=67)
    _, move = after(chat(19, on={"p-000": 3, "p-003": 16}, **hpa))
    assert move.stage is Stage.DRAINING
    decision, _ = after(chat(19, on={"p-003": 19}, **hpa), stage=Stage.DRAINING, pods=0)
    assert [one.bounds.least for one in pick(decision, SetBounds)] == [16]


def test_where_an_order_says_which_pod_goes_theirs_is_evicted_once_replaced(after, pick):
    """A StatefulSet ends its youngest, which is the replacement: it stays until the old one has gone."""
    decision, _ = after(chat(16, on={"p-000": 3, "p-003": 13}, ordered=True))
    assert asked(decision) == {"chat": 19}
    decision, move = after(chat(19, on={"p-000": 3, "p-003": 16}, ordered=True))
    assert asked(decision) == {}
    assert move.stage is Stage.DRAINING
    decision, _ = after(chat(19, on={"p-003": 19}, ordered=True), stage=Stage.DRAINING, pods=0)
    assert asked(decision) == {"chat": 16}


@pytest.mark.parametrize(
    ("ready", "more", "drained"),
    [
        (4, {}, True),  # one of four may go
        (3, {}, False),  # one is missing already
        (4, {"pods": 2}, False),  # two at once may not
        (1, {"wanted": 1}, False),  # the only one may not
        (1, {"wanted": 1, "disruptions_allowed": 1}, True),  # unless its owner's budget says so
    ],
)
@pytest.mark.parametrize("ours", [{"managed": False}, {"paused": True}])
def test_what_is_not_ours_to_grow_loses_one_replica_at_a_time(after, ready, more, drained, ours):
    pods = more.pop("pods", 1) if (more := dict(more)) else 1
    wanted = more.pop("wanted", 4)
    _, move = after(chat(wanted, on={"p-000": pods, "p-003": wanted - pods}, ready=ready, **ours, **more))
    assert (move.stage is Stage.DRAINING) == drained


def test_a_drain_stops_where_too_few_are_left(after, pick):
    """Others fail while it is under way: what still stands on the node is needed."""
    decision, move = after(chat(19, on={"p-000": 1, "p-003": 15}, ready=16, ordered=True), stage=Stage.DRAINING)
    assert pick(decision, Drain) == []
    assert withheld(decision, "drain of p-000") == "too few replicas of chat are ready on other nodes"
    assert move.stage is Stage.DRAINING
    decision, _ = after(chat(19, on={"p-000": 1, "p-003": 18}, ordered=True), stage=Stage.DRAINING)
    assert [one.node for one in pick(decision, Drain)] == ["p-000"]


def test_two_drains_never_add_up_to_one_too_many(scene, seen, change, pick):
    """18 ready of 16: the pods of one node may go, those of the other one not as well."""
    at_s = scene.at("02:10")
    nodes = scene.nodes("p", 10)
    gone = [change(one, cordoned=True, cordoned_by_us=True, pods=2) for one in nodes[:2]]
    moves = [
        Move(
            id=f"h100-{k}",
            pool="h100",
            direction=Direction.YIELD,
            node=f"p-00{k}",
            stage=Stage.EMPTYING,
            begun_s=at_s - 10.0,
            since_s=at_s - 10.0,
            due_s=at_s,
        )
        for k in range(2)
    ]
    on = {"p-000": 2, "p-001": 2, "p-003": 14}
    there = Replicas(workload="chat", wanted=18, ready=18, on=on, ordered=True, lowered_cost={"p-000", "p-001"})
    others = Replicas(workload="agents", wanted=6, ready=6)
    memory = Memory(moves=tuple(moves), next_move=2)
    state = seen(at_s, there, others, production=(*gone, *nodes[2:]), ephemeral=22, memory=memory)
    (record,) = pick(scene.decide(state, at_s), Record)
    assert [one.stage for one in record.memory.moves] == [Stage.DRAINING, Stage.EMPTYING]


@pytest.mark.parametrize(
    ("chat_wanted", "left"),
    [
        (24, ["p-000", "p-001"]),  # it shrinks by 8: both of its fuller nodes are free
        (20, ["p-000", "p-002"]),  # by 4: one is, and then one replica of agents is cheaper than four of chat
        (16, ["p-002", "p-003"]),  # by none: the emptier ones, as agents do not shrink either
    ],
)
def test_nodes_leave_whose_pods_need_the_fewest_replacements(scene, seen, change, pick, chat_wanted, left):
    at_s = scene.at("02:10")
    on = {
        "chat": {"p-000": 4, "p-001": 4, "p-004": chat_wanted - 8},
        "agents": {"p-002": 1, "p-003": 1, "p-005": 4},
    }
    pods = {name: sum(one.get(name, 0) for one in on.values()) for name in ("p-000", "p-001", "p-002", "p-003")}
    nodes = tuple(change(one, pods=pods.get(one.name, 6)) for one in scene.nodes("p", 10))
    replicas = [
        Replicas(workload=name, wanted=count, ready=count, on=on[name])
        for name, count in (("chat", chat_wanted), ("agents", 6))
    ]
    filler = {f"p-{k:03}": 3 for k in range(6, 10)}
    replicas[1] = change(replicas[1], on=on["agents"] | filler)
    state = seen(at_s, *replicas, production=nodes, ephemeral=22)
    assert [one.node for one in pick(scene.decide(state, at_s), Cordon)] == left


@pytest.mark.parametrize("ordered", [False, True])
def test_a_night_never_takes_a_service_below_what_is_planned(tide, ordered):
    """Agents do not shrink by what stands on the leaving nodes, chat does: at every look both have their plan."""
    world = tide.world()
    world.replicas["agents"] = Replicas(workload="agents", wanted=2, ready=0, ordered=ordered)
    world.pass_to(world.now_s)
    least: list[int] = []
    tide.run(world, tide.at("02:20"), watch=lambda one: least.append(one.replicas["agents"].ready))
    assert min(least) == 2
    assert world.whole(Side.PRODUCTION) == 2


def test_handing_over_a_replica_that_spans_nodes():
    """A replica of 16 GPUs on nodes of 8 stands on two of them: it is one to be replaced, and not two."""
    two = Replicas(workload="wide", wanted=2, ready=2, on={"a": 1, "b": 1, "c": 1, "d": 1})
    assert handed_over(two, 2, frozenset({"a"}), 3, nodes_each=2) == 3
    assert handed_over(two, 2, frozenset(), 3, nodes_each=2) == 2
