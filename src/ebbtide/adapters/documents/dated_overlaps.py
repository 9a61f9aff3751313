"""Dated windows of a Schedule that hold at the same time: each would win over the other (§5.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from whenever import Date

from ebbtide.adapters.documents.problems import Problem
from ebbtide.adapters.documents.schedule_models import WindowSpec
from ebbtide.fleet.horizon import DAY_MINUTES, WEEK, minute_of


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dated:
    """A dated window: it starts at minute ``start`` of days in ``weekdays``, from ``first`` (``date``) to ``after``."""

    number: int
    name: str
    date: Date
    first: int
    after: int
    weekdays: frozenset[int]
    start: int
    length: int

    def starts_on(self, day: int) -> bool:
        return self.first <= day < self.after and day % len(WEEK) in self.weekdays


def overlaps(windows: Sequence[WindowSpec]) -> Iterator[Problem]:
    """The first time that lies in two dated windows, if there is one."""
    dated = sorted((_dated(n, one) for n, one in enumerate(windows) if one.from_ is not None), key=lambda d: d.first)
    for one, other in combinations(dated, 2):
        # A window may run past midnight: those that begin on the day after are its neighbours still.
        minute = _shared_minute(one, other) if other.first <= one.after else None
        if minute is not None:
            early, late = sorted((one, other), key=lambda d: d.number)
            yield Problem(
                path=("spec", "windows", late.number),
                kind="window_overlap",
                message=f"{_named(minute, one)} is in two dated windows, {early.name} and {late.name}",
                hint="end the one where the other begins",
            )
            return


def _dated(number: int, window: WindowSpec) -> _Dated:
    assert window.from_ is not None
    assert window.until is not None  # the rule on dates comes first
    start = minute_of(window.start)
    return _Dated(
        number=number,
        name=window.name,
        date=window.from_,
        first=_day(window.from_),
        after=_day(window.until),
        weekdays=frozenset(index for index, day in enumerate(WEEK) if day.value in window.days),
        start=start,
        length=(minute_of(window.end) - start) % DAY_MINUTES or DAY_MINUTES,
    )


def _day(date: Date) -> int:
    return date.to_stdlib().toordinal() - 1  # day 0 is a Monday, as in WEEK


def _shared_minute(one: _Dated, other: _Dated) -> int | None:
    """The first minute (since day 0) that both hold; None where there is none.

    Windows last a day at most, so only starts a day apart can meet; and all repeats weekly, so nine days show it.
    """
    first = max(one.first, other.first - 1)
    for day in range(first, min(first + 9, one.after, other.after + 1)):
        for beside in (day - 1, day, day + 1):
            if one.starts_on(day) and other.starts_on(beside):
                start, beside_start = day * DAY_MINUTES + one.start, beside * DAY_MINUTES + other.start
                if start < beside_start + other.length and beside_start < start + one.length:
                    return max(start, beside_start)
    return None


def _named(minute: int, near: _Dated) -> str:
    day, rest = divmod(minute, DAY_MINUTES)
    return f"{near.date.add(days=day - near.first)} {rest // 60:02}:{rest % 60:02}"
