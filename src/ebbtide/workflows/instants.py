"""Instants as people say them on the command line: ``tomorrow-08:00``, ``Mon-09:00``, ``12h``, or RFC 3339."""

from __future__ import annotations

import re

from whenever import Instant, OffsetDateTime, PlainDateTime, Time

from ebbtide.errors import InputError, Place
from ebbtide.fleet.horizon import WEEK, Weekday
from ebbtide.units import parse_duration_s

_DAY_TIME = re.compile(r"(?:([A-Za-z]+)[-\s])?([01]?[0-9]|2[0-3]):([0-5][0-9])")
_FORMS = "write 12h, 08:00, tomorrow-08:00, Mon-09:00, 2026-09-29T08:00 or 2026-09-29T08:00:00+08:00"


def parse_instant_s(text: str, *, at_s: float, time_zone: str, field: str) -> float:
    """Seconds since the epoch. Durations count from ``at_s``; clock times are of ``time_zone``, the next such time.

    Raises ``InputError`` (kind ``bad_instant``) that names ``field``.

    >>> noon_s = Instant.from_utc(2026, 9, 1, 12).timestamp()  # a Tuesday
    >>> [(parse_instant_s(text, at_s=noon_s, time_zone="UTC", field="--at") - noon_s) / 3600
    ...     for text in ("12h", "08:00", "today-14:00", "tomorrow-08:00", "Mon-12:00", "2026-09-01T13:00")]
    [12.0, 20.0, 2.0, 20.0, 144.0, 1.0]
    """
    for read in (_duration, _day_time, _dated):
        found = read(text.strip(), at_s, time_zone)
        if found is not None:
            return found
    raise InputError(f'is "{text}", no instant', kind="bad_instant", place=Place(field=field), hint=_FORMS)


def _duration(text: str, at_s: float, time_zone: str) -> float | None:
    del time_zone
    try:
        return at_s + parse_duration_s(text)
    except ValueError:
        return None


def _day_time(text: str, at_s: float, time_zone: str) -> float | None:
    match = _DAY_TIME.fullmatch(text)
    if match is None:
        return None
    word, time = (match[1] or "").capitalize(), Time(int(match[2]), int(match[3]))
    today = Instant.from_timestamp(int(at_s)).to_tz(time_zone).date()
    if word in ("", *WEEK):
        dates = [today.add(days=days) for days in range(8)]
        wanted = [date for date in dates if not word or Weekday.of(date) == word]
    elif word in ("Today", "Tomorrow"):
        wanted = [today.add(days=1 if word == "Tomorrow" else 0)]
    else:
        return None
    instants = [float(date.at(time).assume_tz(time_zone).timestamp()) for date in wanted]
    return next((one for one in instants if one > at_s), instants[-1])


def _dated(text: str, at_s: float, time_zone: str) -> float | None:
    del at_s
    try:
        return float(OffsetDateTime.parse_iso(text).timestamp())
    except ValueError:
        pass
    try:
        return float(PlainDateTime.parse_iso(text).assume_tz(time_zone).timestamp())
    except ValueError:
        return None
