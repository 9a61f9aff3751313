"""Seasonal demand: a window's planned demand is what its own past days asked, with a margin (§5.2, §5.3).

What belongs here: which past intervals speak for a window, as scenarios by day, and the margin as a value. What
doesn't: the choice of the margin (``forecast.margin``), wall clocks and zones (``forecast.calendar``), burstiness and
service times (``forecast.measured``), sizing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from whenever import Date

from ebbtide.errors import InputError, Place
from ebbtide.fleet.demand import Floats, Series
from ebbtide.fleet.horizon import DatedException, Window
from ebbtide.fleet.planned import Ints, WindowDemand
from ebbtide.forecast.calendar import date_at, factor_on, instances
from ebbtide.forecast.measured import arrival_scv, mean_service_time_s, measured_service_scv

LEAST_OBSERVED_SHARE = 0.5  # an instance of which less was seen says too little of its day to count as one (§5.2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """What is added to the past before it is planned for.

    The same day's windows that begin ``neighbour_s`` earlier and later are scenarios beside the window itself (a wave
    that comes early or late is caught; 0: none), and every scenario's rates are multiplied by ``factor``.
    """

    neighbour_s: int = 0
    factor: float = 1.0

    @property
    def shifts_s(self) -> tuple[int, ...]:
        """Shifts of the window that make its scenarios, its own first.

        >>> Margin(neighbour_s=3600).shifts_s, Margin().shifts_s
        ((0, -3600, 3600), (0,))
        """
        return (0, -self.neighbour_s, self.neighbour_s) if self.neighbour_s else (0,)

    def __str__(self) -> str:
        """For people.

        >>> str(Margin(neighbour_s=3600, factor=1.15)), str(Margin())
        ('±1h × 1.15', '× 1')
        """
        around = f"±{self.neighbour_s / 3600:g}h " if self.neighbour_s else ""
        return f"{around}× {self.factor:g}"


NO_MARGIN = Margin()


def window_demand(
    series: Series,
    window: Window,
    *,
    time_zone: str,
    margin: Margin = NO_MARGIN,
    service_time_s: float | None,
    service_scv: float | None,
    demand_factor: float = 1.0,
    exceptions: tuple[DatedException, ...] = (),
    workload: str = "",
) -> WindowDemand:
    """The planned demand of a workload in a window: one scenario for each past day and shift of the margin.

    An interval belongs to the window in which it starts; where intervals are longer than the window, those that
    overlap it speak for it. Intervals that were not observed are left out; an instance with less than half of its
    intervals observed is no past day (nor, shifted, a scenario). A past date inside a dated exception counts as the
    exception's ``like`` weekday, and its rates are divided by the exception's factor. The SCV of arrivals is the
    interval's own where the trace has it, else the median of the series, else 1. ``service_time_s`` or
    ``service_scv`` None: measured from the trace in this window (SCV: else 1). ``demand_factor`` multiplies all rates:
    the factor of the dated exception that is planned for.

    Raises ``InputError``: ``no_past_days`` where no day speaks for the window, ``no_service_time`` where the trace
    was to give the service time and has none.

    >>> from whenever import Time
    >>> from ebbtide.fleet.horizon import WEEK
    >>> rates = np.tile(np.repeat([1.0, 4.0], 12), 3)  # three days of two levels, by the hour
    >>> seen = Series(key="chat", start_s=0, interval_s=3600, rate_rps=rates, seen=np.zeros(72, np.uint8))
    >>> noon = Window(name="all-1200", days=WEEK, start=Time(12), end=Time(14))
    >>> plan = window_demand(
    ...     seen, noon, time_zone="UTC", margin=Margin(factor=1.5), service_time_s=6.0, service_scv=1.0
    ... )
    >>> plan.days, plan.rates_rps.tolist(), plan.offsets.tolist(), plan.value_rates_rps.mean()
    (3, [6.0, 6.0, 6.0, 6.0, 6.0, 6.0], [0, 2, 4, 6], np.float64(4.0))
    """
    past = _past(window, (series.start_s, series.interval_s, len(series.seen)), time_zone, exceptions, workload)
    own = _scenarios(series, past, 0)
    if not len(own.instance):
        raise _no_past_days(series, window, time_zone, workload)
    around = [_scenarios(series, past, shift_s) for shift_s in margin.shifts_s[1:]]
    parts = [own, *(part.of(own.instance) for part in around)]
    scv = arrival_scv(series)
    sizes = np.concatenate([part.sizes for part in parts])
    return WindowDemand(
        rates_rps=np.concatenate([part.rates_rps for part in parts]) * (margin.factor * demand_factor),
        scv=scv[np.concatenate([part.interval for part in parts])],
        offsets=np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]),
        day=np.searchsorted(own.instance, np.concatenate([part.instance for part in parts])),
        days=len(own.instance),
        value_rates_rps=own.rates_rps * demand_factor,
        value_scv=scv[own.interval],
        service_time_s=mean_service_time_s(series, own.interval, workload)
        if service_time_s is None
        else service_time_s,
        service_scv=measured_service_scv(series, own.interval) if service_scv is None else service_scv,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Past:
    """A window's instances over a grid of intervals: their dates, instants, and the demand factor of each."""

    dates: tuple[Date, ...]
    start_s: Ints
    end_s: Ints
    factor: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Scenarios:
    """Observed intervals by instance: ``instance[k]`` has the next ``sizes[k]`` of ``interval`` and ``rates_rps``."""

    instance: Ints
    sizes: Ints
    interval: Ints
    rates_rps: Floats

    def of(self, instances: Ints) -> _Scenarios:
        """Those of the given instances only."""
        keep = np.isin(self.instance, instances)
        each = np.repeat(keep, self.sizes)
        return _Scenarios(
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
    return _Past(dates=found.dates, start_s=found.start_s, end_s=found.end_s, factor=factor)


def _scenarios(series: Series, past: _Past, shift_s: int) -> _Scenarios:
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
    return _Scenarios(
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
