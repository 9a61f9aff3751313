"""What one more job is told before it is submitted, beside a plan that stands."""

from __future__ import annotations

import pytest

from batchlab import H, hollow, job, tide
from ebbtide.batch.instance import instance_of
from ebbtide.batch.offer import offer
from ebbtide.batch.plan import Cause, ReliefKind
from ebbtide.batch.search import plan_batch
from ebbtide.batch.standing import placing_of

FOUR = [job(name, 2, 3.0, deadline_s=8.0 * H) for name in "abcd"]


def test_a_job_behind_the_plan() -> None:
    plan = plan_batch(FOUR, [hollow()], at_s=0.0)
    found = offer(job("new", 2, 1.0, deadline_s=9.0 * H), plan, [hollow()], at_s=0.0)
    assert (found.planned.place.start_s, found.planned.reason.cause) == (6 * H, Cause.JOBS)
    assert (found.planned.in_time, found.planned.probability, found.changes) == (True, 1.0, ())


def test_others_move_where_all_their_deadlines_still_hold() -> None:
    late = [job("calm", 4, 3.0, deadline_s=40.0 * H, earliest_start_s=1.0 * H)]
    plan = plan_batch(late, [hollow()], at_s=0.0)
    found = offer(job("hurry", 4, 2.0, deadline_s=3.0 * H), plan, [hollow()], at_s=0.0)
    assert not found.planned.in_time
    (change,) = found.changes
    assert (change.moved, change.planned.in_time) == (("calm",), True)


def test_a_checkpoint_helps_before_the_tide_turns() -> None:
    night = tide([(0, 1), (4, 0), (12, 1)])
    found = offer(job("long", 4, 6.0, deadline_s=16.0 * H), None, [night], at_s=0.0)
    assert (found.planned.in_time, found.planned.reason.cause) == (False, Cause.TIDE)
    (change,) = found.changes
    assert change.preemptible
    assert change.planned.place.finish_s == 14.5 * H  # four hours, half an hour lost, two and a half
    assert ReliefKind.LATER_DEADLINE in {one.kind for one in found.reliefs}


def test_a_name_that_the_plan_has() -> None:
    plan = plan_batch(FOUR, [hollow()], at_s=0.0)
    with pytest.raises(ValueError, match="already"):
        offer(FOUR[0], plan, [hollow()], at_s=0.0)


def test_a_plan_is_laid_onto_the_same_hollows_as_it_was(judge) -> None:
    jobs = [*FOUR, job("gang", 2, 5.0, pods=3, checkpoint_interval_s=600.0)]
    hollows = [hollow(), tide([(0, 2), (4, 0), (12, 2)])]
    plan = plan_batch(jobs, hollows, at_s=0.0)
    places = {one.job.name: one.place for one in plan.jobs if one.place is not None}
    placing, broken = placing_of(instance_of(jobs, hollows, at_s=0.0), places)
    assert broken == ()
    assert judge(placing) == []
    assert sorted(placing.run_start_s) == sorted(run.start_s for place in places.values() for run in place.runs)


def test_what_does_not_hold_any_more_is_named() -> None:
    jobs = [job(name, 4, 3.0) for name in "ab"]
    plan = plan_batch(jobs, [hollow(2)], at_s=0.0)
    places = {one.job.name: one.place for one in plan.jobs}
    _, broken = placing_of(instance_of(jobs, [hollow(1)], at_s=0.0), places)
    assert len(broken) == 1
    _, gone = placing_of(instance_of(jobs, [tide([(0, 0), (5, 2)])], at_s=0.0), places)
    assert gone == ("a", "b")
