"""Ending research's work (§6.2, §6.5, §7.5): Workloads first, within grace and a reclaimBy; what must stay stays."""

from __future__ import annotations

import pytest

from ebbtide.control.actions import (
    Activate,
    Cordon,
    DeletePods,
    Drain,
    Park,
    RemoveNodes,
    SetQuota,
    Uncordon,
)
from ebbtide.control.limits import Limits
from ebbtide.control.memory import Direction, Memory, Move, Stage
from ebbtide.control.state import Override, OverrideKind, ResearchWork

CALM = {"chat": 25, "agents": 9}


@pytest.fixture
def reclaim(scene, change):
    """07:25 and later: e-000 goes back, due at 09:00, cordoned; ``work`` stands on it; the quota is lowered."""

    def make(at_s, *work, stage=Stage.EMPTYING, since=None, node=None, quota_gpus=160, **more):
        begun_s = scene.at("07:25")
        move = Move(
            id="h100-1",
            pool="h100",
            direction=Direction.RECLAIM,
            node="e-000",
            stage=stage,
            begun_s=begun_s,
            since_s=begun_s if since is None else since,
            due_s=scene.at("09:00"),
        )
        nodes = scene.nodes("e", 21)
        flags = {"cordoned": True, "cordoned_by_us": True, "pods": sum("e-000" in one.nodes for one in work)}
        first = change(nodes[0], **{**flags, **(node or {})})
        return scene.state(
            at_s,
            production=11,
            ephemeral=(first, *nodes[1:]),
            replicas=CALM,
            work=work,
            quota_gpus=quota_gpus,
            memory=more.pop("memory", Memory(moves=(move,), next_move=2)),
            **more,
        )

    return make


def job(scene, name: str = "w", nodes=("e-000",), **more) -> ResearchWork:
    fields = {"gpus": 8, "preemptible": True, "checkpointed_s": scene.at("07:00"), **more}
    return ResearchWork(name=name, pool="h100", nodes=nodes, **fields)


def stage_of(decision, number: int = 0):
    moves = decision.actions[0].memory.moves if hasattr(decision.actions[0], "memory") else ()
    return next((one.stage for one in moves if one.id == "h100-1"), None)


def texts(decision, rule: str) -> list[str]:
    return [one.why.text for one in decision.withheld if one.why.rule == rule]


def test_work_is_parked_with_what_is_lost(scene, reclaim, pick):
    at_s = scene.at("07:26")
    (park,) = pick(scene.decide(reclaim(at_s, job(scene)), at_s), Park)
    assert (park.work, park.why.rule) == ("w", "§7.5")
    assert park.why.numbers["lost_gpu_s"] == 8 * 26 * 60


def test_nothing_is_ended_before_the_cordon_is_seen(scene, reclaim, pick):
    at_s = scene.at("07:26")
    state = reclaim(at_s, job(scene), node={"cordoned": False, "cordoned_by_us": False})
    decision = scene.decide(state, at_s)
    assert "e-000" in [one.node for one in pick(decision, Cordon)]
    assert pick(decision, Park) == []


def test_nothing_is_ended_before_the_quota_is_lowered(scene, reclaim, pick):
    at_s = scene.at("07:26")
    decision = scene.decide(reclaim(at_s, job(scene), quota_gpus=168), at_s)
    assert pick(decision, Park) == []
    assert [one.gpus for one in pick(decision, SetQuota)] == [(21 - 8) * 8]
    assert "the quota is lowered first" in texts(decision, "§6.2")


def test_a_quota_that_cannot_be_lowered_does_not_stop_production(scene, reclaim, pick):
    """At the latest when production wins the work is ended all the same."""
    at_s = scene.at("08:25")
    assert len(pick(scene.decide(reclaim(at_s, job(scene), quota_gpus=168), at_s), Park)) == 1


def test_a_gang_on_two_leaving_nodes_is_parked_once(scene, reclaim, pick, change):
    at_s = scene.at("07:26")
    state = reclaim(at_s, job(scene, nodes=("e-000", "e-001")))
    (move,) = state.memory.moves
    other = change(move, id="h100-2", node="e-001")
    pool = state.research.pools["h100"]
    nodes = tuple(change(one, cordoned=True, cordoned_by_us=True) if one.name == "e-001" else one for one in pool.nodes)
    state = change(
        state,
        research=change(state.research, pools={"h100": change(pool, nodes=nodes)}, quota_gpus={"h100": 152}),
        memory=Memory(moves=(move, other), next_move=3),
    )
    assert len(pick(scene.decide(state, at_s), Park)) == 1


def test_ended_work_has_its_grace_and_no_more_however_early_it_was_told(scene, reclaim, pick):
    """Parked at 07:25 with a reclaimBy of 08:20: deleted after the 5 minutes of grace (and one to tell it)."""
    parked = job(scene, active=False, parked_by_us=True)
    for clock, deleted in (("07:30", 0), ("07:31", 1)):
        at_s = scene.at(clock)
        decision = scene.decide(reclaim(at_s, parked), at_s)
        assert len(pick(decision, DeletePods)) == deleted
    assert pick(decision, DeletePods)[0].why.numbers["lost_gpu_s"] == 8 * 31 * 60
    assert pick(decision, DeletePods)[0].why.rule == "§6.5"


def test_pods_of_work_that_could_not_be_parked_are_not_deleted_before_the_reclaim_by(scene, reclaim, pick):
    """Kueue's webhook is down: deleting a Job's pods under it would fail it, so only when production must win."""
    for clock, deleted in (("07:40", 0), ("08:19", 0), ("08:20", 1)):  # 09:00 − 45 min + 5 min
        at_s = scene.at(clock)
        decision = scene.decide(reclaim(at_s, job(scene)), at_s)
        assert len(pick(decision, DeletePods)) == deleted
        assert len(pick(decision, Park)) == 1


def test_work_that_must_not_be_interrupted_is_waited_for_until_the_reclaim_by(scene, reclaim, pick):
    fixed = job(scene, preemptible=False, ends_s=scene.at("08:00"))
    for clock in ("07:26", "08:19"):
        at_s = scene.at(clock)
        decision = scene.decide(reclaim(at_s, fixed), at_s)
        assert pick(decision, Park) == pick(decision, DeletePods) == []
        assert "w ends first" in texts(decision, "§6.5")
        assert decision.next_look_s <= scene.at("08:20")


def test_overrunning_work_keeps_its_node_and_the_shortage_is_said(scene, reclaim, pick):
    at_s = scene.at("08:20")
    fixed = job(scene, preemptible=False, ends_s=scene.at("08:00"))
    decision = scene.decide(reclaim(at_s, fixed), at_s)
    assert pick(decision, Park) == pick(decision, DeletePods) == pick(decision, RemoveNodes) == []
    assert stage_of(decision) is Stage.RETURNING
    memory = decision.actions[0].memory
    assert memory.spared == {"e-000": at_s + 3600.0}
    # other nodes are taken in its place, it is not
    assert "e-000" not in [one.node for one in memory.moves if one.stage is Stage.EMPTYING]
    later_s = scene.at("09:00")
    assert scene.decide(reclaim(later_s, fixed, memory=memory), later_s).shortages["h100"] == 25 - 11


def test_overrunning_work_is_ended_only_where_the_fleet_says_so_with_its_grace(scene, reclaim, pick):
    fixed = job(scene, preemptible=False, ends_s=scene.at("08:00"))
    says_so = Limits(end_overrunning_work=True)
    for clock, parked, deleted in (("08:14", 0, 0), ("08:15", 1, 0), ("08:19", 1, 0), ("08:20", 1, 1)):
        at_s = scene.at(clock)
        decision = scene.decide(reclaim(at_s, fixed), at_s, says_so)
        assert (len(pick(decision, Park)), len(pick(decision, DeletePods))) == (parked, deleted), clock


def test_work_that_opted_out_is_not_touched_and_its_node_returns(scene, reclaim, pick):
    at_s = scene.at("08:30")
    decision = scene.decide(reclaim(at_s, job(scene, managed=False)), at_s, Limits(end_overrunning_work=True))
    assert pick(decision, Park) == pick(decision, DeletePods) == []
    assert stage_of(decision) is Stage.RETURNING


def test_work_that_does_not_requeue_is_named(scene, reclaim, pick):
    at_s = scene.at("07:26")
    (park,) = pick(scene.decide(reclaim(at_s, job(scene, requeues=False)), at_s), Park)
    assert "does not requeue" in park.why.text


def test_work_that_came_while_the_cordon_was_away_is_ended_not_evicted(scene, reclaim, pick):
    """Evicting a Job's pod can fail the Job for good."""
    at_s = scene.at("07:40")
    decision = scene.decide(reclaim(at_s, job(scene), stage=Stage.DRAINING, since=at_s - 60.0), at_s)
    assert len(pick(decision, Park)) == 1
    assert pick(decision, Drain) == pick(decision, RemoveNodes) == []


def test_nothing_is_drained_before_the_workloads_pods_are_gone(scene, reclaim, pick):
    at_s = scene.at("07:28")
    decision = scene.decide(reclaim(at_s, job(scene, active=False, parked_by_us=True)), at_s)
    assert pick(decision, Drain) == []
    others = reclaim(at_s, node={"pods": 2})
    assert [one.node for one in pick(scene.decide(others, at_s), Drain)] == ["e-000"]


def test_a_node_is_removed_only_when_it_is_empty_and_still_cordoned(scene, reclaim, pick):
    at_s = scene.at("07:28")
    empty = scene.decide(reclaim(at_s, stage=Stage.DRAINING, since=at_s - 10.0), at_s)
    assert [one.nodes for one in pick(empty, RemoveNodes)] == [("e-000",)]
    open_again = {"cordoned": False, "cordoned_by_us": False}
    decision = scene.decide(reclaim(at_s, stage=Stage.DRAINING, since=at_s - 10.0, node=open_again), at_s)
    assert pick(decision, RemoveNodes) == []
    assert "e-000" in [one.node for one in pick(decision, Cordon)]


def test_a_pod_that_hangs_in_terminating_does_not_hold_the_morning_up_for_ever(scene, reclaim, change):
    """Its volume is dead, it never goes: in the end the machine is taken with it."""
    state, at_s, removed_s = None, scene.at("07:25"), None
    stuck = job(scene, active=False, parked_by_us=True)
    memory = None
    while removed_s is None and at_s < scene.at("09:00"):
        more = {} if memory is None else {"memory": memory}
        state = reclaim(at_s, stuck, node={"pods": 1, "stuck_pods": 1}, **more)
        decision = scene.decide(state, at_s)
        memory = next((one.memory for one in decision.actions if hasattr(one, "memory")), state.memory)
        if any(isinstance(one, RemoveNodes) and "e-000" in one.nodes for one in decision.actions):
            removed_s = at_s
        at_s += 30.0
    assert removed_s is not None
    assert removed_s - scene.at("07:25") <= 40 * 60.0


# --- requeueing


def alone(scene, at_s, *work):
    return scene.state(at_s, production=11, ephemeral=21, replicas=CALM, work=work, quota_gpus=168)


@pytest.mark.parametrize(
    ("more", "activated"),
    [
        ({"nodes": (), "has_quota": False}, 1),
        ({"nodes": ("e-000",), "has_quota": False}, 0),  # quota goes before the pods do
        ({"nodes": (), "has_quota": True}, 0),
        ({"nodes": (), "has_quota": False, "parked_by_us": False}, 0),  # somebody else ended it
        ({"nodes": (), "has_quota": False, "managed": False}, 0),
    ],
)
def test_what_we_parked_requeues_when_it_is_gone_never_what_others_ended(scene, pick, more, activated):
    at_s = scene.at("06:10")
    one = job(scene, **{"active": False, "parked_by_us": True, **more})
    assert len(pick(scene.decide(alone(scene, at_s, one), at_s), Activate)) == activated


# --- turning back


def test_given_up_before_removal_the_node_is_uncordoned_then_forgotten(scene, reclaim, pick):
    at_s = scene.at("07:30")
    decision = scene.decide(reclaim(at_s, stage=Stage.RETURNING), at_s)
    assert [one.node for one in pick(decision, Uncordon)] == ["e-000"]
    free = reclaim(at_s, stage=Stage.RETURNING, node={"cordoned": False, "cordoned_by_us": False})
    assert stage_of(scene.decide(free, at_s)) is None


@pytest.mark.parametrize("stage", [Stage.EMPTYING, Stage.DRAINING])
def test_a_hold_turns_back_what_has_not_left(scene, reclaim, stage):
    at_s = scene.at("07:30")
    hold = (Override(name="o", kind=OverrideKind.HOLD, until_s=at_s + 600, reason="r"),)
    decision = scene.decide(reclaim(at_s, job(scene), stage=stage, overrides=hold), at_s)
    assert stage_of(decision) is Stage.RETURNING
    assert "held by an override" in texts(decision, "§6.9")


@pytest.mark.parametrize("hold", [True, False])
def test_what_is_past_removal_goes_on(scene, reclaim, pick, hold):
    """Whatever is wished for: an override, or a window in which production wants it no more."""
    at_s = scene.at("07:30") if hold else scene.at("02:10")
    overrides = (Override(name="o", kind=OverrideKind.HOLD, until_s=at_s + 600, reason="r"),) if hold else ()
    state = reclaim(at_s, stage=Stage.REMOVING, since=at_s - 10.0, overrides=overrides)
    assert [one.nodes for one in pick(scene.decide(state, at_s), RemoveNodes)] == [("e-000",)]


@pytest.mark.parametrize("pods", [0, 2])
def test_a_reclaim_that_production_no_longer_wants_turns_back(scene, reclaim, pick, pods):
    """Even one whose node is empty by now: the last look is before the point of no return."""
    at_s = scene.at("02:10")  # 8 wanted, 11 there
    decision = scene.decide(reclaim(at_s, node={"pods": pods}), at_s)
    assert stage_of(decision) is Stage.RETURNING
    assert [one for one in texts(decision, "§6.5") if "production no longer wants it" in one]
    assert not [one for one in pick(decision, RemoveNodes) if "e-000" in one.nodes]


def test_a_node_that_somebody_else_cordons_is_given_up(scene, reclaim):
    at_s = scene.at("07:30")
    decision = scene.decide(reclaim(at_s, node={"cordoned": True, "cordoned_by_us": False}), at_s)
    assert stage_of(decision) is Stage.RETURNING
    assert "somebody else has cordoned it" in texts(decision, "§6.8")


def test_a_node_that_vanishes_before_removal_is_not_waited_for(scene, reclaim, change):
    at_s = scene.at("07:30")
    state = reclaim(at_s)
    pool = state.research.pools["h100"]
    gone = change(pool, nodes=pool.nodes[1:])
    state = change(state, research=change(state.research, pools={"h100": gone}))
    decision = scene.decide(state, at_s)
    assert stage_of(decision) is None
    assert "its Node is gone, and not by us" in texts(decision, "§6.6")


@pytest.mark.parametrize("label", [{"tenure": None}, {"managed": False}])
def test_a_node_that_loses_our_label_on_its_way_out_is_not_taken_for_gone(scene, reclaim, pick, label):
    """It stands: growing the other side for it would count it twice."""
    at_s = scene.at("07:30")
    decision = scene.decide(reclaim(at_s, stage=Stage.REMOVING, since=at_s - 10.0, node=label), at_s)
    assert "it is no longer ours to remove" in texts(decision, "§6.6")
    assert not [one for one in pick(decision, RemoveNodes) if "e-000" in one.nodes]
    assert stage_of(decision) is Stage.REMOVING
