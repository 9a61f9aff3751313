"""The day of the example, tick by tick: what is decided when all is calm (§6.2, §6.3)."""

from __future__ import annotations

import math

from ebbtide.control.actions import Cordon, Record, SetQuota, SetReplicas
from ebbtide.control.memory import Direction
from ebbtide.control.state import Side

NIGHT = {"chat": 37, "agents": 3}


def test_a_fleet_as_planned_is_left_alone_until_growth_or_the_next_window(scene):
    at_s = scene.at("01:00")
    decision = scene.decide(scene.state(at_s, replicas=NIGHT, quota_gpus=144), at_s)
    assert decision.actions == ()
    assert decision.phase == "Holding"
    # agents grow at 02:00, and start 5 minutes before it
    assert decision.next_look_s == scene.at("01:55")


def test_yields_begin_with_their_window_recorded_first(scene, pick):
    at_s = scene.at("02:00")
    decision = scene.decide(scene.state(at_s, replicas=NIGHT, quota_gpus=144), at_s)
    assert isinstance(decision.actions[0], Record)
    moves = decision.actions[0].memory.moves
    assert [move.direction for move in moves] == [Direction.YIELD] * 6
    assert {action.node for action in pick(decision, Cordon)} == {move.node for move in moves}
    assert decision.phase == "Yielding"


def test_reclaims_begin_a_lead_before_their_window_as_many_as_may_move_at_once(scene, pick):
    early_s, at_s = scene.at("07:24"), scene.at("07:25")
    morning = {"production": 11, "ephemeral": 21, "replicas": {"chat": 25, "agents": 9}, "quota_gpus": 168}
    assert scene.decide(scene.state(early_s, **morning), early_s).next_look_s == at_s
    decision = scene.decide(scene.state(at_s, **morning), at_s)
    cordons = pick(decision, Cordon)
    assert len(cordons) == 8
    assert {action.side for action in cordons} == {Side.RESEARCH}
    assert [action.gpus for action in pick(decision, SetQuota)] == [(21 - 8) * 8]
    assert decision.shortages == {}


def test_another_fleets_schedule_moves_nothing(scene, change):
    at_s = scene.at("02:00")
    other = change(scene, fleet=change(scene.fleet, digest="sha256:other"))
    decision = other.decide(scene.state(at_s, replicas=NIGHT), at_s)
    assert (decision.actions, decision.phase) == ((), "Blocked")


def test_growth_waits_for_usable_nodes_and_is_said_to_be_short(scene, pick):
    at_s = scene.at("09:30")
    state = scene.state(at_s, production=11, ephemeral=21, replicas={"chat": 25, "agents": 9})
    decision = scene.decide(state, at_s)
    wanted = {action.workload: action.replicas for action in pick(decision, SetReplicas)}
    assert wanted["chat"] + 2 * wanted.get("agents", 9) <= 11 * 8
    assert decision.shortages["h100"] == 25 - 11
    assert math.isfinite(decision.next_look_s)
