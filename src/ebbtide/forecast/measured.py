"""What the trace itself measured: burstiness of arrivals, service times, and what stands in where it did not (§5.2).

What belongs here: moments over a series' intervals. What doesn't: which intervals speak for a window
(``forecast.seasonal``), reading of traces.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    measured_s = np.full(len(series.seen), np.nan) if series.service_mean_s is None else series.service_mean_s
    known = next(_known(series, interval, measured_s), None)
    mean_s = 0.0 if known is None else float(np.average(measured_s[known], weights=series.rate_rps[known]))
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

    It is that of the mixture: the variance within intervals plus that of the intervals' means. Intervals with too few
    requests for an SCV of their own are left out; where that leaves none of the given ones, the whole trace speaks.

    >>> seen = Series(
    ...     key="chat", start_s=0, interval_s=600, rate_rps=np.ones(3), seen=np.zeros(3, np.uint8),
    ...     service_mean_s=np.array([1.0, 3.0, 9.0]), service_scv=np.array([0.0, 0.0, np.nan]),
    ... )
    >>> mean_service_time_s(seen, np.arange(2)), measured_service_scv(seen, np.arange(2))
    (2.0, 0.25)
    >>> measured_service_scv(seen, np.array([2]))
    0.25
    """
    if series.service_mean_s is None or series.service_scv is None:
        return EXPONENTIAL_SCV
    for known in _known(series, interval, series.service_mean_s + series.service_scv):
        mean_s, weight = series.service_mean_s[known], series.rate_rps[known]
        second_s2 = np.average(mean_s**2 * (1.0 + series.service_scv[known]), weights=weight)
        usual_s2 = np.average(mean_s, weights=weight) ** 2
        if usual_s2 > 0:
            return max(float(second_s2 / usual_s2) - 1.0, 0.0)
    return EXPONENTIAL_SCV


def _known(series: Series, interval: Ints, measured: Floats) -> Iterator[Ints]:
    """Those of the given intervals, then of all, that had requests and a measured value; no empty ones."""
    for chosen in (interval, np.flatnonzero(series.observed)):
        known = chosen[np.isfinite(measured[chosen]) & (series.rate_rps[chosen] > 0)]
        if len(known):
            yield known
