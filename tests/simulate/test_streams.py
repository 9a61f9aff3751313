"""Pieces of a stream, and the scores of what becomes of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ebbtide.fleet.demand import Series
from ebbtide.fleet.workload import Balancing, DemandRef, Service, Target, TargetKind, Workload
from ebbtide.simulate.fcfs import Capacity, replay
from ebbtide.simulate.plays import play
from ebbtide.simulate.runs import Done
from ebbtide.simulate.scoring import Cells, Tally
from ebbtide.simulate.streams import Stream, pieces_of, split_days, stream_of

TARGETS = (Target(kind=TargetKind.WAIT, bound_s=1.0), Target(kind=TargetKind.LATENCY, bound_s=9.0, percentile=0.5))


def workload(**fields: object) -> Workload:
    given = {"targets": TARGETS, "balancing": Balancing.POOLED, "service": Service(time_s=4.0), **fields}
    return Workload(name="chat", demand=DemandRef(source="s", key="k"), pool="p", gpus_per_replica=1, **given)


def series(rates: list[float], seen: list[int] | None = None) -> Series:
    states = np.array(seen or [0] * len(rates), dtype=np.uint8)
    known = np.where(states == 0, rates, np.nan)
    return Series(key="k", start_s=1_000_000, interval_s=600, rate_rps=known, seen=states)


def test_what_was_not_observed_goes_on_interpolated_and_unscored() -> None:
    stream = stream_of(workload(), series([2.0, 0.0, 0.0, 8.0], [0, 1, 2, 0]), start_s=1_000_000, end_s=1_002_400)
    assert stream.rates_rps.tolist() == [2.0, 4.0, 6.0, 8.0]
    assert stream.scored.tolist() == [True, False, False, True]
    tally = Tally.of(workload(), stream, cells_of(stream, [0.0]))
    for requests, _, _ in pieces_of(stream, seed=(1,)):
        zero = np.zeros(len(requests))
        tally.add(
            Done(arrival_s=requests.arrival_s, service_s=zero, wait_s=zero, outcome=np.zeros(len(zero), np.uint8))
        )
    assert tally.requests[0] == pytest.approx(600 * 10, rel=0.05)


def cells_of(stream: Stream, starts: list[float]) -> Cells:
    return Cells(
        starts_s=stream.start_s + np.array(starts),
        window=np.arange(len(starts)) % 2,
        end_s=float(stream.end_s),
        windows=2,
    )


def test_pieces_are_bounded_follow_each_other_and_come_again_with_their_seed() -> None:
    stream = stream_of(workload(patience_s=3.0), series([5.0, 90.0, 1.0, 0.0]), start_s=0, end_s=2_000_000)
    found, again = ([*pieces_of(stream, seed=(4, 2), piece_requests=5000)] for _ in range(2))
    assert len(found) > 10
    begin = stream.start_s
    for (requests, draws, until_s), (same, _, _) in zip(found, again, strict=True):
        assert len(requests) == len(draws) < 6000
        assert requests.patience_s is not None
        assert np.array_equal(requests.arrival_s, same.arrival_s)
        assert ((begin <= requests.arrival_s) & (requests.arrival_s < until_s)).all()
        begin = until_s
    assert begin == stream.end_s
    assert sum(len(requests) for requests, _, _ in found) == pytest.approx(600 * 96, rel=0.02)


def test_the_youngest_days_that_fit() -> None:
    rates = [1.0] * 144 + [2.0] * 144 + [3.0] * 144
    stream = stream_of(workload(), series(rates), start_s=0, end_s=2_000_000)
    assert [(stream.end_s - split_days(stream, most)) / 86_400 for most in (1.0, 3e5, 5e5, 1e9)] == [1, 1, 2, 3]


def test_scores_are_those_of_every_request_counted_by_hand() -> None:
    one = workload(service=Service(time_s=4.0, concurrency=2), patience_s=6.0)
    stream = stream_of(one, series([1.5, 2.2, 0.7, 1.9]), start_s=0, end_s=2_000_000)
    cells = cells_of(stream, [0.0, 700.0, 1500.0])
    capacity = Capacity(starts_s=np.array([float(stream.start_s), stream.start_s + 900.0]), replicas=np.array([4, 3]))
    played = play(one, stream, {"a": capacity, "b": Capacity.steady(9)}, cells, seed=(7,))
    pieces = [piece for piece, _, _ in pieces_of(stream, seed=(7,))]
    assert len(pieces) == 1
    seen = replay(pieces[0], capacity, slots=2)
    cell = np.searchsorted(cells.starts_s, pieces[0].arrival_s, side="right") - 1
    waits = seen.served & (seen.wait_s <= 1.0)
    latency = seen.served & (seen.wait_s + pieces[0].service_s <= 9.0)
    tally = played["a"].tally
    assert tally.requests.tolist() == np.bincount(cell).tolist()
    for column, good in enumerate((waits, latency, waits & latency)):
        assert tally.within[:, column].tolist() == np.bincount(cell[good], minlength=3).tolist()
    for c in range(3):
        for share in (0.5, 0.95, 0.99):
            exact = np.sort(seen.wait_s[cell == c])[math.ceil(share * (cell == c).sum()) - 1]
            assert tally.wait_s(share)[c] == pytest.approx(exact, rel=0.0101, abs=1e-4)
    shares = tally.within[:, :2] / tally.requests[:, None]
    assert tally.held.tolist() == ((shares[:, 0] >= 0.95) & (shares[:, 1] >= 0.5)).tolist()
    assert tally.score.requests.tolist() == [(cell != 1).sum(), (cell == 1).sum()]
    assert played["b"].tally.score.attained > tally.score.attained


def test_nobody_there_is_no_score_and_who_never_starts_waits_for_ever() -> None:
    stream = stream_of(workload(), series([1.0, 0.0]), start_s=0, end_s=2_000_000)
    none = play(workload(), stream, {"none": Capacity.steady(0)}, cells_of(stream, [0.0, 600.0]), seed=(1,))["none"]
    assert np.isinf(none.tally.wait_s(0.5)[0])
    assert math.isnan(none.tally.wait_s(0.5)[1])
    assert none.tally.held.tolist() == [False, True]
    assert none.tally.score.cells.tolist() == [1, 0]
    assert none.tally.score.attained == 0.0
