"""Dated windows (§5.1): what the schedule does from a date until another, beside its cycle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from whenever import Date

from ebbtide.allocate.moves import Timeline, Transition, timeline_of
from ebbtide.errors import InputError, Place
from ebbtide.fleet.horizon import WEEK, DatedException, DayPattern, Weekday, Window, windows_of


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedTimeline:
    """An exception's own closed cycle: a day, or its weekdays where several patterns meet in it.

    ``past_days[k]``: the weekdays whose past speaks for window k.
    """

    exception: DatedException
    timeline: Timeline
    past_days: tuple[tuple[Weekday, ...], ...]

    def past_window(self, k: int, workload: str) -> Window:
        """The undated window whose past days speak for a workload in dated window k.

        A workload that the exception does not name is not ``like`` another day: it keeps those of the exception.
        """
        named = not self.exception.workloads or workload in self.exception.workloads
        falls = weekdays_of(self.exception)
        own = tuple(day for day in WEEK if day in falls)
        days = self.past_days[k] if named or self.exception.like is None else own
        return replace(self.timeline.windows[k], days=days, valid_from=None, valid_until=None)


def dated_timelines(
    patterns: Sequence[DayPattern], exceptions: Sequence[DatedException], *, after: Date, before: Date
) -> list[DatedTimeline]:
    """The exceptions that reach beyond ``after`` and begin before ``before``, with their windows.

    ``like`` a weekday: that day's pattern, on all days; otherwise every weekday of the exception keeps its own.
    ``InputError`` by name where two of them share a date: each would win over the other (§5.1).
    """
    ahead = sorted((one for one in exceptions if one.until > after and one.start < before), key=lambda one: one.start)
    for one, other in pairwise(ahead):
        if other.start < one.until:
            raise InputError(
                f"exceptions {one.name} and {other.name} both hold on {other.start}; a date has one of them",
                kind="exceptions_overlap",
                place=Place(field=f"exceptions[{other.name}]"),
                hint="end the one where the other begins, and say for the days of both what holds on them",
            )
    return [_dated(patterns, one) for one in ahead]


def _dated(patterns: Sequence[DayPattern], exception: DatedException) -> DatedTimeline:
    windows: list[Window] = []
    past_days: list[tuple[Weekday, ...]] = []
    for used, past in _patterns(patterns, exception):
        made = windows_of(used)
        windows += [
            replace(
                window,
                name=f"{exception.name}-{window.name.removeprefix('all-')}",
                valid_from=exception.start,
                valid_until=exception.until,
            )
            for window in made
        ]
        past_days += [past] * len(made)
    return DatedTimeline(exception=exception, timeline=timeline_of(windows), past_days=tuple(past_days))


def _patterns(
    patterns: Sequence[DayPattern], exception: DatedException
) -> Iterator[tuple[DayPattern, tuple[Weekday, ...]]]:
    """The patterns that meet in an exception, each with the weekdays whose past speaks for it.

    Where a fleet tells day patterns apart, the days of one are alike, and all of them speak for ``like``.
    """
    falls = weekdays_of(exception)
    for pattern in patterns:
        if exception.like is not None:
            if exception.like in pattern.days:
                yield replace(pattern, days=WEEK), pattern.days if len(patterns) > 1 else (exception.like,)
        elif set(pattern.days) & falls:
            yield replace(pattern, days=tuple(day for day in pattern.days if day in falls)), pattern.days


def weekdays_of(exception: DatedException) -> set[Weekday]:
    """The weekdays on which an exception falls."""
    dates = (exception.start.add(days=n) for n in range(len(WEEK)))
    return {Weekday.of(date) for date in dates if date < exception.until}


def border_steps(cycle: Timeline, dated: Timeline, exception: DatedException, *, offset: int) -> list[Transition]:
    """The steps into and out of a dated timeline, whose windows are numbered from ``offset`` on."""
    eve, first = exception.start.add(days=-1), exception.start
    last, return_day = exception.until.add(days=-1), exception.until
    into = (_on(cycle, Weekday.of(eve))[-1], offset + _on(dated, Weekday.of(first))[0])
    out = (offset + _on(dated, Weekday.of(last))[-1], _on(cycle, Weekday.of(return_day))[0])
    return [into, out]


def _on(timeline: Timeline, day: Weekday) -> list[int]:
    """A weekday's windows in their order."""
    windows = timeline.windows
    return sorted((k for k, window in enumerate(windows) if day in window.days), key=lambda k: windows[k].start)
