"""A schedule under control in the simulated world: what comes of it, against what was planned."""

from __future__ import annotations

import math

import numpy as np
import pytest
from whenever import OffsetDateTime, Time, hours

from ebbtide.control.memory import Direction
from ebbtide.fleet.demand import Seen, Series
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import WEEK, DayPattern, windows_of
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.schedule import Schedule
from ebbtide.fleet.workload import DemandRef, Service, Target, TargetKind, Workload
from ebbtide.simulate.drive import drive
from ebbtide.simulate.driven import LIVE_LAG_S, driven, live_demand
from ebbtide.simulate.hand_schedule import hand_schedule
from ebbtide.simulate.realised import Realised, scheduled
from ebbtide.simulate.world.demand import LiveDemand
from ebbtide.simulate.world.simulated import SimulatedWorld
from ebbtide.simulate.world.start import Start
from ebbtide.simulate.world.troubles import Pace, Troubles

BEGIN_S = float(OffsetDateTime(2026, 9, 14, offset=hours(0)).timestamp())
DAY_S = 86_400.0
END_S = BEGIN_S + 2 * DAY_S
ALL_DAY = windows_of(DayPattern(days=WEEK, starts=(Time(0),)))
TIDE = windows_of(DayPattern(days=WEEK, starts=(Time(0), Time(8), Time(20))))


def service(name: str, gpus: int) -> Workload:
    return Workload(
        name=name,
        demand=DemandRef(source="s", key=name),
        pool="h100",
        gpus_per_replica=gpus,
        service=Service(time_s=6.0, scv=1.0),
        targets=(Target(kind=TargetKind.WAIT, bound_s=2.0),),
    )


def fleet() -> Fleet:
    return Fleet(
        name="tide",
        digest="sha256:tide",
        time_zone="UTC",
        confidence=0.95,
        patterns=(),
        pools=(Pool(name="h100", gpus_per_node=8, nodes=14, reserved_nodes=2, yield_time_s=1200, reclaim_time_s=2700),),
        workloads=(service("chat", 1), service("agents", 4)),
        research=Research(checkpoint_interval_s=1800.0),
    )


def plan(windows: tuple, **replicas: tuple[int, ...]) -> Schedule:
    return hand_schedule(fleet(), windows, replicas, valid_until=OffsetDateTime(2027, 9, 14, offset=hours(0)))


def run(schedule: Schedule, *, troubles: Troubles | None = None, seed: int = 3, live: LiveDemand | None = None):
    return driven(fleet(), schedule, start_s=BEGIN_S, end_s=END_S, seed=seed, troubles=troubles, live=live)


def tide() -> Schedule:
    return plan(TIDE, chat=(12, 40, 20), agents=(2, 9, 4))


def flat(found: Realised) -> list:
    pools = [(one.edges_s, one.production, one.moving, one.research) for one in found.pools]
    steps = [(one.starts_s, one.replicas) for one in (*found.capacity.values(), *found.pods.values())]
    arrays = [array.tolist() for row in (*pools, *steps) for array in row]
    return [*arrays, found.given_gpu_h, found.lost_gpu_h, found.moves, found.shortages]


def test_what_moves_nothing_is_as_it_was_scheduled() -> None:
    schedule = plan(ALL_DAY, chat=(23,), agents=(5,))
    found, asked = run(schedule), scheduled(fleet(), schedule, start_s=int(BEGIN_S), end_s=int(END_S))
    for name in ("chat", "agents"):
        assert found.capacity[name].starts_s.tolist() == asked.capacity[name].starts_s.tolist()
        assert found.capacity[name].replicas.tolist() == asked.capacity[name].replicas.tolist()
        assert found.pods[name].replicas.tolist() == asked.pods[name].replicas.tolist()
    assert found.production_gpu_h == pytest.approx(asked.production_gpu_h) == 6 * 8 * 48
    assert found.given_gpu_h == pytest.approx(asked.given_gpu_h)
    assert (found.moves, found.lost_gpu_h, found.moving_gpu_h, found.shortages) == (0, 0.0, 0.0, ())


def test_nodes_come_in_time_and_every_gpu_hour_is_somebodys() -> None:
    schedule = tide()
    found, asked = run(schedule), scheduled(fleet(), schedule, start_s=int(BEGIN_S), end_s=int(END_S))
    assert found.production_gpu_h + found.moving_gpu_h + found.given_gpu_h == pytest.approx(14 * 8 * 48)
    assert found.moves == asked.moves
    assert found.production_gpu_h == pytest.approx(asked.production_gpu_h, rel=0.1)
    assert 0.0 < found.lost_gpu_h < 0.1 * found.given_gpu_h
    chat = found.capacity["chat"]
    noon = chat.replicas[np.searchsorted(chat.starts_s, BEGIN_S + 12 * 3600, side="right") - 1]
    assert noon == 40
    assert chat.replicas[-1] == 20


def test_more_than_the_fleet_has_is_counted_as_if_it_were_there() -> None:
    found = run(plan(ALL_DAY, chat=(100,), agents=(3,)))
    assert found.pools[0].over == 2
    assert found.capacity["chat"].replicas.tolist() == [100]
    assert set(found.pools[0].research.tolist()) == {2}


@pytest.mark.parametrize("troubles", [Troubles.usual(), Troubles.wild()], ids=["usual", "wild"])
def test_with_troubles_all_is_finite_and_the_same_seed_is_the_same_run(troubles: Troubles) -> None:
    first, again, other = (run(tide(), troubles=troubles, seed=seed) for seed in (5, 5, 6))
    assert flat(first) == flat(again)
    assert flat(first) != flat(other)
    for one in (first, other):
        numbers = (one.production_gpu_h, one.moving_gpu_h, one.given_gpu_h, one.lost_gpu_h)
        assert all(math.isfinite(number) and number >= 0.0 for number in numbers)
        assert all(steps.replicas[-1] > 0 for steps in one.capacity.values()), "who waits at the end is served"


def test_live_demand_is_seen_late_and_gaps_are_not_seen() -> None:
    seen = np.array([Seen.OBSERVED, Seen.MISSING, Seen.OBSERVED], dtype=np.uint8)
    series = Series(key="chat", start_s=0, interval_s=600, rate_rps=np.array([1.0, 2.0, 3.0]), seen=seen)
    live = live_demand({"chat": series}, start_s=0.0, end_s=1800.0)
    at = [live.rate_rps("chat", second) for second in (0.0, LIVE_LAG_S, 600 + LIVE_LAG_S, 1200 + LIVE_LAG_S)]
    assert at == [None, 1.0, None, 3.0]


def test_the_guard_answers_demand_above_the_plan() -> None:
    starts_s = BEGIN_S + np.arange(0.0, 2 * DAY_S, 600.0)
    hours_in = (starts_s - BEGIN_S) / 3600
    rates = {"chat": np.where((hours_in > 2) & (hours_in < 5), 3.0, 1.0), "agents": np.ones(len(starts_s))}
    schedule = tide()
    held = [type(one)(name=one.name, replicas=one.replicas, holds_rps=(2.0, 9.0, 9.0)) for one in schedule.workloads]
    watched = Schedule(
        **{name: getattr(schedule, name) for name in Schedule.__slots__ if name != "workloads"}, workloads=tuple(held)
    )
    calm, alert = run(watched), run(watched, live=LiveDemand(starts_s=starts_s, rates_rps=rates))
    at_four = [
        int(one.capacity["chat"].replicas[np.searchsorted(one.capacity["chat"].starts_s, BEGIN_S + 4 * 3600) - 1])
        for one in (calm, alert)
    ]
    assert at_four == [12, 18]


def test_moves_take_what_the_fleet_says() -> None:
    world = SimulatedWorld(
        fleet(), seed=4, start=Start(at_s=BEGIN_S, production_nodes={"h100": 6}), pace=Pace(as_told=True)
    )
    drive(world, fleet(), tide(), clock=world, until_s=BEGIN_S + 10 * DAY_S, least_gap_s=60.0)
    # Pods' grace and looks once a minute come on top of the nodes' own steps: minutes, which a yield feels more.
    for direction, told_s, longer in ((Direction.RECLAIM, 2700.0, 1.15), (Direction.YIELD, 1200.0, 1.35)):
        took_s = [one.took_s for one in world.memory.finished if one.direction is direction]
        assert len(took_s) > 30
        assert 0.8 * told_s < np.quantile(took_s, 0.9) < longer * told_s
