"""Numba kernel behind ``curves``: a group's samples walk up the counts of replicas together, n = low, low + 1, …

A sample joins the walk where its load first is below capacity, and leaves it where its late share (or its requests
waiting) is next to nothing. The walk ends where the group's curve may end, so that no point is worked out in vain. What
a step costs: for Poisson arrivals 1/B goes on by 1/B(c) = 1 + (c/a)/B(c−1) (Jagerman 1974), which is stable; under
least loaded ρⁿ goes on too (``sample_laws``). Other arrivals enter Erlang's formula anew for every n.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints
from ebbtide.queueing.latency import log_late, service_share
from ebbtide.queueing.replicas import LATE, MEAN_WAIT, Terms, log_patient
from ebbtide.queueing.sample_laws import ARRIVAL_SCV, LOAD, RATE, ROWS, advance, enter, is_recursive, wait_law_of

# A late share that is nothing beside the attained ones.
NEGLIGIBLE_SHARE = 1e-14
_GONE = 40.0


@njit(cache=True, nogil=True)
def _value(terms: Terms, is_mean: bool, replicas: int, state: Floats, i: int) -> tuple[float, float]:
    """What sample ``i`` adds for each request (the attained share, or E[min(W, bound)]), and what is still to be gained
    by more replicas: the late share (for a latency the share that waits), or its requests waiting."""
    if terms.patience_s < math.inf:
        measure = MEAN_WAIT if is_mean else LATE
        log_value = log_patient(measure, terms, replicas, state[RATE, i], state[ARRIVAL_SCV, i])
        if is_mean:
            return math.exp(log_value), state[RATE, i] * math.exp(log_value)
        return -math.expm1(log_value), 1.0
    waiting, decay_per_s = wait_law_of(terms, replicas, state, i)
    if is_mean:
        # Beyond e^-40 there is nothing that a double could take from 1.
        cut = 1.0 if decay_per_s * terms.bound_s > _GONE else -math.expm1(-decay_per_s * terms.bound_s)
        within = waiting * cut / decay_per_s
        return within, state[RATE, i] * within
    if terms.is_latency:
        late = log_late(math.log(waiting), decay_per_s, terms.bound_s, terms.service_time_s, terms.service_scv)
        return -math.expm1(late), waiting
    late_share = waiting * math.exp(-decay_per_s * terms.bound_s)
    return 1.0 - late_share, late_share


@njit(cache=True, nogil=True)
def _load(terms: Terms, rates_rps: Floats, scv: Floats, first: int, last: int, state: Floats) -> int:
    """The group's samples with any load into ``state``; how many."""
    count = 0
    for i in range(first, last):
        if rates_rps[i] > 0.0:
            state[RATE, count] = rates_rps[i]
            state[LOAD, count] = min(rates_rps[i] * terms.service_time_s, 1e15)
            state[ARRIVAL_SCV, count] = scv[i]
            count += 1
    return count


@njit(cache=True, nogil=True)
def _move(state: Floats, source: int, target: int) -> None:
    for row in range(ROWS):
        state[row, target] = state[row, source]


@njit(cache=True, nogil=True)
def _swap(state: Floats, i: int, j: int) -> None:
    for row in range(ROWS):
        state[row, i], state[row, j] = state[row, j], state[row, i]


@njit(cache=True, nogil=True)
def _join(terms: Terms, replicas: int, state: Floats, active: int, count: int) -> int:
    """Samples that are below capacity now move from the waiting ones, active … count, to the active ones."""
    for i in range(active, count):
        if state[LOAD, i] < float(replicas * terms.slots) or terms.patience_s < math.inf:
            _swap(state, i, active)
            enter(terms, replicas, state, active)
            active += 1
    return active


@njit(cache=True, nogil=True)
def _sum(
    terms: Terms,
    is_mean: bool,
    least: float,
    ceiling: float,
    replicas: int,
    state: Floats,
    active: int,
    count: int,
    sure: float,
) -> tuple[float, int, int, float]:
    """The group's sum at n, and how many samples are active, how many are left, and what those that left add for good.

    A sample above capacity attains nothing and waits the whole bound.
    """
    total = sure
    if is_mean:
        for i in range(active, count):
            total += state[RATE, i] * terms.bound_s
    i = 0
    while i < active:
        value, left = _value(terms, is_mean, replicas, state, i)
        total += state[RATE, i] * value
        if left >= least:
            i += 1
            continue
        if not is_mean:
            sure += state[RATE, i] * ceiling
        active -= 1
        count -= 1
        _move(state, active, i)
        _move(state, count, active)
    return total, active, count, sure


@njit(cache=True, nogil=True)
def _is_over(total: float, before: float, stop: float, is_later: bool, is_convex: bool) -> bool:
    """Whether so little waits, or is saved and will be, that a curve of waiting ends."""
    return is_later and (total < stop or (is_convex and before - total < stop))


@njit(cache=True, nogil=True)
def walk(
    terms: Terms,
    is_mean: bool,
    least: float,
    stop_saving: float,
    enough: Floats,
    rates_rps: Floats,
    scv: Floats,
    service_time_s: Floats,
    service_scv: Floats,
    bound_s: Floats,
    offsets: Ints,
    low: Ints,
    high: Ints,
) -> tuple[Floats, Ints]:
    """(values, starts): Σ rate × attained share (or Σ rate × E[min(W, bound)]) of each group from low on.

    ``values[starts[g] + n − low[g]]`` is group g's at n. The terms' service time, SCV and bound are replaced by the
    group's. Shares end at ``high`` or at the first that reaches ``enough[g]``. Waiting ends at ``high`` or at the first
    n > low that waits, or saves over n − 1, less than ``stop_saving`` (for each sample of the group) and will do so for
    good: with all samples below capacity savings shrink with n. A sample leaves where its late share (or its requests
    waiting) is below ``least``.
    """
    starts = np.zeros(low.size + 1, dtype=np.int64)
    # Curves that end where they are told to take what they need at once: growing would take three times that.
    room = max(64, 8 * low.size)
    if not is_mean and np.all(enough == math.inf):
        room = max(1, int(np.sum(np.maximum(0, high - low + 1))))
    values = np.empty(room)
    state = np.empty((ROWS, int(np.max(np.diff(offsets))) if low.size else 0))
    used = 0
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
        ceiling = service_share(bound_s[g], service_time_s[g], service_scv[g]) if terms.is_latency else 1.0
        count = _load(group, rates_rps, scv, offsets[g], offsets[g + 1], state)
        is_plain = is_recursive(group, state, count)
        settled = int(np.max(state[LOAD, :count]) / terms.slots) + 1 if count else 0
        active, sure, before = 0, 0.0, math.inf
        stop = stop_saving * (offsets[g + 1] - offsets[g])
        for n in range(low[g], high[g] + 1):
            if n > low[g]:
                advance(group, n, is_plain, state, active)
            active = _join(group, n, state, active, count)
            total, active, count, sure = _sum(group, is_mean, least, ceiling, n, state, active, count, sure)
            if used == values.size:
                values = np.concatenate((values, np.empty(used)))
            values[used] = total
            used += 1
            if _is_over(total, before, stop, n > low[g], n > settled) if is_mean else total >= enough[g]:
                break
            before = total
        starts[g + 1] = used
    return (values if used == values.size else values[:used].copy()), starts
