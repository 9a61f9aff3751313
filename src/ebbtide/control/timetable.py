"""The schedule on the clock: which window is in force at an instant, and which come next (§5.1).

A window is in force where it contains the wall-clock time of its zone; of dated and undated windows the dated wins.
A window that begins in autumn's repeated hour begins the first time and holds on; one that begins in spring's missing
hour begins when the clock has jumped.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from whenever import Date, Instant, Time

from ebbtide.fleet.horizon import Weekday, Window, minute_of
from ebbtide.forecast.calendar import instant_s
from ebbtide.units import DAY_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A stretch of time with one window in force: ``window`` is its place in the schedule's columns."""

    start_s: float
    end_s: float
    window: int


class Timetable:
    """The segments of a schedule's windows, worked out as far as they were asked for.

    ``LookupError`` where no window is in force: documents are checked before, so that is a bug.

    >>> from ebbtide.fleet.horizon import WEEK, DayPattern, windows_of
    >>> from whenever import Time
    >>> table = Timetable(windows_of(DayPattern(days=WEEK, starts=(Time(9), Time(20)))), "America/New_York")
    >>> noon_s = Instant.from_utc(2026, 9, 1, 16).timestamp()
    >>> [(one.window, (one.start_s - noon_s) / 3600) for one in table.from_s(noon_s, until_s=noon_s + 86400)]
    [(0, -3.0), (1, 8.0), (0, 21.0)]
    """

    def __init__(self, windows: Sequence[Window], time_zone: str) -> None:
        self._windows = tuple(windows)
        self._zone = time_zone
        self._marks = sorted({minute_of(one) for window in windows for one in (window.start, window.end)} | {0})
        self._segments: list[Segment] = []
        self._starts: list[float] = []
        self._to_s = float("-inf")

    def from_s(self, at_s: float, *, until_s: float) -> list[Segment]:
        """The segment that holds ``at_s`` and all that begin before ``until_s``, in order.

        A window that holds for longer than the days that were looked at ends, and begins again, where they end.
        """
        if not self._segments or at_s < self._segments[0].start_s or until_s > self._to_s - 2 * DAY_S:
            # Two days on either side hold any window whole, and the clock's shifts; a week more is not asked for soon.
            self._lay(at_s - 2 * DAY_S, until_s + 9 * DAY_S)
        first = bisect_right(self._starts, at_s) - 1
        last = bisect_right(self._starts, until_s)
        return self._segments[first:last]

    def _lay(self, from_s: float, to_s: float) -> None:
        found: list[Segment] = []
        instants = sorted(set(self._boundaries_s(from_s, to_s)))
        for start_s, end_s in pairwise(instants):
            window = self._in_force(start_s)
            if found and found[-1].window == window:
                found[-1] = Segment(start_s=found[-1].start_s, end_s=end_s, window=window)
            else:
                found.append(Segment(start_s=start_s, end_s=end_s, window=window))
        self._segments = found
        self._starts = [one.start_s for one in found]
        self._to_s = found[-1].end_s

    def _boundaries_s(self, from_s: float, to_s: float) -> Iterator[float]:
        date = Instant.from_timestamp(int(from_s)).to_tz(self._zone).date()
        last = Instant.from_timestamp(int(to_s)).to_tz(self._zone).date()
        while date <= last:
            for minute in self._marks:
                yield float(instant_s(date, Time(minute // 60, minute % 60), self._zone))
            date = date.add(days=1)

    def _in_force(self, at_s: float) -> int:
        local = Instant.from_timestamp(int(at_s)).to_tz(self._zone)
        minute = minute_of(local.time())
        held = [index for index, one in enumerate(self._windows) if _holds(one, local.date(), minute)]
        if not held:
            raise LookupError(f"no window is in force at {local}")
        return next((index for index in held if self._windows[index].valid_from is not None), held[0])


def _holds(window: Window, date: Date, minute: int) -> bool:
    """Whether the wall-clock minute of a date lies in the window, begun that day or the day before."""
    start, end = minute_of(window.start), minute_of(window.end)
    if start < end:
        return start <= minute < end and _begins(window, date)
    return (minute >= start and _begins(window, date)) or (minute < end and _begins(window, date.subtract(days=1)))


def _begins(window: Window, date: Date) -> bool:
    dated = window.valid_from is None or (window.valid_from <= date < (window.valid_until or Date.MAX))
    return dated and Weekday.of(date) in window.days
