"""Planning again: what runs goes on; promises stay unless broken, or an hour old and in the way of a deadline."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from batchlab import H, hollow, job, problems
from ebbtide.batch.durations import Duration
from ebbtide.batch.neighbourhoods import Effort
from ebbtide.batch.replan import QUICK, Running, promised, replanned
from ebbtide.batch.search import plan_batch

LAW = Duration(expected_s=2.0 * H, p90_s=3.0 * H)
JOBS = [
    job("a", 4, duration=LAW, deadline_s=10.0 * H),
    job("b", 4, 2.0, deadline_s=20.0 * H),
    job("c", 4, 2.0, deadline_s=30.0 * H),
]


def standing():
    plan = promised(plan_batch(JOBS, [hollow()], at_s=0.0))
    assert [one.place.start_s / H for one in plan.jobs] == [0, 3, 5]
    return plan


def again(jobs, at_h: float, running: dict[str, Running], hollows=None, plan=None):
    return replanned(plan or standing(), jobs, hollows or [hollow()], at_s=at_h * H, running=running)


def starts(plan) -> dict[str, float]:
    return {one.job.name: one.place.start_s / H for one in plan.jobs if one.place is not None}


def test_nothing_changes_where_nothing_happened() -> None:
    plan = again(JOBS, 1.0, {"a": Running(since_s=0.0)})
    assert starts(plan) == {"a": 1.0, "b": 3.0, "c": 5.0}
    assert [one.promise for one in plan.jobs] == [one.promise for one in standing().jobs]


def test_a_job_that_runs_long_breaks_the_promise_behind_it() -> None:
    plan = again(JOBS, 3.5, {"a": Running(since_s=0.0)})
    b = plan.by_name["b"]
    assert b.place.start_s > 3.5 * H
    assert b.promise.given_s == 0.0
    assert b.promise.moved_s == 3.5 * H
    assert b.promise.start_s == b.place.start_s
    assert b.promise.reason == "it was not started when its time came"
    assert starts(plan)["c"] == 5.0  # what is told to others stays, if it can


def test_a_job_that_is_deleted_moves_nobody_else() -> None:
    plan = again([JOBS[0], JOBS[2]], 1.0, {"a": Running(since_s=0.0)})
    assert starts(plan) == {"a": 1.0, "c": 5.0}  # earlier would do, but it was told 5 h


def test_a_new_job_takes_what_is_free_and_gets_a_promise() -> None:
    plan = again([*JOBS, job("new", 4, 1.0, deadline_s=40.0 * H)], 1.0, {"a": Running(since_s=0.0)})
    assert starts(plan) == {"a": 1.0, "b": 3.0, "c": 5.0, "new": 7.0}
    assert plan.by_name["new"].promise.given_s == 1.0 * H


def test_for_a_deadline_a_promise_moves_after_an_hour_and_not_before() -> None:
    hurry = job("hurry", 4, 2.0, deadline_s=6.0 * H)
    running = {"a": Running(since_s=0.0)}
    early, late = (again([*JOBS, hurry], at_h, running) for at_h in (0.5, 1.0))
    assert not early.by_name["hurry"].in_time
    assert late.by_name["hurry"].in_time
    assert all(one.in_time for one in late.jobs)
    moved = [one for one in late.jobs if one.promise.moved_s is not None]
    assert [one.promise.reason for one in moved] == ["a deadline would be missed otherwise"] * len(moved)
    assert 1 <= len(moved) <= 2


def test_a_deadline_that_was_missed_before_moves_nobody() -> None:
    jobs = [*JOBS, job("late", 4, 2.0, deadline_s=2.0 * H)]
    plan = promised(plan_batch(jobs, [hollow()], at_s=0.0, effort=Effort(reinsertions=0, models=0)))
    missed = [one.job.name for one in plan.missed]
    begun = {one.job.name: Running(since_s=0.0) for one in plan.jobs if one.place.start_s == 0}
    after = again(jobs, 1.5, begun, plan=plan)
    assert [one.job.name for one in after.missed] == missed
    assert all(one.promise.moved_s is None for one in after.jobs if one.job.name not in begun)


def test_a_changed_job_is_planned_anew() -> None:
    longer = job("b", 4, 4.0, deadline_s=20.0 * H)
    plan = again([JOBS[0], longer, JOBS[2]], 1.0, {"a": Running(since_s=0.0)})
    assert plan.by_name["c"].place.start_s == 5 * H
    assert plan.by_name["b"].place.start_s == 7 * H
    assert plan.by_name["b"].promise.reason == "the job changed"


def test_nodes_that_are_gone_break_what_stood_on_them() -> None:
    two = promised(plan_batch(JOBS[1:], [hollow(2)], at_s=0.0))
    plan = replanned(two, JOBS[1:], [hollow(1)], at_s=0.0, running={})
    assert sorted(starts(plan).values()) == [0, 2]
    assert sum(one.promise.reason == "its GPUs are not free then any more" for one in plan.jobs) == 1


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(problem=problems(), hour=st.integers(0, 30), newcomers=st.integers(0, 3), data=st.data())
def test_promises_hold_whatever_comes(problem, hour, newcomers, data) -> None:
    jobs, hollows = problem
    plan = promised(plan_batch(jobs, hollows, at_s=0.0, effort=QUICK))
    at_s = float(hour * H)
    running = {
        one.job.name: Running(since_s=one.place.start_s)
        for one in plan.jobs
        if one.place is not None and one.place.start_s <= at_s < one.place.runs[0].end_s
    }
    over = {one.job.name for one in plan.jobs if one.place is not None and one.place.start_s < at_s} - set(running)
    left = [one for one in jobs if one.name not in over]
    more = [
        job(f"new-{k}", data.draw(st.integers(1, 4)), 1.0, earliest_start_s=at_s, deadline_s=at_s + 9.0 * H)
        for k in range(newcomers)
    ]
    after = replanned(plan, [*left, *more], hollows, at_s=at_s, running=running)
    for one in after.jobs:
        before = plan.by_name.get(one.job.name)
        if one.job.name in running:
            assert one.place.runs[-1].end_s == before.place.finish_s
        elif before is not None and before.promise is not None and one.promise.moved_s is None:
            assert one.place.start_s == before.place.start_s
        elif before is not None and before.promise is not None:
            assert one.promise.reason
            assert hour >= 1
    assert np.isfinite(after.value_usd)
