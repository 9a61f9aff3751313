"""The order of windows, the price of a move, and leads (§5.9)."""

from __future__ import annotations

import pytest
from whenever import Time

from ebbtide.allocate.moves import Holding, lead_s, leads_s, move_cost_usd, timeline_of
from ebbtide.errors import InputError
from ebbtide.fleet.horizon import WEEK, DayPattern, Window, windows_of
from ebbtide.fleet.pool import Pool, Research

POOL = Pool(name="h100", gpus_per_node=8, nodes=40, reserved_nodes=8, yield_time_s=1200, reclaim_time_s=2700)
DOCUMENTED_NODES = (14, 8, 11, 25, 24, 24)  # the documented session
STARTS = (Time(0), Time(2), Time(6), Time(9), Time(13), Time(19))
DAY = timeline_of(windows_of(DayPattern(days=WEEK, starts=STARTS)))


def test_a_day_with_one_pattern_follows_itself() -> None:
    assert DAY.track == (0, 1, 2, 3, 4, 5)
    assert DAY.days == 1
    assert DAY.transitions == {(k, (k + 1) % 6): 1 for k in range(6)}


def test_weekdays_and_weekend_make_a_week_with_its_borders() -> None:
    week = DayPattern(days=WEEK[:5], starts=(Time(0), Time(8))), DayPattern(days=WEEK[5:], starts=(Time(0), Time(12)))
    timeline = timeline_of([window for pattern in week for window in windows_of(pattern)])
    assert timeline.days == 7
    assert timeline.occurrences == (5, 5, 2, 2)
    assert timeline.transitions == {(0, 1): 5, (1, 0): 4, (1, 2): 1, (2, 3): 2, (3, 2): 1, (3, 0): 1}
    assert sum(timeline.hours_per_cycle) == 168


def test_a_gap_and_an_overlap_are_refused_by_name() -> None:
    morning = Window(name="morning", days=WEEK, start=Time(0), end=Time(8))
    late = Window(name="late", days=WEEK, start=Time(9), end=Time(0))
    early = Window(name="early", days=WEEK, start=Time(7), end=Time(0))
    with pytest.raises(InputError, match=r"morning .* leaves a gap before late") as gap:
        timeline_of([morning, late])
    assert gap.value.kind == "windows_gap"
    with pytest.raises(InputError, match=r"morning .* overlaps early") as overlap:
        timeline_of([morning, early])
    assert overlap.value.kind == "windows_overlap"


def test_patterns_with_different_first_starts_are_refused() -> None:
    week = DayPattern(days=WEEK[:5], starts=(Time(0), Time(8))), DayPattern(days=WEEK[5:], starts=(Time(2),))
    with pytest.raises(InputError):
        timeline_of([window for pattern in week for window in windows_of(pattern)])


def test_moves_of_the_documented_day() -> None:
    assert DAY.moved(DOCUMENTED_NODES) == 17


def test_a_step_costs_half_of_a_turn() -> None:
    research = Research(value_usd_per_gpu_h=2.0, checkpoint_interval_s=1800)
    yielded = 1200 / 3600 * 8 * 2.0
    reclaimed = (2700 + 900) / 3600 * 8 * 2.0
    assert move_cost_usd(POOL, research) == pytest.approx((yielded + reclaimed) / 2)


def test_leads_of_the_documented_day() -> None:
    pool = Pool(name="h100", gpus_per_node=8, nodes=40, reclaim_time_s=2700, moves_at_once=8)
    grown = [Holding(nodes=nodes, replicas=(nodes * 8,)) for nodes in DOCUMENTED_NODES]
    leads = leads_s(pool, [300.0], grown, list(DAY.transitions))
    assert [lead / 60 for lead in leads] == [0, 0, 50, 95, 0, 0]


def test_only_growing_workloads_start_and_only_with_reclaims() -> None:
    before, after = Holding(nodes=4, replicas=(8, 8)), Holding(nodes=5, replicas=(16, 4))
    assert lead_s(POOL, [60.0, 900.0], before, after) == 2700 + 60
    assert lead_s(POOL, [60.0, 900.0], after, before) == 0
    assert lead_s(POOL, [60.0, 900.0], before, Holding(nodes=4, replicas=(9, 7))) == 0


def test_a_window_with_two_predecessors_takes_the_longer_lead() -> None:
    holdings = [Holding(nodes=nodes, replicas=(1,)) for nodes in (2, 6, 7)]
    assert leads_s(POOL, [0.0], holdings, [(0, 2), (1, 2)])[2] == 2 * 2700
