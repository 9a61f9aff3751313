"""Compiled queues that stop at any instant and go on: what a policy that looks at them between requests needs.

``kernels`` looks ahead: a request's start is known when it arrives, because all later counts of replicas are. Where the
count follows the queue it is not, so here a *line* runs up to an instant, is looked at, is resized, and goes on. The
rules are those of ``fcfs``, and with the same counts the waits are the same, number by number.

A line is a tuple of arrays. Requests come in a table that the caller cuts into pieces: those of ``[head, next)`` have
come and wait (pooled: for a slot; else before the door, where no replica stands), those before ``head`` have their wait
and outcome. The caller carries the waiting ones over into the next piece.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from ebbtide.simulate.kernels import ABANDONED, SERVED, insert, replace_least, settle
from ebbtide.simulate.least_loaded import enter, leave, longer, push_departure, rank_live, replace_first

# Places in ``Line.state``. Pooled lines count slots in BUSY and OPEN, routed ones live replicas in OPEN.
BUSY, OPEN, HEAD, NEXT, DUE, KNOWN = range(6)
POOLED, LEAST, RANDOM = range(3)


class Line(NamedTuple):
    """A queue in the middle of its run. ``most`` replicas at most ever stand; arrays as in ``kernels``.

    ``busy``: a heap of the instants at which slots (pooled) get free; ``free[r, s]`` the same by replica. The others
    are least loaded's: ``times`` and ``owners`` the heap of departures, an owner being identity × most + place.
    """

    kind: int
    slots: int
    busy: np.ndarray
    free: np.ndarray
    order: np.ndarray
    rank: np.ndarray
    held: np.ndarray
    identity: np.ndarray
    first: np.ndarray
    times: np.ndarray
    owners: np.ndarray
    state: np.ndarray


class Table(NamedTuple):
    """Requests in order of arrival, and what becomes of them; ``patience_s`` is empty where it is unlimited."""

    arrival_s: np.ndarray
    service_s: np.ndarray
    patience_s: np.ndarray
    draws: np.ndarray
    wait_s: np.ndarray
    outcome: np.ndarray


def new_line(kind: int, most: int, slots: int) -> Line:
    """An empty line of no replicas."""
    pooled = kind == POOLED
    places = 0 if pooled else most
    integers = np.zeros(places, dtype=np.int64)
    return Line(
        kind=kind,
        slots=slots,
        busy=np.empty(most * slots + 1 if pooled else 1),
        free=np.full((places, slots), -np.inf),
        order=np.arange(places),
        rank=np.arange(places),
        held=integers.copy(),
        identity=integers - 1,
        first=np.zeros(2 * slots + 4, dtype=np.int64),
        times=np.empty(1024),
        owners=np.empty(1024, dtype=np.int64),
        state=np.zeros(6, dtype=np.int64),
    )


@njit(cache=True)
def run_until(line, table, until_s):  # type: ignore[no-untyped-def] # numba infers from the call
    """Let everything happen before ``until_s`` that does not need another count of replicas; the line goes on there."""
    count = line.state
    if line.kind == POOLED:
        _run_pooled(line.busy, count, table, until_s)
        return line
    last = count[NEXT] + np.searchsorted(table.arrival_s[count[NEXT] :], until_s)
    if count[OPEN] > 0:
        line = _routed(line, table, last, -np.inf)
    count[NEXT] = last
    return line


@njit(cache=True)
def resize(line, table, at_s, replicas):  # type: ignore[no-untyped-def] # numba infers from the call
    """Another count of replicas from ``at_s`` on; who waits starts, or is routed, where that makes room."""
    count = line.state
    if line.kind == POOLED:
        _resize_pooled(line.busy, count, table, at_s, replicas * line.slots)
        return line
    if replicas != count[OPEN]:
        if line.kind == LEAST:
            _depart(line.times, line.owners, count, at_s, line.identity, line.order, line.rank, line.held, line.first)
        for replica in range(count[OPEN], replicas):
            line.free[replica, :] = at_s
            line.held[replica] = 0
            line.identity[replica] = count[KNOWN]
            count[KNOWN] += 1
        line.identity[replicas:] = -1
        count[OPEN] = replicas
        if line.kind == LEAST:
            rank_live(line.order, line.rank, line.held, line.first, replicas)
    return _routed(line, table, count[NEXT], at_s) if replicas > 0 else line


@njit(cache=True)
def slots_in_use(line, at_s):  # type: ignore[no-untyped-def] # numba infers from the call
    """Slots of the standing replicas that serve somebody at ``at_s``; the line was resized at that instant."""
    if line.kind == POOLED:
        return line.state[BUSY]
    used = 0
    for replica in range(line.state[OPEN]):
        for slot in range(line.slots):
            used += line.free[replica, slot] > at_s
    return used


@njit(cache=True)
def _resize_pooled(busy, count, table, at_s, slots):  # type: ignore[no-untyped-def] # numba infers from the call
    """What ended by ``at_s`` gives its slot back; slots that leave run on unseen; who waits takes what is free."""
    taken, head = count[BUSY], count[HEAD]
    while taken > 0 and (busy[0] <= at_s or taken > slots):
        taken -= 1
        replace_least(busy, taken, busy[taken])
    while head < count[NEXT] and taken < slots:
        if settle(head, table.arrival_s[head], at_s, table.patience_s, table.wait_s, table.outcome):
            insert(busy, taken, at_s + table.service_s[head])
            taken += 1
        head += 1
    count[BUSY], count[OPEN], count[HEAD] = taken, slots, head


@njit(cache=True)
def _run_pooled(busy, count, table, until_s):  # type: ignore[no-untyped-def] # numba infers from the call
    taken, slots, head, i = count[BUSY], count[OPEN], count[HEAD], count[NEXT]
    arrival_s, service_s, patience_s = table.arrival_s, table.service_s, table.patience_s
    wait_s, outcome = table.wait_s, table.outcome
    while True:
        if head < i:  # someone waits, so no slot is free before the next departure
            at_s = busy[0] if taken > 0 else np.inf
            if at_s >= until_s:
                break
            if settle(head, arrival_s[head], at_s, patience_s, wait_s, outcome):
                replace_least(busy, taken, at_s + service_s[head])
            head += 1
            continue
        if i >= arrival_s.size or arrival_s[i] >= until_s:
            break
        now_s = arrival_s[i]
        if taken > 0 and busy[0] <= now_s:  # one service ended: this one takes its place in the heap
            replace_least(busy, taken, now_s + service_s[i])
        elif taken < slots:
            insert(busy, taken, now_s + service_s[i])
            taken += 1
        else:
            i += 1
            continue
        wait_s[i] = 0.0
        outcome[i] = SERVED
        i += 1
        head = i
    while i < arrival_s.size and arrival_s[i] < until_s:
        i += 1
    count[BUSY], count[HEAD], count[NEXT] = taken, head, i


@njit(cache=True)
def _routed(line, table, last, open_s):  # type: ignore[no-untyped-def] # numba infers from the call
    """Requests up to ``last`` to replicas, where they stay; none before ``open_s``. The line, longer where it must."""
    if line.kind == RANDOM:
        _route_random(line.free, line.slots, line.state, table, last, open_s)
        return line
    while not _route_least(
        line.free,
        line.slots,
        line.state,
        (line.identity, line.order, line.rank, line.held, line.first),
        line.times,
        line.owners,
        table,
        last,
        open_s,
    ):
        line = _longer_line(line)
    return line


@njit(cache=True)
def _route_random(free, slots, count, table, last, open_s):  # type: ignore[no-untyped-def] # numba infers
    live = count[OPEN]
    for i in range(count[HEAD], last):
        arrival = table.arrival_s[i]
        chosen = int(table.draws[i] * live)
        start = max(arrival, open_s, free[chosen, 0])
        if settle(i, arrival, start, table.patience_s, table.wait_s, table.outcome):
            replace_least(free[chosen], slots, start + table.service_s[i])
    count[HEAD] = last


@njit(cache=True)
def _route_least(free, slots, count, ranks, times, owners, table, last, open_s):  # type: ignore[no-untyped-def] # numba infers
    """False where it stopped for want of room: the request at HEAD was not looked at."""
    identity, order, rank, held, first = ranks
    most = order.size
    for i in range(count[HEAD], last):
        arrival = table.arrival_s[i]
        ready = max(arrival, open_s)
        _depart(times, owners, count, ready, identity, order, rank, held, first)
        chosen = order[int(table.draws[i] * first[held[order[0]] + 1])]
        if held[chosen] + 3 > first.size or count[DUE] == times.size:
            count[HEAD] = i
            return False
        start = max(ready, free[chosen, 0])
        gone = start + table.service_s[i]
        if settle(i, arrival, start, table.patience_s, table.wait_s, table.outcome):
            replace_least(free[chosen], slots, gone)
        else:
            gone = arrival + table.wait_s[i]
        if gone > ready:
            enter(order, rank, held, first, chosen)
            push_departure(times, owners, count[DUE], gone, identity[chosen] * most + chosen)
            count[DUE] += 1
    count[HEAD] = last
    return True


@njit(cache=True)
def _longer_line(line):  # type: ignore[no-untyped-def] # numba infers from the call
    return Line(
        line.kind,
        line.slots,
        line.busy,
        line.free,
        line.order,
        line.rank,
        line.held,
        line.identity,
        longer(line.first, line.state[OPEN]),
        longer(line.times, 0.0),
        longer(line.owners, 0),
        line.state,
    )


@njit(cache=True)
def _depart(times, owners, count, until_s, identity, order, rank, held, first):  # type: ignore[no-untyped-def] # numba infers
    """Let every request go that is gone by ``until_s``."""
    due = count[DUE]
    while due > 0 and times[0] <= until_s:
        owner = owners[0]
        home = owner % order.size
        if identity[home] == owner // order.size:
            leave(order, rank, held, first, home)
        due -= 1
        replace_first(times, owners, due, times[due], owners[due])
    count[DUE] = due


@njit(cache=True)
def give_up(table, first):  # type: ignore[no-untyped-def] # numba infers from the call
    """Whoever never starts, from request ``first`` on: gone after its patience, or unserved for ever."""
    for i in range(first, table.arrival_s.size):
        settle(i, table.arrival_s[i], np.inf, table.patience_s, table.wait_s, table.outcome)
        if table.patience_s.size > 0 and table.patience_s[i] < np.inf:
            table.outcome[i] = ABANDONED
