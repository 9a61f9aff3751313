"""Least loaded between its exact ends: properties of the form, and a small part of the simulated grid.

``uv run python -m benchmarks.least_loaded`` is the whole grid; docs/background/balancing.md has its table.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.fleet.workload import Balancing
from ebbtide.queueing.balancing import log_waiting, patient_weight, random_decay_weight
from ebbtide.simulate.arrivals import Requests
from ebbtide.simulate.fcfs import Capacity, replay


def log_erlang_c(servers: int, load: float) -> float:
    blocked = 1.0
    for n in range(1, servers + 1):
        blocked = load * blocked / (n + load * blocked)
    # Far below any use, where the recursion underflows.
    return math.log(max(1e-300, servers * blocked / (servers - load * (1.0 - blocked))))


def law(replicas: int, slots: int, load: float) -> tuple[float, float]:
    """(ln P, θ) for services of mean 1, as the queueing room puts the parts together."""
    pooled = replicas * slots - load
    v = random_decay_weight(replicas, slots, load)
    decay = math.exp((1.0 - v) * math.log(pooled) + v * math.log(pooled / replicas))
    return log_waiting(replicas, slots, load, log_erlang_c(replicas * slots, load)), decay


@given(slots=st.integers(1, 128), share=st.floats(1e-3, 0.999))
def test_one_replica_is_one_queue(slots: int, share: float) -> None:
    load = share * slots
    assert random_decay_weight(1, slots, load) == 0.0
    assert log_waiting(1, slots, load, -1.5) == -1.5


@given(replicas=st.integers(2, 200), slots=st.integers(1, 128), share=st.floats(1e-3, 0.9999))
def test_the_decay_lies_between_the_ends_and_is_a_replicas_own(replicas: int, slots: int, share: float) -> None:
    load = share * slots * replicas
    v = random_decay_weight(replicas, slots, load)
    assert 0.0 <= v <= 1.0
    decay = law(replicas, slots, load)[1]
    assert decay == pytest.approx(-slots * math.expm1(replicas * math.log(load / (slots * replicas))), rel=1e-9)


@given(replicas=st.integers(2, 60), slots=st.integers(1, 64), share=st.floats(0.05, 0.999))
def test_fewer_wait_than_pooled_but_the_mean_wait_is_longer(replicas: int, slots: int, share: float) -> None:
    load = share * slots * replicas
    pooled = log_erlang_c(replicas * slots, load)
    log_p, decay = law(replicas, slots, load)
    assert log_p <= pooled
    assert log_p - math.log(decay) >= pooled - math.log(replicas * slots - load) - 1e-9


@given(slots=st.integers(1, 64), full=st.floats(0.05, 40.0), bound=st.floats(0.0, 20.0))
def test_one_more_replica_never_makes_the_tail_longer(slots: int, full: float, bound: float) -> None:
    load = full * slots
    least = math.floor(full) + 1
    tails = [log_p - decay * bound / slots for log_p, decay in (law(n, slots, load) for n in range(least, least + 12))]
    assert np.all(np.diff(tails) <= 1e-9)


def simulated_waits_s(replicas: int, slots: int, load: float, requests: int = 300_000) -> np.ndarray:
    rng = np.random.default_rng(1)
    arrivals = np.cumsum(rng.standard_exponential(requests)) / load
    stream = Requests(arrival_s=arrivals, service_s=rng.standard_exponential(requests))
    seen = replay(stream, Capacity.steady(replicas), balancing=Balancing.LEAST_LOADED, slots=slots, rng=rng)
    return seen.wait_s[requests // 10 :]


@pytest.mark.parametrize(
    ("slots", "full", "bound"),
    [(1, 3.3, 1.0), (1, 15.5, 4.0), (2, 7.2, 0.1), (4, 3.3, 1.0), (4, 29.0, 1.0), (16, 1.6, 1.0), (16, 15.5, 0.1)],
)
def test_what_it_asks_for_is_the_simulated_need_within_one_replica_and_never_too_few(
    slots: int, full: float, bound: float
) -> None:
    load, bound_s = full * slots, bound / slots
    asked = math.floor(full) + 1
    while True:
        log_p, decay = law(asked, slots, load)
        if log_p - decay * bound_s <= math.log(0.05):
            break
        asked += 1
    late = [
        float((simulated_waits_s(n, slots, load) > bound_s).mean()) if n > full else 1.0 for n in (asked, asked - 2)
    ]
    assert late[0] <= 0.05 * 1.05  # the simulation's own error
    assert late[1] > 0.05


@pytest.mark.parametrize(("replicas", "slots", "load"), [(2, 1, 0.8), (4, 8, 0.9), (16, 2, 0.85), (32, 1, 0.8)])
def test_the_probability_of_waiting_errs_upwards_and_the_conditional_wait_is_right(
    replicas: int, slots: int, load: float
) -> None:
    waits_s = simulated_waits_s(replicas, slots, replicas * slots * load, requests=1_500_000)
    waiting = waits_s[waits_s > 0.0]
    log_p, decay = law(replicas, slots, replicas * slots * load)
    assert -0.04 < log_p - math.log(len(waiting) / len(waits_s)) < 0.35
    assert waiting.mean() * decay == pytest.approx(1.0, abs=0.06)


@pytest.mark.parametrize(("replicas", "slots", "load"), [(8, 1, 0.8), (8, 8, 1.05)])
def test_with_patience_the_share_that_gives_up_lies_where_its_weight_says(
    replicas: int, slots: int, load: float
) -> None:
    rng = np.random.default_rng(6)
    count = 300_000
    stream = Requests(
        arrival_s=np.cumsum(rng.standard_exponential(count)) / (replicas * slots * load),
        service_s=rng.standard_exponential(count),
        patience_s=0.5 * rng.standard_exponential(count),
    )
    pooled, least, alone = (
        math.log(
            1.0 - replay(stream, Capacity.steady(replicas), balancing=balancing, slots=slots, rng=rng).served.mean()
        )
        for balancing in (Balancing.POOLED, Balancing.LEAST_LOADED, Balancing.RANDOM)
    )
    assert (least - pooled) / (alone - pooled) == pytest.approx(patient_weight(slots, is_tail=False), abs=0.05)
