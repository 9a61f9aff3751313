"""Probabilities of deadlines: against the law itself, and against a chain whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from batchlab import H, hollow, job, tide
from ebbtide.batch.durations import Duration
from ebbtide.batch.fitting import place
from ebbtide.batch.instance import instance_of
from ebbtide.batch.outcomes import finishes_s, probabilities

LAW = Duration(expected_s=2.0 * H, p90_s=3.0 * H)


def test_a_job_alone_meets_its_deadline_as_its_law_says() -> None:
    for hours in (1.5, 2.0, 3.0, 5.0):
        one = job("a", duration=LAW, deadline_s=hours * H)
        instance = instance_of([one], [hollow()], at_s=0.0)
        chance = probabilities(place(instance, np.array([0])), seed=1, draws=20_000)[0]
        assert chance == pytest.approx(LAW.probability_within(hours * H), abs=0.015)


def test_a_job_behind_another_waits_for_it_where_it_runs_long() -> None:
    first, second = job("a", 4, duration=LAW), job("b", 4, 1.0, deadline_s=4.0 * H)
    instance = instance_of([first, second], [hollow()], at_s=0.0)
    placing = place(instance, np.array([0, 1]))
    ends = finishes_s(placing, seed=1, draws=20_000)
    assert ends[1].min() == 4.0 * H  # never before its planned start at 3 h
    assert (ends[1] <= 4.0 * H).mean() == pytest.approx(0.9, abs=0.01)
    np.testing.assert_allclose(ends[1], np.maximum(ends[0], 3.0 * H) + H)


NIGHT = tide([(0, 1), (3, 0), (6, 1)])


@pytest.mark.parametrize("interval_s", [None, 60.0])
def test_what_runs_long_is_ended_by_the_tide(interval_s: float | None) -> None:
    one = job("a", 4, duration=LAW, checkpoint_interval_s=interval_s)
    placing = place(instance_of([one], [NIGHT], at_s=0.0), np.array([0]))
    ends = finishes_s(placing, seed=2, draws=20_000)[0]
    assert np.isfinite(ends).mean() == pytest.approx(0.9, abs=0.01)


def test_an_interrupted_job_loses_up_to_its_interval() -> None:
    long = job("long", 4, 4.0, checkpoint_interval_s=1800.0)
    placing = place(instance_of([long], [NIGHT], at_s=0.0), np.array([0]))
    ends = finishes_s(placing, seed=3, draws=20_000)[0]
    assert (ends.min() >= 7 * H, ends.max() <= 7.5 * H) == (True, True)  # an hour is left, and up to half is lost
    assert ends.mean() == pytest.approx(7.25 * H, rel=0.001)


def test_the_same_seed_the_same_answer() -> None:
    jobs = [job(f"j{k}", 2, duration=LAW, deadline_s=9.0 * H) for k in range(5)]
    placing = place(instance_of(jobs, [hollow()], at_s=0.0), np.arange(5))
    one, other, third = (probabilities(placing, seed=seed) for seed in (1, 1, 2))
    assert (one == other).all()
    assert (one != third).any()


def test_a_chain_is_as_sure_as_the_sum_of_its_durations_not_as_its_last_job() -> None:
    """On its own nodes each job of a chain waits for the one before alone: planned starts, true lengths, drawn here."""
    chain = [job("a", 4, duration=LAW), job("b", 4, duration=LAW, after=("a",))]
    chain.append(job("c", 4, duration=LAW, after=("b",), deadline_s=9.0 * H))
    placing = place(instance_of(chain, [hollow(3)], at_s=0.0), np.arange(3))
    told = probabilities(placing, seed=4, draws=20_000)[2]
    rng = np.random.default_rng(99)
    a, b, c = LAW.expected_s * np.exp(LAW.sigma * rng.standard_normal((3, 200_000)))
    b_ends = np.maximum(a, placing.start_s[1]) + b
    oracle = (np.maximum(b_ends, placing.start_s[2]) + c <= 9.0 * H).mean()
    assert told == pytest.approx(oracle, abs=0.012)
    assert told < LAW.probability_within(9.0 * H - placing.start_s[2]) - 0.02  # its own spread alone would say more


def test_what_waits_for_two_is_as_sure_as_both_together() -> None:
    both = [
        job("a", 4, duration=LAW),
        job("b", 4, duration=LAW),
        job("c", 4, 1.0, after=("a", "b"), deadline_s=4.0 * H),
    ]
    placing = place(instance_of(both, [hollow(2)], at_s=0.0), np.arange(3))
    assert probabilities(placing, seed=5, draws=20_000)[2] == pytest.approx(0.81, abs=0.012)  # 0.9 of each, independent


def test_a_job_behind_one_that_never_ends_is_not_in_time() -> None:
    first, second = job("a", 4, 10.0), job("b", 4, 1.0, after=("a",), deadline_s=40.0 * H)
    placing = place(instance_of([first, second], [tide([(0, 1), (9, 0)])], at_s=0.0), np.arange(2))
    assert probabilities(placing, seed=6).tolist() == [0.0, 0.0]
