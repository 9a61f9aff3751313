"""Numba kernels behind ``curves``: groups of rate samples against numbers of replicas.

The recursion: for pooled M/M/c without patience and targets on the wait, a sample enters once by ``log_b`` and goes
on by 1/B(c) = 1 + (c/a)/B(c−1) (Jagerman 1974), which is stable, so a point costs a few multiplications. Everything
else is evaluated directly (``replicas``); a sample whose late share has fallen below 1e-17 is 1 from there on.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints
from ebbtide.queueing.erlang import log_b
from ebbtide.queueing.replicas import POOLED, Terms, attained_share, mean_wait_within

# A late share that no sum over samples can see any more.
_NEGLIGIBLE = 1e-17
# Above this many slots a replica's steps cost more than evaluating the next point directly.
_MOST_STEPS = 40


@njit(cache=True, nogil=True)
def _is_recursive(terms: Terms, arrival_scv: float) -> bool:
    is_markov = arrival_scv == 1.0 and terms.service_scv == 1.0 and terms.patience_s == math.inf
    return is_markov and terms.balancing == POOLED and terms.slots <= _MOST_STEPS


@njit(cache=True, nogil=True)
def _of_group(terms: Terms, service_time_s: float, service_scv: float, bound_s: float) -> Terms:
    return Terms(terms.balancing, terms.slots, service_time_s, service_scv, terms.patience_s, terms.is_latency, bound_s)


@njit(cache=True, nogil=True)
def _first_stable(terms: Terms, rate_rps: float) -> int:
    """Least replicas whose slots exceed the offered load."""
    load = rate_rps * terms.service_time_s
    n = max(1, int(load / terms.slots))
    while n > 1 and (n - 1) * terms.slots > load:
        n -= 1
    while n * terms.slots <= load:
        n += 1
    return n


@njit(cache=True, nogil=True)
def _add_sample(
    terms: Terms, rate_rps: float, arrival_scv: float, wanted_mean: bool, low: int, high: int, out: Floats
) -> None:
    """Adds rate × attained share (or rate × mean wait) of one sample at n = low … high to ``out``."""
    if rate_rps <= 0.0:
        return
    start = low
    if terms.patience_s == math.inf:
        start = max(low, min(high + 1, _first_stable(terms, rate_rps)))
        if wanted_mean:
            out[: start - low] += rate_rps * terms.bound_s
    if start > high:
        return
    if _is_recursive(terms, arrival_scv) and not terms.is_latency:
        done = _recur(terms, rate_rps, wanted_mean, low, start, high, out)
    else:
        done = _evaluate(terms, rate_rps, arrival_scv, wanted_mean, low, start, high, out)
    if not wanted_mean:
        out[done - low :] += rate_rps


@njit(cache=True, nogil=True)
def _evaluate(
    terms: Terms,
    rate_rps: float,
    arrival_scv: float,
    wanted_mean: bool,
    low: int,
    start: int,
    high: int,
    out: Floats,
) -> int:
    for n in range(start, high + 1):
        if wanted_mean:
            value = mean_wait_within(terms, n, rate_rps, arrival_scv)
            missing = value / terms.bound_s
        else:
            value = attained_share(terms, n, rate_rps, arrival_scv)
            missing = 1.0 - value
        out[n - low] += rate_rps * value
        if missing < _NEGLIGIBLE:
            return n + 1
    return high + 1


@njit(cache=True, nogil=True)
def _recur(terms: Terms, rate_rps: float, wanted_mean: bool, low: int, start: int, high: int, out: Floats) -> int:
    slots, bound_s = terms.slots, terms.bound_s
    load = rate_rps * terms.service_time_s
    per_load = 1.0 / load
    servers = float(start * slots)
    inverse = math.exp(min(700.0, -log_b(servers, load)))
    decayed = math.exp(-(servers - load) / terms.service_time_s * bound_s)
    step = math.exp(-slots / terms.service_time_s * bound_s)
    for n in range(start, high + 1):
        waiting = servers / (inverse * (servers - load) + load)
        late = waiting * decayed
        if wanted_mean:
            value = waiting * (1.0 - decayed) * terms.service_time_s / (servers - load)
            out[n - low] += rate_rps * value
            late = value / bound_s
        else:
            out[n - low] += rate_rps * (1.0 - late)
        if late < _NEGLIGIBLE:
            return n + 1
        for _ in range(slots):
            servers += 1.0
            inverse = 1.0 + servers * per_load * inverse
        decayed *= step
    return high + 1


@njit(cache=True, nogil=True)
def fill_attainment(
    terms: Terms,
    rates_rps: Floats,
    scv: Floats,
    service_time_s: Floats,
    service_scv: Floats,
    offsets: Ints,
    low: Ints,
    high: Ints,
    starts: Ints,
    out: Floats,
) -> None:
    """Group attainment at n = low[g] … high[g] into ``out[starts[g]:]``; 1 for a group without requests."""
    for g in range(low.size):
        group = _of_group(terms, service_time_s[g], service_scv[g], terms.bound_s)
        piece = out[starts[g] : starts[g + 1]]
        piece[:] = 0.0
        total = 0.0
        for i in range(offsets[g], offsets[g + 1]):
            total += rates_rps[i]
            _add_sample(group, rates_rps[i], scv[i], False, low[g], high[g], piece)
        if total > 0.0:
            piece /= total
            for j in range(piece.size):
                piece[j] = min(1.0, max(0.0, piece[j]))
        else:
            piece[:] = 1.0


@njit(cache=True, nogil=True)
def group_attainment(terms: Terms, rates_rps: Floats, scv: Floats, total: float, replicas: int) -> float:
    """Rate-weighted attained share at one number of replicas."""
    attained = 0.0
    for i in range(rates_rps.size):
        if rates_rps[i] > 0.0:
            attained += rates_rps[i] * attained_share(terms, replicas, rates_rps[i], scv[i])
    return min(1.0, attained / total)


@njit(cache=True, nogil=True)
def _capacity_floor(terms: Terms, rates_rps: Floats, share: float, total: float) -> int:
    """A number of replicas below which no balancing attains ``share``: fewer serve too few requests at all.

    Without patience only samples below capacity count (their rates, sorted, must reach the share); with patience
    each sample is served up to the capacity.
    """
    ordered = np.sort(rates_rps)
    if terms.patience_s == math.inf:
        below = 0.0
        for i in range(ordered.size):
            below += ordered[i]
            if below >= share * total * (1.0 - 1e-12):
                return _first_stable(terms, ordered[i])
        return _first_stable(terms, ordered[-1])
    below = 0.0
    for i in range(ordered.size):
        # Served below capacity K: the rates under it, and K for each of the others.
        others = ordered.size - i
        needed = (share * total * (1.0 - 1e-12) - below) / others
        if needed <= ordered[i]:
            return max(1, int(needed * terms.service_time_s / terms.slots))
        below += ordered[i]
    return 1


@njit(cache=True, nogil=True)
def _least_by_recursion(terms: Terms, rates_rps: Floats, share: float, total: float, floor: int, at_most: int) -> int:
    """Walks n up from ``floor``; each sample enters when it first is stable. Pooled M/M/c, target on the wait."""
    count, slots = rates_rps.size, terms.slots
    inverse = np.zeros(count)
    decayed = np.zeros(count)
    step = math.exp(-slots / terms.service_time_s * terms.bound_s)
    for n in range(floor, at_most + 1):
        servers = float(n * slots)
        attained = 0.0
        for i in range(count):
            load = rates_rps[i] * terms.service_time_s
            if load <= 0.0 or load >= servers:
                continue
            if inverse[i] == 0.0:
                inverse[i] = math.exp(min(700.0, -log_b(servers, load)))
                decayed[i] = math.exp(-(servers - load) / terms.service_time_s * terms.bound_s)
            else:
                for j in range(slots):
                    inverse[i] = 1.0 + (servers - slots + 1.0 + j) / load * inverse[i]
                decayed[i] *= step
            attained += rates_rps[i] * (1.0 - servers * decayed[i] / (inverse[i] * (servers - load) + load))
        if attained >= share * total:
            return n
    return at_most + 1


@njit(cache=True, nogil=True)
def _least_by_search(
    terms: Terms, rates_rps: Floats, scv: Floats, share: float, total: float, floor: int, at_most: int
) -> int:
    """Gallops up from ``floor`` and bisects; attainment grows with n."""
    below, step, n = floor - 1, 1, floor
    while group_attainment(terms, rates_rps, scv, total, n) < share:
        if n >= at_most:
            return at_most + 1
        below = n
        n = min(at_most, n + step)
        step *= 2
    while n - below > 1:
        middle = (n + below) // 2
        if group_attainment(terms, rates_rps, scv, total, middle) < share:
            below = middle
        else:
            n = middle
    return n


@njit(cache=True, nogil=True)
def fill_required(
    terms: Terms,
    share: float,
    rates_rps: Floats,
    scv: Floats,
    service_time_s: Floats,
    service_scv: Floats,
    offsets: Ints,
    at_most: int,
    out: Ints,
) -> None:
    """Least replicas per group; 0 without requests, at_most + 1 where none suffices."""
    for g in range(out.size):
        rates = rates_rps[offsets[g] : offsets[g + 1]]
        scvs = scv[offsets[g] : offsets[g + 1]]
        total = rates.sum()
        if total <= 0.0:
            out[g] = 0
            continue
        group = _of_group(terms, service_time_s[g], service_scv[g], terms.bound_s)
        floor = _capacity_floor(group, rates, share, total)
        if floor > at_most:
            out[g] = at_most + 1
        elif not group.is_latency and _is_recursive(group, 1.0) and np.all(scvs == 1.0):
            out[g] = _least_by_recursion(group, rates, share, total, floor, at_most)
        else:
            out[g] = _least_by_search(group, rates, scvs, share, total, floor, at_most)


@njit(cache=True, nogil=True)
def _stop(values: Floats, low: int, settled: int, stop_saving: float) -> int:
    """Length of the curve: its last point is the first (after low) whose saving over the one before is too small.

    Only where all samples are below capacity (n > ``settled``) do savings shrink with n; or where so little waits
    that no later saving can be worth it.
    """
    for j in range(1, values.size):
        is_settled = low + j > settled
        if (is_settled and values[j - 1] - values[j] < stop_saving) or values[j] < stop_saving:
            return j + 1
    return values.size


@njit(cache=True, nogil=True)
def fill_waiting(
    terms: Terms,
    rates_rps: Floats,
    scv: Floats,
    service_time_s: Floats,
    service_scv: Floats,
    offsets: Ints,
    low: Ints,
    high: Ints,
    horizon_s: Floats,
    stop_saving: float,
    starts: Ints,
) -> Floats:
    """Mean requests waiting, group after group; ``starts`` (G+1) is filled with where each begins."""
    out = np.empty(1024)
    used = 0
    for g in range(low.size):
        starts[g] = used
        group = _of_group(terms, service_time_s[g], service_scv[g], horizon_s[g])
        rates = rates_rps[offsets[g] : offsets[g + 1]]
        scvs = scv[offsets[g] : offsets[g + 1]]
        piece = _waiting_curve(group, rates, scvs, low[g], high[g], stop_saving)
        if used + piece.size > out.size:
            grown = np.empty(2 * (used + piece.size))
            grown[:used] = out[:used]
            out = grown
        out[used : used + piece.size] = piece
        used += piece.size
    starts[low.size] = used
    return out[:used].copy()


@njit(cache=True, nogil=True)
def _waiting_curve(terms: Terms, rates_rps: Floats, scv: Floats, low: int, high: int, stop_saving: float) -> Floats:
    """One group's curve, in stretches that double until it may end."""
    top = rates_rps.max() if rates_rps.size else 0.0
    settled = _first_stable(terms, top) if terms.patience_s == math.inf else int(top * terms.service_time_s) + 1
    whole = np.zeros(high - low + 1)
    filled = 0
    stretch = max(16, settled + 16 - low)
    while filled < whole.size:
        until = min(whole.size, filled + stretch)
        for i in range(rates_rps.size):
            _add_sample(terms, rates_rps[i], scv[i], True, low + filled, low + until - 1, whole[filled:until])
        if rates_rps.size:
            whole[filled:until] /= rates_rps.size
        filled = until
        length = _stop(whole[:filled], low, settled, stop_saving)
        if length < filled or filled == whole.size:
            return whole[:length]
        stretch *= 2
    return whole
