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
