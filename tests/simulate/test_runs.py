"""Runs in pieces: the same waits as the replay that looks ahead, however the requests are cut."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.fleet.workload import Balancing
from ebbtide.simulate.arrivals import Requests
from ebbtide.simulate.fcfs import Capacity, Replay, replay
from ebbtide.simulate.runs import planned_run


class Drawn:
    """A generator whose numbers are known, so that a replay and a run make the same choices."""

    def __init__(self, draws: np.ndarray) -> None:
        self.draws = draws

    def random(self, count: int) -> np.ndarray:
        assert count == len(self.draws)
        return self.draws


@st.composite
def cases(draw: st.DrawFn) -> tuple[Requests, np.ndarray, Capacity, int, list[float]]:
    """Small whole numbers, so that arrivals, departures, steps and cuts meet often."""
    count = draw(st.integers(1, 30))
    lists = {"min_size": count, "max_size": count}
    patience = draw(st.one_of(st.none(), st.lists(st.integers(0, 8), **lists)))
    requests = Requests(
        arrival_s=np.cumsum(draw(st.lists(st.integers(0, 2), **lists))).astype(float),
        service_s=np.asarray(draw(st.lists(st.integers(0, 6), **lists)), dtype=float),
        patience_s=None if patience is None else np.asarray(patience, dtype=float),
    )
    draws = np.asarray(draw(st.lists(st.floats(0.0, 1.0, exclude_max=True), **lists)))
    steps = sorted(draw(st.lists(st.integers(1, 40), unique=True, max_size=6)))
    starts = np.array([draw(st.sampled_from([-math.inf, 0.0, 0.5])), *steps], dtype=float)
    replicas = np.asarray(draw(st.lists(st.integers(0, 4), min_size=len(starts), max_size=len(starts))))
    new = np.insert(np.diff(replicas) != 0, 0, True)  # a step to the same count reorders equals in a replay only
    starts, replicas = starts[new], replicas[new]
    cuts = sorted(draw(st.lists(st.integers(0, 60), unique=True, max_size=4)))
    return requests, draws, Capacity(starts_s=starts, replicas=replicas), draw(st.integers(1, 3)), [*cuts, 61.0]


def in_pieces(
    requests: Requests, draws: np.ndarray, capacity: Capacity, slots: int, cuts: list[float], balancing: Balancing
) -> tuple[np.ndarray, np.ndarray]:
    """Waits and outcomes of a run that takes the requests cut at some instants."""
    run = planned_run(capacity, balancing=balancing, slots=slots)
    done = []
    first = 0
    for cut in cuts:
        last = int(np.searchsorted(requests.arrival_s, cut))
        piece = Requests(
            arrival_s=requests.arrival_s[first:last],
            service_s=requests.service_s[first:last],
            patience_s=None if requests.patience_s is None else requests.patience_s[first:last],
        )
        done.append(run.take(piece, draws[first:last], cut))
        first = last
    done.append(run.close())
    assert np.array_equal(np.concatenate([part.arrival_s for part in done]), requests.arrival_s)
    assert np.array_equal(np.concatenate([part.service_s for part in done]), requests.service_s)
    return np.concatenate([part.wait_s for part in done]), np.concatenate([part.outcome for part in done])


@pytest.mark.parametrize("balancing", list(Balancing))
@settings(max_examples=300)
@given(case=cases())
def test_pieces_give_the_waits_of_the_whole(
    balancing: Balancing, case: tuple[Requests, np.ndarray, Capacity, int, list[float]]
) -> None:
    requests, draws, capacity, slots, cuts = case
    whole: Replay = replay(requests, capacity, balancing=balancing, slots=slots, rng=Drawn(draws))
    wait_s, outcome = in_pieces(requests, draws, capacity, slots, cuts, balancing)
    assert np.array_equal(wait_s, whole.wait_s)
    assert np.array_equal(outcome, whole.outcome)


@pytest.mark.parametrize("balancing", list(Balancing))
def test_a_long_queue_goes_on_in_the_next_piece(balancing: Balancing) -> None:
    # 3,000 requests at once for two replicas: more than any array was made for.
    rng = np.random.default_rng(4)
    requests = Requests(arrival_s=np.sort(rng.random(3000)), service_s=rng.standard_exponential(3000))
    draws = rng.random(3000)
    capacity = Capacity(starts_s=np.array([0.0, 300.0]), replicas=np.array([2, 3]))
    whole = replay(requests, capacity, balancing=balancing, slots=2, rng=Drawn(draws))
    wait_s, _ = in_pieces(requests, draws, capacity, 2, [0.5, 100.0, 400.0], balancing)
    assert np.array_equal(wait_s, whole.wait_s)
    assert wait_s.max() > 300.0
