"""Which past intervals speak for a window, day by day, also through the window shifted earlier or later (§5.2, §5.3).

What belongs here: observed intervals by past day, and which days count. What doesn't: margins and what is planned
(``forecast.seasonal``), wall clocks and zones (``forecast.calendar``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray
from whenever import Date

from ebbtide.errors import InputError, Place
from ebbtide.fleet.demand import Floats, Series
from ebbtide.fleet.horizon import DatedException, Window
from ebbtide.fleet.planned import Ints
from ebbtide.forecast.calendar import Instances, date_at, factor_on, instances

LEAST_OBSERVED_SHARE = 0.5  # an instance of which less was seen says too little of its day to count as one (§5.2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scenarios:
    """Past demand of a window: scenario ``g`` is past day ``day[g]`` seen through the window shifted by ``shift_s[g]``.

    Its observed intervals are ``interval[offsets[g]:offsets[g+1]]``, with ``rates_rps`` at the same places. The
    window's own scenarios (shift 0) come first, one for each of the ``days``, oldest first; day ``d`` began on
    ``dates[d]``.
    """

    days: int
    dates: tuple[Date, ...]
    day: Ints
    shift_s: Ints
    offsets: Ints
    interval: Ints
    rates_rps: Floats

    @property
    def mean_rps(self) -> Floats:
        """Mean rate of every scenario."""
        return np.add.reduceat(self.rates_rps, self.offsets[:-1]) / np.diff(self.offsets)


def past_scenarios(
    series: Series,
    window: Window,
    *,
    time_zone: str,
    shifts_s: tuple[int, ...] = (0,),
    exceptions: tuple[DatedException, ...] = (),
    workload: str = "",
    least_observed: float = LEAST_OBSERVED_SHARE,
) -> Scenarios:
    """What past days asked of a window and of its shifted neighbours, without margin; ``shifts_s`` begins with 0.

    The rules and errors are those of ``window_demand``, which adds burstiness, service and the margin's factor.
    """
    grid = _Grid.of(series)
    found = _layout(window, grid, time_zone, shifts_s, exceptions, workload if exceptions else "", least_observed)
    if not found.days:
        raise _no_past_days(series, window, time_zone, workload)
    rates_rps = series.rate_rps[found.interval]
    return Scenarios(
        days=found.days,
        dates=found.dates,
        day=found.day,
        shift_s=found.shift_s,
        offsets=found.offsets,
        interval=found.interval,
        rates_rps=rates_rps / found.factor if exceptions else rates_rps,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grid:
    """A series' intervals and which of them were observed, without its rates; equal by value."""

    start_s: int
    interval_s: int
    seen_digest: bytes
    observed: NDArray[np.bool_] = field(compare=False)

    @classmethod
    def of(cls, series: Series) -> _Grid:
        """The grid of a series."""
        observed = series.observed
        digest = blake2b(observed.tobytes(), digest_size=16).digest()
        return cls(start_s=series.start_s, interval_s=series.interval_s, seen_digest=digest, observed=observed)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Layout:
    """``Scenarios`` without rates, and the demand factor in force in every one of its intervals."""

    days: int
    dates: tuple[Date, ...]
    day: Ints
    shift_s: Ints
    offsets: Ints
    interval: Ints
    factor: Floats


@lru_cache(maxsize=2048)
def _layout(
    window: Window,
    grid: _Grid,
    time_zone: str,
    shifts_s: tuple[int, ...],
    exceptions: tuple[DatedException, ...],
    workload: str,
    least_observed: float,
) -> _Layout:
    """Cached, because a thousand workloads of one source ask for the same windows on the same grid."""
    end_s = grid.start_s + grid.interval_s * len(grid.observed)
    past = instances(window, grid.start_s, end_s, time_zone, exceptions, workload)
    own = _seen(grid, past, 0, least_observed)
    parts = [own, *(_seen(grid, past, shift_s, least_observed).of(own.instance) for shift_s in shifts_s[1:])]
    sizes = np.concatenate([part.sizes for part in parts])
    instance = np.concatenate([part.instance for part in parts])
    factor = np.array([factor_on(date, exceptions, workload) for date in past.dates], dtype=np.float64)
    found = _Layout(
        days=len(own.instance),
        dates=tuple(past.dates[which] for which in own.instance.tolist()),
        day=np.searchsorted(own.instance, instance),
        shift_s=np.repeat(np.array(shifts_s, dtype=np.int64), [len(part.instance) for part in parts]),
        offsets=np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]),
        interval=np.concatenate([part.interval for part in parts]),
        factor=np.repeat(factor[instance], sizes),
    )
    for shared in (found.day, found.shift_s, found.offsets, found.interval):
        shared.flags.writeable = False
    return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Seen:
    """Observed intervals by instance: ``instance[k]`` has the next ``sizes[k]`` of ``interval``."""

    instance: Ints
    sizes: Ints
    interval: Ints

    def of(self, instances: Ints) -> _Seen:
        """Those of the given instances only."""
        keep = np.isin(self.instance, instances)
        return _Seen(
            instance=self.instance[keep],
            sizes=self.sizes[keep],
            interval=self.interval[np.repeat(keep, self.sizes)],
        )


def _seen(grid: _Grid, past: Instances, shift_s: int, least_observed: float) -> _Seen:
    """The instances, shifted, of which enough was observed."""
    first, last = _interval_range(grid, past.start_s + shift_s, past.end_s + shift_s)
    expected = last - first
    count = len(grid.observed)
    low, high = np.clip(first, 0, count), np.clip(last, 0, count)
    instance = np.repeat(np.arange(len(low)), high - low)
    interval = np.arange(len(instance)) - np.repeat(np.cumsum(high - low) - high, high - low)
    observed = grid.observed[interval]
    sizes = np.bincount(instance[observed], minlength=len(low))
    enough = sizes >= np.maximum(least_observed * expected, 1)
    return _Seen(instance=np.flatnonzero(enough), sizes=sizes[enough], interval=interval[observed & enough[instance]])


def _interval_range(grid: _Grid, start_s: Ints, end_s: Ints) -> tuple[Ints, Ints]:
    """First and last (exclusive) interval that starts in each stretch; where none does, those that overlap it."""
    from_s, until_s = start_s - grid.start_s, end_s - grid.start_s
    first, last = -(-from_s // grid.interval_s), -(-until_s // grid.interval_s)
    return np.where(last > first, first, from_s // grid.interval_s), last


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
