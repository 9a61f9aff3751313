"""Runs of one workload's queue over pieces of its requests, under planned counts of replicas or an autoscaler's.

A week of a large service has hundreds of millions of requests, so nothing here holds more than one piece of them: a
``Run`` takes pieces in order and gives back what became of the requests that are done with.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from ebbtide.fleet.planned import Ints
from ebbtide.fleet.workload import Balancing
from ebbtide.simulate.arrivals import Floats, Requests
from ebbtide.simulate.autoscaler import Autoscaler, look, new_pods, next_ready_s, ready_pods, rules_of
from ebbtide.simulate.fcfs import Capacity
from ebbtide.simulate.lines import (
    HEAD,
    LEAST,
    NEXT,
    OPEN,
    POOLED,
    RANDOM,
    Line,
    Table,
    give_up,
    new_line,
    resize,
    run_until,
    slots_in_use,
)

KINDS = {Balancing.POOLED: POOLED, Balancing.LEAST_LOADED: LEAST, Balancing.RANDOM: RANDOM}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Done:
    """Requests that are done with, in order of arrival: when they came, what they asked, what they got.

    ``wait_s`` and ``outcome`` as in ``fcfs.Replay``.
    """

    arrival_s: Floats
    service_s: Floats
    wait_s: Floats
    outcome: np.ndarray


@dataclass(slots=True, kw_only=True, eq=False)
class Run:
    """One queue in the middle of its run. Made by ``planned_run`` or ``autoscaled_run``.

    ``pieces`` must follow each other in time: each is taken with the instant where it ends.
    """

    line: Line
    slots: int
    steps_s: Floats
    replicas: Ints
    scaler: Autoscaler | None = None
    _at: np.ndarray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    _pods: object = None
    _sync: Floats = field(default_factory=lambda: np.zeros(2))
    _left: Requests = field(default_factory=lambda: Requests(arrival_s=np.empty(0), service_s=np.empty(0)))
    _draws: Floats = field(default_factory=lambda: np.empty(0))
    _changes: list[tuple[Floats, Ints, Ints]] = field(default_factory=list)

    def take(self, piece: Requests, draws: Floats, until_s: float) -> Done:
        """Go on to ``until_s`` with the requests that come before it; ``draws`` are one uniform number for each."""
        table = self._table(piece, draws)
        if self.scaler is None:
            self.line = _follow(self.line, table, self.steps_s, self.replicas, self._at, until_s)
        else:
            self._autoscale(table, until_s)
        return self._settled(table, int(self.line.state[HEAD]))

    def close(self) -> Done:
        """Nobody comes any more: who waits is served by what stands then, or never."""
        table = self._table(Requests(arrival_s=np.empty(0), service_s=np.empty(0)), np.empty(0))
        self.line = _follow(self.line, table, self.steps_s, self.replicas, self._at, math.inf)
        give_up(table, int(self.line.state[HEAD]))
        return self._settled(table, len(table.arrival_s))

    @property
    def pods(self) -> Capacity:
        """All pods over time, those on their way included."""
        return self.capacity if self.scaler is None else self._steps(1)

    @property
    def capacity(self) -> Capacity:
        """The replicas that served, over time."""
        if self.scaler is None:
            return Capacity(starts_s=self.steps_s, replicas=self.replicas)
        return self._steps(2)

    def _steps(self, column: int) -> Capacity:
        at_s = np.concatenate([change[0] for change in self._changes])
        counts = np.concatenate([change[column] for change in self._changes])
        last = np.append(np.diff(at_s) > 0.0, True)  # of several at one instant the last one holds
        at_s, counts = at_s[last], counts[last]
        new = np.insert(np.diff(counts) != 0, 0, True)
        return Capacity(starts_s=at_s[new], replicas=counts[new])

    def _table(self, piece: Requests, draws: Floats) -> Table:
        arrival_s = np.concatenate([self._left.arrival_s, piece.arrival_s])
        unlimited = piece.patience_s is None and self._left.patience_s is None
        patience = [_patience(one) for one in (self._left, piece)]
        return Table(
            arrival_s=arrival_s,
            service_s=np.concatenate([self._left.service_s, piece.service_s]),
            patience_s=np.empty(0) if unlimited else np.concatenate(patience),
            draws=np.concatenate([self._draws, draws]),
            wait_s=np.empty(len(arrival_s)),
            outcome=np.empty(len(arrival_s), dtype=np.uint8),
        )

    def _settled(self, table: Table, count: int) -> Done:
        self._left = Requests(
            arrival_s=table.arrival_s[count:],
            service_s=table.service_s[count:],
            patience_s=table.patience_s[count:] if len(table.patience_s) else None,
        )
        self._draws = table.draws[count:]
        self.line.state[NEXT] -= count
        self.line.state[HEAD] = 0
        return Done(
            arrival_s=table.arrival_s[:count],
            service_s=table.service_s[:count],
            wait_s=table.wait_s[:count],
            outcome=table.outcome[:count],
        )

    def _autoscale(self, table: Table, until_s: float) -> None:
        assert self.scaler is not None
        room = 3 * (int((until_s - self._sync[0]) / self.scaler.sync_s) + 3)
        at_s, pods, ready = np.empty(room), np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
        self.line, made = _autoscaled(
            self.line, table, self._pods, rules_of(self.scaler), self._sync, until_s, at_s, pods, ready
        )
        self._changes.append((at_s[:made], pods[:made], ready[:made]))


def planned_run(capacity: Capacity, *, balancing: Balancing, slots: int) -> Run:
    """A run under counts that are known beforehand.

    >>> run = planned_run(Capacity.steady(1), balancing=Balancing.POOLED, slots=1)
    >>> piece = Requests(arrival_s=np.array([0.0, 1.0]), service_s=np.array([4.0, 4.0]))
    >>> run.take(piece, np.zeros(2), 2.0).wait_s, run.close().wait_s
    (array([0.]), array([3.]))
    """
    most = max(int(capacity.replicas.max()), 1)
    return Run(
        line=new_line(KINDS[balancing], most, slots),
        slots=slots,
        steps_s=capacity.starts_s,
        replicas=capacity.replicas,
    )


def autoscaled_run(scaler: Autoscaler, *, start_s: float, replicas: int, balancing: Balancing, slots: int) -> Run:
    """A run under an autoscaler that looks first at ``start_s``, where ``replicas`` pods are ready."""
    line = new_line(KINDS[balancing], scaler.max_replicas, slots)
    pods = new_pods(scaler, replicas, at_s=start_s)
    standing = np.array([pods.state[0]])
    run = Run(
        line=line,
        slots=slots,
        steps_s=np.empty(0),
        replicas=np.empty(0, dtype=np.int64),
        scaler=scaler,
        _pods=pods,
        _sync=np.array([start_s, -math.inf]),
    )
    run._changes.append((np.array([start_s]), standing, standing))
    empty = run._table(Requests(arrival_s=np.empty(0), service_s=np.empty(0)), np.empty(0))
    run.line = resize(line, empty, start_s, int(standing[0]))
    return run


def settled(run: Run, pieces: Iterator[tuple[Requests, Floats, float]]) -> Iterator[Done]:
    """What becomes of every piece, and at last of those who waited on."""
    for piece, draws, until_s in pieces:
        yield run.take(piece, draws, until_s)
    yield run.close()


def _patience(requests: Requests) -> Floats:
    return np.full(len(requests), np.inf) if requests.patience_s is None else requests.patience_s


@njit(cache=True, nogil=True)
def _follow(line, table, steps_s, replicas, at, until_s):  # type: ignore[no-untyped-def] # numba infers from the call
    """Run through the steps before ``until_s``; ``at[0]`` is the next one."""
    while at[0] < steps_s.size and steps_s[at[0]] < until_s:
        line = run_until(line, table, steps_s[at[0]])
        line = resize(line, table, steps_s[at[0]], replicas[at[0]])
        at[0] += 1
    return run_until(line, table, until_s)


@njit(cache=True, nogil=True)
def _autoscaled(line, table, pods, rules, sync, until_s, at_s, counts, ready):  # type: ignore[no-untyped-def] # numba infers
    """Run to ``until_s``. ``sync`` is the next look and the last event; what every event leaves is written down."""
    made = 0
    while True:
        now_s = min(sync[0], next_ready_s(pods, sync[1]))
        if now_s >= until_s:
            break
        line = run_until(line, table, now_s)
        line = resize(line, table, now_s, ready_pods(pods, now_s))
        if now_s == sync[0]:
            look(pods, rules, slots_in_use(line, now_s), line.slots, now_s)
            sync[0] += rules.sync_s
            line = resize(line, table, now_s, ready_pods(pods, now_s))
        at_s[made], counts[made], ready[made] = now_s, pods.state[0], line.state[OPEN]
        made += 1
        sync[1] = now_s
    return run_until(line, table, until_s), made
