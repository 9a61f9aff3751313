"""Percentiles over several rates at once, and the greatest rate that a target allows: bisections in numba."""

from __future__ import annotations

import math

from numba import njit

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints
from ebbtide.queueing.curve_kernels import group_attainment
from ebbtide.queueing.replicas import Terms, attained_share


@njit(cache=True, nogil=True)
def _within(terms: Terms, bound_s: float) -> Terms:
    return Terms(
        terms.balancing,
        terms.slots,
        terms.service_time_s,
        terms.service_scv,
        terms.patience_s,
        terms.is_latency,
        bound_s,
    )


@njit(cache=True, nogil=True)
def mixture_percentile_s(terms: Terms, share: float, rates_rps: Floats, scv: Floats, replicas: int) -> float:
    """Least t at which the rate-weighted attained share reaches ``share``; inf where it never does."""
    total = rates_rps.sum()
    if total <= 0.0 or group_attainment(_within(terms, 0.0), rates_rps, scv, total, replicas) >= share:
        return 0.0
    high = terms.service_time_s
    while group_attainment(_within(terms, high), rates_rps, scv, total, replicas) < share:
        high *= 2.0
        if high > 1e15 * terms.service_time_s:
            return math.inf
    low = 0.5 * high if high > terms.service_time_s else 0.0
    while high - low > 1e-13 * high:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if group_attainment(_within(terms, middle), rates_rps, scv, total, replicas) < share:
            low = middle
        else:
            high = middle
    return high


@njit(cache=True, nogil=True)
def lower_to_held(terms: Terms, share: float, arrival_scv: float, replicas: Ints, held_rps: Floats) -> None:
    """Lowers each rate of ``held_rps`` to the greatest one at which the share attained is at least ``share``."""
    for i in range(replicas.size):
        n, high = replicas[i], held_rps[i]
        if n <= 0 or attained_share(terms, n, high, arrival_scv) >= share:
            continue
        low = 0.0
        if attained_share(terms, n, low, arrival_scv) < share:
            held_rps[i] = 0.0
            continue
        while high - low > 1e-14 * high:
            middle = 0.5 * (low + high)
            if middle in (low, high):
                break
            if attained_share(terms, n, middle, arrival_scv) >= share:
                low = middle
            else:
                high = middle
        held_rps[i] = low
