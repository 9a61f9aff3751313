"""The bands of a pool: they sum to the fleet, and their areas are the plan's GPU-hours."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from whenever import OffsetDateTime, Time, hours

from ebbtide.adapters.report.inputs import ReportInput
from ebbtide.adapters.report.tide import spells_of, tide_of
from ebbtide.fleet.horizon import WEEK, DayPattern, windows_of
from ebbtide.fleet.pool import Pool
from ebbtide.fleet.schedule import PoolColumn, Schedule


def schedule_of(patterns: tuple[DayPattern, ...], nodes: tuple[int, ...], pool: Pool) -> Schedule:
    windows = tuple(window for pattern in patterns for window in windows_of(pattern))
    column = PoolColumn(
        name=pool.name,
        production_nodes=nodes,
        ephemeral_nodes=tuple(pool.max_production_nodes - n for n in nodes),
        ephemeral_quota_gpus=nodes,
        lead_s=(0.0,) * len(windows),
    )
    return Schedule(
        name="s",
        fleet_name="f",
        fleet_digest="sha256:0",
        time_zone="UTC",
        valid_until=OffsetDateTime(2026, 1, 1, offset=hours(0)),
        windows=windows,
        workloads=(),
        pools=(column,),
    )


def test_the_areas_are_the_gpu_hours_counted_by_hand(day_plan: ReportInput) -> None:
    """Documentation's day: production 3,656, moving 147, research 3,877 of 7,680."""
    (pool,) = day_plan.fleet.pools
    tide = tide_of(day_plan.schedule, day_plan.schedule.pools[0], pool)
    research = tide.gpu_hours_per_day(tide.research) + 24 * tide.reserved
    moving = tide.gpu_hours_per_day(tide.reclaiming + tide.yielding)
    assert [round(x) for x in (tide.gpu_hours_per_day(tide.production), moving, research)] == [3656, 147, 3877]


def test_a_reclaim_ends_at_its_window_and_a_yield_begins_there(day_plan: ReportInput) -> None:
    tide = tide_of(day_plan.schedule, day_plan.schedule.pools[0], day_plan.fleet.pools[0])
    motions = {(m.start, m.end, m.gpus, m.reclaim) for m in tide.motions}
    assert motions == {
        (0, 20, 80, False),
        (120, 140, 48, False),
        (315, 360, 24, True),
        (495, 540, 112, True),
        (780, 800, 8, False),
    }
    assert tide.leads == ((310, 360), (445, 540))


def test_a_move_over_midnight_lands_at_the_end_of_the_day() -> None:
    pool = Pool(name="p", gpus_per_node=2, nodes=10, reclaim_time_s=3600.0, yield_time_s=0.0)
    starts = (Time(0, 30), Time(12))
    tide = tide_of(*_with_column(schedule_of((DayPattern(days=WEEK, starts=starts),), (7, 3), pool)), pool)
    moving = {(float(a), float(b)) for a, b, g in zip(tide.edges, tide.edges[1:], tide.reclaiming, strict=False) if g}
    assert moving == {(0.0, 30.0), (1410.0, 1440.0)}
    assert tide.gpu_hours_per_day(tide.reclaiming) == pytest.approx(8.0)


def test_a_week_takes_every_weekday_of_a_window() -> None:
    patterns = (DayPattern(days=WEEK[:5], starts=(Time(8), Time(20))), DayPattern(days=WEEK[5:], starts=(Time(8),)))
    windows = tuple(window for pattern in patterns for window in windows_of(pattern))
    spells = spells_of(windows)
    assert len(spells) == 12
    assert sum(spell.end - spell.start for spell in spells) == 7 * 1440
    assert [spell.start for spell in spells[1:]] == [spell.end for spell in spells[:-1]]


@given(
    starts=st.lists(st.integers(0, 95), min_size=1, max_size=12, unique=True).map(sorted),
    data=st.data(),
    weekly=st.booleans(),
    yield_s=st.integers(0, 3000),
    reclaim_s=st.integers(0, 3000),
)
def test_the_bands_fill_the_fleet_at_every_minute(
    starts: list[int], data: st.DataObject, weekly: bool, yield_s: int, reclaim_s: int
) -> None:
    times = tuple(Time(quarter // 4, quarter % 4 * 15) for quarter in starts)
    days = (WEEK[:5], WEEK[5:]) if weekly else (WEEK,)
    patterns = tuple(DayPattern(days=each, starts=times) for each in days)
    count = len(times) * len(patterns)
    nodes = tuple(data.draw(st.lists(st.integers(0, 8), min_size=count, max_size=count)))
    # Moves are far shorter than the spare nodes need be: with 8 of 40 in production none is counted twice.
    pool = Pool(
        name="p", gpus_per_node=4, nodes=40, reserved_nodes=3, yield_time_s=yield_s / 60, reclaim_time_s=reclaim_s / 60
    )
    tide = tide_of(*_with_column(schedule_of(patterns, nodes, pool)), pool)
    total = tide.production + tide.reclaiming + tide.yielding + tide.research + tide.reserved
    np.testing.assert_allclose(total, 160.0)
    assert tide.edges[0] == 0
    assert tide.edges[-1] == tide.cycle


def _with_column(schedule: Schedule) -> tuple[Schedule, PoolColumn]:
    return schedule, schedule.pools[0]
