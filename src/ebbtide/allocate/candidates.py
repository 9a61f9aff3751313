"""Candidate windows of patterns whose boundaries are to be chosen, and what each would cost every pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from whenever import Time

from ebbtide.fleet.horizon import DAY_MINUTES, DayPattern, Window, clock, minute_of
from ebbtide.fleet.planned import Ints

# Windows of so many minutes and more begin and end on a grid of so many; never finer than the base intervals.
_GRIDS = ((480, 60), (180, 30), (0, 15))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PatternGrid:
    """One pattern's base intervals and candidate windows.

    ``marks[i]`` is base interval i's start in minutes since midnight. ``rows[start, length]`` is a candidate's place in
    ``windows``, −1 where there is none; ``finest[i]`` that of base interval i alone. A pattern with given windows has
    those as base intervals, and no other candidates.
    """

    pattern: DayPattern
    marks: tuple[int, ...]
    windows: tuple[Window, ...]
    rows: Ints
    finest: tuple[int, ...]
    at_most: int

    def with_starts(self, cut: Sequence[tuple[int, int]]) -> DayPattern:
        """The pattern with the chosen windows, given as (start, length) on the grid."""
        starts = sorted(self.marks[start] for start, _ in cut)
        times = tuple(Time(*divmod(minutes, 60)) for minutes in starts)
        return DayPattern(days=self.pattern.days, starts=times)


def grid_minutes(shortest_s: float) -> int:
    """Length of a base interval: an hour, or half or a quarter of one where windows may not be whole hours.

    >>> grid_minutes(7200), grid_minutes(5400), grid_minutes(2700), grid_minutes(600)
    (60, 30, 15, 15)
    """
    minutes = shortest_s / 60.0
    return next((grid for grid in (60, 30) if minutes >= grid and minutes % grid == 0), 15)


def pattern_grids(patterns: Sequence[DayPattern]) -> list[PatternGrid]:
    """The grids of a fleet's patterns. One pattern: its windows may cross midnight. Several: all days begin together.

    They begin at the first start of those whose windows are given, else at 00:00.
    """
    given = [pattern.starts[0] for pattern in patterns if pattern.choose is None]
    first = minute_of(given[0]) if given else 0
    cyclic = len(patterns) == 1
    return [
        _given(pattern) if pattern.choose is None else _chosen(pattern, first, cyclic=cyclic) for pattern in patterns
    ]


def _given(pattern: DayPattern) -> PatternGrid:
    marks = tuple(minute_of(start) for start in pattern.starts)
    count = len(marks)
    rows = np.full((count, count + 1), -1, dtype=np.int64)
    rows[np.arange(count), 1] = np.arange(count)
    ends = marks[1:] + marks[:1]
    windows = tuple(_window(pattern, start, end) for start, end in zip(marks, ends, strict=True))
    return PatternGrid(
        pattern=pattern, marks=marks, windows=windows, rows=rows, finest=tuple(range(count)), at_most=count
    )


def _chosen(pattern: DayPattern, first: int, *, cyclic: bool) -> PatternGrid:
    choose = pattern.choose
    if choose is None:
        raise ValueError("a pattern with given windows")
    step = grid_minutes(choose.shortest_s)
    base = DAY_MINUTES // step
    shortest = min(base, max(1, -int(-choose.shortest_s // (step * 60))))
    marks = tuple((first + step * i) % DAY_MINUTES for i in range(base))
    rows = np.full((base, base + 1), -1, dtype=np.int64)
    windows: list[Window] = []
    finest = []
    for start in range(base):
        for length in range(1, base + 1):
            whole = length == base and start == 0
            fits = whole or (length < base if cyclic else start + length <= base)
            if fits and (length == 1 or (length >= shortest and _on_its_grid(start, length, step))):
                if length >= shortest:
                    rows[start, length] = len(windows)
                if length == 1:
                    finest.append(len(windows))
                windows.append(_window(pattern, marks[start], marks[(start + length) % base]))
    return PatternGrid(
        pattern=pattern,
        marks=marks,
        windows=tuple(windows),
        rows=rows,
        finest=tuple(finest),
        at_most=min(choose.at_most, base // shortest),
    )


def _on_its_grid(start: int, length: int, step_minutes: int) -> bool:
    """True where a window of that length may begin and end there: within a twelfth of its length is near enough.

    On a grid of quarters of an hour this leaves a fifth of the windows: 3 hours and more keep to half hours, 8 hours
    and more to hours. ``start`` and ``length`` are in base intervals.

    >>> [_on_its_grid(1, length, 15) for length in (11, 12)], _on_its_grid(2, 14, 15), _on_its_grid(2, 32, 15)
    ([True, False], True, False)
    """
    minutes = length * step_minutes
    coarse = next(grid for least, grid in _GRIDS if minutes >= least) // step_minutes
    return coarse <= 1 or (start % coarse == 0 and length % coarse == 0)


def _window(pattern: DayPattern, start: int, end: int) -> Window:
    times = [Time(*divmod(minutes, 60)) for minutes in (start, end)]
    label = pattern.label.replace("+", "-")
    return Window(
        name=f"{label}-{clock(times[0])}-{clock(times[1])}".replace(":", ""),
        days=pattern.days,
        start=times[0],
        end=times[1],
    )
