"""What the needs of past days say together: the confident share of days, and the static peak of all windows (§5.3).

What belongs here: needs of past window instances, ranked and compared by date. What doesn't: what an instance needed
(``forecast.needs``), margins and their trials (``forecast.trials``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from whenever import Date

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints, confidence_rank


def days_of_rank(need_by_day: Ints, before: Ints, confidence: float) -> Ints:
    """Of the first ``before[t]`` days the one whose need is met on the confident share of them; 0 of no days.

    >>> days_of_rank(np.array([3, 9, 4, 5]), np.array([1, 2, 4]), 0.75).tolist()
    [0, 1, 3]
    """
    is_past = np.arange(len(need_by_day)) < before[:, None]
    order = np.argsort(np.where(is_past, need_by_day, np.iinfo(np.int64).max), axis=1, kind="stable")
    ranks = np.array([confidence_rank(days, confidence) for days in before.tolist()], dtype=np.int64)
    return order[np.arange(len(before)), ranks - 1]


def static_peaks(dates: Sequence[Sequence[Date]], needs: Sequence[Ints], confidence: float) -> list[Ints]:
    """What a static peak would have held on each past day of each window: the same replicas all day, every day.

    ``dates[k]`` are the days of window ``k``, oldest first, and ``needs[k]`` what they needed. The peak of a date is
    the need of the workload's worst window at the same confidence, on dates before it alone, without margin: 0 on the
    first.

    >>> days = [Date(2026, 9, day) for day in (1, 2, 3)]
    >>> [peak.tolist() for peak in static_peaks([days, days[1:]], [np.array([2, 3, 4]), np.array([9, 1])], 1.0)]
    [[0, 2, 9], [2, 9]]
    """
    days, dated = _numbered(dates)
    peaks = np.zeros(dated, dtype=np.int64)
    for day, need in zip(days, needs, strict=True):
        before = np.searchsorted(day, np.arange(dated))
        known = np.where(before > 0, need[days_of_rank(need, before, confidence)], 0)
        peaks = np.maximum(peaks, known)
    return [peaks[day] for day in days]


def peaks_before(dates: Sequence[Sequence[Date]], values: Sequence[Floats]) -> list[Floats]:
    """For each past day of each window the greatest value of any window on the dates before it; 0 on the first.

    >>> days = [Date(2026, 9, day) for day in (1, 2, 3)]
    >>> [peak.tolist() for peak in peaks_before([days, days[1:]], [np.array([2.0, 3, 4]), np.array([9.0, 1])])]
    [[0.0, 2.0, 9.0], [2.0, 9.0]]
    """
    days, dated = _numbered(dates)
    peaks = np.zeros(dated + 1)
    for day, value in zip(days, values, strict=True):
        np.maximum.at(peaks, day + 1, value)
    peaks = np.maximum.accumulate(peaks)
    return [peaks[day] for day in days]


def _numbered(dates: Sequence[Sequence[Date]]) -> tuple[list[Ints], int]:
    """All dates numbered in their order, by window, and how many there are."""
    number = {date: index for index, date in enumerate(sorted({date for few in dates for date in few}))}
    return [np.array([number[date] for date in few], dtype=np.int64) for few in dates], len(number)
