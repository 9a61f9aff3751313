"""What one sample's station does from n to n + 1 replicas, for numba callers that walk up n: P(W > 0) and θ.

A walk's samples are the columns of one array ``state``; its rows are named below. The answers are ``replicas``' own,
reached by recursion where there is one. What belongs here: the recursions. What doesn't: groups and where their curves
end (``curve_kernels``), patience (``abandonment``).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ebbtide.fleet.demand import Floats
from ebbtide.queueing.balancing import least_loaded_share
from ebbtide.queueing.erlang import log_b
from ebbtide.queueing.general import peakedness, variability
from ebbtide.queueing.replicas import LEAST_LOADED, POOLED, RANDOM, Terms, alone_scv

# The rate; the offered load; the SCV of the arrivals' gaps; 1/B of the station that the balancing asks for (pooled: of
# all slots, random: of one replica's); 1 − ρⁿ, for least loaded only; 1/load.
RATE, LOAD, ARRIVAL_SCV, INVERSE, SPARE, PER_LOAD = 0, 1, 2, 3, 4, 5
ROWS = 6
# With more slots a replica's steps of the recursion cost more than Erlang's formula anew.
MOST_STEPS = 256


@njit(cache=True, nogil=True)
def is_recursive(terms: Terms, state: Floats, count: int) -> bool:
    """Whether 1/B goes on from server to server: Poisson arrivals have peakedness 1, whatever the service."""
    if terms.slots > MOST_STEPS:
        return False
    return bool(np.all(state[ARRIVAL_SCV, :count] == 1.0))


@njit(cache=True, nogil=True)
def enter(terms: Terms, replicas: int, state: Floats, i: int) -> None:
    """Sample ``i`` begins at n replicas, below capacity."""
    if terms.patience_s < math.inf:
        return
    load = state[LOAD, i]
    state[INVERSE, i] = _inverse(terms, replicas, load, state[ARRIVAL_SCV, i])
    state[PER_LOAD, i] = 1.0 / load
    if terms.balancing != LEAST_LOADED:
        return
    # 1 − ρⁿ = n(1 − ρ)/x: as exact as c − a near capacity, where ρ itself is rounded.
    servers = float(replicas * terms.slots)
    share = load / servers
    slower = replicas * (1.0 - share) / -math.expm1(replicas * math.log(share)) if share < 1.0 else 1.0
    state[SPARE, i] = (servers - load) / (terms.slots * slower)


@njit(cache=True, nogil=True)
def _inverse(terms: Terms, replicas: int, load: float, arrival_scv: float) -> float:
    """1/B from Erlang's formula."""
    servers = float(replicas * terms.slots)
    if terms.balancing == RANDOM:
        servers, load, arrival_scv = float(terms.slots), load / replicas, alone_scv(arrival_scv, replicas)
    z = peakedness(arrival_scv, terms.service_scv)
    return math.exp(min(700.0, -log_b(servers / z, load / z)))


@njit(cache=True, nogil=True)
def advance(terms: Terms, replicas: int, is_plain: bool, state: Floats, active: int) -> None:
    """The first ``active`` samples go from n − 1 to n replicas; ``is_plain``: all are ``is_recursive``."""
    if terms.patience_s < math.inf:
        return
    if terms.balancing == LEAST_LOADED:
        # From ρ(n−1)^(n−1) to ρ(n)^n but for a/k.
        step = math.exp((replicas - 1) * math.log1p(-1.0 / replicas)) / (replicas * terms.slots)
        for i in range(active):
            state[SPARE, i] = 1.0 - (1.0 - state[SPARE, i]) * (state[LOAD, i] * step)
    if not is_plain:
        for i in range(active):
            state[INVERSE, i] = _inverse(terms, replicas, state[LOAD, i], state[ARRIVAL_SCV, i])
        return
    # In the order that lets the compiler work on several samples at once.
    servers, each = float((replicas - 1) * terms.slots), 1.0
    if terms.balancing == RANDOM:
        servers, each = 0.0, float(replicas)
        for i in range(active):
            state[INVERSE, i] = 1.0
    for _ in range(terms.slots):
        servers += each
        for i in range(active):
            state[INVERSE, i] = 1.0 + servers * state[PER_LOAD, i] * state[INVERSE, i]


@njit(cache=True, nogil=True)
def wait_law_of(terms: Terms, replicas: int, state: Floats, i: int) -> tuple[float, float]:
    """(P(W > 0), θ per second) of sample ``i``: ``replicas.replica_law`` without logarithms."""
    load, arrival_scv = state[LOAD, i], state[ARRIVAL_SCV, i]
    servers = float(replicas * terms.slots)
    waiting = servers / (state[INVERSE, i] * (servers - load) + load)
    decay_per_s = (servers - load) / terms.service_time_s
    if terms.balancing == RANDOM:
        alone = variability(alone_scv(arrival_scv, replicas), terms.service_scv)
        return max(1e-300, waiting), decay_per_s / (replicas * alone)
    varied = variability(arrival_scv, terms.service_scv)
    decay_per_s /= varied
    waiting = max(1e-300, waiting)
    if terms.balancing == POOLED or replicas == 1:
        return waiting, decay_per_s
    slower = (servers - load) / (terms.slots * state[SPARE, i])
    if arrival_scv != 1.0:
        alone = variability(alone_scv(arrival_scv, replicas), terms.service_scv)
        decay_per_s *= math.exp(math.log(slower) / math.log(replicas) * math.log(varied / alone))
    return least_loaded_share(terms.slots, waiting, slower), decay_per_s / slower
