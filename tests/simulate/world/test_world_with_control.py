"""The controller in the wild world, with a writer that crashes between any two actions and a clock that jumps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from whenever import OffsetDateTime, Time, hours

from ebbtide.control.actions import Record
from ebbtide.control.decide import decide
from ebbtide.control.state import Side
from ebbtide.control.world import Result
from ebbtide.fleet.horizon import WEEK, DayPattern, windows_of
from ebbtide.fleet.schedule import PoolColumn, Schedule, WorkloadColumn
from ebbtide.simulate.world.jobs import ResearchLoad
from ebbtide.simulate.world.troubles import Trouble, Troubles

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
PRODUCTION_NODES = (3, 8, 5)
SCHEDULE = Schedule(
    name="day-and-night",
    fleet_name="f",
    fleet_digest="d",
    time_zone="UTC",
    valid_until=OffsetDateTime(2030, 1, 1, offset=hours(0)),
    windows=windows_of(DayPattern(days=WEEK, starts=(Time(0), Time(8), Time(16)))),
    workloads=(
        WorkloadColumn(name="chat", replicas=(10, 20, 16), holds_rps=(1e9,) * 3),
        WorkloadColumn(name="wide", replicas=(0, 1, 0), holds_rps=(1e9,) * 3),
    ),
    pools=(
        PoolColumn(
            name="h100",
            production_nodes=PRODUCTION_NODES,
            ephemeral_nodes=tuple(10 - nodes for nodes in PRODUCTION_NODES),
            ephemeral_quota_gpus=tuple(8 * (10 - nodes) for nodes in PRODUCTION_NODES),
            lead_s=(0.0, 2.5 * HOUR_S, 0.0),
        ),
    ),
)
LOAD = ResearchLoad(steadfast=0.05, plain=0.05, outside=0.02, fails=0.05, completes=0.05, hours=(0.5, 6.0))


def act_until_crash(world, actions, at_s, rng, crashes):
    """Apply in order, as a tick does; with a chance the writer dies between two actions."""
    for action in actions:
        if rng.random() < crashes:
            return
        result = world.apply(action, at_s)
        if isinstance(action, Record) and result is not Result.DONE:
            return


def drive(hand, *, until_s, rng, crashes, skew, check):
    world = hand.world
    while world.now_s < until_s:
        clock_s = world.now_s + (rng.normal(0.0, 600.0) if rng.random() < skew else 0.0)
        decision = decide(world.observe(clock_s), world.fleet, SCHEDULE, clock_s)
        act_until_crash(world, decision.actions, clock_s, rng, crashes)
        check(world)
        next_s = min(decision.next_look_s, world.next_event_s, world.now_s + HOUR_S)
        world.advance(max(next_s, world.now_s + 60.0))


def machines_add_up(world):
    """Every machine of the fleet in one place, every Node object one machine's, reserved ones where they were."""
    truth, machines = world.truth("h100"), world.machines("h100")
    assert truth.total == len({one.number for one in machines}) == 12 + truth.extra
    names = [one.node for one in machines if one.node]
    assert len(names) == len(set(names))
    assert all(one.side is Side.RESEARCH and not one.leaving for one in machines if one.reserved)
    clouds = world._clouds["h100"]
    stand = [host.machine.number for pool in clouds.sides.values() for host in pool.machines.values()]
    stock = [machine.number for machine in clouds.stock]
    assert len(stand) + len(stock) == len({*stand, *stock})


@pytest.mark.parametrize("seed", range(8))
def test_machines_add_up_under_any_trouble_crash_and_jump(hands, seed):
    hand = hands(production_nodes=3, replicas=10, load=LOAD, seed=seed, troubles=Troubles.wild())
    rng = np.random.default_rng(seed)
    drive(hand, until_s=4 * DAY_S, rng=rng, crashes=0.1, skew=0.05, check=machines_add_up)
    assert hand.world.tally.counts["ebbtide", "RemoveNodes"] > 0
    assert not hand.world.tally.wrongs


@pytest.mark.parametrize("seed", range(3))
def test_once_troubles_stop_the_days_follow_the_schedule(hands, seed):
    """All troubles but those that bring more machines than the Fleet has."""
    wild = Troubles.wild()
    others = tuple((trouble, rate) for trouble, rate in wild.per_day if trouble is not Trouble.STRANGE_NODE)
    troubles = replace(wild, delivery_twice=0.0, per_day=others, until_s=2 * DAY_S)
    load = replace(LOAD, steadfast=0.0, outside=0.0)
    hand = hands(production_nodes=3, replicas=10, load=load, seed=seed, troubles=troubles)
    rng = np.random.default_rng(seed)
    drive(hand, until_s=4 * DAY_S, rng=rng, crashes=0.05, skew=0.0, check=machines_add_up)
    reached = []
    for hour, nodes in ((2.0, 3), (14.0, 8), (22.0, 5)):
        drive(hand, until_s=4 * DAY_S + hour * HOUR_S, rng=rng, crashes=0.0, skew=0.0, check=machines_add_up)
        truth = hand.world.truth("h100")
        reached.append((truth.usable_production - nodes, truth.usable_research + nodes - 10))
    assert reached == [(0, 0)] * 3
    assert hand.replicas().ready == 16
    assert not hand.world.tally.wrongs
