"""Recurring jobs: the dates on which they fall, by the clock of a zone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from whenever import Instant, Time

from ebbtide.fleet.horizon import Weekday


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """One time of a job: what is added to its name (empty where it does not recur), and when it may start."""

    suffix: str
    start_s: float


def occurrences(
    days: Collection[Weekday], at: Time, *, time_zone: str, from_s: float, until_s: float
) -> tuple[Occurrence, ...]:
    """The times in ``[from_s, until_s)`` on which the clock of a zone shows ``at`` on one of the weekdays.

    A time that the clock skips is taken when it has jumped, one that it repeats the first time.

    >>> start_s = Instant.from_utc(2026, 9, 1, 12).timestamp()
    >>> found = occurrences({Weekday.TUE}, Time(20), time_zone="UTC", from_s=start_s, until_s=start_s + 8 * 86400)
    >>> [(one.suffix, (one.start_s - start_s) / 3600) for one in found]
    [('-20260901', 8.0), ('-20260908', 176.0)]
    """
    date = Instant.from_timestamp(int(from_s)).to_tz(time_zone).date()
    last = Instant.from_timestamp(int(until_s)).to_tz(time_zone).date()
    found = []
    while date <= last:
        if Weekday.of(date) in days:
            start_s = float(date.at(at).assume_tz(time_zone, disambiguation="compatible").timestamp())
            if from_s <= start_s < until_s:
                found.append(Occurrence(suffix=f"-{date.year:04}{date.month:02}{date.day:02}", start_s=start_s))
        date = date.add(days=1)
    return tuple(found)
