"""Request streams from rates per interval, and what each request brings: a service time and a patience.

Streams are renewal processes in *operational time*: one unit passes per expected request, so the clock runs with the
rate and stands still where the rate is 0. Exponential gaps make the Poisson process with that rate; gamma gaps of
squared coefficient of variation (SCV) c² make inter-arrival times of that SCV within an interval. Every run of
intervals with one SCV begins in equilibrium (the first gap is a length-biased gap times a uniform share of it), so the
expected number of requests is Σ rate × length exactly, whatever the SCV (the equilibrium renewal process: Cox 1962,
Renewal Theory).

All randomness comes from the generator passed in: same seed, same stream, on one version of numpy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Requests:
    """What comes to a station, in order of arrival.

    ``arrival_s`` ascends; ``service_s[i]`` is what request i asks of a slot. ``patience_s`` None: nobody gives up
    (the state "unlimited"); else request i leaves when its service has not begun after ``patience_s[i]``.
    ``ValueError`` where lengths differ, arrivals descend, or a time is negative or not a number.
    """

    arrival_s: Floats
    service_s: Floats
    patience_s: Floats | None = None

    def __post_init__(self) -> None:
        if not np.all(np.diff(self.arrival_s) >= 0.0) or not np.all(np.isfinite(self.arrival_s)):
            raise ValueError("arrivals must be finite and in order")
        for name, times_s in (("service", self.service_s), ("patience", self.patience_s)):
            if times_s is None:
                continue
            if times_s.shape != self.arrival_s.shape:
                raise ValueError(f"{len(self.arrival_s)} arrivals but {name} times of shape {times_s.shape}")
            if not np.all(times_s >= 0.0):
                raise ValueError(f"{name} times must be numbers of at least 0")

    def __len__(self) -> int:
        return len(self.arrival_s)


def request_arrivals_s(
    edges_s: ArrayLike, rates_rps: ArrayLike, *, arrival_scv: ArrayLike = 1.0, rng: np.random.Generator
) -> Floats:
    """Arrival instants in order, seconds, on ``[edges_s[0], edges_s[-1])``.

    ``rates_rps[j]`` holds on ``[edges_s[j], edges_s[j+1])``; ``arrival_scv`` is a number or one for each interval: 1
    is Poisson, 0 evenly spaced (with a random start). ``ValueError`` where edges do not ascend, lengths differ, or a
    rate or SCV is negative or not finite.

    >>> rng = np.random.default_rng(7)
    >>> arrivals = request_arrivals_s([0.0, 100.0, 200.0], [50.0, 0.0], rng=rng)
    >>> bool(4600 < len(arrivals) < 5400), bool(arrivals[-1] < 100.0)
    (True, True)
    >>> request_arrivals_s([0.0, 4.0], [1.0], arrival_scv=0.0, rng=rng).size
    4
    """
    edges, rates, scvs = _checked(edges_s, rates_rps, arrival_scv)
    reached = np.concatenate(([0.0], np.cumsum(rates * np.diff(edges))))
    runs = np.concatenate(([0], np.flatnonzero(np.diff(scvs)) + 1, [len(rates)]))
    points = [
        reached[begin] + _equilibrium_points(float(reached[end] - reached[begin]), float(scvs[begin]), rng)
        for begin, end in pairwise(runs)
    ]
    # An interval without requests has no extent in operational time: only the others can map back to the clock.
    busy = np.flatnonzero(rates > 0.0)
    if not len(busy):
        return np.empty(0)
    operational = np.minimum(np.concatenate(points), np.nextafter(reached[-1], 0.0))
    interval = busy[np.searchsorted(reached[busy], operational, side="right") - 1]
    instants = edges[interval] + (operational - reached[interval]) / rates[interval]
    return np.maximum.accumulate(np.minimum(instants, np.nextafter(edges[interval + 1], -math.inf)))


def service_times_s(count: int, mean_s: float, *, scv: float = 1.0, rng: np.random.Generator) -> Floats:
    """``count`` independent service times: exponential for SCV 1, all equal for 0, else gamma of that SCV.

    >>> service_times_s(3, 2.0, scv=0.0, rng=np.random.default_rng(1))
    array([2., 2., 2.])
    """
    if not (mean_s > 0.0 and math.isfinite(mean_s) and scv >= 0.0 and math.isfinite(scv)):
        raise ValueError(f"a service needs a mean above 0 and an SCV of at least 0: {mean_s}, {scv}")
    return mean_s * _unit_gaps(count, scv, rng)


def patience_times_s(count: int, mean_s: float, *, rng: np.random.Generator) -> Floats | None:
    """``count`` exponential times after which users give up; None, the state "unlimited", for an infinite mean.

    >>> patience_times_s(3, math.inf, rng=np.random.default_rng(1)) is None
    True
    """
    if not mean_s > 0.0:
        raise ValueError(f"patience must be above 0: {mean_s}")
    return mean_s * rng.standard_exponential(count) if math.isfinite(mean_s) else None


def _checked(edges_s: ArrayLike, rates_rps: ArrayLike, arrival_scv: ArrayLike) -> tuple[Floats, Floats, Floats]:
    edges, rates = np.asarray(edges_s, dtype=np.float64), np.asarray(rates_rps, dtype=np.float64)
    if edges.ndim != 1 or rates.shape != (len(edges) - 1,):
        raise ValueError(f"{rates.shape} rates need one edge more, not {edges.shape}")
    scvs = np.broadcast_to(np.asarray(arrival_scv, dtype=np.float64), rates.shape)
    if not np.all(np.isfinite(edges)) or not np.all(np.diff(edges) > 0.0):
        raise ValueError("edges must be finite and ascend")
    for name, values in (("rates", rates), ("SCVs", scvs)):
        if not np.all(np.isfinite(values) & (values >= 0.0)):
            raise ValueError(f"{name} must be finite and at least 0; leave missing intervals out before")
    return edges, rates, scvs


def _unit_gaps(count: int, scv: float, rng: np.random.Generator) -> Floats:
    """Independent numbers of mean 1 and the given SCV."""
    if scv == 1.0:
        return rng.standard_exponential(count)
    if scv == 0.0:
        return np.ones(count)
    return scv * rng.standard_gamma(1.0 / scv, count)


def _equilibrium_points(length: float, scv: float, rng: np.random.Generator) -> Floats:
    """Points of a stationary renewal process of rate 1 on ``[0, length)``."""
    # A gamma density times its argument is a gamma density of one more shape: the length-biased gap.
    biased = 1.0 if scv == 0.0 else scv * rng.standard_gamma(1.0 + 1.0 / scv)
    points = np.array([biased * rng.random()])
    while points[-1] < length:
        left = length - points[-1]
        more = int(left + 4.0 * math.sqrt((scv + 0.01) * left)) + 16
        points = np.concatenate((points, points[-1] + np.cumsum(_unit_gaps(more, scv, rng))))
    return points[: int(np.searchsorted(points, length, side="left"))]
