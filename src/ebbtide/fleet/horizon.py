"""The horizon: day patterns, windows on a daily or weekly cycle in a named zone, dated exceptions (§5.1).

A cycle is a week of days; each weekday belongs to exactly one pattern; a pattern's windows follow each other from
start to start, and its last window runs to the next day's first start. With one pattern the cycle is a day.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from whenever import Date, Time

DAY_MINUTES = 1440


class Weekday(StrEnum):
    """Days of the week by their English three-letter names, Monday first."""

    MON = "Mon"
    TUE = "Tue"
    WED = "Wed"
    THU = "Thu"
    FRI = "Fri"
    SAT = "Sat"
    SUN = "Sun"

    @classmethod
    def of(cls, date: Date) -> Weekday:
        """The weekday of a date.

        >>> Weekday.of(Date(2026, 9, 1)).value
        'Tue'
        """
        return WEEK[date.day_of_week().value - 1]


WEEK = tuple(Weekday)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choose:
    """Boundaries are ebbtide's to choose: at most ``at_most`` windows, none shorter than ``shortest_s``."""

    at_most: int = 6
    shortest_s: float = 7200.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DayPattern:
    """Weekdays that share their windows: given ``starts`` (sorted), or ``choose``; never both."""

    days: tuple[Weekday, ...]
    starts: tuple[Time, ...] = ()
    choose: Choose | None = None

    @property
    def label(self) -> str:
        """A short name for the days: ``all``, ``mon-fri``, or the days joined.

        >>> DayPattern(days=WEEK).label, DayPattern(days=WEEK[:5]).label, DayPattern(days=(WEEK[0], WEEK[2])).label
        ('all', 'mon-fri', 'mon+wed')
        """
        return day_label(self.days)


def day_label(days: tuple[Weekday, ...]) -> str:
    """``all`` for the whole week, ``first-last`` for a run of three days and more, else the days joined by ``+``.

    >>> day_label(WEEK[5:]), day_label(WEEK[:1])
    ('sat+sun', 'mon')
    """
    if len(days) == len(WEEK):
        return "all"
    numbers = [WEEK.index(day) for day in days]
    if len(days) > 2 and numbers == list(range(numbers[0], numbers[0] + len(days))):
        return f"{days[0].lower()}-{days[-1].lower()}"
    return "+".join(day.lower() for day in days)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A part of the cycle with one fixed allocation.

    ``start`` and ``end`` are wall-clock times; ``end`` at or before ``start`` means the next day (equal: a whole day).
    ``valid_from`` and ``valid_until`` (exclusive) make a dated window, which wins over an undated one.
    """

    name: str
    days: tuple[Weekday, ...]
    start: Time
    end: Time
    valid_from: Date | None = None
    valid_until: Date | None = None

    @property
    def nominal_hours(self) -> float:
        """Length on a day of 24 hours.

        >>> Window(name="all-1900", days=WEEK, start=Time(19), end=Time(7, 30)).nominal_hours
        12.5
        """
        minutes = (minute_of(self.end) - minute_of(self.start)) % DAY_MINUTES
        return (minutes or DAY_MINUTES) / 60.0

    @property
    def span(self) -> str:
        """``09:00-13:00``."""
        return f"{clock(self.start)}-{clock(self.end)}"


def hours_label(window: Window) -> str:
    """How one window is named on its own: its hours, before them its days where not all, after them its dates.

    >>> hours_label(Window(name="w", days=WEEK[:5], start=Time(9), end=Time(13)))
    'Mon-Fri 09:00-13:00'
    >>> hours_label(Window(name="w", days=WEEK[5:], start=Time(9), end=Time(13)))
    'Sat+Sun 09:00-13:00'
    >>> week = {"valid_from": Date(2026, 10, 1), "valid_until": Date(2026, 10, 8)}
    >>> hours_label(Window(name="w", days=WEEK, start=Time(9), end=Time(13), **week))
    '09:00-13:00 (2026-10-01 to 2026-10-07)'
    """
    days = "" if window.days == WEEK else f"{_capitals(day_label(window.days))} "
    dates = ""
    if window.valid_from is not None and window.valid_until is not None:
        dates = f" ({window.valid_from} to {window.valid_until.subtract(days=1)})"
    return f"{days}{window.span}{dates}"


def _capitals(days: str) -> str:
    return "+".join("-".join(day.capitalize() for day in run.split("-")) for run in days.split("+"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedException:
    """A holiday or a launch: from a date until another (exclusive), read ``like`` a weekday and/or with a factor.

    ``workloads`` empty: all of them.
    """

    name: str
    start: Date
    until: Date
    like: Weekday | None = None
    workloads: tuple[str, ...] = ()
    demand_factor: float = 1.0


def minute_of(time: Time) -> int:
    """Minutes since midnight.

    >>> minute_of(Time(7, 30))
    450
    """
    return time.hour * 60 + time.minute


def clock(time: Time) -> str:
    """``07:30``."""
    return f"{time.hour:02}:{time.minute:02}"


def windows_of(pattern: DayPattern, *, suffix: str = "") -> tuple[Window, ...]:
    """The windows of a pattern with given starts, named ``<days>-<hhmm>``, each running to the next start.

    The last one runs to the first start of the same pattern; where the next day has another pattern with another
    first start, ``cycle_windows`` refuses (§5.1: together the windows cover the cycle once).

    >>> [w.name + " " + w.span for w in windows_of(DayPattern(days=WEEK, starts=(Time(7, 30), Time(19))))]
    ['all-0730 07:30-19:00', 'all-1900 19:00-07:30']
    """
    ends = pattern.starts[1:] + pattern.starts[:1]
    return tuple(
        Window(
            name=f"{pattern.label.replace('+', '-')}-{start.hour:02}{start.minute:02}{suffix}",
            days=pattern.days,
            start=start,
            end=end,
        )
        for start, end in zip(pattern.starts, ends, strict=True)
    )
