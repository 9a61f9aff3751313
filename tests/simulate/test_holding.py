"""Nodes by side over time: every node is somewhere, moves take their time, pauses too short for a move are none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from whenever import OffsetDateTime, Time, hours

from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import WEEK, DayPattern, windows_of
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.schedule import PoolColumn, Schedule, WorkloadColumn
from ebbtide.fleet.workload import DemandRef, Service, Target, TargetKind, Workload
from ebbtide.simulate.fcfs import Capacity
from ebbtide.simulate.holding import held_nodes, without_short_gaps
from ebbtide.simulate.realised import on_demand, scheduled, window_starts

POOL = Pool(
    name="h100",
    gpus_per_node=8,
    nodes=20,
    reserved_nodes=2,
    yield_time_s=1200.0,
    reclaim_time_s=2700.0,
    moves_at_once=3,
)
DAY = windows_of(DayPattern(days=WEEK, starts=(Time(0), Time(8), Time(20))))


def fleet(**fields: object) -> Fleet:
    chat = Workload(
        name="chat",
        demand=DemandRef(source="log", key="chat"),
        pool="h100",
        gpus_per_replica=2,
        service=Service(time_s=6.0),
        targets=(Target(kind=TargetKind.WAIT, bound_s=2.0),),
    )
    return Fleet(
        name="f",
        digest="",
        time_zone="America/New_York",
        confidence=0.95,
        patterns=(),
        pools=(POOL,),
        workloads=(chat,),
        research=Research(checkpoint_interval_s=1800.0),
        **fields,
    )


@st.composite
def needs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    starts = sorted(draw(st.lists(st.integers(1, 200), unique=True, max_size=8)))
    nodes = draw(st.lists(st.integers(0, 18), min_size=len(starts) + 1, max_size=len(starts) + 1))
    return np.array([0, *starts]) * 600.0, np.array(nodes)


@given(case=needs())
def test_every_node_is_on_one_side_and_production_never_has_too_few(case: tuple[np.ndarray, np.ndarray]) -> None:
    starts_s, nodes = case
    held = held_nodes(POOL, starts_s, nodes, end_s=130_000.0)
    assert (held.production + held.moving + held.research == POOL.nodes).all()
    assert held.research.min() >= POOL.reserved_nodes
    needed = nodes[np.searchsorted(starts_s, held.edges_s[:-1], side="right") - 1]
    assert (held.production >= needed).all()
    assert held.reclaimed - held.yielded == nodes[-1] - nodes[0]


def test_a_lead_is_batches_of_reclaims_and_the_start_up_after_them() -> None:
    # Seven nodes, three at once: three batches of 45 minutes, done five minutes before 10:00.
    held = held_nodes(
        POOL,
        np.array([0.0, 36_000.0]),
        np.array([4, 11]),
        end_s=72_000.0,
        startup_s=np.array([0.0, 300.0]),
    )
    at = held.edges_s[:-1]
    assert at[held.moving > 0][0] == 36_000.0 - 300.0 - 3 * 2700.0
    assert held.edges_s[np.flatnonzero(held.production == 11)[0]] == 36_000.0 - 300.0
    assert held.gpu_h(held.moving) == pytest.approx(7 * 8 * 0.75)
    assert held.lost_gpu_h(Research(checkpoint_interval_s=1800.0)) == pytest.approx(7 * 8 * 0.25)
    assert held.moves == 7


def test_what_yields_stays_productions_until_its_turn() -> None:
    held = held_nodes(POOL, np.array([0.0, 36_000.0]), np.array([11, 4]), end_s=72_000.0)
    assert held.edges_s.tolist() == [0.0, 36_000.0, 37_200.0, 38_400.0, 39_600.0, 72_000.0]
    assert held.production.tolist() == [11, 8, 5, 4, 4]
    assert held.moving.tolist() == [0, 3, 3, 1, 0]


def test_more_than_the_fleet_is_said() -> None:
    held = held_nodes(POOL, np.array([0.0]), np.array([23]), end_s=3600.0)
    assert held.over == 5
    assert held.research.tolist() == [2]


@given(case=needs(), shortest=st.integers(1, 100))
def test_no_pause_shorter_than_a_move_is_left(case: tuple[np.ndarray, np.ndarray], shortest: int) -> None:
    starts_s, nodes = case
    kept_s, kept = without_short_gaps(starts_s, nodes, end_s=130_000.0, shortest_s=shortest * 600.0)
    grid = np.arange(0.0, 130_000.0, 600.0)
    before = nodes[np.searchsorted(starts_s, grid, side="right") - 1]
    after = kept[np.searchsorted(kept_s, grid, side="right") - 1]
    assert (after >= before).all()
    for level in range(1, 19):
        low = "".join("." if value >= level else "x" for value in after)
        assert all(len(gap) >= shortest for gap in low.strip("x").split(".") if gap)
    assert after.max() == before.max()


def test_window_starts_follow_the_wall_clock_and_dated_windows_win() -> None:
    # New York leaves daylight saving time on 2026-11-01, between 00:00 and 08:00.
    zone = "America/New_York"
    begin = OffsetDateTime(2026, 10, 31, offset=hours(-4)).timestamp()
    end = OffsetDateTime(2026, 11, 2, offset=hours(-5)).timestamp()
    starts_s, window = window_starts(DAY, start_s=begin, end_s=end, time_zone=zone)
    assert ((starts_s - begin) / 3600).tolist() == [0.0, 8.0, 20.0, 24.0, 33.0, 45.0]
    assert window.tolist() == [0, 1, 2, 0, 1, 2]


def schedule() -> Schedule:
    return Schedule(
        name="s",
        fleet_name="f",
        fleet_digest="",
        time_zone="America/New_York",
        valid_until=OffsetDateTime(2027, 1, 1, offset=hours(-5)),
        windows=DAY,
        workloads=(WorkloadColumn(name="chat", replicas=(4, 40, 20), holds_rps=(1.0, 1.0, 1.0)),),
        pools=(
            PoolColumn(
                name="h100",
                production_nodes=(1, 10, 5),
                ephemeral_nodes=(17, 8, 13),
                ephemeral_quota_gpus=(136, 64, 104),
                lead_s=(0.0, 0.0, 0.0),
            ),
        ),
    )


def test_a_schedule_gives_its_replicas_at_window_starts_and_its_nodes_with_their_lead() -> None:
    begin = OffsetDateTime(2026, 9, 1, offset=hours(-4)).timestamp()
    given_ = scheduled(fleet(), schedule(), start_s=begin, end_s=begin + 86_400)
    assert ((given_.capacity["chat"].starts_s - begin) / 3600).tolist() == [0.0, 8.0, 20.0]
    assert given_.capacity["chat"].replicas.tolist() == [4, 40, 20]
    assert given_.moves == 9 + 5
    total = given_.production_gpu_h + given_.moving_gpu_h + given_.given_gpu_h
    assert total == pytest.approx(20 * 8 * 24)
    assert given_.moving_gpu_h == pytest.approx(9 * 8 * 0.75 + 5 * 8 / 3)
    assert given_.lost_gpu_h == pytest.approx(9 * 8 * 0.25)


def test_replicas_without_a_plan_get_whole_nodes_and_no_short_moves() -> None:
    # 8 replicas of 2 GPUs are two nodes; a dip of one hour is shorter than yield and reclaim, one of three is not.
    steps = Capacity(
        starts_s=np.array([0.0, 36_000.0, 39_600.0, 50_000.0, 60_800.0]), replicas=np.array([8, 4, 8, 3, 8])
    )
    held = on_demand(fleet(), {"chat": steps}, end_s=86_400.0, ready_ahead=False)[0]
    assert held.reclaimed == held.yielded == 1
    assert held.production.max() == 2
