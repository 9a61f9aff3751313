"""The autoscaler against the documentation's numbers, and the queue under it against a slow model of plain Python."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.fleet.workload import Balancing
from ebbtide.simulate.arrivals import Requests
from ebbtide.simulate.autoscaler import Autoscaler, desired_by_metric, look, new_pods, rules_of
from ebbtide.simulate.runs import autoscaled_run


@pytest.mark.parametrize(
    ("used", "ready", "unready", "target", "wished"),
    [
        # "if the current metric value is 200m and the desired value is 100m, the number of replicas will be doubled"
        (20, 5, 0, 0.2, 10),
        # "if the current value is instead 50m, you'll halve the number of replicas"
        (5, 10, 0, 0.1, 5),
        # "the control plane skips any scaling action if the ratio is sufficiently close to 1.0 (0.1 by default)"
        (109, 10, 0, 1.0, 10),
        (91, 10, 0, 1.0, 10),
        (111, 10, 0, 1.0, 12),
        (89, 10, 0, 1.0, 9),
        # ⌈currentReplicas × currentMetricValue / desiredMetricValue⌉ rounds up
        (45, 5, 0, 0.5, 9),
        (46, 5, 0, 0.5, 10),
        # not yet ready pods are assumed to use 0 % when scaling up: 60 of 10 pods at 5 each, 12 are wished
        (60, 5, 5, 0.5, 12),
        # they turn the ratio round: nothing is done
        (30, 5, 5, 0.5, 10),
        # scaling down they take no part: 10 of 5 ready pods at 5 each leave 2
        (10, 5, 5, 0.5, 2),
        # nobody is ready: there is no metric, nothing is done
        (0, 0, 4, 0.5, 4),
    ],
)
def test_the_documented_algorithm(used: int, ready: int, unready: int, target: float, wished: int) -> None:
    assert desired_by_metric(used, ready, unready, 10, target, 0.1) == wished


def counts(scaler: Autoscaler, start: int, used: list[int]) -> list[int]:
    """The pods after every sync, ten slots each, the given slots in use."""
    pods = new_pods(scaler, start, at_s=0.0)
    rules = rules_of(scaler)
    return [int(look(pods, rules, slots, 10, 15.0 * sync)) for sync, slots in enumerate(used)]


def test_up_by_four_pods_or_twofold_whichever_is_more() -> None:
    scaler = Autoscaler(target=0.1, min_replicas=1, max_replicas=60, startup_s=0.0)
    assert counts(scaler, 1, [900] * 6) == [5, 10, 20, 40, 60, 60]


def test_down_waits_for_the_highest_advice_of_five_minutes() -> None:
    scaler = Autoscaler(target=0.5, min_replicas=2, max_replicas=60, startup_s=0.0)
    found = counts(scaler, 20, [100, 100, *([15] * 30)])
    assert found[:22] == [20] * 21 + [3]  # the last advice for 20 was at 15 s, and leaves the window at 315 s
    assert found[22:] == [3] * 10


def test_the_first_advice_is_what_stands_so_a_restart_takes_nothing_down() -> None:
    scaler = Autoscaler(target=0.5, min_replicas=1, max_replicas=60, startup_s=0.0)
    assert counts(scaler, 20, [0] * 22) == [20] * 20 + [1, 1]


def test_not_below_the_minimum_and_by_no_more_than_the_policy() -> None:
    scaler = Autoscaler(target=0.5, min_replicas=4, max_replicas=60, startup_s=0.0, stabilisation_s=0.0, down_share=0.5)
    assert counts(scaler, 40, [0] * 6) == [20, 10, 5, 4, 4, 4]


def test_pods_on_their_way_leave_first_and_are_held_when_ready() -> None:
    scaler = Autoscaler(target=0.5, min_replicas=1, max_replicas=60, startup_s=40.0, stabilisation_s=0.0)
    pods = new_pods(scaler, 4, at_s=0.0)
    assert look(pods, rules_of(scaler), 40, 10, 0.0) == 8
    assert pods.ready_s[:8].tolist() == [-math.inf] * 4 + [40.0] * 4
    assert look(pods, rules_of(scaler), 15, 10, 15.0) == 3
    assert pods.ready_s[:3].tolist() == [-math.inf] * 3


def test_what_is_no_autoscaler_is_refused() -> None:
    with pytest.raises(ValueError, match="1 ≤ min ≤ max"):
        Autoscaler(target=0.5, min_replicas=0, max_replicas=3, startup_s=1.0)
    with pytest.raises(ValueError, match="not negative"):
        Autoscaler(target=0.5, min_replicas=1, max_replicas=3, startup_s=-1.0)


# --- a slow model -------------------------------------------------------------------------------------------------


@dataclass
class Model:
    """A pooled queue under an autoscaler, second by second in halves, with lists of everything."""

    scaler: Autoscaler
    slots: int
    pods: list[float]  # when each gets ready
    ends: list[float] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    advice: list[tuple[float, int]] = field(default_factory=list)
    start_s: dict[int, float] = field(default_factory=dict)
    seen: list[tuple[float, int]] = field(default_factory=list)

    def ready(self, at: float) -> int:
        return sum(1 for pod in self.pods if pod <= at)

    def serve(self, at: float, requests: Requests) -> None:
        self.ends = [end for end in self.ends if end > at]
        while self.waiting and len(self.ends) < self.ready(at) * self.slots:
            first = self.waiting.pop(0)
            self.start_s[first] = at
            self.ends.append(at + requests.service_s[first])

    def sync(self, at: float) -> None:
        s = self.scaler
        ready, current = self.ready(at), len(self.pods)
        used = min(len(self.ends), ready * self.slots)
        share = used / (ready * self.slots) if ready else math.nan
        ratio = share / s.target
        wished = current
        if ready and ratio > 1.0 and ready < current:
            ratio = used / (current * self.slots) / s.target
            if ratio > 1.0 + s.tolerance:
                wished = max(current, math.ceil(ratio * current - 1e-9))
        elif ready and abs(ratio - 1.0) > s.tolerance:
            wished = math.ceil(ratio * ready - 1e-9)
        self.advice.append((at, wished))
        recent = [wished, *(advice for when, advice in self.advice if when > at - s.stabilisation_s)]
        count = current
        if wished > current:
            step = max(current + s.up_pods, 2 * current)
            count = min(wished, step, s.max_replicas)
        elif (highest := max(recent)) < current:
            count = max(highest, s.min_replicas)
        leaving = (self.ready(at) - sum(1 for pod in self.pods[:count] if pod <= at)) * self.slots
        kept = self.ready(at) * self.slots - leaving
        self.ends = sorted(self.ends)[max(len(self.ends) - kept, 0) :]  # what leaves runs on; idle slots leave first
        self.pods = self.pods[:count] + [at + s.startup_s] * (count - current)
        self.seen.append((at, count))


def slow(scaler: Autoscaler, slots: int, start: int, requests: Requests, end: int) -> Model:
    model = Model(scaler=scaler, slots=slots, pods=[-math.inf] * start, advice=[(0.0, start)])
    for half in range(2 * end):
        at = half / 2.0
        model.serve(at, requests)
        if at % scaler.sync_s == 0.0:
            model.sync(at)
            model.serve(at, requests)
        model.waiting += [i for i in range(len(requests)) if requests.arrival_s[i] == at]
        model.serve(at, requests)
    return model


@st.composite
def cases(draw: st.DrawFn) -> tuple[Requests, Autoscaler, int, int]:
    count = draw(st.integers(10, 120))
    dense = draw(st.integers(0, 3))
    gaps = draw(st.lists(st.integers(0, 6 if dense else 1), min_size=count, max_size=count))
    service = draw(st.lists(st.integers(1, 60), min_size=count, max_size=count))
    requests = Requests(arrival_s=np.cumsum(gaps) / 2.0, service_s=np.asarray(service) / 2.0)
    scaler = Autoscaler(
        target=draw(st.sampled_from([0.3, 0.5, 0.75, 0.9])),
        min_replicas=draw(st.integers(1, 2)),
        max_replicas=draw(st.integers(3, 40)),
        startup_s=draw(st.sampled_from([0.0, 4.5, 15.0, 37.0])),
        stabilisation_s=draw(st.sampled_from([0.0, 45.0, 100.0])),
    )
    return requests, scaler, draw(st.integers(1, 3)), draw(st.integers(1, 3))


@settings(max_examples=60)
@given(case=cases(), cut=st.integers(1, 300))
def test_the_queue_and_its_autoscaler_are_the_slow_models(
    case: tuple[Requests, Autoscaler, int, int], cut: int
) -> None:
    requests, scaler, slots, start = case
    end = 420
    model = slow(scaler, slots, max(start, scaler.min_replicas), requests, end)
    run = autoscaled_run(scaler, start_s=0.0, replicas=start, balancing=Balancing.POOLED, slots=slots)
    part = requests.arrival_s < cut
    pieces = [Requests(arrival_s=requests.arrival_s[now], service_s=requests.service_s[now]) for now in (part, ~part)]
    first = run.take(pieces[0], np.zeros(len(pieces[0])), float(cut))
    second = run.take(pieces[1], np.zeros(len(pieces[1])), float(end))
    starts = np.concatenate([one.arrival_s + one.wait_s for one in (first, second)])
    assert len(starts) == len(model.start_s)
    assert starts.tolist() == [model.start_s[i] for i in range(len(starts))]
    pods = run.pods
    counted = pods.replicas[np.searchsorted(pods.starts_s, [at for at, _ in model.seen], side="right") - 1]
    assert counted.tolist() == [count for _, count in model.seen]


@pytest.mark.parametrize("balancing", [Balancing.LEAST_LOADED, Balancing.RANDOM])
def test_routed_requests_keep_their_replica_and_slots_in_use_are_counted_there(balancing: Balancing) -> None:
    # One replica of two slots, six long services at once, then a calm: each asks what utilisation was seen.
    requests = Requests(arrival_s=np.zeros(6), service_s=np.full(6, 100.0))
    scaler = Autoscaler(target=0.5, min_replicas=1, max_replicas=9, startup_s=20.0)
    run = autoscaled_run(scaler, start_s=0.0, replicas=1, balancing=balancing, slots=2)
    done = run.take(requests, np.full(6, 0.3), 1000.0)
    assert done.wait_s.tolist() == [0.0, 0.0, 100.0, 100.0, 200.0, 200.0]  # none moves to a new replica
    # At 0 s nobody has come. At 15 s both slots are in use: a ratio of 2, one pod more, ready at 35 s. From then on two
    # of four slots are in use, as the target says, until 300 s: the advice of 285 s holds for five minutes.
    assert run.pods.starts_s.tolist() == [0.0, 15.0, 585.0]
    assert run.pods.replicas.tolist() == [1, 2, 1]
    assert run.capacity.starts_s.tolist() == [0.0, 35.0, 585.0]
