"""Which windows stand for choice: every base interval, any short window, and long ones on their own coarser grid."""

from __future__ import annotations

import pytest

from ebbtide.allocate.candidates import PatternGrid, pattern_grids
from ebbtide.fleet.horizon import WEEK, Choose, DayPattern


def grid(shortest_s: float, at_most: int = 336) -> PatternGrid:
    pattern = DayPattern(days=WEEK, choose=Choose(at_most=at_most, shortest_s=shortest_s))
    return pattern_grids([pattern])[0]


def test_hours_leave_every_window_to_choose() -> None:
    hourly = grid(3600.0)
    assert (len(hourly.marks), hourly.at_most, len(hourly.windows)) == (24, 24, 24 * 23 + 1)


def test_quarters_of_an_hour_leave_a_fifth_of_all_windows() -> None:
    quarters = grid(900.0)
    assert (len(quarters.marks), quarters.at_most) == (96, 96)
    # 1 to 11 quarters anywhere, 12 to 31 on half hours, 8 to 23 hours on hours, the day.
    assert len(quarters.windows) == 96 * 11 + 48 * 10 + 24 * 16 + 1


@pytest.mark.parametrize("shortest_min", [15, 30, 45, 90, 105])
def test_a_boundary_lies_within_a_twelfth_of_its_window_and_every_interval_is_covered(shortest_min: int) -> None:
    found = grid(60.0 * shortest_min)
    base, step = len(found.marks), 1440 // len(found.marks)
    shortest = shortest_min // step
    assert (found.rows[:, shortest] >= 0).all()
    for length in range(shortest, base):
        near = [n for n in range(length, base) if (found.rows[:, n] >= 0).any()]
        assert not near or (near[0] - length) * 12 <= near[0]
        starts = [start for start in range(base) if found.rows[start, length] >= 0]
        if starts:
            apart = max(after - before for before, after in zip(starts, [*starts[1:], base], strict=True))
            assert apart == 1 or apart / 2 * 12 <= length
