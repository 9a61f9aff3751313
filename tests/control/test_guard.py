"""The live guard (§6.7): on at once, off only after a while; where nothing is observed it is off and says so."""

from __future__ import annotations

import pytest

from ebbtide.control.actions import Cordon, Record, SetReplicas
from ebbtide.control.guard import guarded
from ebbtide.control.limits import Limits
from ebbtide.control.memory import Direction, Memory, Stage
from ebbtide.control.state import Side

NIGHT = {"chat": 37, "agents": 3}
EARLY = {"chat": 16, "agents": 6}


def live(at_s: float, chat: float, agents: float = 1.0) -> dict[str, object]:
    return {"live_rps": {"chat": chat, "agents": agents}, "live_at_s": at_s}


def said(decision, what: str) -> list[str]:
    return [one.why.text for one in decision.withheld if what in one.what]


def begun(decision, direction: Direction) -> int:
    record = next((one for one in decision.actions if isinstance(one, Record)), None)
    moves = record.memory.moves if record is not None else ()
    return sum(one.direction is direction and one.stage is Stage.EMPTYING for one in moves)


def test_demand_above_the_plan_stops_yields_and_says_by_how_much(scene):
    at_s = scene.at("02:00")  # chat 16 hold 160 rps, agents 6 hold 60
    decision = scene.decide(scene.state(at_s, replicas=NIGHT, **live(at_s, 161.0)), at_s)
    assert begun(decision, Direction.YIELD) == 0
    refused = next(one for one in decision.withheld if one.what.startswith("yield"))
    assert refused.why.rule == "§6.7"
    assert refused.why.numbers == {"workload": "chat", "live_rps": 161.0, "holds_rps": 160.0}


def test_demand_within_the_plan_lets_yields_begin(scene):
    at_s = scene.at("02:00")
    decision = scene.decide(scene.state(at_s, replicas=NIGHT, **live(at_s, 160.0)), at_s)
    assert begun(decision, Direction.YIELD) == 6
    assert said(decision, "live guard") == []


def test_demand_far_above_the_plan_starts_reclaims_early_and_grows(scene, pick):
    at_s = scene.at("03:00")
    calm = scene.state(at_s, production=8, ephemeral=24, replicas=EARLY, **live(at_s, 100.0))
    assert begun(scene.decide(calm, at_s), Direction.RECLAIM) == 0
    high = scene.state(at_s, production=8, ephemeral=24, replicas=EARLY, **live(at_s, 600.0))
    decision = scene.decide(high, at_s)
    # 60 replicas of 1 GPU hold 600: 44 GPUs above the plan are 6 nodes
    assert begun(decision, Direction.RECLAIM) == 6
    assert {one.side for one in pick(decision, Cordon)} == {Side.RESEARCH}
    assert {one.why.rule for one in pick(decision, Cordon)} <= {"§6.2", "§6.7"}
    assert {one.workload: one.replicas for one in pick(decision, SetReplicas)}["chat"] == 8 * 8 - 6 * 2


@pytest.mark.parametrize("age_s", [301.0, -61.0])
def test_what_is_not_observed_now_guards_nothing_and_a_condition_says_so(scene, age_s):
    """Too old, or from the future: a clock jumped."""
    at_s = scene.at("02:00")
    decision = scene.decide(scene.state(at_s, replicas=NIGHT, **live(at_s - age_s, 500.0)), at_s)
    assert begun(decision, Direction.YIELD) == 6
    assert said(decision, "live guard") == ["live demand is not observed: the guard is off"]


def test_only_unobserved_workloads_are_said_to_be_unguarded(scene):
    at_s = scene.at("02:00")
    state = scene.state(at_s, replicas=NIGHT, live_rps={"chat": 500.0}, live_at_s=at_s)
    decision = scene.decide(state, at_s)
    assert begun(decision, Direction.YIELD) == 0
    (one,) = [one for one in decision.withheld if one.what == "live guard"]
    assert one.why.numbers == {"workloads": 1, "first": "agents"}


def test_demand_that_hovers_about_the_plan_never_begins_a_yield(scene):
    """For two hours live demand is in turn a little above and below what the plan holds."""
    memory, yields = Memory(), 0
    for tick in range(120):
        at_s = scene.at("02:00") + 60.0 * tick
        rps = 165.0 if tick % 7 == 0 else 150.0
        decision = scene.decide(scene.state(at_s, replicas=NIGHT, memory=memory, **live(at_s, rps)), at_s)
        record = next((one for one in decision.actions if isinstance(one, Record)), None)
        memory = record.memory if record is not None else memory
        yields += begun(decision, Direction.YIELD)
    assert yields == 0


def test_the_guard_ends_ten_minutes_after_demand_was_last_above_the_plan(scene):
    memory, first = Memory(), None
    for tick in range(40):
        at_s = scene.at("02:00") + 60.0 * tick
        state = scene.state(at_s, replicas=NIGHT, memory=memory, **live(at_s, 165.0 if tick < 3 else 150.0))
        decision = scene.decide(state, at_s)
        record = next((one for one in decision.actions if isinstance(one, Record)), None)
        memory = record.memory if record is not None else memory
        if begun(decision, Direction.YIELD):
            first = tick
            break
        assert decision.next_look_s <= at_s + 600.0
    assert first == 2 + 10
    assert memory.guards == {}


def test_replicas_follow_the_peak_of_the_last_ten_minutes_not_every_reading(scene, pick):
    """Demand of 400 and 250 in turn, above the 160 that are planned for: no replica goes and comes."""
    memory, asked = Memory(), set()
    for tick in range(30):
        at_s = scene.at("02:30") + 60.0 * tick
        state = scene.state(at_s, replicas=NIGHT, memory=memory, **live(at_s, 400.0 if tick % 2 == 0 else 250.0))
        decision = scene.decide(state, at_s)
        record = next((one for one in decision.actions if isinstance(one, Record)), None)
        memory = record.memory if record is not None else memory
        asked |= {one.replicas for one in pick(decision, SetReplicas) if one.workload == "chat"}
    assert asked == {40}


def test_a_guard_remembered_from_the_future_counts_from_now():
    on = guarded(None, 120.0, 100.0, 1000.0, Limits())
    assert guarded(on, 110.0, 100.0, 500.0, Limits()).above_s == 500.0
    assert guarded(on, 90.0, 100.0, 500.0, Limits()) is None


def test_nothing_planned_and_somebody_calls_one_replica_is_asked_for(scene, change, pick):
    (chat, agents), at_s = scene.schedule.workloads, scene.at("02:30")
    none = change(chat, replicas=(0,) * 6, holds_rps=(0.0,) * 6)
    fleet = change(scene.fleet, workloads=(change(scene.fleet.workloads[0], min_replicas=0), scene.fleet.workloads[1]))
    quiet = change(scene, fleet=fleet, schedule=change(scene.schedule, workloads=(none, agents)))
    state = quiet.state(at_s, production=8, ephemeral=24, replicas={"chat": 0, "agents": 6}, **live(at_s, 0.5))
    assert {one.workload: one.replicas for one in pick(quiet.decide(state, at_s), SetReplicas)} == {"chat": 1}
