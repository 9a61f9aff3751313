"""The compiled replay with least-loaded routing.

Two structures answer "which replica holds the fewest requests": a heap of departures that have not happened yet, and
the replicas ordered by how many requests they hold. A request comes or goes by one swap and one moved boundary, so the
cost does not grow with the number of replicas.

Imported by ``fcfs`` and ``lines``; arguments as in ``kernels``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ebbtide.simulate.kernels import replace_least, settle


@njit(cache=True)
def push_departure(times, owners, size, time, owner):  # type: ignore[no-untyped-def] # numba infers from the call
    """Add a departure to the heap of ``size`` of them; the arrays have room for it."""
    hole = size
    while hole > 0:
        parent = (hole - 1) // 2
        if times[parent] <= time:
            break
        times[hole] = times[parent]
        owners[hole] = owners[parent]
        hole = parent
    times[hole] = time
    owners[hole] = owner


@njit(cache=True)
def replace_first(times, owners, size, time, owner):  # type: ignore[no-untyped-def] # numba infers from the call
    """Put a departure in the place of the first of the heap."""
    hole = 0
    child = 1
    while child < size:
        if child + 1 < size and times[child + 1] < times[child]:
            child += 1
        if times[child] >= time:
            break
        times[hole] = times[child]
        owners[hole] = owners[child]
        hole = child
        child = 2 * hole + 1
    times[hole] = time
    owners[hole] = owner


@njit(cache=True)
def _swap(order, rank, replica, position):  # type: ignore[no-untyped-def] # numba infers from the call
    other = order[position]
    order[rank[replica]] = other
    rank[other] = rank[replica]
    order[position] = replica
    rank[replica] = position


@njit(cache=True)
def enter(order, rank, held, first, replica):  # type: ignore[no-untyped-def] # numba infers from the call
    """One request more: to the end of its class, then the next class begins one place earlier."""
    count = held[replica]
    _swap(order, rank, replica, first[count + 1] - 1)
    first[count + 1] -= 1
    held[replica] = count + 1


@njit(cache=True)
def leave(order, rank, held, first, replica):  # type: ignore[no-untyped-def] # numba infers from the call
    """One request fewer: to the front of its class, which then begins one place later."""
    count = held[replica]
    _swap(order, rank, replica, first[count])
    first[count] += 1
    held[replica] = count - 1


@njit(cache=True)
def rank_live(order, rank, held, first, live):  # type: ignore[no-untyped-def] # numba infers from the call
    """Order the live replicas by what they hold: a counting sort. ``first[q]`` is where class q begins."""
    first[:] = 0
    for replica in range(live):
        first[held[replica] + 1] += 1
    for count in range(1, first.size):
        first[count] += first[count - 1]
    filled = first.copy()
    for replica in range(live):
        position = filled[held[replica]]
        filled[held[replica]] += 1
        order[position] = replica
        rank[replica] = position


@njit(cache=True)
def longer(values, fill):  # type: ignore[no-untyped-def] # numba infers from the call
    """Twice as long, the new half filled."""
    doubled = np.full(2 * values.size, fill, dtype=values.dtype)
    doubled[: values.size] = values
    return doubled


@njit(cache=True)
def replay_least_loaded(arrival_s, service_s, patience_s, draws, steps_s, replicas, slots, wait_s, outcome, place):  # type: ignore[no-untyped-def] # numba infers
    """Each request goes to the replica that holds the fewest, the ⌊draw·m⌋-th of m equals, and stays there.

    A replica that leaves keeps its place number for the next one that comes, so departures carry an ``identity``:
    those of a former holder of the place change nothing.
    """
    most = replicas.max() + 1
    free = np.empty((most, slots))
    order, rank, held = np.arange(most), np.arange(most), np.zeros(most, dtype=np.int64)
    identity = np.full(most, -1, dtype=np.int64)
    homes = np.empty(replicas.sum() + 1, dtype=np.int64)
    first = np.zeros(2 * slots + 4, dtype=np.int64)
    times, owners = np.empty(1024), np.empty(1024, dtype=np.int64)
    due = 0
    live = 0
    step = 0
    known = 0
    open_s = -np.inf
    for i in range(arrival_s.size):
        arrival = arrival_s[i]
        while step < steps_s.size and (steps_s[step] <= arrival or live == 0):
            open_s = steps_s[step]
            due = _depart(times, owners, due, open_s, homes, identity, order, rank, held, first)
            for replica in range(live, replicas[step]):
                free[replica, :] = open_s
                held[replica] = 0
                identity[replica] = known
                homes[known] = replica
                known += 1
            identity[replicas[step] :] = -1
            live = replicas[step]
            rank_live(order, rank, held, first, live)
            step += 1
        if live == 0:
            settle(i, arrival, np.inf, patience_s, wait_s, outcome)
            continue
        ready = max(arrival, open_s)
        due = _depart(times, owners, due, ready, homes, identity, order, rank, held, first)
        chosen = order[int(draws[i] * first[held[order[0]] + 1])]
        start = max(ready, free[chosen, 0])
        if settle(i, arrival, start, patience_s, wait_s, outcome):
            gone = start + service_s[i]
            replace_least(free[chosen], slots, gone)
        else:
            gone = arrival + wait_s[i]
        if gone < ready:
            continue
        place[i] = chosen
        if gone == ready:
            continue
        if held[chosen] + 3 > first.size:
            first = longer(first, live)
        if due == times.size:
            times, owners = longer(times, 0.0), longer(owners, 0)
        enter(order, rank, held, first, chosen)
        push_departure(times, owners, due, gone, identity[chosen])
        due += 1


@njit(cache=True)
def _depart(times, owners, due, until, homes, identity, order, rank, held, first):  # type: ignore[no-untyped-def] # numba infers
    """Let every request go that is gone by ``until``; how many departures are still to come."""
    while due > 0 and times[0] <= until:
        owner = owners[0]
        home = homes[owner]
        if identity[home] == owner:
            leave(order, rank, held, first, home)
        due -= 1
        replace_first(times, owners, due, times[due], owners[due])
    return due
