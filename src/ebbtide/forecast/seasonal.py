"""Seasonal demand: a window's planned demand is what its own past days asked, with a margin (§5.2, §5.3).

What belongs here: the margin as a value, and a window's past as planned demand with it. What doesn't: which past
intervals speak for the window (``forecast.scenarios``), burstiness and service times (``forecast.measured``), the
choice of the margin (``forecast.margin``), sizing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ebbtide.fleet.demand import Floats, Series
from ebbtide.fleet.horizon import DatedException, Window
from ebbtide.fleet.planned import WindowDemand
from ebbtide.forecast.measured import arrival_scv, mean_service_time_s, measured_service_scv
from ebbtide.forecast.scenarios import LEAST_OBSERVED_SHARE, Scenarios, past_scenarios

SHIFT_STEP_S = 1800


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """What is added to the past before it is planned for.

    The same day's windows that begin up to ``neighbour_s`` earlier or later, in steps of half an hour, are scenarios
    beside the window itself: a wave that comes early or late is caught. Every scenario's rates are multiplied by
    ``factor``, in a busy window by less: the mean rate of its busiest scenario is not lifted above ``ceiling_rps``.
    """

    neighbour_s: int = 0
    factor: float = 1.0
    ceiling_rps: float = math.inf

    @property
    def shifts_s(self) -> tuple[int, ...]:
        """Shifts of the window that make its scenarios, nearest first.

        >>> Margin(neighbour_s=3600).shifts_s, Margin().shifts_s, Margin(neighbour_s=2700).shifts_s
        ((0, -1800, 1800, -3600, 3600), (0,), (0, -1800, 1800, -2700, 2700))
        """
        steps = sorted({*range(SHIFT_STEP_S, self.neighbour_s, SHIFT_STEP_S), self.neighbour_s} - {0})
        return (0, *(sign * step for step in steps for sign in (-1, 1)))

    def __str__(self) -> str:
        """For people.

        >>> str(Margin(neighbour_s=3600, factor=1.15)), str(Margin(factor=1.5, ceiling_rps=7.06)), str(Margin())
        ('±1h × 1.15', '× 1.5 to 7.1 rps', '× 1')
        """
        around = f"±{self.neighbour_s / 3600:g}h " if self.neighbour_s else ""
        until = f" to {self.ceiling_rps:.1f} rps" if self.ceiling_rps < math.inf else ""
        return f"{around}× {self.factor:g}{until}"

    def factors(self, busiest_rps: Floats) -> Floats:
        """What windows are multiplied by whose busiest scenario has that mean rate: never less than 1.

        >>> Margin(factor=1.5, ceiling_rps=12.0).factors(np.array([0.0, 6.0, 10.0, 15.0])).tolist()
        [1.5, 1.5, 1.2, 1.0]
        """
        return capped_factors(self.factor, self.ceiling_rps, busiest_rps)


NO_MARGIN = Margin()


def capped_factors(factor: float | Floats, ceiling_rps: float | Floats, busiest_rps: Floats) -> Floats:
    """``Margin.factors`` of many margins; all broadcast.

    >>> capped_factors(np.array([1.1, 2.0]), 12.0, np.array(10.0)).tolist()
    [1.1, 1.2]
    """
    shape = np.broadcast_shapes(np.shape(ceiling_rps), np.shape(busiest_rps))
    room = np.full(shape, math.inf)
    with np.errstate(over="ignore"):  # a load at the end of the doubles has all the room there is
        np.divide(ceiling_rps, busiest_rps, out=room, where=np.asarray(busiest_rps) > 0.0)
    return np.asarray(np.minimum(factor, np.maximum(room, 1.0)))


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
    least_observed: float = LEAST_OBSERVED_SHARE,
) -> WindowDemand:
    """The planned demand of a workload in a window: one scenario for each past day and shift of the margin.

    An interval belongs to the window in which it starts; where intervals are longer than the window, those that
    overlap it speak for it. Intervals that were not observed are left out; an instance with less than half of its
    intervals (``least_observed``) is no past day (nor, shifted, a scenario). A past date inside a dated exception
    counts as the exception's ``like`` weekday, and its rates are divided by the exception's factor. The SCV of
    arrivals is the interval's own where the trace has it, else the median of the series, else 1. ``service_time_s`` or
    ``service_scv`` None: measured from the trace in this window (SCV: else 1). ``demand_factor`` multiplies all rates:
    the factor of the dated exception that is planned for.

    Raises ``InputError``: ``no_past_days`` where no day speaks for the window, ``no_service_time`` where the trace
    was to give the service time and has none.

    >>> import numpy as np
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
    past = past_scenarios(
        series,
        window,
        time_zone=time_zone,
        shifts_s=margin.shifts_s,
        exceptions=exceptions,
        workload=workload,
        least_observed=least_observed,
    )
    return demand_of(
        series,
        past,
        margin=margin,
        demand_factor=demand_factor,
        service_time_s=service_time_s,
        service_scv=service_scv,
        workload=workload,
    )


def demand_of(
    series: Series,
    past: Scenarios,
    *,
    service_time_s: float | None,
    service_scv: float | None,
    margin: Margin = NO_MARGIN,
    demand_factor: float = 1.0,
    workload: str = "",
) -> WindowDemand:
    """The scenarios as planned demand: with burstiness, service, and factors on the rates (§5.2)."""
    margin_factor = float(margin.factors(past.mean_rps.max()))
    own = past.interval[: past.offsets[past.days]]
    scv = arrival_scv(series)
    return WindowDemand(
        rates_rps=past.rates_rps * (margin_factor * demand_factor),
        scv=scv[past.interval],
        offsets=past.offsets,
        day=past.day,
        days=past.days,
        value_rates_rps=past.rates_rps[: len(own)] * demand_factor,
        value_scv=scv[own],
        service_time_s=mean_service_time_s(series, own, workload) if service_time_s is None else service_time_s,
        service_scv=measured_service_scv(series, own) if service_scv is None else service_scv,
    )
