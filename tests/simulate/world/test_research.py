"""Research work under quota, as Kueue was seen to treat it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ebbtide.control import actions as act
from ebbtide.control.state import Side
from ebbtide.control.world import Result
from ebbtide.simulate.world.jobs import ResearchLoad
from ebbtide.simulate.world.troubles import Trouble, Troubles

HOUR_S = 3600.0
# Whole-node jobs that run for long and never save but at their checkpoints.
STEADY = ResearchLoad(
    backlog=2,
    nodes=(1,),
    hours=(100.0, 100.0),
    checkpoint_s=(1000.0, 1000.0),
    startup_s=0.0,
    saves_on_signal=0.0,
    no_estimate=0.0,
    fill_reserved=False,
)


def quota(hand, gpus):
    return hand.do(act.SetQuota, pool="h100", gpus=gpus)


def held(hand):
    return sum(one.gpus for one in hand.work().values() if one.has_quota)


def test_research_fills_its_quota_on_its_own_nodes(hands):
    hand = hands(load=STEADY)
    hand.wait(1.0)
    assert held(hand) == 32
    assert {node for one in hand.work().values() for node in one.nodes} == {f"h100-r{i}" for i in (9, 10, 11, 12)}


def test_lowering_quota_ends_nothing_and_holds_new_work_back(hands):
    hand = hands(load=STEADY)
    hand.wait(1.0)
    quota(hand, 8)
    hand.wait(HOUR_S)
    assert held(hand) == 32
    name = next(iter(hand.work()))
    hand.do(act.Park, work=name)
    hand.wait(HOUR_S)
    assert held(hand) == 24


def test_a_park_ends_the_whole_gang_after_its_grace(hands):
    hand = hands(load=replace(STEADY, nodes=(2,), saves_on_signal=1.0))
    hand.wait(1.0)
    name, one = next(iter(hand.work().items()))
    assert len(one.nodes) == 2
    hand.do(act.Park, work=name)
    parked = hand.work()[name]
    assert (parked.active, parked.parked_by_us, parked.has_quota, parked.nodes) == (False, True, False, one.nodes)
    hand.wait(181.0)
    assert hand.work()[name].gone
    assert hand.work()[name].parked_by_us


def test_quota_is_free_before_the_pods_are_gone_and_the_next_job_waits_for_the_node(hands):
    hand = hands(production_nodes=9, load=replace(STEADY, saves_on_signal=1.0))
    hand.wait(1.0)
    (first,) = hand.work()
    hand.do(act.Park, work=first)
    hand.wait(0.0)
    waiting = [one for one in hand.work().values() if one.name != first]
    assert [(one.has_quota, one.nodes) for one in waiting] == [(True, ())]
    assert hand.work()[first].nodes
    hand.wait(181.0)
    assert hand.work()[waiting[0].name].nodes == ("h100-r12",)


def test_work_that_waits_for_a_node_stays_pending_when_that_is_cordoned(hands):
    hand = hands(production_nodes=9, load=replace(STEADY, saves_on_signal=1.0))
    hand.wait(1.0)
    (first,) = hand.work()
    hand.do(act.Park, work=first)
    hand.wait(0.0)
    hand.do(act.Cordon, side=Side.RESEARCH, node="h100-r12")
    hand.wait(HOUR_S)
    assert [(one.has_quota, one.nodes) for one in hand.work().values() if one.name != first] == [(True, ())]
    hand.do(act.Uncordon, side=Side.RESEARCH, node="h100-r12")
    hand.wait(1.0)
    assert hand.node(Side.RESEARCH, "h100-r12").pods == 1


def test_work_that_waits_for_a_node_looks_for_another_when_that_is_gone(hands):
    hand = hands(production_nodes=8, load=STEADY, troubles=Troubles(pods_hang=1.0), quota_gpus={"h100": 0})
    hand.do(act.Cordon, side=Side.RESEARCH, node="h100-r11")
    quota(hand, 8)
    hand.wait(1.0)
    first = next(name for name, one in hand.work().items() if one.nodes == ("h100-r12",))
    hand.do(act.Park, work=first)
    hand.wait(1.0)
    (pending,) = (name for name, one in hand.work().items() if one.has_quota and not one.nodes)
    hand.do(act.Uncordon, side=Side.RESEARCH, node="h100-r11")
    hand.wait(600.0)
    assert hand.work()[pending].nodes == ()  # it is bound to its node
    hand.remove(Side.RESEARCH, "h100-r12")
    while hand.work()[pending].has_quota and not hand.work()[pending].nodes and hand.world.now_s < HOUR_S:
        hand.wait(60.0)
    assert hand.work()[pending].nodes == ("h100-r11",)


def test_reactivated_work_goes_back_onto_an_uncordoned_node_and_not_onto_a_cordoned_one(hands):
    for cordoned in (False, True):
        hand = hands(production_nodes=9, load=replace(STEADY, backlog=1))
        hand.wait(1.0)
        ((name, one),) = hand.work().items()
        (node,) = one.nodes
        quota(hand, 0)
        if cordoned:
            hand.do(act.Cordon, side=Side.RESEARCH, node=node)
        hand.do(act.Park, work=name)
        hand.wait(60.0)
        assert hand.node(Side.RESEARCH, node).pods == 0
        hand.do(act.Activate, work=name)
        quota(hand, 8)
        hand.wait(1.0)
        assert hand.node(Side.RESEARCH, node).pods == (0 if cordoned else 1)


@pytest.mark.parametrize(("saves", "lost_s"), [(0.0, 700.0), (1.0, 0.0)])
def test_what_a_preemption_loses_is_the_time_since_the_checkpoint(hands, saves, lost_s):
    hand = hands(production_nodes=9, load=replace(STEADY, saves_on_signal=saves))
    hand.wait(2700.0)
    (name,) = hand.work()
    assert hand.work()[name].checkpointed_s == 2000.0
    quota(hand, 0)
    hand.do(act.Park, work=name)
    hand.wait(300.0)
    done = hand.world.research("h100")
    assert done.lost_gpu_h == pytest.approx(8 * lost_s / HOUR_S)
    assert done.useful_gpu_h == pytest.approx(8 * (2700.0 - lost_s) / HOUR_S)
    assert done.unsaved_gpu_h == 0.0
    job = next(job for job in hand.world.jobs("h100") if job.name == name)
    assert job.saved_s == pytest.approx(2700.0 - lost_s)


def test_work_killed_without_its_grace_saves_nothing(hands):
    hand = hands(production_nodes=9, load=replace(STEADY, saves_on_signal=1.0))
    hand.wait(2700.0)
    ((name, one),) = hand.work().items()
    quota(hand, 0)
    hand.do(act.Park, work=name)
    hand.do(act.DeletePods, side=Side.RESEARCH, node=one.nodes[0])
    assert hand.work()[name].gone
    assert hand.world.research("h100").lost_gpu_h == pytest.approx(8 * 700.0 / HOUR_S)


def test_work_finishes_and_what_it_did_is_useful(hands):
    hand = hands(production_nodes=9, load=replace(STEADY, hours=(1.0, 1.0)))
    hand.wait(2.5 * HOUR_S)
    done = hand.world.research("h100")
    assert done.useful_gpu_h == pytest.approx(16.0)
    assert done.unsaved_gpu_h == pytest.approx(4.0)
    assert done.lost_gpu_h == 0.0


def test_plain_pods_are_lost_for_good_when_they_are_ended(hands):
    hand = hands(production_nodes=9, load=replace(STEADY, plain=1.0, checkpoint_s=(100.0, 100.0)))
    hand.wait(HOUR_S)
    (name,) = hand.work()
    assert not hand.work()[name].requeues
    quota(hand, 0)
    hand.do(act.Park, work=name)
    hand.wait(60.0)
    assert name not in hand.work()
    assert hand.world.research("h100").lost_gpu_h == pytest.approx(8.0)
    assert hand.world.research("h100").useful_gpu_h == 0.0


def test_pods_outside_kueue_cannot_be_parked_and_hold_no_quota(hands):
    hand = hands(production_nodes=9, load=replace(STEADY, outside=1.0))
    hand.wait(1.0)
    ((name, one),) = hand.work().items()
    assert not one.has_quota
    assert hand.do(act.Park, work=name) is Result.REFUSED
    hand.do(act.Cordon, side=Side.RESEARCH, node=one.nodes[0])
    hand.do(act.Drain, side=Side.RESEARCH, node=one.nodes[0])
    hand.wait(60.0)
    assert not hand.work()
    assert hand.node(Side.RESEARCH, one.nodes[0]).pods == 0


@pytest.mark.parametrize(
    ("how", "lost", "said"), [("fails", True, False), ("completes", True, True), ("", False, False)]
)
def test_a_drain_before_a_park_costs_what_the_job_makes_of_it(hands, how, lost, said):
    hand = hands(production_nodes=9, load=replace(STEADY, **({how: 1.0} if how else {})))
    hand.wait(2700.0)
    ((name, one),) = hand.work().items()
    hand.do(act.Cordon, side=Side.RESEARCH, node=one.nodes[0])
    hand.do(act.Drain, side=Side.RESEARCH, node=one.nodes[0])
    hand.wait(60.0)
    if lost:
        assert name not in hand.work()
        assert hand.world.research("h100").useful_gpu_h == 0.0
    else:
        assert (hand.work()[name].has_quota, hand.work()[name].nodes) == (True, ())
        assert hand.world.research("h100").lost_gpu_h == pytest.approx(8 * 700.0 / HOUR_S)
    counts = hand.world.tally.counts
    assert (counts["research", "counted as complete what was not"] == 1) is said


def test_work_that_hangs_in_terminating_keeps_its_node(hands):
    hand = hands(production_nodes=9, load=STEADY, troubles=Troubles(pods_hang=1.0))
    hand.wait(1.0)
    ((name, one),) = hand.work().items()
    hand.wait(1500.0)
    hand.do(act.Park, work=name)
    hand.wait(HOUR_S)
    assert hand.work()[name].checkpointed_s == 1000.0  # what it lost does not change any more
    node = hand.node(Side.RESEARCH, one.nodes[0])
    assert (node.pods, node.stuck_pods) == (1, 1)
    hand.do(act.DeletePods, side=Side.RESEARCH, node=node.name)
    assert hand.work()[name].gone
    assert hand.node(Side.RESEARCH, node.name).stuck_pods == 0


def test_without_a_topology_work_is_admitted_on_quota_that_no_node_holds(hands):
    for topology, seen in ((False, [(True, ())]), (True, [])):
        load = replace(STEADY, nodes=(2,), backlog=1, topology=topology)
        hand = hands(production_nodes=8, load=load, quota_gpus={"h100": 0})
        hand.do(act.Cordon, side=Side.RESEARCH, node="h100-r12")
        quota(hand, 16)
        hand.wait(HOUR_S)
        assert [(one.has_quota, one.nodes) for one in hand.work().values()] == seen


def test_a_gang_dies_with_one_of_its_machines_and_starts_anew_elsewhere(hands):
    hand = hands(production_nodes=7, load=replace(STEADY, nodes=(2,)))
    hand.wait(2700.0)
    ((name, one),) = hand.work().items()
    hand.remove(Side.RESEARCH, one.nodes[0])
    hand.wait(600.0)
    assert set(hand.work()[name].nodes) == {"h100-r10", "h100-r11", "h100-r12"} - {one.nodes[0]}
    assert hand.world.research("h100").lost_gpu_h > 0.0


def test_what_others_deactivated_is_not_activated(hands):
    hand = hands(production_nodes=9, load=STEADY)
    hand.wait(1.0)
    (name,) = hand.work()
    hand.world.strike(Trouble.DEACTIVATE, name, lasts_s=HOUR_S)
    hand.wait(10.0)
    assert (hand.work()[name].active, hand.work()[name].parked_by_us) == (False, False)
    assert hand.do(act.Activate, work=name) is Result.REFUSED


def test_estimates_and_stubborn_work_are_seen(hands):
    hand = hands(load=replace(STEADY, steadfast=1.0))
    hand.wait(1.0)
    assert not any(one.preemptible for one in hand.work().values())
    assert all(one.ends_s is not None and one.ends_s > 50 * HOUR_S for one in hand.work().values())


@pytest.mark.parametrize("seed", range(4))
def test_what_was_computed_is_useful_lost_or_unsaved_whatever_happens(hands, seed):
    """GPU-time computed, summed each step from what ran, against the books; and GPUs are never held twice."""
    load = ResearchLoad(plain=0.1, outside=0.1, fails=0.1, completes=0.1, hours=(0.2, 5.0), startup_s=0.0)
    hand = hands(production_nodes=2, load=load, seed=seed, troubles=replace(Troubles.wild(), per_day=()))
    queue = hand.world._queues["h100"]
    for step in range(400):
        hand.wait(30.0)
        names = [name for name, one in hand.work().items() if not one.nodes or "r" in one.nodes[0]]
        if step % 20 == 7 and names:
            hand.do(act.Park, work=names[step % len(names)])
        if step % 20 == 17:
            for one in hand.work().values():
                if one.parked_by_us:
                    hand.do(act.Activate, work=one.name)
        if step % 50 == 33:
            node = sorted(hand.nodes(Side.RESEARCH))[step % 6]
            hand.do(act.Drain, side=Side.RESEARCH, node=node)
        for host in queue.pool.machines.values():
            assert host.used == sum(host.residents.values()) <= host.full_gpus
        admitted = sum(job.gpus for job in queue.shown if job.has_quota and not job.reserved)
        assert queue.admitted_gpus == admitted
    done = hand.world.research("h100")
    jobs = hand.world.jobs("h100")
    assert len({job.name for job in jobs}) == len(jobs)
    computed_s = sum(job.computed_gpu_s(hand.world.now_s) for job in jobs)
    assert done.useful_gpu_h + done.lost_gpu_h + done.unsaved_gpu_h == pytest.approx(computed_s / HOUR_S)
    assert done.lost_gpu_h > 0.0
