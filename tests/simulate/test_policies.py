"""Static and hand-set windows from past days whose needs are known."""

from __future__ import annotations

import numpy as np
import pytest

from ebbtide.fleet.demand import Series
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.workload import Balancing, DemandRef, Service, Target, TargetKind, Workload
from ebbtide.queueing.sizing import least_servers
from ebbtide.simulate.plays import TARGETS, autoscaler_of, tuned_target
from ebbtide.simulate.policies import PastNeeds, hand_set, past_needs, static_replicas

DAY = [2] * 4 + [9] * 5 + [3] * 3  # by two hours: a day from 08:00 to 18:00


def workload(name: str = "chat", **fields: object) -> Workload:
    return Workload(
        name=name,
        demand=DemandRef(source="s", key=name),
        pool="h100",
        gpus_per_replica=1,
        service=Service(time_s=10.0),
        targets=(Target(kind=TargetKind.WAIT, bound_s=5.0),),
        balancing=Balancing.POOLED,
        startup_time_s=120.0,
        **fields,
    )


def needs(days: list[list[int]], **fields: object) -> PastNeeds:
    return PastNeeds(workload=workload(**fields), needs=np.array(days))


def test_static_is_the_worst_window_at_the_confidence_of_its_days() -> None:
    spike = [*DAY[:6], 40, *DAY[7:]]
    days = [DAY] * 19 + [spike]
    assert static_replicas(needs(days), 0.95) == 9  # one day of twenty may miss
    assert static_replicas(needs(days), 0.99) == 40
    assert static_replicas(needs(days, min_replicas=12), 0.95) == 12
    assert static_replicas(needs(days, max_replicas=5), 0.95) == 5


def test_an_unseen_window_says_nothing() -> None:
    holes = [[-1] * 12, DAY, [*DAY[:5], -1, *DAY[6:]]]
    assert static_replicas(needs(holes), 0.95) == 9


def test_hours_are_where_the_day_is() -> None:
    chosen = hand_set([needs([DAY] * 8)], 0.95)
    assert (chosen.starts_h, chosen.ends_h) == (8, 18)
    assert (chosen.day["chat"], chosen.night["chat"]) == (9, 3)
    assert chosen.held_share == chosen.static_share == 1.0


def test_hours_are_the_fleets_and_hold_what_static_holds() -> None:
    # A day that comes at 04:00 now and then: hours from 08:00 would miss it on days that static holds.
    early = [2, 2, *([9] * 7), 3, 3, 3]
    chosen = hand_set([needs([DAY, early] * 5), needs([[3] * 12] * 10, name="agents")], 0.95)
    assert (chosen.starts_h, chosen.ends_h) == (4, 18)
    assert chosen.night == {"chat": 3, "agents": 3}


def test_needs_of_past_days_are_those_of_sizing() -> None:
    rates = np.repeat([1.0, 4.0, 2.0], 144)
    rates[150] = np.nan
    seen = np.isnan(rates).astype(np.uint8)
    past = past_needs(
        workload(), Series(key="chat", start_s=0, interval_s=600, rate_rps=rates, seen=seen), time_zone="UTC"
    )
    assert past.days == 3
    for day, rate in enumerate((1.0, 4.0, 2.0)):
        assert (past.needs[day] == least_servers(rate, 10.0, 5.0, 0.95)).all()


def fleet(one: Workload) -> Fleet:
    return Fleet(
        name="f",
        digest="",
        time_zone="UTC",
        confidence=0.95,
        patterns=(),
        pools=(Pool(name="h100", gpus_per_node=8, nodes=10, reserved_nodes=4),),
        workloads=(one,),
        research=Research(),
    )


@pytest.mark.parametrize(("gpus", "most"), [(1, 48), (3, 12), (8, 6), (16, 3)])
def test_an_autoscaler_has_no_more_pods_than_the_pool_holds(gpus: int, most: int) -> None:
    one = Workload(
        name="wide",
        demand=DemandRef(source="s", key="wide"),
        pool="h100",
        gpus_per_replica=gpus,
        service=Service(time_s=10.0),
        targets=(Target(kind=TargetKind.WAIT, bound_s=5.0),),
        min_replicas=0,
    )
    scaler = autoscaler_of(fleet(one), one, 0.5)
    assert (scaler.min_replicas, scaler.max_replicas) == (1, most)


def test_the_target_is_the_highest_that_holds_what_static_holds() -> None:
    # A rate that steps up fivefold within the start-up time: only slack is fast enough.
    rates = np.tile(np.repeat([0.5, 2.5], 6), 36)
    series = Series(key="chat", start_s=0, interval_s=600, rate_rps=rates, seen=np.zeros(len(rates), np.uint8))
    one = workload()
    jumpy = tuned_target(fleet(one), one, series, 40, seed=(1,))
    flat = Series(key="chat", start_s=0, interval_s=600, rate_rps=np.full(432, 2.5), seen=np.zeros(432, np.uint8))
    calm = tuned_target(fleet(one), one, flat, 40, seed=(1,))
    assert jumpy.target < calm.target
    assert calm.held_share == calm.static_share == 1.0
    none = tuned_target(fleet(one), one, flat, 5, seed=(1,))
    assert none.static_share == 0.0  # anything will do: the cheapest is taken
    assert none.target == TARGETS[-1]
