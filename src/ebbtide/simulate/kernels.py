"""Compiled replays: one pass over the requests in order of arrival, every server a time at which it is free.

First come, first served lets each wait be known when the request is looked at: whoever stands before it has been
placed already. So no event list is needed for a pooled queue or a chosen replica, only a heap of free times; least
loaded routing needs a second heap, of departures, to know how many requests every replica holds.

Imported by ``fcfs`` only. Arrays of ``steps`` are times (ascending) and counts in force from then on; before the first
one there is nobody. An empty ``patience_s`` means unlimited patience. Waits and outcomes are written to ``wait_s`` and
``outcome``; ``place`` holds −1 and gets the replica that each request was routed to.
"""

from __future__ import annotations

import numpy as np
from numba import njit

SERVED = 0
ABANDONED = 1
UNSERVED = 2


@njit(cache=True)
def replace_least(heap, size, value):  # type: ignore[no-untyped-def] # numba infers from the call
    """Put ``value`` in the place of the least of a binary heap of ``size`` numbers."""
    hole = 0
    child = 1
    while child < size:
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[hole] = heap[child]
        hole = child
        child = 2 * hole + 1
    heap[hole] = value


@njit(cache=True)
def insert(heap, size, value):  # type: ignore[no-untyped-def] # numba infers from the call
    """Add ``value`` to a heap of ``size`` numbers; the array has room for it."""
    hole = size
    while hole > 0:
        parent = (hole - 1) // 2
        if heap[parent] <= value:
            break
        heap[hole] = heap[parent]
        hole = parent
    heap[hole] = value


@njit(cache=True)
def _change_servers(free, size, count, at):  # type: ignore[no-untyped-def] # numba infers from the call
    """Grow: new servers are free at once. Shrink: the idle leave first, then those whose services end first."""
    while size > count:
        size -= 1
        replace_least(free, size, free[size])
    while size < count:
        insert(free, size, at)
        size += 1
    return size


@njit(cache=True)
def settle(i, arrival, start, patience_s, wait_s, outcome):  # type: ignore[no-untyped-def] # numba infers
    """Write what becomes of request ``i`` that could start at ``start``; True where it takes a server."""
    wait = start - arrival
    if patience_s.size > 0 and wait > patience_s[i]:
        wait_s[i] = patience_s[i]
        outcome[i] = ABANDONED
        return False
    wait_s[i] = wait
    outcome[i] = SERVED if start < np.inf else UNSERVED
    return start < np.inf


@njit(cache=True)
def replay_pooled(arrival_s, service_s, patience_s, steps_s, servers, wait_s, outcome):  # type: ignore[no-untyped-def] # numba infers
    """One queue before all servers."""
    free = np.empty(servers.max() + 1)
    size = 0
    step = 0
    for i in range(arrival_s.size):
        arrival = arrival_s[i]
        start = max(arrival, free[0]) if size > 0 else np.inf
        while step < steps_s.size and steps_s[step] <= start:
            size = _change_servers(free, size, servers[step], steps_s[step])
            step += 1
            start = max(arrival, free[0]) if size > 0 else np.inf
        if settle(i, arrival, start, patience_s, wait_s, outcome):
            replace_least(free, size, start + service_s[i])


@njit(cache=True)
def replay_random(arrival_s, service_s, patience_s, draws, steps_s, replicas, slots, wait_s, outcome, place):  # type: ignore[no-untyped-def] # numba infers
    """Each request goes to replica ⌊draw·n⌋ of the n that take requests and stays there."""
    free = np.empty((replicas.max() + 1, slots))
    live = 0
    step = 0
    open_s = -np.inf
    for i in range(arrival_s.size):
        arrival = arrival_s[i]
        while step < steps_s.size and (steps_s[step] <= arrival or live == 0):
            open_s = steps_s[step]
            for replica in range(live, replicas[step]):
                free[replica, :] = open_s
            live = replicas[step]
            step += 1
        if live == 0:
            settle(i, arrival, np.inf, patience_s, wait_s, outcome)
            continue
        place[i] = int(draws[i] * live)
        chosen = free[place[i]]
        start = max(arrival, open_s, chosen[0])
        if settle(i, arrival, start, patience_s, wait_s, outcome):
            replace_least(chosen, slots, start + service_s[i])
