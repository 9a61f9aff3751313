"""Usable (§6.4): Ready, schedulable, all GPUs, no start-up taint, stable for 30 s; and ours."""

from __future__ import annotations

import pytest

from ebbtide.control.actions import Admit, SetQuota
from ebbtide.control.ledger import ledger
from ebbtide.control.limits import Limits
from ebbtide.control.memory import Direction, Memory, Move, Stage
from ebbtide.control.state import Side, Tenure

NOT_USABLE = {
    "not Ready": {"ready": False},
    "unschedulable": {"cordoned": True},
    "a GPU is missing": {"gpus": 7},
    "GPUs not up": {"gpus": 0},
    "start-up taint": {"startup_taint": True},
    "joining": {"joining": True},
    "not ours": {"tenure": None},
    "opted out": {"managed": False},
    "reserved": {"tenure": Tenure.RESERVED},
}


def count(scene, state, at_s, side):
    return ledger(state, scene.fleet.pools[0], at_s, Limits()).usable[side]


@pytest.mark.parametrize("fault", NOT_USABLE.values(), ids=NOT_USABLE)
@pytest.mark.parametrize("side", list(Side))
def test_each_condition_keeps_a_node_from_counting(scene, change, side, fault):
    at_s = scene.at("03:00")
    nodes = scene.nodes("x", 5)
    some = {("production" if side is Side.PRODUCTION else "ephemeral"): (change(nodes[0], **fault), *nodes[1:])}
    state = scene.state(at_s, **{"production": 8, "ephemeral": 24, **some})
    assert count(scene, state, at_s, side) == 4


@pytest.mark.parametrize("fault", NOT_USABLE.values(), ids=NOT_USABLE)
def test_a_node_that_changed_is_sorted_anew(scene, change, fault):
    at_s = scene.at("03:00")
    nodes = scene.nodes("x", 5)
    first = scene.state(at_s, production=nodes, ephemeral=24)
    later = scene.state(at_s, production=(nodes[0], change(nodes[1], **fault), *nodes[2:]), ephemeral=24)
    fewer = scene.state(at_s, production=nodes[1:], ephemeral=24)
    seen = [count(scene, state, at_s, Side.PRODUCTION) for state in (first, later, fewer, first)]
    assert seen == [5, 4, 4, 5]


@pytest.mark.parametrize("side", list(Side))
def test_a_node_counts_30_seconds_after_it_became_whole(scene, change, side):
    at_s = scene.at("03:00")
    nodes = scene.nodes("x", 5)
    for age_s, usable in ((29.0, 4), (30.0, 5), (-5.0, 4)):  # -5: a clock that was set back
        young = (change(nodes[0], since_s=at_s - age_s), *nodes[1:])
        some = {("production" if side is Side.PRODUCTION else "ephemeral"): young}
        state = scene.state(at_s, **{"production": 8, "ephemeral": 24, **some})
        assert count(scene, state, at_s, side) == usable


def test_the_next_look_is_when_a_node_becomes_stable(scene, change):
    at_s = scene.at("03:00")
    nodes = scene.nodes("p", 8)
    young = (change(nodes[0], since_s=at_s - 10.0), *nodes[1:])
    state = scene.state(at_s, production=young, ephemeral=24, replicas={"chat": 16, "agents": 6})
    assert scene.decide(state, at_s).next_look_s == at_s + 20.0


def arriving(scene, change, at_s, **more):
    """A node that came to research for a move that is joining."""
    move = Move(
        id="h100-1",
        pool="h100",
        direction=Direction.YIELD,
        node="p-008",
        stage=Stage.JOINING,
        begun_s=at_s - 600.0,
        since_s=at_s - 60.0,
        due_s=at_s - 600.0,
        arrived="e-023",
    )
    nodes = scene.nodes("e", 24)
    last = change(nodes[-1], **{"joining": True, "since_s": at_s - 30.0, **more})
    return scene.state(
        at_s,
        production=8,
        ephemeral=(*nodes[:-1], last),
        quota_gpus=184,
        replicas={"chat": 16, "agents": 6},
        memory=Memory(moves=(move,), next_move=2),
    )


def test_an_arrival_is_admitted_with_its_tenure_when_it_is_usable(scene, change, pick):
    at_s = scene.at("03:00")
    decision = scene.decide(arriving(scene, change, at_s), at_s)
    assert [(one.side, one.node, one.tenure) for one in pick(decision, Admit)] == [
        (Side.RESEARCH, "e-023", Tenure.EPHEMERAL)
    ]
    assert pick(decision, SetQuota) == []  # not before it is seen without its taint


@pytest.mark.parametrize("more", [{"ready": False}, {"gpus": 7}, {"startup_taint": True}, {"since_s": None}])
def test_an_arrival_that_is_not_usable_waits(scene, change, pick, more):
    at_s = scene.at("03:00")
    more = {"since_s": at_s - 29.0} if more == {"since_s": None} else more
    assert pick(scene.decide(arriving(scene, change, at_s, **more), at_s), Admit) == []


def test_quota_is_raised_when_the_arrival_is_seen_admitted(scene, change, pick):
    at_s = scene.at("03:00")
    decision = scene.decide(arriving(scene, change, at_s, joining=False), at_s)
    assert [one.gpus for one in pick(decision, SetQuota)] == [192]
    (record,) = [one for one in decision.actions if hasattr(one, "memory")]
    assert [(one.took_s, one.direction) for one in record.memory.finished] == [(600.0, Direction.YIELD)]
