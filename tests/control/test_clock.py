"""Clocks jump (§6.6): what is remembered from the future counts from now, so that nothing waits for a day to come."""

from __future__ import annotations

from ebbtide.control.actions import Cordon, DeletePods, GrowPool, Record, RemoveNodes, SetQuota
from ebbtide.control.memory import Direction, Memory, Move, Revert, Stage, Written
from ebbtide.control.state import ResearchWork
from ebbtide.units import DAY_S


def move(at_s: float, stage: Stage, **more) -> Move:
    fields = {"begun_s": at_s, "since_s": at_s, "due_s": at_s, "asked_s": at_s, "node": "e-000", **more}
    return Move(id="h100-1", pool="h100", direction=Direction.RECLAIM, stage=stage, **fields)


def settle(scene, change, at_s: float, begun_s: float, *, until_s: float, stage: Stage, work=()) -> list:
    """Tick every 30 s with a node that never changes; all actions."""
    memory, done = Memory(moves=(move(begun_s, stage),), next_move=2), []
    nodes = scene.nodes("e", 21)
    nodes = (change(nodes[0], cordoned=True, cordoned_by_us=True, pods=1), *nodes[1:])
    while at_s < until_s:
        state = scene.state(at_s, production=11, ephemeral=nodes, quota_gpus=0, memory=memory, work=work)
        decision = scene.decide(state, at_s)
        memory = next((one.memory for one in decision.actions if isinstance(one, Record)), memory)
        done += decision.actions
        at_s += 30.0
    return done


def test_a_clock_set_back_a_day_holds_no_step_up_for_a_day(scene, change, pick):
    """The move was begun 'tomorrow': its node is drained and taken all the same."""
    at_s = scene.at("08:00")
    done = settle(scene, change, at_s, at_s + DAY_S, until_s=at_s + 3000.0, stage=Stage.DRAINING)
    assert any(isinstance(one, RemoveNodes) for one in done)


def test_grace_counts_from_now_where_the_clock_was_set_back(scene, change):
    at_s = scene.at("08:00")
    parked = ResearchWork(
        name="w",
        pool="h100",
        gpus=8,
        nodes=("e-000",),
        preemptible=True,
        checkpointed_s=at_s,
        active=False,
        parked_by_us=True,
    )
    done = settle(scene, change, at_s, at_s + DAY_S, until_s=at_s + 900.0, stage=Stage.EMPTYING, work=(parked,))
    assert any(isinstance(one, DeletePods) for one in done)


def test_what_was_asked_for_tomorrow_is_asked_for_again(scene, pick):
    at_s = scene.at("08:00")
    memory = Memory(
        moves=(move(at_s + DAY_S, Stage.TRAVELLING, node="gone"),), sizes={"production/h100": 12}, next_move=2
    )
    state = scene.state(at_s, production=11, ephemeral=20, memory=memory)
    assert [one.size for one in pick(scene.decide(state, at_s), GrowPool)] == [12]


def test_a_field_left_alone_tomorrow_is_left_alone_for_an_hour_not_a_day(scene, pick):
    at_s = scene.at("03:00")
    memory = Memory(
        written={"quota/h100:gpus": Written(before="0", value="192", at_s=at_s + DAY_S)},
        reverts={"quota/h100:gpus": Revert(who="flux", seen_s=(at_s + DAY_S - 60.0, at_s + DAY_S))},
    )
    state = scene.state(at_s, production=8, ephemeral=24, quota_gpus=100, memory=memory)
    memory = next(one.memory for one in scene.decide(state, at_s).actions if isinstance(one, Record))
    later_s = at_s + 3601.0
    state = scene.state(later_s, production=8, ephemeral=24, quota_gpus=100, memory=memory)
    assert len(pick(scene.decide(state, later_s), SetQuota)) == 1


def test_a_spared_node_is_spared_for_an_hour_at_most(scene, pick):
    at_s = scene.at("07:25")
    memory = Memory(spared={f"e-{k:03}": at_s + DAY_S for k in range(21)})
    state = scene.state(at_s, production=11, ephemeral=21, memory=memory)
    decision = scene.decide(state, at_s)
    assert pick(decision, Cordon) == []
    memory = next(one.memory for one in decision.actions if isinstance(one, Record))
    assert set(memory.spared.values()) == {at_s + 3600.0}
