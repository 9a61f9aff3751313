"""Windows on the clock (§5.1): against a minute-by-minute reading of the wall, days of 23 and 25 hours in it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from whenever import Date, Instant, Time, ZonedDateTime

from ebbtide.control.timetable import Timetable
from ebbtide.fleet.horizon import WEEK, DayPattern, Weekday, Window, minute_of, windows_of

ZONE = "America/New_York"


def wall(*parts: int, zone: str = ZONE, late: bool = False) -> float:
    return ZonedDateTime(*parts, tz=zone, disambiguation="later" if late else "earlier").timestamp()


def shown(table: Timetable, from_s: float, until_s: float, zone: str = ZONE) -> list[tuple[str, int]]:
    return [
        (str(Instant.from_timestamp(int(one.start_s)).to_tz(zone).to_plain()), one.window)
        for one in table.from_s(from_s, until_s=until_s)
    ]


def on_the_wall(windows: tuple[Window, ...], at_s: float, zone: str = ZONE) -> int:
    """The window by the wall clock alone, read anew: a dated one where one holds."""
    local = Instant.from_timestamp(int(at_s)).to_tz(zone)
    minute, found = minute_of(local.time()), []
    for back in (0, 1):
        date = local.date().subtract(days=back)
        for index, one in enumerate(windows):
            begins = Weekday.of(date) in one.days
            if one.valid_from is not None and one.valid_until is not None:
                begins = begins and one.valid_from <= date < one.valid_until
            start, end = minute_of(one.start), minute_of(one.end)
            end += 1440 if end <= start else 0
            if begins and start <= minute + 1440 * back < end:
                found.append(index)
    return min(found, key=lambda index: windows[index].valid_from is None)


@pytest.mark.parametrize("day", [Date(2026, 3, 7), Date(2026, 9, 1)])
@given(
    starts=st.lists(st.integers(0, 287), min_size=1, max_size=6, unique=True),
    minutes=st.lists(st.integers(0, 3 * 1440), min_size=1, max_size=30),
)
@settings(deadline=None, max_examples=60)
def test_every_minute_has_the_wall_clocks_window(day, starts, minutes):
    """Around spring's change, where an hour is missing, and on days without change."""
    windows = tuple(windows_of(DayPattern(days=WEEK, starts=tuple(Time(m // 12, m % 12 * 5) for m in sorted(starts)))))
    special = Window(
        name="special",
        days=WEEK,
        start=Time(0),
        end=Time(0),
        valid_from=day.add(days=2),
        valid_until=day.add(days=3),
    )
    for table_windows in (windows, (*windows, special)):
        table = Timetable(table_windows, ZONE)
        begin_s = day.at(Time(0)).assume_tz(ZONE).timestamp()
        for minute in minutes:
            at_s = float(begin_s + 60 * minute)
            (now,) = table.from_s(at_s, until_s=at_s)
            assert now.start_s <= at_s < now.end_s
            assert now.window == on_the_wall(table_windows, at_s)


def test_a_window_in_springs_missing_hour_begins_when_the_clock_has_jumped():
    table = Timetable(windows_of(DayPattern(days=WEEK, starts=(Time(2, 30), Time(9)))), ZONE)
    assert shown(table, wall(2026, 3, 8, 1), wall(2026, 3, 8, 12)) == [
        ("2026-03-07T09:00:00", 1),
        ("2026-03-08T03:00:00", 0),
        ("2026-03-08T09:00:00", 1),
    ]


def test_a_window_in_autumns_repeated_hour_begins_the_first_time_and_holds_on():
    table = Timetable(windows_of(DayPattern(days=WEEK, starts=(Time(1, 30), Time(9)))), ZONE)
    first_s, again_s = wall(2026, 11, 1, 1, 30), wall(2026, 11, 1, 1, 10, late=True)
    now = table.from_s(first_s, until_s=first_s)[0]
    assert (now.start_s, now.window) == (first_s, 0)
    assert again_s > first_s
    assert table.from_s(again_s, until_s=again_s) == [now]
    assert (now.end_s - now.start_s) / 3600 == 8.5


def test_days_of_25_and_23_hours_lie_in_windows_across_midnight():
    table = Timetable(windows_of(DayPattern(days=WEEK, starts=(Time(9), Time(20)))), ZONE)
    for date, hours in (((2026, 10, 31), 14.0), ((2026, 3, 7), 12.0), ((2026, 9, 1), 13.0)):
        night = table.from_s(wall(*date, 21), until_s=wall(*date, 21))[0]
        assert (night.end_s - night.start_s) / 3600 == hours
        assert night.window == 1


def test_weekly_patterns_change_on_their_day():
    week = windows_of(DayPattern(days=WEEK[:5], starts=(Time(0), Time(9))))
    rest = windows_of(DayPattern(days=WEEK[5:], starts=(Time(0),)))
    table = Timetable((*week, *rest), ZONE)
    assert shown(table, wall(2026, 9, 4, 10), wall(2026, 9, 7, 10)) == [
        ("2026-09-04T09:00:00", 1),
        ("2026-09-05T00:00:00", 2),
        ("2026-09-07T00:00:00", 0),
        ("2026-09-07T09:00:00", 1),
    ]


def test_dated_windows_win_from_their_first_day_to_their_last():
    usual = windows_of(DayPattern(days=WEEK, starts=(Time(0), Time(9))))
    holiday = Window(
        name="holiday",
        days=WEEK,
        start=Time(0),
        end=Time(0),
        valid_from=Date(2026, 11, 26),
        valid_until=Date(2026, 11, 28),
    )
    table = Timetable((*usual, holiday), ZONE)
    assert shown(table, wall(2026, 11, 25, 10), wall(2026, 11, 28, 10)) == [
        ("2026-11-25T09:00:00", 1),
        ("2026-11-26T00:00:00", 2),
        ("2026-11-28T00:00:00", 0),
        ("2026-11-28T09:00:00", 1),
    ]


def test_a_schedule_of_one_window_holds_it_at_any_time():
    table = Timetable(windows_of(DayPattern(days=WEEK, starts=(Time(0),))), ZONE)
    for day in range(40):
        at_s = wall(2026, 9, 1, 12) + 86400.0 * day
        (now,) = table.from_s(at_s, until_s=at_s + 86400.0)
        assert (now.window, now.start_s <= at_s, now.end_s > at_s + 86400.0) == (0, True, True)


def test_a_dated_window_longer_than_what_is_looked_at_is_in_force_throughout():
    usual = windows_of(DayPattern(days=WEEK, starts=(Time(0), Time(9))))
    summer = Window(
        name="summer", days=WEEK, start=Time(0), end=Time(0), valid_from=Date(2026, 6, 1), valid_until=Date(2026, 8, 1)
    )
    table = Timetable((*usual, summer), ZONE)
    assert [table.from_s(wall(2026, 6, day, 12), until_s=wall(2026, 6, day, 12))[0].window for day in (1, 8, 25)] == [
        2,
        2,
        2,
    ]


def test_looking_back_and_far_ahead_gives_the_same_segments():
    table = Timetable(windows_of(DayPattern(days=WEEK, starts=(Time(2), Time(9)))), ZONE)
    early = table.from_s(wall(2026, 9, 1, 10), until_s=wall(2026, 9, 2, 10))
    table.from_s(wall(2027, 1, 1, 10), until_s=wall(2027, 1, 2, 10))
    assert table.from_s(wall(2026, 9, 1, 10), until_s=wall(2026, 9, 2, 10)) == early


def test_a_gap_is_a_bug_that_is_not_passed_over():
    table = Timetable(windows_of(DayPattern(days=WEEK[:5], starts=(Time(9),))), ZONE)
    with pytest.raises(LookupError, match="no window is in force"):
        table.from_s(wall(2026, 9, 6, 12), until_s=wall(2026, 9, 6, 12))
