"""Past instances of a window: which stretches of time it covered, day by day, in a named zone (§5.1).

What belongs here: wall clock and zone to instants, weekday patterns, dated exceptions read as another weekday. What
doesn't: rates and margins (``forecast.seasonal``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from whenever import Date, Instant, Time

from ebbtide.fleet.horizon import DatedException, Weekday, Window, minute_of
from ebbtide.fleet.planned import Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Instances:
    """A window's instances, oldest first: instance ``i`` began on ``dates[i]`` and covers ``[start_s[i], end_s[i])``.

    Instants are in seconds since the Unix epoch. A window that crosses midnight bears the date on which it begins.
    """

    dates: tuple[Date, ...]
    start_s: Ints
    end_s: Ints


@lru_cache(maxsize=4096)
def instances(
    window: Window,
    start_s: int,
    end_s: int,
    time_zone: str,
    exceptions: tuple[DatedException, ...] = (),
    workload: str = "",
) -> Instances:
    """The instances of ``window`` that lie at least in part inside ``[start_s, end_s)``.

    A date inside an exception with ``like`` counts as that weekday and not as its own (for the workloads that the
    exception names; it names all where it names none). On the days on which the zone's offset changes an instance is
    an hour shorter or longer where the change falls inside it; a wall-clock time that the change skips is the moment
    of the change, a repeated one its first occurrence, so that windows never overlap. Validity dates of the window
    are not looked at: the past of a dated window is the past of its weekdays. An unknown zone raises the error of
    ``whenever`` (``TimeZoneNotFoundError``).

    >>> from ebbtide.fleet.horizon import WEEK
    >>> night = Window(name="all-0000", days=WEEK, start=Time(0), end=Time(6))
    >>> noon = Instant.from_utc(2014, 11, 1, 12).timestamp()
    >>> past = instances(night, noon, noon + 3 * 86400, "America/New_York")
    >>> [str(date) for date in past.dates], ((past.end_s - past.start_s) // 3600).tolist()
    (['2014-11-02', '2014-11-03', '2014-11-04'], [7, 6, 6])
    """
    first, last = date_at(start_s, time_zone), date_at(end_s, time_zone)
    dates, starts, ends = [], [], []
    date = first.subtract(days=1)
    while date <= last:
        begin_s = instant_s(date, window.start, time_zone)
        finish_s = instant_s(_end_date(window, date), window.end, time_zone)
        if weekday_of(date, exceptions, workload) in window.days and begin_s < end_s and finish_s > start_s:
            dates.append(date)
            starts.append(begin_s)
            ends.append(finish_s)
        date = date.add(days=1)
    return Instances(dates=tuple(dates), start_s=_frozen(starts), end_s=_frozen(ends))


def weekday_of(date: Date, exceptions: tuple[DatedException, ...], workload: str) -> Weekday:
    """The weekday that a date counts as for a workload: the first exception's ``like``, else its own.

    >>> week = DatedException(name="golden-week", start=Date(2026, 10, 1), until=Date(2026, 10, 8), like=Weekday.SUN)
    >>> [weekday_of(Date(2026, 10, day), (week,), "chat").value for day in (7, 8)]
    ['Sun', 'Thu']
    """
    likes = (entry.like for entry in exceptions if entry.like is not None and _covers(entry, date, workload))
    return next(likes, Weekday.of(date))


def factor_on(date: Date, exceptions: tuple[DatedException, ...], workload: str) -> float:
    """The demand factor in force on a date for a workload; overlapping exceptions multiply.

    >>> launch = DatedException(
    ...     name="launch", start=Date(2026, 9, 7), until=Date(2026, 9, 9), workloads=("chat",), demand_factor=1.8
    ... )
    >>> factor_on(Date(2026, 9, 8), (launch,), "chat"), factor_on(Date(2026, 9, 8), (launch,), "agents")
    (1.8, 1.0)
    """
    factor = 1.0
    for entry in exceptions:
        if _covers(entry, date, workload):
            factor *= entry.demand_factor
    return factor


def instant_s(date: Date, time: Time, time_zone: str) -> int:
    """Seconds since the epoch of a wall-clock time: a repeated one's first, a skipped one's moment of change.

    >>> instant_s(Date(2014, 3, 9), Time(2, 30), "America/New_York") == Instant.from_utc(2014, 3, 9, 7).timestamp()
    True
    """
    plain = date.at(time)
    low, high = (plain.assume_tz(time_zone, disambiguation=side) for side in ("earlier", "later"))
    if low.to_plain() == plain:
        return low.timestamp()
    first, last = low.timestamp(), high.timestamp()  # the clock is before the change at first, after it at last
    while last - first > 1:
        middle = (first + last) // 2
        before = Instant.from_timestamp(middle).to_tz(time_zone).offset == low.offset
        first, last = (middle, last) if before else (first, middle)
    return last


def date_at(instant: int, time_zone: str) -> Date:
    """The date on the wall at an instant (seconds since the epoch)."""
    return Instant.from_timestamp(instant).to_tz(time_zone).date()


def _covers(entry: DatedException, date: Date, workload: str) -> bool:
    return entry.start <= date < entry.until and (not entry.workloads or workload in entry.workloads)


def _end_date(window: Window, date: Date) -> Date:
    return date if minute_of(window.end) > minute_of(window.start) else date.add(days=1)


def _frozen(values: list[int]) -> Ints:
    array = np.array(values, dtype=np.int64)
    array.flags.writeable = False
    return array
