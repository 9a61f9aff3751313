"""What the trace itself measured: burstiness of arrivals, service times, and what stands in where it did not (§5.2).

What belongs here: moments over a series' intervals. What doesn't: which intervals speak for a window
(``forecast.seasonal``), reading of traces.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ebbtide.errors import InputError, Place
from ebbtide.fleet.demand import Floats, Seen, Series
from ebbtide.fleet.planned import Ints

POISSON_SCV = 1.0
EXPONENTIAL_SCV = 1.0


@lru_cache(maxsize=8)  # a workload's windows are asked for one after the other
def arrival_scv(series: Series) -> Floats:
    """The SCV of inter-arrival times for every interval: its own, else the median of the series, else Poisson's 1.

    An interval that borders an outage is cut by it: one of its gaps is the collector's, not the users', and its SCV is
    not taken (m-small/c5 of ServeGen shows 75,900 to 158,000 there, against 1.2 at its median).

    >>> seen = Series(
    ...     key="chat", start_s=0, interval_s=600, rate_rps=np.ones(4), seen=np.array([0, 0, 0, 2], np.uint8),
    ...     arrival_scv=np.array([1.4, np.nan, 7e4, 99.0]),
    ... )
    >>> arrival_scv(seen).tolist()
    [1.4, 1.4, 1.4, 1.4]
    """
    scv = (
        np.full(len(series.seen), POISSON_SCV) if series.arrival_scv is None else _known_scv(series, series.arrival_scv)
    )
    scv.flags.writeable = False
    return scv


def _known_scv(series: Series, measured: Floats) -> Floats:
    known = np.isfinite(measured) & series.observed & ~_beside(series.seen == Seen.OUTAGE)
    usual = float(np.median(measured[known])) if known.any() else POISSON_SCV
    return np.where(known, measured, usual)


def _beside(outage: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """True in the intervals just before and just after an outage."""
    beside = np.zeros_like(outage)
    beside[:-1] |= outage[1:]
    beside[1:] |= outage[:-1]
    return beside


def mean_service_time_s(series: Series, interval: Ints, workload: str = "") -> float:
    """Mean service time over the requests of the given intervals, else of the whole trace, in seconds.

    ``InputError`` (``no_service_time``) where the trace holds none.
    """
    mean_s = _service_moments(series, interval)[0]
    if not mean_s > 0:
        raise InputError(
            f"workload {workload or series.key!r}: the trace holds no service time",
            kind="no_service_time",
            place=Place(field=workload or series.key),
            hint="give service.time, or name the column that holds it",
        )
    return mean_s


def measured_service_scv(series: Series, interval: Ints) -> float:
    """SCV of service times over the requests of the given intervals, else of the whole trace, else the exponential's 1.

    It is that of the mixture: the variance within intervals plus that of the intervals' means.

    >>> seen = Series(
    ...     key="chat", start_s=0, interval_s=600, rate_rps=np.ones(2), seen=np.zeros(2, np.uint8),
    ...     service_mean_s=np.array([1.0, 3.0]), service_scv=np.array([0.0, 0.0]),
    ... )
    >>> mean_service_time_s(seen, np.arange(2)), measured_service_scv(seen, np.arange(2))
    (2.0, 0.25)
    """
    mean_s, variance_s2 = _service_moments(series, interval)
    return variance_s2 / mean_s**2 if mean_s > 0 and variance_s2 >= 0 else EXPONENTIAL_SCV


def _service_moments(series: Series, interval: Ints) -> tuple[float, float]:
    """Mean and variance of the service time, intervals weighted by their requests; NaN where nothing is known."""
    if series.service_mean_s is None:
        return np.nan, np.nan
    for chosen in (interval, np.flatnonzero(series.observed)):
        mean_s, weight = series.service_mean_s[chosen], series.rate_rps[chosen]
        known = np.isfinite(mean_s) & (weight > 0)
        if known.any():
            return float(np.average(mean_s[known], weights=weight[known])), _variance_s2(series, chosen[known])
    return np.nan, np.nan


def _variance_s2(series: Series, interval: Ints) -> float:
    """NaN where the trace has no SCV of its own in any of the intervals; those without one are left out."""
    if series.service_mean_s is None or series.service_scv is None:
        return np.nan
    interval = interval[np.isfinite(series.service_scv[interval])]
    if not len(interval):
        return np.nan
    mean_s, weight = series.service_mean_s[interval], series.rate_rps[interval]
    second_s2 = np.average(mean_s**2 * (1.0 + series.service_scv[interval]), weights=weight)
    return float(second_s2 - np.average(mean_s, weights=weight) ** 2)
