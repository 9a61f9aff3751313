"""What people and other controllers do, what is seen of it, and what a dark or stubborn world answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ebbtide.control import actions as act
from ebbtide.control.memory import Memory
from ebbtide.control.state import Bounds, Side
from ebbtide.control.world import Result
from ebbtide.simulate.world.replicas import Manners
from ebbtide.simulate.world.troubles import Trouble, Troubles

HOUR_S = 3600.0
NODE = "h100-p3"


def test_a_persons_cordon_is_seen_and_does_not_become_ours(hands):
    hand = hands()
    hand.world.strike(Trouble.CORDON, NODE, lasts_s=HOUR_S)
    hand.do(act.Cordon, side=Side.PRODUCTION, node=NODE)
    node = hand.node(Side.PRODUCTION, NODE)
    assert (node.cordoned, node.cordoned_by_us, node.marked) == (True, False, True)
    hand.do(act.Uncordon, side=Side.PRODUCTION, node=NODE)
    assert hand.node(Side.PRODUCTION, NODE).cordoned
    hand.wait(HOUR_S)
    assert not hand.node(Side.PRODUCTION, NODE).cordoned


def test_a_person_uncordons_what_we_cordoned(hands):
    hand = hands()
    hand.do(act.Cordon, side=Side.PRODUCTION, node=NODE)
    hand.world.strike(Trouble.UNCORDON)
    node = hand.node(Side.PRODUCTION, NODE)
    assert (node.cordoned, node.cordoned_by_us) == (False, False)


def test_edits_are_seen_with_their_author_and_conflict_with_a_write_on_an_older_sight(hands):
    hand = hands()
    hand.replicas()
    hand.world.strike(Trouble.EDIT_REPLICAS, "chat")
    assert hand.do(act.SetReplicas, workload="chat", replicas=9) is Result.CONFLICT
    assert hand.replicas().set_by == "alice"
    assert hand.replicas().wanted != 8
    assert hand.do(act.SetReplicas, workload="chat", replicas=9) is Result.DONE
    assert hand.replicas().set_by == "ebbtide"
    hand.world.strike(Trouble.EDIT_QUOTA, "h100")
    assert hand.do(act.SetQuota, pool="h100", gpus=32) is Result.CONFLICT
    assert hand.world.observe(0.0).research.quota_set_by == {"h100": "alice"}
    assert hand.do(act.SetQuota, pool="h100", gpus=40) is Result.DONE


@pytest.mark.parametrize("trouble", [Trouble.GITOPS_REPLICAS, Trouble.GITOPS_QUOTA, Trouble.GITOPS_BOUNDS])
def test_gitops_puts_values_back_every_three_minutes_until_it_stops(hands, trouble):
    auto = Manners(autoscaler="hpa", bounds=Bounds(least=8, most=10))
    hand = hands(manners={"chat": auto} if trouble is Trouble.GITOPS_BOUNDS else {})
    hand.replicas()
    hand.world.strike(trouble, "h100" if trouble is Trouble.GITOPS_QUOTA else "chat", lasts_s=1000.0)
    for _ in range(5):
        hand.replicas()
        assert write(hand, trouble, 9) is Result.DONE
        assert seen(hand, trouble) == 9
        hand.wait(181.0)
        assert seen(hand, trouble) == (32 if trouble is Trouble.GITOPS_QUOTA else 8)
    hand.wait(200.0)
    hand.replicas()
    write(hand, trouble, 9)
    hand.wait(400.0)
    assert seen(hand, trouble) == 9


def write(hand, trouble, value):
    if trouble is Trouble.GITOPS_REPLICAS:
        return hand.do(act.SetReplicas, workload="chat", replicas=value)
    if trouble is Trouble.GITOPS_QUOTA:
        return hand.do(act.SetQuota, pool="h100", gpus=value)
    return hand.do(act.SetBounds, workload="chat", bounds=Bounds(least=value, most=10))


def seen(hand, trouble):
    state = hand.world.observe(hand.world.now_s)
    one = state.production.replicas["chat"]
    if trouble is Trouble.GITOPS_REPLICAS:
        return one.wanted
    return state.research.quota_gpus["h100"] if trouble is Trouble.GITOPS_QUOTA else one.bounds.least


def test_a_cluster_autoscaler_takes_an_empty_node_that_nobody_marked(hands):
    hand = hands(replicas=1)
    (busy,) = hand.replicas().on
    empty = sorted(set(hand.nodes(Side.PRODUCTION)) - {busy})
    hand.do(act.Cordon, side=Side.PRODUCTION, node=empty[0])
    for name in (busy, empty[0], "h100-r1"):
        hand.world.strike(Trouble.AUTOSCALER, name)
    assert hand.size(Side.PRODUCTION) == 6
    hand.world.strike(Trouble.AUTOSCALER, empty[1], lasts_s=2 * HOUR_S)
    assert hand.size(Side.PRODUCTION) == 5
    hand.wait(HOUR_S)
    assert empty[1] not in hand.nodes(Side.PRODUCTION)
    assert hand.world.truth("h100").moving == 1
    hand.wait(3 * HOUR_S)
    assert len(hand.nodes(Side.PRODUCTION)) == 6


def test_a_deleted_node_object_hides_its_machine_and_its_pods_until_it_registers_anew(hands):
    hand = hands(replicas=2)
    (node,) = hand.replicas().on
    hand.do(act.Cordon, side=Side.PRODUCTION, node=node)
    hand.world.strike(Trouble.DELETE_NODE, node, lasts_s=1000.0)
    assert node not in hand.nodes(Side.PRODUCTION)
    assert hand.replicas().ready == 0
    assert hand.world.truth("h100").hidden == 1
    hand.wait(30.0)
    assert hand.replicas().on == {}  # the Deployment still counts its pods
    hand.wait(1000.0)
    assert not hand.node(Side.PRODUCTION, node).cordoned
    assert hand.replicas().ready == 2
    assert hand.world.truth("h100").hidden == 0


def test_a_strange_node_is_seen_without_a_tenure_and_takes_nothing(hands):
    hand = hands(production_nodes=1, replicas=4)
    for _ in range(4):
        hand.world.strike(Trouble.STRANGE_NODE, "h100", lasts_s=HOUR_S)
    strange = [node for side in Side for node in hand.nodes(side).values() if node.tenure is None]
    assert len(strange) == 4
    hand.do(act.SetReplicas, workload="chat", replicas=5)
    hand.wait(600.0)
    assert hand.replicas().unschedulable == 1
    assert (hand.world.truth("h100").total, hand.world.truth("h100").strange) == (12, 4)
    hand.wait(2 * HOUR_S)
    assert hand.world.truth("h100").strange == 0
    assert sum(hand.size(side) for side in Side) == 12


def test_a_node_stops_being_ready_and_its_pods_are_replaced_while_they_hang(hands):
    hand = hands(replicas=2)
    (node,) = hand.replicas().on
    hand.world.strike(Trouble.NOT_READY, node, lasts_s=HOUR_S)
    assert hand.replicas().ready == 0
    assert not hand.node(Side.PRODUCTION, node).ready
    hand.wait(900.0)
    assert hand.replicas().ready == 2
    assert hand.node(Side.PRODUCTION, node).stuck_pods == 2
    hand.wait(HOUR_S)
    assert hand.node(Side.PRODUCTION, node).ready


def test_a_sick_gpu_is_missing_from_a_ready_node(hands):
    hand = hands()
    hand.world.strike(Trouble.SICK_GPU, NODE, lasts_s=HOUR_S)
    assert (hand.node(Side.PRODUCTION, NODE).ready, hand.node(Side.PRODUCTION, NODE).gpus) == (True, 7)
    hand.wait(HOUR_S)
    assert hand.node(Side.PRODUCTION, NODE).gpus == 8


def test_a_dark_cluster_keeps_its_last_sight_and_takes_no_writes(hands):
    hand = hands()
    last = hand.world.observe(0.0).research
    hand.world.strike(Trouble.DARK_RESEARCH, lasts_s=600.0)
    hand.wait(300.0)
    state = hand.world.observe(300.0)
    assert state.research is last
    assert state.production.seen_at_s == 300.0
    assert hand.do(act.SetQuota, pool="h100", gpus=8) is Result.FAILED
    assert hand.remove(Side.RESEARCH, "h100-r12") is Result.FAILED
    assert hand.do(act.SetReplicas, workload="chat", replicas=9) is Result.DONE
    hand.wait(300.0)
    assert hand.world.observe(600.0).research.seen_at_s == 600.0
    hand.world.strike(Trouble.DARK_PRODUCTION, lasts_s=600.0)
    why = act.Why(rule="§6.1", text="home is there")
    assert hand.world.apply(act.Record(memory=Memory(), why=why), 600.0) is Result.FAILED


def test_a_cluster_never_seen_is_infinitely_old(hands):
    hand = hands()
    hand.world.strike(Trouble.DARK_RESEARCH, lasts_s=600.0)
    assert hand.world.observe(0.0).research.seen_at_s == float("-inf")


def test_the_drivers_clock_may_jump_and_the_worlds_does_not(hands):
    hand = hands()
    assert hand.world.observe(1e9).production.seen_at_s == 1e9
    hand.world.advance(-1e9)
    assert hand.world.now_s == 0.0
    assert hand.world.observe(-50.0).production.seen_at_s == -50.0


def test_writes_fail_before_or_after_they_took_effect_or_conflict(hands):
    for troubles, result, wanted in (
        (Troubles(write_fails=1.0), Result.FAILED, 8),
        (Troubles(answer_lost=1.0), Result.FAILED, 9),
        (Troubles(write_conflicts=1.0), Result.CONFLICT, 8),
    ):
        hand = hands(troubles=troubles)
        assert hand.do(act.SetReplicas, workload="chat", replicas=9) is result
        assert hand.replicas().wanted == wanted


def test_every_trouble_of_a_wild_day_has_a_name_and_all_heals(hands):
    auto = Manners(autoscaler="hpa", bounds=Bounds(least=1, most=4))
    hand = hands(manners={"wide": auto}, troubles=replace(Troubles.wild(), until_s=10 * 24 * HOUR_S), wide=1)
    for _ in range(240):
        hand.wait(HOUR_S)
        hand.nodes(Side.RESEARCH)
    struck = {deed.what for deed in hand.world.tally.deeds}
    assert len(struck) >= len(Trouble)
    assert {deed.who for deed in hand.world.tally.deeds} >= {"alice", "argocd", "provider", "hardware", "network"}
    assert not hand.world.tally.wrongs
    hand.wait(24 * HOUR_S)
    truth = hand.world.truth("h100")
    assert (truth.total, truth.extra, truth.strange, truth.hidden, truth.moving) == (12, 0, 0, 0, len(_joined(hand)))
    assert all(
        node.gpus == 8 and node.ready and not node.stuck_pods for side in Side for node in hand.nodes(side).values()
    )
    assert not any(hand.world.is_dark(side) for side in Side)


def _joined(hand):
    return [node for side in Side for node in hand.joined(side)]


def run(hands, seed):
    hand = hands(seed=seed, troubles=Troubles.wild())
    states = []
    for hour in range(72):
        hand.wait(HOUR_S)
        hand.do(act.SetReplicas, workload="chat", replicas=6 + hour % 5)
        states.append(hand.world.observe(hand.world.now_s))
    return states, hand.world.tally.deeds, hand.world.next_event_s


def test_same_seed_same_run(hands):
    assert run(hands, 3) == run(hands, 3)
    assert run(hands, 3) != run(hands, 4)
