"""Numba kernels behind ``curves``: groups of rate samples against numbers of replicas, without patience.

The recursion: for pooled M/M/c and targets on the wait, a sample enters once by ``log_b`` and goes on by
1/B(c) = 1 + (c/a)/B(c−1) (Jagerman 1974), which is stable, so a point costs a few multiplications. Everything else
is evaluated point by point (``replicas``). A sample whose late share is next to nothing is served from there on.
"""

from __future__ import annotations

import math

from numba import njit

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints
from ebbtide.queueing.erlang import log_b
from ebbtide.queueing.general import mean_wait_within_s
from ebbtide.queueing.latency import log_late, service_share
from ebbtide.queueing.replicas import POOLED, RANDOM, Terms, balanced_law, replica_law

# A late share that is nothing beside the attained ones.
NEGLIGIBLE_SHARE = 1e-14
# Above this many slots a replica's steps of the recursion cost more than evaluating the next point directly.
MOST_STEPS = 40


@njit(cache=True, nogil=True)
def first_stable(slots: int, load: float) -> int:
    """Least replicas whose slots exceed the offered load."""
    n = int(load / slots) + 1
    while n > 1 and (n - 1) * slots > load:
        n -= 1
    while n * slots <= load:
        n += 1
    return n


@njit(cache=True, nogil=True)
def _evaluate(
    terms: Terms,
    is_mean: bool,
    is_recursive: bool,
    rate_rps: float,
    arrival_scv: float,
    start: int,
    high: int,
    least: float,
    at: int,
    out: Floats,
) -> int:
    """Adds the sample's points n = start … high to out[at:]; returns where it stopped, for less than ``least`` is
    late (or waits, in requests) from there on."""
    load = rate_rps * terms.service_time_s
    servers = float(start * terms.slots)
    inverse = math.exp(min(700.0, -log_b(servers, load))) if is_recursive else 0.0
    for n in range(start, high + 1):
        if is_recursive:
            pooled = -math.log((inverse * (servers - load) + load) / servers)
            log_p, decay_per_s = balanced_law(terms, n, load, arrival_scv, pooled)
            for _ in range(terms.slots):
                servers += 1.0
                inverse = 1.0 + servers / load * inverse
        else:
            log_p, decay_per_s = replica_law(terms, n, rate_rps, arrival_scv)
        if is_mean:
            value = mean_wait_within_s(log_p, decay_per_s, terms.bound_s)
            missing = rate_rps * value
        elif terms.is_latency:
            value = -math.expm1(log_late(log_p, decay_per_s, terms.bound_s, terms.service_time_s, terms.service_scv))
            missing = math.exp(log_p)
        else:
            missing = math.exp(log_p - decay_per_s * terms.bound_s)
            value = 1.0 - missing
        out[at + n - start] += rate_rps * value
        if missing < least:
            return n + 1
    return high + 1


@njit(cache=True, nogil=True)
def _recur(
    terms: Terms, is_mean: bool, rate_rps: float, start: int, high: int, least: float, at: int, out: Floats
) -> int:
    """``_evaluate`` for pooled M/M/c, without a logarithm: the exponential too goes on by a factor."""
    service_s, bound_s = terms.service_time_s, terms.bound_s
    load = rate_rps * service_s
    per_load = 1.0 / load
    servers = float(start * terms.slots)
    inverse = math.exp(min(700.0, -log_b(servers, load)))
    decayed = math.exp(-(servers - load) / service_s * bound_s)
    step = math.exp(-terms.slots / service_s * bound_s)
    for n in range(start, high + 1):
        missing = servers / (inverse * (servers - load) + load)
        if is_mean:
            missing *= rate_rps * (1.0 - decayed) * service_s / (servers - load)
            out[at + n - start] += missing
        else:
            missing *= decayed
            out[at + n - start] += rate_rps * (1.0 - missing)
        if missing < least:
            return n + 1
        for _ in range(terms.slots):
            servers += 1.0
            inverse = 1.0 + servers * per_load * inverse
        decayed *= step
    return high + 1


@njit(cache=True, nogil=True)
def fill_curves(
    terms: Terms,
    is_mean: bool,
    least: float,
    rates_rps: Floats,
    scv: Floats,
    service_time_s: Floats,
    service_scv: Floats,
    bound_s: Floats,
    offsets: Ints,
    low: Ints,
    high: Ints,
    starts: Ints,
    out: Floats,
) -> None:
    """Σ rate × attained share (or Σ rate × E[min(W, bound)]) of each group at n = low … high into ``out[starts[g]:]``.

    ``out`` begins as zeros. The terms' service time, SCV and bound are replaced by the group's. A sample ends where its
    late share (or its requests waiting) is below ``least``.
    """
    for g in range(low.size):
        group = Terms(
            terms.balancing,
            terms.slots,
            service_time_s[g],
            service_scv[g],
            terms.patience_s,
            terms.is_latency,
            bound_s[g],
        )
        is_markov = terms.balancing == POOLED and service_scv[g] == 1.0 and not terms.is_latency
        ceiling = service_share(bound_s[g], service_time_s[g], service_scv[g]) if terms.is_latency else 1.0
        for i in range(offsets[g], offsets[g + 1]):
            rate_rps = rates_rps[i]
            if rate_rps <= 0.0:
                continue
            first = first_stable(terms.slots, min(rate_rps * service_time_s[g], 1e15))
            start = min(high[g] + 1, max(low[g], first))
            if is_mean:
                for j in range(start - low[g]):
                    out[starts[g] + j] += rate_rps * bound_s[g]
            done = start
            at = starts[g] + start - low[g]
            if start <= high[g]:
                # Poisson arrivals have peakedness 1, whatever the service: 1/B may go on from server to server.
                is_recursive = scv[i] == 1.0 and terms.slots <= MOST_STEPS and terms.balancing != RANDOM
                if is_recursive and is_markov:
                    done = _recur(group, is_mean, rate_rps, start, high[g], least, at, out)
                else:
                    done = _evaluate(group, is_mean, is_recursive, rate_rps, scv[i], start, high[g], least, at, out)
            if not is_mean:
                for j in range(done - low[g], high[g] - low[g] + 1):
                    out[starts[g] + j] += rate_rps * ceiling


@njit(cache=True, nogil=True)
def fill_required(
    terms: Terms,
    share: float,
    rates_rps: Floats,
    service_time_s: Floats,
    offsets: Ints,
    floors: Ints,
    at_most: int,
    inverse: Floats,
    decayed: Floats,
    out: Ints,
) -> None:
    """Least replicas per group for pooled M/M/c and a target on the wait: n walks up from the group's floor, and each
    sample enters the recursion where it first is stable. ``inverse`` begins as zeros, ``decayed`` is scratch."""
    slots, bound_s = terms.slots, terms.bound_s
    for g in range(out.size):
        service_s = service_time_s[g]
        total = 0.0
        for i in range(offsets[g], offsets[g + 1]):
            total += rates_rps[i]
        if total <= 0.0:
            out[g] = 0
            continue
        step = math.exp(-slots / service_s * bound_s)
        n = floors[g]
        while n <= at_most:
            servers = float(n * slots)
            attained = 0.0
            for i in range(offsets[g], offsets[g + 1]):
                load = rates_rps[i] * service_s
                if load <= 0.0 or load >= servers:
                    continue
                if inverse[i] == 0.0:
                    inverse[i] = math.exp(min(700.0, -log_b(servers, load)))
                    decayed[i] = math.exp(-(servers - load) / service_s * bound_s)
                else:
                    for j in range(1, slots + 1):
                        inverse[i] = 1.0 + (servers - slots + j) / load * inverse[i]
                    decayed[i] *= step
                attained += rates_rps[i] * (1.0 - servers * decayed[i] / (inverse[i] * (servers - load) + load))
            if attained >= share * total:
                break
            n += 1
        out[g] = n if n <= at_most else at_most + 1
