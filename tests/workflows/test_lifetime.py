"""A schedule that ended before it was made, and exceptions beyond its life, are told."""

from __future__ import annotations

from whenever import Date, OffsetDateTime, hours

from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import DatedException, Weekday
from ebbtide.fleet.pool import Research
from ebbtide.workflows.lifetime import lifetime_warnings

UNTIL = OffsetDateTime(2026, 9, 29, offset=hours(8))


def fleet(start: Date) -> Fleet:
    launch = DatedException(name="launch", start=start, until=start.add(days=2), like=Weekday.SUN)
    return Fleet(
        name="f",
        digest="",
        time_zone="Asia/Shanghai",
        confidence=0.95,
        patterns=(),
        pools=(),
        workloads=(),
        research=Research(),
        exceptions=(launch,),
    )


def test_what_is_in_time_is_not_spoken_of() -> None:
    made = OffsetDateTime(2026, 9, 20, offset=hours(8))
    assert lifetime_warnings(fleet(Date(2026, 9, 28)), made_at=made, valid_until=UNTIL) == ()


def test_an_ended_schedule_and_an_exception_after_it_are() -> None:
    made = OffsetDateTime(2026, 9, 29, 0, 0, 1, offset=hours(8))
    ended, beyond = lifetime_warnings(fleet(Date(2026, 9, 29)), made_at=made, valid_until=UNTIL)
    assert "valid until 2026-09-29, which is past" in ended
    assert "launch begins on 2026-09-29" in beyond
