"""Which stretches of the demand a backtest tests: whole weeks, or days, or the last few days of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from whenever import Time

from ebbtide.errors import InputError, Place
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import Weekday
from ebbtide.forecast.calendar import date_at, instant_s
from ebbtide.simulate.streams import stream_of
from ebbtide.workflows.demand import Demand

WEEK_DAYS = 7
MOST_REQUESTS = 40e6  # of one policy, by default: a few minutes at most on one core with all policies
_MIDNIGHT = Time(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """One tested stretch ``[start_s, end_s)``; everything before it is the past. ``number`` counts from 0."""

    number: int
    start_s: int
    end_s: int

    @property
    def name(self) -> str:
        """For progress."""
        return f"stretch {self.number + 1}"


def folds_of(fleet: Fleet, demand: Demand) -> tuple[str, tuple[Fold, ...]]:
    """The unit and the tested stretches: midnights of the fleet's zone inside the span that all workloads share."""
    zone = fleet.time_zone
    start_s = max(series.start_s for series in demand.series.values())
    end_s = min(series.end_s for series in demand.series.values())
    date = date_at(start_s, zone)
    midnights = []
    while (at := instant_s(date, _MIDNIGHT, zone)) <= end_s:
        midnights += [at] if at >= start_s else []
        date = date.add(days=1)
    days = len(midnights) - 1
    if days < 2:
        raise InputError(
            f"the demand holds {max(days, 0)} whole days in {zone}; a backtest plans on one and runs another",
            kind="too_short",
            place=Place(field="demand"),
            hint="give more history",
        )
    weekly = days >= 2 * WEEK_DAYS
    marks = midnights[::WEEK_DAYS] if weekly else midnights
    first = 1 if weekly or days == 2 else 2  # one day says nothing of how days differ
    while first < len(marks) - 2 and not _every_pattern_has_a_past(fleet, start_s, marks[first]):
        first += 1
    folds = [
        Fold(number=number, start_s=begin, end_s=end)
        for number, (begin, end) in enumerate(zip(marks[first:-1], marks[first + 1 :], strict=True))
    ]
    return ("week" if weekly else "day"), tuple(folds)


def _every_pattern_has_a_past(fleet: Fleet, start_s: int, end_s: int) -> bool:
    """Whether a day before ``end_s`` speaks for each of the fleet's patterns."""
    date, last = date_at(start_s, fleet.time_zone), date_at(end_s - 1, fleet.time_zone)
    seen = set()
    while date <= last:
        seen.add(Weekday.of(date))
        date = date.add(days=1)
    return all(seen & set(pattern.days) for pattern in fleet.patterns)


def days_of(folds: Sequence[Fold]) -> int:
    """Days that are tested; one of 23 or 25 hours is a day."""
    return sum(max(round((fold.end_s - fold.start_s) / 86_400), 1) for fold in folds)


def last_days(fleet: Fleet, folds: Sequence[Fold], days: int) -> tuple[Fold, ...]:
    """The last days of the stretches: what lies before is the past of those, whole stretches are left out."""
    end = date_at(folds[-1].end_s - 1, fleet.time_zone).add(days=1)
    start_s = instant_s(end.subtract(days=days), _MIDNIGHT, fleet.time_zone)
    return tuple(replace(fold, start_s=max(fold.start_s, start_s)) for fold in folds if fold.end_s > start_s)


def days_that_fit(fleet: Fleet, demand: Demand, folds: Sequence[Fold]) -> int:
    """How many of the last days have at most ``MOST_REQUESTS`` together: at least one."""
    days = 1
    while days < days_of(folds) and _requests(fleet, demand, last_days(fleet, folds, days + 1)) <= MOST_REQUESTS:
        days += 1
    return days


def _requests(fleet: Fleet, demand: Demand, folds: Sequence[Fold]) -> float:
    return sum(
        stream_of(one, demand.series[one.name], start_s=folds[0].start_s, end_s=folds[-1].end_s).expected_requests
        for one in fleet.workloads
    )
