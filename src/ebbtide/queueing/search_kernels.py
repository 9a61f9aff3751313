"""Numba kernel for the least replicas at which a group attains a share, where no recursion leads from n to n + 1."""

from __future__ import annotations

import math

from numba import njit

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints
from ebbtide.queueing.latency import log_late
from ebbtide.queueing.replicas import LATE, Terms, log_patient, replica_law


@njit(cache=True, nogil=True)
def _late_share(terms: Terms, replicas: int, rate_rps: float, arrival_scv: float) -> float:
    """Share of a sample's requests that are late (or gone); 1 at or above capacity."""
    if terms.patience_s < math.inf:
        return math.exp(log_patient(LATE, terms, replicas, rate_rps, arrival_scv))
    log_p, decay_per_s = replica_law(terms, replicas, rate_rps, arrival_scv)
    if decay_per_s <= 0.0:
        return 1.0
    if terms.is_latency:
        return math.exp(log_late(log_p, decay_per_s, terms.bound_s, terms.service_time_s, terms.service_scv))
    return math.exp(log_p - decay_per_s * terms.bound_s)


@njit(cache=True, nogil=True)
def _holds(
    terms: Terms, replicas: int, allowed_rps: float, rates_rps: Floats, scv: Floats, first: int, last: int
) -> bool:
    """Whether n replicas leave no more than ``allowed_rps`` late; the samples are not all asked where some are enough
    to say no."""
    late_rps = 0.0
    for i in range(first, last):
        if rates_rps[i] > 0.0:
            late_rps += rates_rps[i] * _late_share(terms, replicas, rates_rps[i], scv[i])
            if late_rps > allowed_rps:
                return False
    return True


@njit(cache=True, nogil=True)
def _least(
    terms: Terms,
    guess: int,
    floor: int,
    at_most: int,
    allowed_rps: float,
    rates_rps: Floats,
    scv: Floats,
    first: int,
    last: int,
) -> int:
    """Gallops from the guess to a count that holds and one that doesn't, and bisects: attainment grows with n."""
    below, met = floor - 1, at_most + 1
    n, step = min(max(guess, floor), at_most), 1
    while met - below > 1:
        if _holds(terms, n, allowed_rps, rates_rps, scv, first, last):
            met = n
        else:
            below = n
        if met <= at_most and below >= floor:
            n = (met + below) // 2
        elif met <= at_most:
            n = max(floor, met - step)
        else:
            n = min(at_most, below + step)
        step *= 2
    return met


@njit(cache=True, nogil=True)
def fill_required(
    terms: Terms,
    share: float,
    rates_rps: Floats,
    scv: Floats,
    service_time_s: Floats,
    service_scv: Floats,
    offsets: Ints,
    floors: Ints,
    at_most: int,
    out: Ints,
) -> None:
    """Least replicas per group, at_most + 1 where none suffices, 0 without requests. A group's search begins as far
    above its floor as the one before it ended: groups that follow each other are alike."""
    above = 0
    for g in range(out.size):
        total_rps = 0.0
        for i in range(offsets[g], offsets[g + 1]):
            total_rps += rates_rps[i]
        if total_rps <= 0.0:
            out[g] = 0
            continue
        group = Terms(
            terms.balancing,
            terms.slots,
            service_time_s[g],
            service_scv[g],
            terms.patience_s,
            terms.is_latency,
            terms.bound_s,
        )
        allowed_rps = (1.0 - share) * total_rps
        out[g] = _least(
            group, floors[g] + above, floors[g], at_most, allowed_rps, rates_rps, scv, offsets[g], offsets[g + 1]
        )
        if out[g] <= at_most:
            above = out[g] - floors[g]
