"""Nodes leave by name and come by size, in time and in stages; and what a provider does instead."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ebbtide.control import actions as act
from ebbtide.control.state import Side, Tenure
from ebbtide.control.world import Result
from ebbtide.simulate.world.tally import Place
from ebbtide.simulate.world.troubles import Pace, Provider, Trouble, Troubles

HOUR_S = 3600.0
YIELD_FIRST = "h100-p3"  # reserved nodes have the first two numbers


def moved(hand, name=YIELD_FIRST):
    """Take one node out of production and ask research's pool for one more."""
    hand.remove(Side.PRODUCTION, name)
    hand.wait(600.0)
    hand.grow(Side.RESEARCH, hand.size(Side.RESEARCH) + 1)


def test_a_named_node_leaves_after_a_while_and_no_other(hands):
    hand = hands()
    before = set(hand.nodes(Side.PRODUCTION))
    assert hand.remove(Side.PRODUCTION, YIELD_FIRST) is Result.DONE
    assert hand.node(Side.PRODUCTION, YIELD_FIRST).leaving
    hand.wait(600.0)
    assert set(hand.nodes(Side.PRODUCTION)) == before - {YIELD_FIRST}
    assert hand.size(Side.PRODUCTION) == 5
    assert hand.world.truth("h100").moving == 1
    assert hand.world.truth("h100").total == 12


def test_a_new_node_comes_in_stages(hands):
    hand = hands()
    moved(hand)
    stages = []
    while len(stages) < 3 and hand.world.now_s < 2 * HOUR_S:
        hand.wait(10.0)
        for node in hand.joined(Side.RESEARCH):
            stage = (node.ready, node.gpus)
            if not stages or stages[-1] != stage:
                stages.append(stage)
                assert node.since_s == pytest.approx(hand.world.now_s, abs=10.0)
    assert stages == [(False, 0), (True, 0), (True, 8)]
    (node,) = hand.joined(Side.RESEARCH)
    assert node.tenure is Tenure.EPHEMERAL
    assert node.marked
    assert not node.startup_taint
    assert node.name not in (YIELD_FIRST, "h100-r1")


@pytest.mark.parametrize("seed", range(20))
def test_a_move_takes_20_to_60_minutes(hands, seed):
    hand = hands(seed=seed)
    hand.remove(Side.PRODUCTION, YIELD_FIRST)
    while YIELD_FIRST in hand.nodes(Side.PRODUCTION):
        hand.wait(10.0)
    hand.grow(Side.RESEARCH, 7)
    while not any(node.gpus == 8 for node in hand.joined(Side.RESEARCH)):
        hand.wait(10.0)
    assert 17 * 60 <= hand.world.now_s <= 62 * 60


def test_a_node_with_the_joining_taint_takes_nothing_until_admitted(hands):
    hand = hands(production_nodes=1, replicas=5)
    assert hand.replicas().unschedulable == 1
    hand.remove(Side.RESEARCH, "h100-r4")
    hand.wait(600.0)
    hand.grow(Side.PRODUCTION, 2)
    hand.wait(HOUR_S)
    (node,) = hand.joined(Side.PRODUCTION)
    assert node.gpus == 8
    assert hand.replicas().unschedulable == 1
    assert hand.do(act.Admit, side=Side.PRODUCTION, node=node.name, tenure=Tenure.EPHEMERAL) is Result.DONE
    hand.wait(1.0)
    assert hand.replicas().unschedulable == 0
    assert not hand.node(Side.PRODUCTION, node.name).joining


def test_absolute_sizes_asked_twice_bring_one_node(hands):
    hand = hands()
    hand.remove(Side.PRODUCTION, YIELD_FIRST, "h100-p4")
    hand.wait(600.0)
    for _ in range(3):
        hand.grow(Side.RESEARCH, 7)
        hand.wait(60.0)
    hand.wait(2 * HOUR_S)
    assert len(hand.nodes(Side.RESEARCH)) == 7


def test_a_size_below_what_stands_takes_nodes_that_nobody_named_and_that_is_a_wrong(hands):
    hand = hands()
    hand.remove(Side.PRODUCTION, YIELD_FIRST, size=3)
    hand.wait(HOUR_S)
    assert len(hand.nodes(Side.PRODUCTION)) == 3
    assert any("nobody named" in wrong.what for wrong in hand.world.tally.wrongs)


def test_a_size_above_what_there_is_finds_no_capacity(hands):
    hand = hands()
    hand.grow(Side.RESEARCH, 8)
    hand.wait(2 * HOUR_S)
    assert hand.world.observe(0.0).research.pool("h100").stock_out_s is not None
    assert len(hand.nodes(Side.RESEARCH)) == 6
    hand.remove(Side.PRODUCTION, YIELD_FIRST)
    hand.remove(Side.PRODUCTION, "h100-p4")
    hand.wait(HOUR_S)
    assert len(hand.nodes(Side.RESEARCH)) == 8
    assert hand.world.observe(0.0).research.pool("h100").stock_out_s is None


def test_removing_a_reserved_node_is_done_and_written_down(hands):
    hand = hands()
    hand.remove(Side.RESEARCH, "h100-r1")
    assert [wrong.to for wrong in hand.world.tally.wrongs] == ["h100-r1"]


def test_going_below_the_minimum_is_written_down(hands):
    hand = hands(production_nodes=2)
    hand.remove(Side.PRODUCTION, YIELD_FIRST)
    assert not hand.world.tally.wrongs
    hand.remove(Side.PRODUCTION, "h100-p4")
    assert hand.world.tally.wrongs[0].what == "left 0 nodes in production, at least 1"


@pytest.mark.parametrize(
    ("provider", "same_id", "same_name"),
    [(Provider.CLOUD, False, False), (Provider.METAL, True, False), (Provider.RELABEL, True, True)],
)
def test_what_comes_by_provider(hands, provider, same_id, same_name):
    hand = hands(provider=provider)
    name = sorted(hand.nodes(Side.PRODUCTION))[0]
    left = hand.node(Side.PRODUCTION, name)
    moved(hand, name)
    hand.wait(HOUR_S)
    (node,) = hand.joined(Side.RESEARCH)
    assert (node.provider_id == left.provider_id) is same_id
    assert (node.name == name) is same_name


def came_by(hand, hours):
    moved(hand)
    hand.wait(hours * HOUR_S)
    return [node for node in hand.joined(Side.RESEARCH) if node.gpus == 8]


def test_a_delivery_that_fails_is_tried_again_when_asked_anew(hands):
    hand = hands(troubles=Troubles(delivery_fails=1.0))
    assert not came_by(hand, 1.9)
    assert hand.world.tally.counts["provider", "failed to bring a node"] == 1
    hand.world._clouds["h100"].troubles = Troubles()
    hand.grow(Side.RESEARCH, 7)
    hand.wait(HOUR_S)
    assert len(hand.joined(Side.RESEARCH)) == 1


def test_a_delivery_that_fails_is_tried_again_by_the_provider_hours_later(hands):
    hand = hands(troubles=Troubles(delivery_fails=1.0))
    came_by(hand, 1.0)
    hand.world._clouds["h100"].troubles = Troubles()
    hand.wait(8 * HOUR_S)
    assert len(hand.joined(Side.RESEARCH)) == 1


def test_a_delivery_stalls_or_is_late(hands):
    assert not came_by(hands(troubles=Troubles(delivery_stalls=1.0)), 2.0)
    assert came_by(hands(troubles=Troubles(delivery_stalls=1.0)), 8.0)
    quick = Pace(delivery_s=(1500.0, 1500.0))
    assert came_by(hands(pace=quick), 0.6)
    assert not came_by(hands(pace=quick, troubles=Troubles(delivery_late=1.0)), 0.6)


def test_broken_gpus_stay_broken_all_night_on_a_ready_node(hands):
    hand = hands(troubles=Troubles(broken_gpus=1.0))
    moved(hand)
    hand.wait(2 * HOUR_S)
    (node,) = hand.joined(Side.RESEARCH)
    assert node.ready
    assert node.gpus < 8
    assert not hand.world.machines("h100")[2].whole
    hand.wait(13 * HOUR_S)
    assert hand.joined(Side.RESEARCH)[0].gpus == 8


def test_a_node_may_never_be_ready(hands):
    hand = hands(troubles=Troubles(never_ready=1.0))
    moved(hand)
    hand.wait(2.5 * HOUR_S)
    (node,) = hand.joined(Side.RESEARCH)
    assert not node.ready


def test_a_part_comes_and_the_rest_waits_for_capacity(hands):
    hand = hands(troubles=Troubles(delivery_part=1.0))
    names = sorted(hand.nodes(Side.PRODUCTION))[:4]
    hand.remove(Side.PRODUCTION, *names)
    hand.wait(600.0)
    hand.grow(Side.RESEARCH, 10)
    hand.wait(1.5 * HOUR_S)
    assert 1 <= len(hand.joined(Side.RESEARCH)) < 4
    assert hand.world.observe(0.0).research.pool("h100").stock_out_s is not None
    hand.wait(8 * HOUR_S)
    assert len(hand.joined(Side.RESEARCH)) == 4
    assert hand.world.observe(0.0).research.pool("h100").stock_out_s is None


def test_a_node_may_come_twice_until_the_provider_notices(hands):
    hand = hands(troubles=Troubles(delivery_twice=1.0))
    moved(hand)
    hand.wait(1.5 * HOUR_S)
    assert len(hand.joined(Side.RESEARCH)) == 2
    assert hand.world.truth("h100").total == 13
    assert hand.world.truth("h100").extra == 1
    hand.wait(10 * HOUR_S)
    assert len(hand.nodes(Side.RESEARCH)) == 7
    assert hand.world.truth("h100").total == 12


def test_a_size_that_counts_a_machine_taken_back_is_lowered_when_all_heals(hands):
    hand = hands(troubles=Troubles(delivery_twice=1.0))
    moved(hand)
    hand.wait(1.5 * HOUR_S)
    _, extra = (node.name for node in hand.joined(Side.RESEARCH))
    hand.remove(Side.RESEARCH, extra, size=7)  # both were counted: eight, less this one
    hand.wait(600.0)
    hand.grow(Side.PRODUCTION, 6)
    hand.wait(120.0)
    assert sum(hand.size(side) for side in Side) == 13
    hand.world.heal()
    hand.wait(4 * HOUR_S)
    assert sum(hand.size(side) for side in Side) == 12
    assert hand.world.truth("h100").total == 12
    assert hand.world.observe(0.0).production.pool("h100").stock_out_s is None


def test_a_machine_that_nobody_asks_for_is_put_back_when_all_heals(hands):
    hand = hands()
    hand.remove(Side.PRODUCTION, YIELD_FIRST)
    hand.wait(6 * HOUR_S)
    assert len(hand.nodes(Side.RESEARCH)) == 6
    hand.world.heal()
    hand.wait(10 * HOUR_S)
    assert len(hand.nodes(Side.RESEARCH)) == 7


def test_removal_is_slow_or_stalls(hands):
    usual = Pace(removal_s=(100.0, 100.0))
    for troubles, least_s in (
        (Troubles(), 100.0),
        (Troubles(removal_slow=1.0), 300.0),
        (Troubles(removal_stalls=1.0), 2 * HOUR_S),
    ):
        hand = hands(pace=usual, troubles=troubles)
        hand.remove(Side.PRODUCTION, YIELD_FIRST)
        hand.wait(least_s - 1.0)
        assert YIELD_FIRST in hand.nodes(Side.PRODUCTION)
        hand.wait(9 * HOUR_S)
        assert YIELD_FIRST not in hand.nodes(Side.PRODUCTION)


def test_a_hundred_nodes_at_once_are_slower(hands):
    pace = Pace(delivery_s=(1000.0, 1000.0), ready_s=(60.0, 60.0), crowd_factor=0.5)
    hand = hands(pace=pace)
    names = sorted(hand.nodes(Side.PRODUCTION))[:4]
    hand.remove(Side.PRODUCTION, *names)
    hand.wait(600.0)
    hand.grow(Side.RESEARCH, 10)
    hand.wait(1999.0)
    assert not hand.joined(Side.RESEARCH)
    hand.wait(2.0)
    assert len(hand.joined(Side.RESEARCH)) == 4


def test_no_capacity_for_a_while_holds_deliveries_back(hands):
    hand = hands(pace=Pace(delivery_s=(1000.0, 1000.0)))
    hand.world.strike(Trouble.STOCK_OUT, "h100")
    moved(hand)
    hand.wait(1001.0)
    assert hand.world.observe(0.0).research.pool("h100").stock_out_s == pytest.approx(1600.0)
    hand.wait(7 * HOUR_S)
    assert len(hand.joined(Side.RESEARCH)) == 1


def test_gpu_hours_by_place_add_up_to_the_fleets(hands):
    hand = hands(troubles=replace(Troubles.wild(), delivery_twice=0.0))
    for name in sorted(hand.nodes(Side.PRODUCTION))[:4]:
        moved(hand, name)
        hand.wait(HOUR_S)
    hand.wait(5 * HOUR_S)
    hours = hand.world.gpu_h("h100")
    assert sum(hours.values()) == pytest.approx(12 * 8 * hand.world.now_s / HOUR_S)
    assert hours[Place.MOVING] > 0.0
