"""When what is wanted (§5.1, §5.9, §6.2, §6.9): leads, gaps, start-up times, overrides with their ends."""

from __future__ import annotations

import math

import pytest
from whenever import OffsetDateTime, Time, hours

from ebbtide.control.actions import Record, SetReplicas
from ebbtide.control.limits import Limits
from ebbtide.control.memory import Direction, FinishedMove, Memory
from ebbtide.control.plan import plan_of
from ebbtide.control.state import Override, OverrideKind
from ebbtide.control.wants import wants
from ebbtide.fleet.horizon import WEEK, DayPattern, windows_of

LIMITS = Limits()
MORNING_EVENING = (Time(9), Time(20))


@pytest.fixture
def two(scene, change):
    """Two windows, 09:00 with 24 production nodes and 20:00 with 8; the lead is 95 minutes."""

    def make(starts=MORNING_EVENING, nodes=(24, 8), lead_s=5700.0, **pool):
        (column,) = scene.schedule.pools
        schedule = change(
            scene.schedule,
            windows=windows_of(DayPattern(days=WEEK, starts=starts)),
            workloads=tuple(
                change(one, replicas=(40, 10)[: len(starts)], holds_rps=(400.0, 100.0)[: len(starts)])
                for one in scene.schedule.workloads
            ),
            pools=(
                change(
                    column,
                    production_nodes=nodes,
                    ephemeral_nodes=tuple(32 - one for one in nodes),
                    ephemeral_quota_gpus=tuple(8 * (32 - one) for one in nodes),
                    lead_s=tuple(lead_s if one == max(nodes) else 0.0 for one in nodes),
                ),
            ),
        )
        return change(
            scene, schedule=schedule, fleet=change(scene.fleet, pools=(change(scene.fleet.pools[0], **pool),))
        )

    return make


def wanted(scene, at_s, **more):
    state = scene.state(at_s, **more)
    return wants(state, plan_of(scene.fleet, scene.schedule), at_s, LIMITS)


def test_a_long_window_is_left_in_time_for_the_lead_of_the_next(two):
    """The night is longer than twice any lead: the controller looks again before the lead begins."""
    scene = two()
    at_s, nodes, looks = scene.at("21:00"), 8, 0
    while nodes == 8:
        want = wanted(scene, at_s, production=8, ephemeral=24)
        nodes = want.pools["h100"].nodes
        if nodes == 8:
            at_s, looks = want.next_change_s, looks + 1
    assert at_s == scene.at("07:25", day=16)
    assert looks < 10


def test_yields_begin_with_their_window_reclaims_a_lead_before_theirs(two):
    scene = two()
    asked = {
        clock: wanted(scene, scene.at(clock)).pools["h100"].nodes
        for clock in ("07:24", "07:25", "09:00", "19:59", "20:00")
    }
    assert asked == {"07:24": 8, "07:25": 24, "09:00": 24, "19:59": 24, "20:00": 8}


def test_a_lead_longer_than_a_window_spans_it(two):
    """Of three windows the middle one lasts an hour, the lead of the last three: it begins in the first."""
    scene = two(starts=(Time(9), Time(20)), lead_s=3 * 3600.0)
    scene_mid = two(starts=(Time(8), Time(9)), nodes=(10, 24), lead_s=3 * 3600.0)
    assert wanted(scene, scene.at("06:00")).pools["h100"].nodes == 24
    want = wanted(scene_mid, scene_mid.at("09:30")).pools["h100"]
    assert want.nodes == 24
    # the window of 10 nodes lasts from 08:00 to 09:00, the lead of 24 began at 06:00: nothing leaves in between
    want = wanted(scene_mid, scene_mid.at("08:00")).pools["h100"]
    assert (want.settled, want.nodes, want.due_s) == (10, 24, scene_mid.at("09:00"))


def test_nothing_is_yielded_into_a_gap_shorter_than_yield_and_reclaim(two):
    """From 08:00 to 10:00 fewer are wanted; away 30 min and back with a lead of 95: the gap is 5 minutes too short."""
    scene = two(starts=(Time(8), Time(10)), nodes=(10, 24))
    at_s = scene.at("08:00")
    decision = scene.decide(scene.state(at_s, production=24, ephemeral=8), at_s)
    assert not [one for one in decision.actions if isinstance(one, Record) and one.memory.moves]
    (refused,) = [one for one in decision.withheld if one.what.startswith("yield")]
    assert (refused.why.rule, refused.what) == ("§5.9", "yield of 14 nodes of h100")
    longer = two(starts=(Time(8), Time(10, 6)), nodes=(10, 24))
    assert longer.decide(longer.state(at_s, production=24, ephemeral=8), at_s).phase == "Yielding"


@pytest.mark.parametrize(("took_s", "begins"), [(3000.0, "07:15"), (600.0, "07:25"), (60000.0, None)])
def test_a_lead_is_the_longer_of_the_plans_and_the_measured_ones(two, took_s, begins):
    """16 nodes, 8 at once: two batches of the measured P90 and a start-up; never beyond twice the longest."""
    scene = two()
    finished = tuple(
        FinishedMove(pool="h100", direction=Direction.RECLAIM, batch=8, took_s=took_s, finished_s=scene.at("12:00", 14))
        for _ in range(8)
    )
    plan = plan_of(scene.fleet, scene.schedule)
    lead_s = plan.lead_s(scene.fleet.pools[0], 5700.0, 16, finished, scene.at("05:00"))
    if begins is None:
        assert lead_s == 2 * plan.longest_lead_s
    else:
        assert lead_s == scene.at("09:00") - scene.at(begins)
        memory = Memory(finished=finished)
        assert wanted(scene, scene.at(begins), memory=memory).pools["h100"].nodes == 24
        assert wanted(scene, scene.at(begins) - 1, memory=memory).pools["h100"].nodes == 8


def test_growth_that_needs_no_move_begins_a_start_up_time_before_its_window(scene, pick):
    state = {"production": 8, "ephemeral": 24, "replicas": {"chat": 16, "agents": 6}}
    early_s, at_s = scene.at("05:54"), scene.at("05:55")
    assert pick(scene.decide(scene.state(early_s, **state), early_s), SetReplicas) == []
    grown = {one.workload: one.replicas for one in pick(scene.decide(scene.state(at_s, **state), at_s), SetReplicas)}
    assert grown == {"chat": 25, "agents": 9}


def override(kind: OverrideKind, until_s: float, what: str = "") -> Override:
    return Override(name="o", kind=kind, until_s=until_s, reason="launch", what=what)


def test_a_hold_stops_moves_both_ways_until_it_ends(scene):
    at_s = scene.at("02:00")
    held = (override(OverrideKind.HOLD, at_s + 3600.0),)
    for hour, more in (("02:00", {"production": 14, "ephemeral": 18}), ("08:00", {"production": 11, "ephemeral": 21})):
        now_s = scene.at(hour)
        one = (override(OverrideKind.HOLD, now_s + 3600.0),)
        decision = scene.decide(scene.state(now_s, overrides=one, **more), now_s)
        assert decision.phase == "Holding"
        assert not [one for one in decision.actions if isinstance(one, Record) and one.memory.moves]
        assert "§6.9" in {each.why.rule for each in decision.withheld}
        assert decision.next_look_s <= now_s + 3600.0
    after_s = at_s + 3600.0
    assert scene.decide(scene.state(after_s, overrides=held), after_s).phase == "Yielding"


def test_a_held_fleet_scales_nothing_down_but_up(scene, pick):
    at_s = scene.at("06:00")  # chat 25, agents 9
    held = (override(OverrideKind.HOLD, at_s + 3600.0),)
    state = scene.state(at_s, production=12, ephemeral=20, replicas={"chat": 30, "agents": 7}, overrides=held)
    assert {one.workload: one.replicas for one in pick(scene.decide(state, at_s), SetReplicas)} == {"agents": 9}


def test_a_pinned_window_holds_until_its_end_and_then_the_schedule_goes_on(scene):
    at_s, until_s = scene.at("03:00"), scene.at("05:00")
    pinned = (override(OverrideKind.WINDOW, until_s, "all-1300"),)
    want = wanted(scene, at_s, overrides=pinned)
    assert (want.pools["h100"].settled, want.replicas["chat"].planned) == (24, 42)
    assert want.next_change_s <= until_s
    after = wanted(scene, until_s, overrides=pinned)
    assert (after.pools["h100"].settled, after.replicas["chat"].planned) == (8, 16)


def test_what_follows_a_pinned_window_has_its_lead_before_the_pins_end(scene):
    """Pinned to the night until 10:00: the morning's reclaims begin 95 minutes before that."""
    until_s = scene.at("10:00")
    pinned = (override(OverrideKind.WINDOW, until_s, "all-0200"),)
    assert wanted(scene, until_s - 5701, overrides=pinned).pools["h100"].nodes == 8
    want = wanted(scene, until_s - 5700, overrides=pinned).pools["h100"]
    assert (want.settled, want.nodes, want.due_s) == (8, 25, until_s)


def test_a_released_workload_is_left_alone_until_the_end(scene, pick):
    at_s = scene.at("06:00")
    free = (override(OverrideKind.RELEASE, at_s + 60.0, "chat"),)
    state = {"production": 11, "ephemeral": 21, "replicas": {"chat": 99, "agents": 3}, "overrides": free}
    assert {one.workload for one in pick(scene.decide(scene.state(at_s, **state), at_s), SetReplicas)} == set()
    state["replicas"] = {"chat": 30, "agents": 3}
    assert {one.workload for one in pick(scene.decide(scene.state(at_s, **state), at_s), SetReplicas)} == {"agents"}
    later_s = at_s + 60.0
    decided = pick(scene.decide(scene.state(later_s, **state), later_s), SetReplicas)
    assert {one.workload for one in decided} == {"chat", "agents"}


def test_a_released_workloads_demand_guards_nothing(scene):
    at_s = scene.at("02:00")
    free = (override(OverrideKind.RELEASE, at_s + 60.0, "chat"),)
    live = {"live_rps": {"chat": 999.0, "agents": 1.0}, "live_at_s": at_s}
    state = scene.state(at_s, replicas={"chat": 37, "agents": 3}, overrides=free, **live)
    assert scene.decide(state, at_s).phase == "Yielding"


@pytest.mark.parametrize("kind", [OverrideKind.WINDOW, OverrideKind.RELEASE])
def test_an_override_that_names_nothing_of_ours_is_said(scene, kind):
    at_s = scene.at("03:00")
    state = scene.state(at_s, production=8, ephemeral=24, overrides=(override(kind, at_s + 60.0, "chatt"),))
    (said,) = [one for one in scene.decide(state, at_s).withheld if one.what == "override o"]
    assert (said.why.rule, said.why.numbers) == ("§6.9", {"what": "chatt"})


def test_after_valid_until_nothing_yields_or_shrinks_and_production_still_grows(scene, change, pick):
    at_s = scene.at("02:00")
    old = change(scene, schedule=change(scene.schedule, valid_until=OffsetDateTime(2026, 9, 15, 2, offset=hours(8))))
    state = old.state(at_s, replicas={"chat": 37, "agents": 3})
    before, after = old.decide(state, at_s - 1), old.decide(state, at_s)
    assert before.phase == "Holding"
    assert after.phase == "Holding"
    assert {one.workload: one.replicas for one in pick(after, SetReplicas)} == {"agents": 6}
    rules = {one.what: one.why.rule for one in after.withheld}
    assert rules["yield of 6 nodes of h100"] == "§6.9"
    assert "replicas of chat" in rules
    morning_s = scene.at("07:25")
    state = old.state(morning_s, production=11, ephemeral=21)
    assert old.decide(state, morning_s).phase == "Reclaiming"


def test_the_fleets_minima_and_maxima_hold_whatever_an_edited_schedule_says(scene, change):
    (pool,), at_s = scene.fleet.pools, scene.at("03:00")
    chat, agents = scene.fleet.workloads
    fleet = change(
        scene.fleet,
        pools=(change(pool, min_production_nodes=12),),
        workloads=(change(chat, min_replicas=20), change(agents, min_replicas=1, max_replicas=4)),
    )
    want = wanted(change(scene, fleet=fleet), at_s)
    assert want.pools["h100"].nodes == 12
    assert {name: one.replicas for name, one in want.replicas.items()} == {"chat": 20, "agents": 4}


def test_a_fleet_without_anything_ahead_has_no_next_change_but_its_own(scene):
    assert math.isfinite(wanted(scene, scene.at("03:00")).next_change_s)
