"""Compiled kernels of the services under load: their state is in arrays, so that a step goes on where one ended.

Imported by ``services`` only. ``free`` is a binary heap of the times at which servers are free, one entry a server.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ebbtide.simulate.kernels import insert, replace_least
from ebbtide.simulate.least_loaded import push_departure, replace_first


@njit(cache=True)
def fcfs(arrival_s, service_s, free, sojourn_s):  # type: ignore[no-untyped-def] # numba infers from the call
    """First come, first served with unlimited room: ``sojourn_s`` is wait plus service of every arrival."""
    for i in range(arrival_s.size):
        start = max(arrival_s[i], free[0])
        finish = start + service_s[i]
        sojourn_s[i] = finish - arrival_s[i]
        replace_least(free, free.size, finish)


@njit(cache=True)
def loss(arrival_s, service_s, free, starts, head, count, waiting_room, sojourn_s):  # type: ignore[no-untyped-def] # numba infers
    """The same with ``waiting_room`` places: who finds them taken is refused at once (``sojourn_s`` infinite).

    ``starts`` is a ring of the start times of the accepted, which ascend: those after an arrival are the waiting.
    """
    for i in range(arrival_s.size):
        at = arrival_s[i]
        while count > 0 and starts[head] <= at:
            head = (head + 1) % starts.size
            count -= 1
        if free[0] > at and count >= waiting_room:
            sojourn_s[i] = np.inf
            continue
        start = max(at, free[0])
        sojourn_s[i] = start + service_s[i] - at
        replace_least(free, free.size, start + service_s[i])
        if start > at:
            starts[(head + count) % starts.size] = start
            count += 1
    return head, count


@njit(cache=True)
def watched(arrival_s, service_s, free, departures, present, sojourn_s, seen):  # type: ignore[no-untyped-def] # numba infers
    """``fcfs`` that also says how many requests each arrival finds present: ``seen``.

    ``departures`` is a heap with room for all that can be present; ``present`` says how many are. It grows by
    doubling, so the heap may be another array at the end: both are returned.
    """
    for i in range(arrival_s.size):
        at = arrival_s[i]
        while present > 0 and departures[0] <= at:
            present -= 1
            replace_least(departures, present, departures[present])
        seen[i] = present
        finish = max(at, free[0]) + service_s[i]
        sojourn_s[i] = finish - at
        replace_least(free, free.size, finish)
        if present == departures.size:
            grown = np.empty(2 * departures.size)
            grown[:present] = departures
            departures = grown
        insert(departures, present, finish)
        present += 1
    return departures, present


@njit(cache=True)
def _take(keys, ids, size):  # type: ignore[no-untyped-def] # numba infers from the call
    """Remove the least of a heap with a second array beside it; returns its id."""
    least = ids[0]
    replace_first(keys, ids, size - 1, keys[size - 1], ids[size - 1])
    return least


@njit(cache=True)
def batching(arrival_s, work, first, fixed_s, each_s, keys, ids, state, finish_s):  # type: ignore[no-untyped-def] # numba infers
    """Continuous batching: n active requests each do one unit of work every ``fixed_s + n · each_s`` seconds.

    Arrivals ``first`` … of ``arrival_s``; at most ``keys.size`` are active, others wait in order. ``state`` is (clock,
    work done by each active one since the start, active, next to be admitted, work done before request 0 entered); a
    finished request writes ``finish_s``. Requests with negative ids belong to an earlier step.
    """
    clock, done = state[0], state[1]
    active, admitted = int(state[2]), int(state[3])
    for i in range(first, arrival_s.size):
        at = arrival_s[i]
        while active > 0:
            rate = 1.0 / (fixed_s + active * each_s)
            ends = clock + (keys[0] - done) / rate
            if ends > at:
                done += (at - clock) * rate
                break
            clock = ends
            done = keys[0]
            who = _take(keys, ids, active)
            active -= 1
            if who >= 0:
                finish_s[who] = ends
            if admitted < i:
                push_departure(keys, ids, active, done + work[admitted], admitted)
                active += 1
                admitted += 1
        clock = at
        if admitted == i and active < keys.size:
            push_departure(keys, ids, active, done + work[i], i)
            active += 1
            admitted += 1
    state[0], state[1], state[2], state[3] = clock, done, active, admitted
