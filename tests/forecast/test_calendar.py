"""Past instances of a window: zones, midnight, weekdays, dated exceptions."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from whenever import Date, PlainDateTime, Time

from ebbtide.fleet.horizon import WEEK, DatedException, DayPattern, Weekday, Window, windows_of
from ebbtide.forecast.calendar import factor_on, instances

NEW_YORK = "America/New_York"


def at_s(date: Date, time: Time, zone: str) -> int:
    """Oracle by another path: a plain date-time in the zone."""
    plain = PlainDateTime(date.year, date.month, date.day, time.hour, time.minute)
    return plain.assume_tz(zone, disambiguation="compatible").timestamp()


def daily(start: Time, end: Time, days: tuple[Weekday, ...] = WEEK) -> Window:
    return Window(name="w", days=days, start=start, end=end)


@pytest.mark.parametrize(("day", "hours"), [(Date(2014, 3, 9), 23), (Date(2014, 11, 2), 25), (Date(2014, 7, 1), 24)])
def test_a_whole_day_has_its_own_hours(day: Date, hours: int) -> None:
    start_s = at_s(day, Time(12), NEW_YORK)
    found = instances(daily(Time(0), Time(0)), start_s, start_s + 60, NEW_YORK)
    assert found.dates == (day,)
    assert (found.end_s - found.start_s).tolist() == [hours * 3600]


def test_a_start_inside_the_skipped_hour_leaves_no_gap_to_the_window_before() -> None:
    start_s, end_s = at_s(Date(2014, 3, 9), Time(0), NEW_YORK), at_s(Date(2014, 3, 10), Time(0), NEW_YORK)
    before, after = (
        instances(window, start_s, end_s, NEW_YORK)
        for window in windows_of(DayPattern(days=WEEK, starts=(Time(2, 30), Time(14))))[::-1]
    )
    change_s = at_s(Date(2014, 3, 9), Time(3), NEW_YORK)
    assert before.end_s[0] == after.start_s[0] == change_s


def test_a_start_inside_the_repeated_hour_is_its_first_occurrence() -> None:
    start_s, end_s = at_s(Date(2014, 11, 2), Time(0), NEW_YORK), at_s(Date(2014, 11, 3), Time(0), NEW_YORK)
    before, after = (
        instances(window, start_s, end_s, NEW_YORK)
        for window in windows_of(DayPattern(days=WEEK, starts=(Time(1, 30), Time(14))))[::-1]
    )
    assert before.end_s[0] == after.start_s[0] == start_s + 5400


def test_a_window_across_midnight_bears_the_date_it_begins_on() -> None:
    night = daily(Time(19), Time(7, 30), (Weekday.FRI,))
    start_s = at_s(Date(2026, 9, 5), Time(6), NEW_YORK)  # Saturday morning, inside Friday's night
    found = instances(night, start_s, start_s + 600, NEW_YORK)
    assert [str(date) for date in found.dates] == ["2026-09-04"]
    assert (found.end_s - found.start_s).tolist() == [12.5 * 3600]


def test_a_date_like_sunday_counts_as_a_sunday_and_not_as_its_own() -> None:
    holiday = DatedException(name="h", start=Date(2026, 9, 3), until=Date(2026, 9, 4), like=Weekday.SUN)
    start_s, end_s = at_s(Date(2026, 9, 1), Time(0), "Asia/Shanghai"), at_s(Date(2026, 9, 8), Time(0), "Asia/Shanghai")

    def dates(day: Weekday, workload: str, *exceptions: DatedException) -> list[int]:
        window = daily(Time(9), Time(11), (day,))
        found = instances(window, start_s, end_s, "Asia/Shanghai", exceptions, workload)
        return [date.day for date in found.dates]

    assert dates(Weekday.THU, "chat", holiday) == []
    assert dates(Weekday.SUN, "chat", holiday) == [3, 6]
    only_agents = DatedException(
        name="h", start=Date(2026, 9, 3), until=Date(2026, 9, 4), like=Weekday.SUN, workloads=("agents",)
    )
    assert dates(Weekday.THU, "chat", only_agents) == [3]
    assert dates(Weekday.SUN, "agents", only_agents) == [3, 6]


def test_overlapping_factors_multiply_and_end_before_until() -> None:
    launch, sale = (
        DatedException(name=name, start=Date(2026, 9, 1), until=Date(2026, 9, day), demand_factor=factor)
        for name, day, factor in (("launch", 5, 1.5), ("sale", 3, 2.0))
    )
    assert [factor_on(Date(2026, 9, day), (launch, sale), "chat") for day in (2, 3, 5)] == [3.0, 1.5, 1.0]


@example(minutes=[130, 160, 190], zone=NEW_YORK, first=Date(2026, 3, 4).to_stdlib())
@given(
    minutes=st.lists(st.integers(0, 1439), min_size=1, max_size=6, unique=True).map(sorted),
    zone=st.sampled_from([NEW_YORK, "Asia/Shanghai", "Europe/Berlin", "Australia/Lord_Howe", "UTC"]),
    first=st.dates(min_value=Date(2024, 1, 1).to_stdlib(), max_value=Date(2026, 12, 1).to_stdlib()),
)
def test_the_windows_of_a_pattern_cover_time_once(minutes: list[int], zone: str, first: object) -> None:
    starts = tuple(Time(*divmod(minute, 60)) for minute in minutes)
    start_s = at_s(Date.parse_iso(str(first)), Time(12), zone)
    end_s = start_s + 10 * 86_400
    stretches = sorted(
        (int(begin), int(end))
        for window in windows_of(DayPattern(days=WEEK, starts=starts))
        for found in [instances(window, start_s, end_s, zone)]
        for begin, end in zip(found.start_s, found.end_s, strict=True)
    )
    assert stretches[0][0] <= start_s
    assert stretches[-1][1] >= end_s
    assert all(before[1] == after[0] for before, after in pairwise(stretches))
