"""The replay against a slow queue of plain Python that steps through every event, with capacity that changes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.fleet.workload import Balancing
from ebbtide.simulate.arrivals import Requests
from ebbtide.simulate.fcfs import Capacity, Outcome, Replay, replay


@dataclass
class Station:
    """One queue and its slots: who waits, when each running service ends, and how many slots are leaving."""

    requests: Requests
    slots: int
    running: list[float] = field(default_factory=list)
    leaving: list[float] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    start_s: dict[int, float] = field(default_factory=dict)

    def patience(self, i: int) -> float:
        return math.inf if self.requests.patience_s is None else float(self.requests.patience_s[i])

    def pass_time(self, at: float) -> None:
        """Services that end by ``at`` end, users whose patience ended before ``at`` leave, free slots are taken."""
        self.running = [end for end in self.running if end > at]
        self.leaving = [end for end in self.leaving if end > at]
        self.waiting = [i for i in self.waiting if at - self.requests.arrival_s[i] <= self.patience(i)]
        while self.waiting and len(self.running) < self.slots:
            first = self.waiting.pop(0)
            self.start_s[first] = at
            if self.requests.service_s[first] > 0.0:
                self.running.append(at + float(self.requests.service_s[first]))

    def resize(self, slots: int) -> None:
        for _ in range(len(self.running) - slots):
            self.running.remove(min(self.running))  # it runs on, but its slot is given back to nobody
        self.slots = slots

    def load(self, at: float) -> int:
        here = [i for i in self.waiting if self.requests.arrival_s[i] + self.patience(i) > at]
        return len(self.running) + len(here)

    def next_s(self, after: float) -> float:
        return min((end for end in self.running if end > after), default=math.inf)


def start_times(requests: Requests, stations: dict[int, Station]) -> np.ndarray:
    starts = np.full(len(requests), math.inf)
    for station in stations.values():
        for i, start in station.start_s.items():
            starts[i] = start
    return starts


def pooled_starts(requests: Requests, capacity: Capacity, slots: int) -> np.ndarray:
    station = Station(requests, 0)
    moments = sorted({*requests.arrival_s.tolist(), *capacity.starts_s.tolist()})
    now = -math.inf
    while moments or station.next_s(now) < math.inf:
        now = min(moments[0] if moments else math.inf, station.next_s(now))
        moments = [moment for moment in moments if moment > now]
        station.running = [end for end in station.running if end > now]
        for at, replicas in zip(capacity.starts_s, capacity.replicas, strict=True):
            if at == now:
                station.resize(int(replicas) * slots)
        station.waiting += [i for i in range(len(requests)) if requests.arrival_s[i] == now]
        station.pass_time(now)
    return start_times(requests, {0: station})


class Replicas:
    """Replicas by place; every replay's choice is followed and, for least loaded, checked to be among the least."""

    def __init__(self, requests: Requests, capacity: Capacity, slots: int, places: np.ndarray, *, least: bool) -> None:
        self.requests, self.capacity, self.slots, self.places, self.least = requests, capacity, slots, places, least
        self.live: list[Station] = []
        self.all: dict[int, Station] = {}
        self.door: list[int] = []

    def route(self, at: float) -> None:
        self.door = [i for i in self.door if at - self.requests.arrival_s[i] <= Station(self.requests, 0).patience(i)]
        while self.door and self.live:
            first = self.door.pop(0)
            if self.least:
                loads = [station.load(at) for station in self.live]
                assert loads[self.places[first]] == min(loads)
            self.live[self.places[first]].waiting.append(first)
            self.live[self.places[first]].pass_time(at)

    def run(self) -> np.ndarray:
        moments = sorted({*self.requests.arrival_s.tolist(), *self.capacity.starts_s.tolist()})
        now = -math.inf
        while moments or min((s.next_s(now) for s in self.all.values()), default=math.inf) < math.inf:
            ends = min((s.next_s(now) for s in self.all.values()), default=math.inf)
            now = min(moments[0] if moments else math.inf, ends)
            moments = [moment for moment in moments if moment > now]
            for station in self.all.values():
                station.pass_time(now)
            for at, replicas in zip(self.capacity.starts_s, self.capacity.replicas, strict=True):
                if at == now:
                    del self.live[int(replicas) :]
                    while len(self.live) < replicas:
                        self.live.append(Station(self.requests, self.slots))
                        self.all[len(self.all)] = self.live[-1]
            self.door += [i for i in range(len(self.requests)) if self.requests.arrival_s[i] == now]
            self.route(now)
        return start_times(self.requests, self.all)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Requests, Capacity, int]:
    """Small whole numbers, so that instants meet often: the order of events at one instant is part of the contract."""
    count = draw(st.integers(1, 25))
    whole = st.integers(0, 6)
    gaps = draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    service = draw(st.lists(whole, min_size=count, max_size=count))
    patience = draw(st.one_of(st.none(), st.lists(st.integers(0, 8), min_size=count, max_size=count)))
    steps = draw(st.lists(st.integers(1, 40), unique=True, max_size=5))
    replicas = draw(st.lists(st.integers(0, 4), min_size=len(steps) + 1, max_size=len(steps) + 1))
    starts = [draw(st.sampled_from([-math.inf, 0.0, 0.5])), *map(float, sorted(steps))]
    requests = Requests(
        arrival_s=np.cumsum(gaps).astype(float),
        service_s=np.asarray(service, dtype=float),
        patience_s=None if patience is None else np.asarray(patience, dtype=float),
    )
    return requests, Capacity(starts_s=np.asarray(starts), replicas=np.asarray(replicas)), draw(st.integers(1, 3))


def check(requests: Requests, starts: np.ndarray, seen: Replay) -> None:
    served = np.isfinite(starts)
    assert np.array_equal(seen.served, served)
    assert np.array_equal(seen.wait_s[served], (starts - requests.arrival_s)[served])
    if requests.patience_s is None:
        assert np.all(seen.outcome[~served] == Outcome.UNSERVED)
        assert np.all(np.isinf(seen.wait_s[~served]))
    else:
        assert np.all(seen.outcome[~served] == Outcome.ABANDONED)
        assert np.array_equal(seen.wait_s[~served], requests.patience_s[~served])


@settings(max_examples=150)
@given(case=cases())
def test_pooled_replay_is_the_event_by_event_queue(case: tuple[Requests, Capacity, int]) -> None:
    requests, capacity, slots = case
    check(requests, pooled_starts(requests, capacity, slots), replay(requests, capacity, slots=slots))


@pytest.mark.parametrize("balancing", [Balancing.LEAST_LOADED, Balancing.RANDOM])
@settings(max_examples=150)
@given(case=cases(), seed=st.integers(0, 1000))
def test_replicas_are_queues_of_their_own(
    balancing: Balancing, case: tuple[Requests, Capacity, int], seed: int
) -> None:
    requests, capacity, slots = case
    seen = replay(requests, capacity, balancing=balancing, slots=slots, rng=np.random.default_rng(seed))
    oracle = Replicas(requests, capacity, slots, seen.place, least=balancing is Balancing.LEAST_LOADED)
    check(requests, oracle.run(), seen)
