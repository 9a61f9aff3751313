"""Replicas start slowly, end slowly or hang, and go from the wrong nodes unless their cost is lowered."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ebbtide.control import actions as act
from ebbtide.control.state import Bounds, Side
from ebbtide.control.world import Result
from ebbtide.simulate.fcfs import Capacity
from ebbtide.simulate.world.demand import LiveDemand
from ebbtide.simulate.world.replicas import Manners
from ebbtide.simulate.world.troubles import Trouble, Troubles


def scale(hand, replicas, name="chat"):
    return hand.do(act.SetReplicas, workload=name, replicas=replicas)


def test_a_replica_is_ready_after_its_startup_time(hands):
    hand = hands()
    scale(hand, 9)
    hand.wait(200.0)
    assert (hand.replicas().wanted, hand.replicas().ready) == (9, 8)
    hand.wait(200.0)
    assert hand.replicas().ready == 9


def test_a_replica_may_be_slow(hands):
    hand = hands(troubles=Troubles(pods_slow=1.0))
    scale(hand, 9)
    hand.wait(600.0)
    assert hand.replicas().ready == 8


def test_replicas_without_room_are_unschedulable_until_there_is_some(hands):
    hand = hands(production_nodes=1, replicas=4)
    scale(hand, 6)
    hand.wait(1000.0)
    assert (hand.replicas().ready, hand.replicas().unschedulable) == (4, 2)
    scale(hand, 4)
    assert (hand.replicas().ready, hand.replicas().unschedulable) == (4, 0)


def test_a_replica_wider_than_a_node_takes_whole_nodes(hands):
    hand = hands(wide=2, replicas=5)
    on = hand.replicas("wide").on
    assert len(on) == 4
    assert not set(on) & set(hand.replicas().on)
    hand.remove(Side.PRODUCTION, next(iter(on)))
    hand.wait(600.0)
    assert hand.replicas("wide").ready == 1


def test_ended_pods_finish_their_requests_before_their_gpus_are_free(hands):
    hand = hands(production_nodes=1, replicas=4)
    scale(hand, 1)
    hand.wait(0.1)
    (node,) = hand.nodes(Side.PRODUCTION).values()
    assert (hand.replicas().ready, sum(hand.replicas().on.values()), node.pods) == (1, 1, 4)
    hand.wait(120.0)
    assert next(iter(hand.nodes(Side.PRODUCTION).values())).pods == 1


def test_pods_that_hang_keep_their_gpus_and_are_seen_to(hands):
    hand = hands(production_nodes=1, replicas=4, troubles=Troubles(pods_hang=1.0))
    scale(hand, 0)
    hand.wait(1000.0)
    (node,) = hand.nodes(Side.PRODUCTION).values()
    assert (node.pods, node.stuck_pods) == (4, 4)
    scale(hand, 1)
    hand.wait(1000.0)
    assert hand.replicas().unschedulable == 1
    hand.do(act.DeletePods, side=Side.PRODUCTION, node=node.name)
    hand.wait(1000.0)
    assert hand.replicas().ready == 1


def test_scaling_down_takes_pods_from_staying_nodes_unless_their_cost_is_lowered(hands):
    staying = {}
    for lowered in (False, True):
        hand = hands(replicas=24)
        leaving = sorted(hand.replicas().on)[0]
        if lowered:
            hand.do(act.LowerDeletionCost, workload="chat", nodes=frozenset({leaving}))
            assert hand.replicas().lowered_cost == {leaving}
        scale(hand, 20)
        staying[lowered] = leaving in hand.replicas().on
    assert staying == {False: True, True: False}


def test_new_pods_do_not_carry_the_lowered_cost(hands):
    hand = hands(replicas=2)
    (node,) = hand.replicas().on
    hand.do(act.LowerDeletionCost, workload="chat", nodes=frozenset({node}))
    scale(hand, 3)
    hand.wait(1.0)
    assert hand.replicas().on == {node: 3}
    assert hand.replicas().lowered_cost == frozenset()


def test_a_stateful_set_removes_its_highest_ordinals_whatever_we_wish(hands):
    hand = hands(replicas=24, manners={"chat": Manners(stateful=True)})
    first = next(iter(hand.replicas().on))
    hand.do(act.LowerDeletionCost, workload="chat", nodes=frozenset({first}))
    scale(hand, 20)
    assert hand.replicas().on[first] == 4


def test_a_cordoned_node_takes_no_new_pods_and_keeps_its_own(hands):
    hand = hands(production_nodes=1, replicas=2)
    (node,) = hand.nodes(Side.PRODUCTION)
    hand.do(act.Cordon, side=Side.PRODUCTION, node=node)
    scale(hand, 3)
    hand.wait(1000.0)
    assert (hand.replicas().ready, hand.replicas().unschedulable) == (2, 1)
    hand.do(act.Uncordon, side=Side.PRODUCTION, node=node)
    hand.wait(1000.0)
    assert hand.replicas().ready == 3


def test_a_drain_moves_pods_elsewhere(hands):
    hand = hands(replicas=2)
    (node,) = hand.replicas().on
    hand.do(act.Cordon, side=Side.PRODUCTION, node=node)
    assert hand.do(act.Drain, side=Side.PRODUCTION, node=node) is Result.DONE
    hand.wait(400.0)
    assert hand.node(Side.PRODUCTION, node).pods == 0
    assert hand.replicas().ready == 2
    assert hand.world.cut_replicas("chat") == 0


def test_a_budget_of_all_replicas_is_never_drained_without_a_surge(hands):
    hand = hands(replicas=2, manners={"chat": Manners(budget=2)})
    (node,) = hand.replicas().on
    hand.do(act.Cordon, side=Side.PRODUCTION, node=node)
    assert hand.replicas().disruptions_allowed == 0
    assert hand.do(act.Drain, side=Side.PRODUCTION, node=node) is Result.REFUSED
    hand.do(act.Surge, workload="chat", replicas=3)
    hand.wait(400.0)
    assert hand.do(act.Drain, side=Side.PRODUCTION, node=node) is Result.REFUSED
    assert hand.node(Side.PRODUCTION, node).pods == 2
    hand.wait(400.0)
    assert hand.node(Side.PRODUCTION, node).pods == 1


def test_pods_die_with_a_machine_and_are_replaced_after_a_while(hands):
    hand = hands(replicas=2)
    (node,) = hand.replicas().on
    hand.remove(Side.PRODUCTION, node)
    assert hand.world.tally.counts["ebbtide", "removed a node with pods"] == 1
    while node in hand.nodes(Side.PRODUCTION):
        hand.wait(1.0)
    assert (hand.replicas().ready, hand.replicas().on, hand.replicas().unschedulable) == (0, {}, 0)
    hand.wait(500.0)
    assert hand.replicas().ready == 2
    assert hand.world.cut_replicas("chat") == 2


def test_a_rollout_replaces_all_pods_and_is_seen(hands):
    hand = hands(replicas=8)
    before = set(hand.world._deployments["chat"].pods)
    hand.world.strike(Trouble.ROLLOUT, "chat")
    assert hand.replicas().rolling
    least = min(_ready_every(hand, 60.0, 60))
    assert not hand.replicas().rolling
    assert least >= 6  # three quarters
    assert hand.replicas().ready == 8
    assert not before & set(hand.world._deployments["chat"].pods)


def _ready_every(hand, step_s, times):
    for _ in range(times):
        hand.wait(step_s)
        yield hand.replicas().ready


def test_an_autoscaler_keeps_to_its_bounds_and_ignores_what_we_write(hands):
    auto = Manners(autoscaler="hpa", bounds=Bounds(least=4, most=10))
    hand = hands(replicas=8, manners={"chat": auto})
    scale(hand, 2)
    hand.wait(20.0)
    assert (hand.replicas().wanted, hand.replicas().set_by) == (4, "hpa")
    hand.do(act.SetBounds, workload="chat", bounds=Bounds(least=9, most=9))
    hand.wait(20.0)
    assert hand.replicas().wanted == 9
    assert hand.do(act.SetBounds, workload="chat", bounds=Bounds(least=9, most=8)) is Result.REFUSED
    hand.do(act.SetReplicas, workload="chat", replicas=0)
    hand.wait(60.0)
    assert hand.replicas().wanted == 0  # it is off at 0


def test_an_autoscaler_follows_its_load(hands):
    live = LiveDemand(starts_s=np.array([0.0, 600.0]), rates_rps={"chat": np.array([8.0, 19.0])})
    auto = Manners(autoscaler="hpa", bounds=Bounds(least=1, most=12), target_rps=2.0)
    hand = hands(replicas=4, manners={"chat": auto}, demand=live)
    assert hand.world.observe(0.0).live_rps == {"chat": 8.0}
    hand.wait(700.0)
    assert hand.replicas().wanted == 10
    assert hand.world.observe(700.0).live_rps == {"chat": 19.0}


def test_ready_over_time_is_a_capacity_for_replays(hands):
    hand = hands()
    scale(hand, 10)
    hand.wait(1000.0)
    scale(hand, 3)
    steps = hand.world.ready("chat")
    capacity = Capacity(starts_s=steps.starts_s, replicas=steps.counts)
    assert capacity.replicas[0] == 8
    assert capacity.replicas[-1] == 3
    assert max(capacity.replicas) == 10


def test_fewer_than_the_minimum_is_done_and_written_down(hands):
    hand = hands()
    scale(hand, 0)
    assert hand.world.tally.wrongs[0].what == "0 replicas, at least 1"


@pytest.mark.parametrize("seed", range(5))
def test_gpus_of_a_node_are_never_held_twice(hands, seed):
    hand = hands(seed=seed, replicas=20, wide=1, troubles=replace(Troubles.wild(), write_fails=0.0))
    for step in range(60):
        scale(hand, 4 + (step * 7) % 20)
        if step % 10 == 5:
            hand.world.strike(Trouble.ROLLOUT, "chat")
        hand.wait(400.0)
        for host in hand.world._clouds["h100"].sides[Side.PRODUCTION].machines.values():
            assert host.used == host.taken == sum(host.residents.values())
            assert host.used <= host.full_gpus
        one = hand.world._deployments["chat"]
        assert sum(pod.counted for pod in one.pods) == one.series.count
        assert len(one.pending) == sum(not pod.hosts for pod in one.pods)
