"""Modes, pause, and whose schedule it is (§6.9, §3)."""

from __future__ import annotations

from ebbtide.control.actions import Cordon, Record, SetReplicas
from ebbtide.control.loop import tick
from ebbtide.control.state import Mode
from ebbtide.control.world import Result

NIGHT = {"chat": 37, "agents": 3}


class Recording:
    def __init__(self, state, refuse: type | None = None) -> None:
        self.state, self.refuse, self.done = state, refuse, []

    def observe(self, at_s, /):
        return self.state

    def apply(self, action, at_s, /):
        self.done.append(action)
        return Result.CONFLICT if self.refuse is not None and isinstance(action, self.refuse) else Result.DONE


def test_shadow_is_the_default_it_decides_all_and_does_nothing(scene):
    at_s = scene.at("02:00")
    state = scene.state(at_s, replicas=NIGHT)
    assert state.mode is Mode.SHADOW
    world = Recording(state)
    done = tick(world, scene.fleet, scene.schedule, at_s)
    assert (world.done, done.results) == ([], ())
    assert done.decision == scene.decide(scene.state(at_s, replicas=NIGHT, mode=Mode.ACTIVE), at_s)
    assert len(done.decision.actions) > 6


def test_active_does_all_in_order_the_record_first(scene):
    at_s = scene.at("02:00")
    world = Recording(scene.state(at_s, replicas=NIGHT, mode=Mode.ACTIVE))
    done = tick(world, scene.fleet, scene.schedule, at_s)
    assert tuple(world.done) == done.decision.actions
    assert isinstance(world.done[0], Record)


def test_where_the_record_is_refused_nothing_else_is_done(scene):
    at_s = scene.at("02:00")
    world = Recording(scene.state(at_s, replicas=NIGHT, mode=Mode.ACTIVE), refuse=Record)
    done = tick(world, scene.fleet, scene.schedule, at_s)
    assert [type(one) for one in world.done] == [Record]
    assert [result for _, result in done.results] == [Result.CONFLICT]


def test_another_action_that_fails_stands_alone(scene):
    at_s = scene.at("02:00")
    state = scene.state(at_s, replicas=NIGHT, mode=Mode.ACTIVE)
    kind = type(scene.decide(state, at_s).actions[1])
    world = Recording(state, refuse=kind)
    done = tick(world, scene.fleet, scene.schedule, at_s)
    assert len(done.results) == len(done.decision.actions)


def test_paused_nothing_is_done_and_that_is_said(scene):
    at_s = scene.at("02:00")
    decision = scene.decide(scene.state(at_s, replicas=NIGHT, paused=True), at_s)
    assert (decision.actions, decision.phase) == ((), "Paused")
    assert [one.why.rule for one in decision.withheld] == ["§6.9"]
    assert decision.next_look_s > at_s


def test_told_to_stop_it_finishes_the_act_and_leaves_the_rest(scene):
    at_s = scene.at("02:00")
    world = Recording(scene.state(at_s, replicas=NIGHT, mode=Mode.ACTIVE))
    done = tick(world, scene.fleet, scene.schedule, at_s, goes_on=lambda: len(world.done) < 3)
    assert tuple(world.done) == done.decision.actions[:3]
    assert len(done.results) == 3


def test_in_doubt_nothing_leaves_production_and_production_still_grows(scene):
    at_s = scene.at("02:00")
    doubt = "schedule.yaml cannot be read"
    night = scene.decide(scene.state(at_s, replicas=NIGHT, doubt=doubt), at_s)
    assert [one.workload for one in night.actions if isinstance(one, Cordon | SetReplicas)] == ["agents"]  # it grows
    assert {one.why.text for one in night.withheld if one.why.rule == "§6.9"} == {doubt}
    at_s = scene.at("08:30")
    work = {"replicas": {"chat": 25, "agents": 9}, "production": 11, "ephemeral": 21}
    certain = scene.decide(scene.state(at_s, **work), at_s)
    assert [one for one in certain.actions if isinstance(one, Cordon)]
    assert scene.decide(scene.state(at_s, doubt=doubt, **work), at_s).actions == certain.actions
