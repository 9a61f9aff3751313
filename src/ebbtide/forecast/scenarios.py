"""Which past intervals speak for a window, day by day, also through the window shifted earlier or later (§5.2, §5.3).

What belongs here: observed intervals by past day, and which days count. What doesn't: margins and what is planned
(``forecast.seasonal``), wall clocks and zones (``forecast.calendar``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ebbtide.errors import InputError, Place
from ebbtide.fleet.demand import Floats, Series
from ebbtide.fleet.horizon import DatedException, Window
from ebbtide.fleet.planned import Ints
from ebbtide.forecast.calendar import date_at, factor_on, instances

LEAST_OBSERVED_SHARE = 0.5  # an instance of which less was seen says too little of its day to count as one (§5.2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scenarios:
    """Past demand of a window: scenario ``g`` is past day ``day[g]`` seen through the window shifted by ``shift_s[g]``.

    Its observed intervals are ``interval[offsets[g]:offsets[g+1]]``, with ``rates_rps`` at the same places. The
    window's own scenarios (shift 0) come first, one for each of the ``days``, oldest first.
    """

    days: int
    day: Ints
    shift_s: Ints
    offsets: Ints
    interval: Ints
    rates_rps: Floats


def past_scenarios(
    series: Series,
    window: Window,
    *,
    time_zone: str,
    shifts_s: tuple[int, ...] = (0,),
    exceptions: tuple[DatedException, ...] = (),
    workload: str = "",
) -> Scenarios:
    """What past days asked of a window and of its shifted neighbours, without margin; ``shifts_s`` begins with 0.

    The rules and errors are those of ``window_demand``, which adds burstiness, service and the margin's factor.
    """
    grid = (series.start_s, series.interval_s, len(series.seen))
    past = _past(window, grid, time_zone, exceptions, workload if exceptions else "")
    own = _seen(series, past, 0)
    if not len(own.instance):
        raise _no_past_days(series, window, time_zone, workload)
    parts = [own, *(_seen(series, past, shift_s).of(own.instance) for shift_s in shifts_s[1:])]
    sizes = np.concatenate([part.sizes for part in parts])
    return Scenarios(
        days=len(own.instance),
        day=np.searchsorted(own.instance, np.concatenate([part.instance for part in parts])),
        shift_s=np.repeat(np.array(shifts_s, dtype=np.int64), [len(part.instance) for part in parts]),
        offsets=np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]),
        interval=np.concatenate([part.interval for part in parts]),
        rates_rps=np.concatenate([part.rates_rps for part in parts]),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Past:
    """A window's instances over a grid of intervals: their instants, and the demand factor of each."""

    start_s: Ints
    end_s: Ints
    factor: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Seen:
    """Observed intervals by instance: ``instance[k]`` has the next ``sizes[k]`` of ``interval`` and ``rates_rps``."""

    instance: Ints
    sizes: Ints
    interval: Ints
    rates_rps: Floats

    def of(self, instances: Ints) -> _Seen:
        """Those of the given instances only."""
        keep = np.isin(self.instance, instances)
        each = np.repeat(keep, self.sizes)
        return _Seen(
            instance=self.instance[keep],
            sizes=self.sizes[keep],
            interval=self.interval[each],
            rates_rps=self.rates_rps[each],
        )


@lru_cache(maxsize=4096)
def _past(
    window: Window,
    grid: tuple[int, int, int],
    time_zone: str,
    exceptions: tuple[DatedException, ...],
    workload: str,
) -> _Past:
    """Cached, because a thousand workloads of one source ask for the same windows on the same grid."""
    start_s, interval_s, count = grid
    found = instances(window, start_s, start_s + interval_s * count, time_zone, exceptions, workload)
    factor = np.array([factor_on(date, exceptions, workload) for date in found.dates], dtype=np.float64)
    return _Past(start_s=found.start_s, end_s=found.end_s, factor=factor)


def _seen(series: Series, past: _Past, shift_s: int) -> _Seen:
    """The instances, shifted, of which enough was observed."""
    first, last = _interval_range(series, past.start_s + shift_s, past.end_s + shift_s)
    expected = last - first
    count = len(series.seen)
    low, high = np.clip(first, 0, count), np.clip(last, 0, count)
    instance = np.repeat(np.arange(len(low)), high - low)
    interval = np.arange(len(instance)) - np.repeat(np.cumsum(high - low) - high, high - low)
    observed = series.observed[interval]
    sizes = np.bincount(instance[observed], minlength=len(low))
    enough = sizes >= np.maximum(LEAST_OBSERVED_SHARE * expected, 1)
    chosen = observed & enough[instance]
    interval, instance = interval[chosen], instance[chosen]
    return _Seen(
        instance=np.flatnonzero(enough),
        sizes=sizes[enough],
        interval=interval,
        rates_rps=series.rate_rps[interval] / past.factor[instance],
    )


def _interval_range(series: Series, start_s: Ints, end_s: Ints) -> tuple[Ints, Ints]:
    """First and last (exclusive) interval that starts in each stretch; where none does, those that overlap it."""
    from_s, until_s = start_s - series.start_s, end_s - series.start_s
    first, last = -(-from_s // series.interval_s), -(-until_s // series.interval_s)
    return np.where(last > first, first, from_s // series.interval_s), last


def _no_past_days(series: Series, window: Window, time_zone: str, workload: str) -> InputError:
    first, last = (date_at(instant, time_zone) for instant in (series.start_s, series.end_s - 1))
    return InputError(
        f"workload {workload or series.key!r}: no past day speaks for window {window.name!r} "
        f"({'+'.join(window.days)} {window.span}): the trace runs from {first} to {last} in {time_zone}, "
        f"{series.observed.mean():.0%} of it observed, and a day needs half of the window's intervals",
        kind="no_past_days",
        place=Place(field=workload or series.key),
        hint="give more history, or a pattern whose days the trace holds",
    )
