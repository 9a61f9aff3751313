"""Replicas of k slots under the three ways in which requests find them (§5.6): the scalar kernels.

n replicas of k slots at arrival rate λ are, pooled, one station of n·k servers; random, n stations of k servers at
λ/n each, whose gaps have SCV 1 + (c²ₐ − 1)/n (a stream split at random); least loaded lies between them: P(W > 0) and
the decay rate as ``balancing`` says. With patience the logarithms of the late and lost shares, of the tail and of the
mean wait are interpolated by ``balancing``'s weights.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from numba import njit

from ebbtide.queueing.abandonment import (
    log_abandon,
    log_late_or_lost,
    log_mean_wait_within,
    log_offered_tail,
    log_served,
    queue_law,
)
from ebbtide.queueing.balancing import log_waiting, patient_weight, random_decay_weight
from ebbtide.queueing.general import wait_decay_per_s, wait_law
from ebbtide.queueing.latency import log_late, log_late_or_lost_latency

POOLED, LEAST_LOADED, RANDOM = 0, 1, 2
LATE, TAIL, ABANDON, MEAN_WAIT, SERVED = 0, 1, 2, 3, 4


class Terms(NamedTuple):
    """What does not change with replicas and rate. ``balancing`` is one of the codes above; ``bound_s`` is the
    target's bound, the tail's t or the mean's horizon, whichever is asked; ``patience_s`` may be infinite."""

    balancing: int
    slots: int
    service_time_s: float
    service_scv: float
    patience_s: float
    is_latency: bool
    bound_s: float


@njit(cache=True, nogil=True)
def alone_scv(arrival_scv: float, replicas: int) -> float:
    """SCV of the gaps at one of n replicas when each request picks one at random."""
    return 1.0 + (arrival_scv - 1.0) / replicas


@njit(cache=True, nogil=True)
def balanced_law(
    terms: Terms, replicas: int, load: float, arrival_scv: float, log_pooled: float
) -> tuple[float, float]:
    """(ln P(W > 0), θ per second) of pooled or least-loaded replicas below capacity, from the pooled ln P(W > 0)."""
    service_s, scv, slots = terms.service_time_s, terms.service_scv, terms.slots
    decay_per_s = wait_decay_per_s(float(replicas * slots), load, service_s, arrival_scv, scv)
    if terms.balancing == POOLED or replicas == 1:
        return log_pooled, decay_per_s
    v = random_decay_weight(replicas, slots, load)
    if v > 0.0:
        # In logarithms (1 − v)·pooled + v·alone.
        scv_alone = alone_scv(arrival_scv, replicas)
        alone_per_s = wait_decay_per_s(float(slots), load / replicas, service_s, scv_alone, scv)
        decay_per_s *= math.exp(v * math.log(alone_per_s / decay_per_s))
    return log_waiting(replicas, slots, load, log_pooled), decay_per_s


@njit(cache=True, nogil=True)
def replica_law(terms: Terms, replicas: int, rate_rps: float, arrival_scv: float) -> tuple[float, float]:
    """(ln P(W > 0), θ per second) without patience; (0, 0) where the offered load reaches the slots."""
    service_s, scv, slots = terms.service_time_s, terms.service_scv, terms.slots
    load = rate_rps * service_s
    if terms.balancing == RANDOM:
        return wait_law(float(slots), load / replicas, service_s, alone_scv(arrival_scv, replicas), scv)
    log_p, decay_per_s = wait_law(float(replicas * slots), load, service_s, arrival_scv, scv)
    if decay_per_s <= 0.0 or load <= 0.0:
        return log_p, decay_per_s
    return balanced_law(terms, replicas, load, arrival_scv, log_p)


@njit(cache=True, nogil=True)
def _log_patient(measure: int, terms: Terms, servers: float, load: float, arrival_scv: float) -> float:
    service_s, scv, patience_s, bound_s = terms.service_time_s, terms.service_scv, terms.patience_s, terms.bound_s
    if load <= 0.0:
        is_service_late = measure == LATE and terms.is_latency
        return log_late(-math.inf, 1.0, bound_s, service_s, scv) if is_service_late else -math.inf
    s, x, norm = queue_law(servers, load, service_s, patience_s, arrival_scv, scv)
    t = bound_s / patience_s
    if measure == TAIL:
        return log_offered_tail(s, x, norm, t) - t
    if measure == ABANDON:
        return log_abandon(s, x, norm)
    if measure == SERVED:
        return log_served(s, x, norm)
    if measure == MEAN_WAIT:
        return log_mean_wait_within(s, x, norm, t) + math.log(patience_s)
    if terms.is_latency:
        return log_late_or_lost_latency(s, x, norm, patience_s, bound_s, service_s, scv)
    return log_late_or_lost(s, x, norm, t)


@njit(cache=True, nogil=True)
def log_patient(measure: int, terms: Terms, replicas: int, rate_rps: float, arrival_scv: float) -> float:
    """ln of one measure with finite patience: LATE (or gone), TAIL of the time in the queue, ABANDON, MEAN_WAIT (of
    min(W, bound), in seconds), SERVED (where most give up)."""
    load = rate_rps * terms.service_time_s
    slots = terms.slots
    value = 0.0
    for is_alone in range(2):
        if is_alone:
            if terms.balancing == POOLED or replicas == 1 or value == -math.inf:
                break
            servers, share, scv = float(slots), load / replicas, alone_scv(arrival_scv, replicas)
        else:
            servers, share, scv = float(replicas * slots), load, arrival_scv
        this = _log_patient(measure, terms, servers, share, scv)
        if is_alone and terms.balancing == LEAST_LOADED:
            w = patient_weight(slots, measure in (LATE, TAIL))
            value = (1.0 - w) * value + w * this
        else:
            value = this
    return value
