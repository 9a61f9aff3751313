"""The replay against what queueing theory says, within the simulation's own error (batch means)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from ebbtide.fleet.workload import Balancing
from ebbtide.simulate.arrivals import Requests, patience_times_s, request_arrivals_s, service_times_s
from ebbtide.simulate.fcfs import Capacity, Outcome, Replay, replay

BATCHES = 20
# Student's t for 19 degrees of freedom, two-sided 99.98 %: with some forty checks one false alarm in a hundred seeds.
ERRORS = 4.6


def stream(rate_rps: float, count: int, *, scv: float = 1.0, patience_s: float = math.inf, seed: int) -> Requests:
    """About ``count`` Poisson arrivals with services of mean 1."""
    rng = np.random.default_rng(seed)
    arrivals = request_arrivals_s([0.0, count / rate_rps], [rate_rps], rng=rng)
    services = service_times_s(len(arrivals), 1.0, scv=scv, rng=rng)
    return Requests(
        arrival_s=arrivals, service_s=services, patience_s=patience_times_s(len(arrivals), patience_s, rng=rng)
    )


def agrees(values: NDArray[np.generic], theory: float) -> bool:
    """True where the mean of batch means (the first tenth left out as warm-up) is theory, within their error."""
    settled = np.asarray(values[len(values) // 10 :], dtype=np.float64)
    means = settled[: len(settled) // BATCHES * BATCHES].reshape(BATCHES, -1).mean(axis=1)
    return bool(abs(means.mean() - theory) <= ERRORS * means.std(ddof=1) / math.sqrt(BATCHES))


def erlang_c(servers: int, load: float) -> float:
    blocked = 1.0
    for n in range(1, servers + 1):
        blocked = load * blocked / (n + load * blocked)
    return servers * blocked / (servers - load * (1.0 - blocked))


@pytest.mark.parametrize(("servers", "load"), [(1, 0.7), (4, 3.2), (10, 9.0), (100, 92.0)])
def test_pooled_queue_is_erlang_c(servers: int, load: float) -> None:
    seen = replay(stream(load, 400_000, seed=servers), Capacity.steady(servers))
    waits, decay = erlang_c(servers, load), servers - load
    assert agrees(seen.wait_s > 0.0, waits)
    assert agrees(seen.wait_s, waits / decay)
    for late in (0.5 * waits, 0.1 * waits, 0.01 * waits):
        assert agrees(seen.wait_s > math.log(waits / late) / decay, late)


@pytest.mark.parametrize("scv", [0.0, 0.5, 4.0])
def test_one_server_with_general_services_is_pollaczek_khinchine(scv: float) -> None:
    seen = replay(stream(0.6, 400_000, scv=scv, seed=21), Capacity.steady(1))
    assert agrees(seen.wait_s, 0.6 * (1.0 + scv) / 2.0 / (1.0 - 0.6))
    assert agrees(seen.wait_s > 0.0, 0.6)


@pytest.mark.parametrize(("servers", "load", "patience_s"), [(5, 4.5, 2.0), (20, 26.0, 1.0), (50, 50.0, 3.0)])
def test_users_who_give_up_are_erlang_a(servers: int, load: float, patience_s: float) -> None:
    # Birth and death with rates load and min(n, c) + max(n − c, 0)/patience: far enough up that the rest is nothing.
    n = np.arange(1, 40 * servers)
    ratios = load / (np.minimum(n, servers) + np.maximum(n - servers, 0) / patience_s)
    weights = np.concatenate(([0.0], np.cumsum(np.log(ratios))))
    shares = np.exp(weights - weights.max())
    shares /= shares.sum()
    queue = float(shares @ np.maximum(np.arange(len(shares)) - servers, 0))
    seen = replay(stream(load, 300_000, patience_s=patience_s, seed=5), Capacity.steady(servers))
    assert agrees(seen.outcome == Outcome.ABANDONED, queue / patience_s / load)
    assert agrees(seen.wait_s, queue / load)
    assert agrees(seen.wait_s > 0.0, float(shares[servers:].sum()))


def test_random_routing_is_independent_stations() -> None:
    requests = stream(4 * 6.8, 500_000, seed=9)
    rng = np.random.default_rng(1)
    seen = replay(requests, Capacity.steady(4), balancing=Balancing.RANDOM, slots=8, rng=rng)
    waits = erlang_c(8, 6.8)
    assert agrees(seen.wait_s > 0.0, waits)
    assert agrees(seen.wait_s, waits / 1.2)
    for place in range(4):
        mine = seen.place == place
        alone = Requests(arrival_s=requests.arrival_s[mine], service_s=requests.service_s[mine])
        assert np.array_equal(replay(alone, Capacity.steady(8)).wait_s, seen.wait_s[mine])
        assert agrees(mine, 0.25)


def replay_by(requests: Requests, replicas: int, slots: int, balancing: Balancing) -> Replay:
    rng = np.random.default_rng(7)
    return replay(requests, Capacity.steady(replicas), balancing=balancing, slots=slots, rng=rng)


def test_one_replica_is_one_queue_however_requests_find_it() -> None:
    requests = stream(7.0, 20_000, patience_s=1.5, seed=3)
    pooled, least, alone = (replay_by(requests, 1, 8, balancing) for balancing in Balancing)
    assert np.array_equal(pooled.wait_s, least.wait_s)
    assert np.array_equal(pooled.wait_s, alone.wait_s)


def test_least_loaded_lies_between_the_ends_in_mean_wait() -> None:
    requests = stream(8 * 3.6, 200_000, seed=12)
    means = [replay_by(requests, 8, 4, balancing).wait_s.mean() for balancing in Balancing]
    assert means[0] < means[1] < means[2]


def test_shortest_of_two_queues_has_its_known_probability_of_waiting() -> None:
    # Two exponential servers, each with its queue, load 0.5 each: the joint distribution by a truncated chain.
    most = 40
    weights = np.full((most, most), 1.0 / most**2)
    for _ in range(4000):
        after = np.zeros_like(weights)
        joins = np.tril(weights, -1)  # row longer: to the column
        after[:, 1:] += joins[:, :-1]
        joins = np.triu(weights, 1)
        after[1:, :] += joins[:-1, :]
        equal = np.diag(weights) / 2.0
        at = np.arange(most - 1)
        after[at + 1, at] += equal[:-1]
        after[at, at + 1] += equal[:-1]
        after[most - 1, most - 1] += weights[most - 1, most - 1]
        for gone in (weights, weights.T):
            moved = np.zeros_like(weights)
            moved[:-1] = gone[1:]
            moved[0] += gone[0]
            after += moved if gone is weights else moved.T
        weights = after / after.sum()
    seen = replay_by(stream(1.0, 400_000, seed=14), 2, 1, Balancing.LEAST_LOADED)
    assert agrees(seen.wait_s > 0.0, float(weights[1:, 1:].sum()))


@pytest.mark.parametrize("seed", range(6))
def test_whoever_waits_counts_as_load_until_giving_up(seed: int) -> None:
    # Two single slots are taken until 10. The third request waits at one of them until 6, so the fourth goes to the
    # other, where it waits until 9; at 7 the third's replica is the less loaded one.
    requests = Requests(
        arrival_s=np.array([0.0, 0.0, 1.0, 2.0, 7.0]),
        service_s=np.full(5, 10.0),
        patience_s=np.array([99.0, 99.0, 5.0, 7.0, 99.0]),
    )
    rng = np.random.default_rng(seed)
    seen = replay(requests, Capacity.steady(2), balancing=Balancing.LEAST_LOADED, rng=rng)
    assert seen.place[2] != seen.place[3]
    assert seen.place[4] == seen.place[2]
    assert seen.wait_s.tolist() == [0.0, 0.0, 5.0, 7.0, 3.0]


def test_the_same_seed_gives_the_same_waits() -> None:
    requests = stream(14.0, 5_000, seed=1)
    for balancing in (Balancing.LEAST_LOADED, Balancing.RANDOM):
        first, again = (replay_by(requests, 4, 4, balancing) for _ in range(2))
        assert np.array_equal(first.wait_s, again.wait_s)
        assert np.array_equal(first.place, again.place)


def test_what_cannot_be_replayed_is_refused() -> None:
    requests = stream(1.0, 10, seed=1)
    with pytest.raises(ValueError, match="pass a generator"):
        replay(requests, Capacity.steady(2), balancing=Balancing.RANDOM)
    with pytest.raises(ValueError, match="at least one slot"):
        replay(requests, Capacity.steady(2), slots=0)
    with pytest.raises(ValueError, match="ascend in time"):
        Capacity(starts_s=np.array([1.0, 0.0]), replicas=np.array([1, 2]))
    with pytest.raises(ValueError, match="never negative"):
        Capacity.steady(-1)
    with pytest.raises(ValueError, match="every start needs a count"):
        Capacity(starts_s=np.array([0.0]), replicas=np.array([1, 2]))
