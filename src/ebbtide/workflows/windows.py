"""Which windows of a schedule a person means by a time: ``09:00``, ``Mon 09:00``, or a window's name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator

from ebbtide.errors import InputError
from ebbtide.fleet.horizon import DAY_MINUTES, WEEK, Weekday, Window, minute_of
from ebbtide.fleet.schedule import Schedule

_WEEK_MINUTES = DAY_MINUTES * len(WEEK)
_TIME = re.compile(r"(?:(?P<day>[A-Za-z]{3,9})\s+)?(?P<hour>[01]?[0-9]|2[0-3]):(?P<minute>[0-5][0-9])")


def selected_windows(schedule: Schedule, text: str | None) -> tuple[int, ...]:
    """The numbers of the windows that contain a time, narrowed by a weekday where one is named; None: all of them.

    Raises ``InputError`` (kind ``unknown_window``) where the text is no time and no window's name, or no window
    contains it.
    """
    if text is None:
        return tuple(range(len(schedule.windows)))
    named = tuple(index for index, window in enumerate(schedule.windows) if window.name == text.strip())
    if named:
        return named
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise _unknown(schedule, text)
    days = WEEK if match["day"] is None else (_weekday(match["day"]),)
    minute = int(match["hour"]) * 60 + int(match["minute"])
    found = tuple(
        index
        for index, window in enumerate(schedule.windows)
        if any(contains(window, day=day, minute=minute) for day in days)
    )
    if not found:
        raise _unknown(schedule, text)
    return found


def contains(window: Window, *, day: Weekday, minute: int) -> bool:
    """Whether a window runs at a minute of a weekday; one that crosses midnight began the day before.

    >>> from whenever import Time
    >>> night = Window(name="night", days=(WEEK[0],), start=Time(22), end=Time(6))
    >>> contains(night, day=WEEK[0], minute=23 * 60), contains(night, day=WEEK[1], minute=60)
    (True, True)
    """
    return any(
        started in window.days and covers(window, minute + offset)
        for started, offset in ((day, 0), (WEEK[WEEK.index(day) - 1], DAY_MINUTES))
    )


def covers(window: Window, minute: int) -> bool:
    """Whether a minute, counted from midnight of the window's first day, lies in it.

    >>> from whenever import Time
    >>> covers(Window(name="night", days=WEEK, start=Time(22), end=Time(6)), 25 * 60)
    True
    """
    start = minute_of(window.start)
    return start <= minute < start + round(window.nominal_hours * 60)


def week_minutes(schedule: Schedule) -> list[int | None]:
    """The number of the undated window at every minute of the week, Monday 00:00 first; None where there is none."""
    held: list[int | None] = [None] * _WEEK_MINUTES
    for index, window in enumerate(schedule.windows):
        if window.valid_from is None:
            for minute in window_minutes(window):
                held[minute] = index
    return held


def window_minutes(window: Window) -> Iterator[int]:
    """The minutes of the week, Monday 00:00 being 0, at which a window runs.

    >>> from whenever import Time
    >>> list(window_minutes(Window(name="w", days=WEEK[6:], start=Time(23, 59), end=Time(0, 1))))
    [10079, 0]
    """
    for day in window.days:
        first = WEEK.index(day) * DAY_MINUTES + minute_of(window.start)
        for minute in range(first, first + round(window.nominal_hours * 60)):
            yield minute % _WEEK_MINUTES


def named_workload(name: str, known: Iterable[str]) -> str:
    """The name if it is known; ``InputError`` (kind ``unknown_workload``) with the nearest one otherwise."""
    names = list(known)
    if name in names:
        return name
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    raise InputError(
        f'no workload is named "{name}"',
        kind="unknown_workload",
        nearest=near[0] if near else None,
        hint=None if near else f"there are {', '.join(names[:12])}",
    )


def _weekday(text: str) -> Weekday:
    found = [day for day in WEEK if day.value.lower() == text[:3].lower()]
    if not found:
        raise InputError(
            f'"{text}" is no weekday', kind="unknown_window", hint=f"write one of {', '.join(WEEK)} and a time"
        )
    return found[0]


def _unknown(schedule: Schedule, text: str) -> InputError:
    names = [window.name for window in schedule.windows]
    near = difflib.get_close_matches(text, names, n=1, cutoff=0.6)
    times = ", ".join(dict.fromkeys(window.span for window in schedule.windows[:8]))
    return InputError(
        f'no window contains "{text}"',
        kind="unknown_window",
        nearest=near[0] if near else None,
        hint=None if near else f'give a time such as 09:00 or "Mon 09:00"; there are {times}',
    )
