"""Jobs in virtual time: nothing is overfull or done twice, Kueue's orders as they are, the tide, ebbtide's door."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchlab import H, hollow, job, tide
from ebbtide.batch.durations import Duration
from ebbtide.batch.hollows import Hollow
from ebbtide.simulate.job_policies import (
    Door,
    InOrder,
    Tolerates,
    earliest_deadline,
    first_come,
    least_slack,
)
from ebbtide.simulate.jobs import Ending, JobPolicy, Real, simulated_jobs

STRICT = InOrder(order=first_come, tolerates=Tolerates.ALL, blocking=True)
BEST_EFFORT = InOrder(order=first_come, tolerates=Tolerates.ALL)
TAINT = InOrder(order=first_come, tolerates=Tolerates.PREEMPTIBLE)
EDF = InOrder(order=earliest_deadline, tolerates=Tolerates.ENDING)
SLACK = InOrder(order=least_slack, tolerates=Tolerates.ENDING)
POLICIES: list[Callable[[], JobPolicy]] = [lambda: STRICT, lambda: BEST_EFFORT, lambda: TAINT, lambda: EDF, Door]


def real(name: str, gpus: int, hours: float, come_h: float = 0.0, due_h: float | None = None, **rest: object) -> Real:
    """A job that runs as long as it is expected to."""
    deadline_s = None if due_h is None else due_h * H
    one = job(name, gpus, hours, earliest_start_s=come_h * H, deadline_s=deadline_s, value_usd=1.0, **rest)
    return Real(job=one, lasts_s=hours * H)


def ends_h(real: list[Real], hollows: list[Hollow], policy: JobPolicy) -> dict[str, float | None]:
    found = simulated_jobs(real, hollows, policy)
    return {one.job.name: None if one.end_s is None else one.end_s / H for one in found}


def test_in_strict_fifo_the_head_blocks_what_would_fit() -> None:
    queue = [real("a", 2, 4), real("wide", 4, 1, 0.5), real("small", 2, 1, 1)]
    assert ends_h(queue, [hollow()], STRICT) == {"a": 4, "wide": 5, "small": 6}
    assert ends_h(queue, [hollow()], BEST_EFFORT) == {"a": 4, "wide": 5, "small": 2}


def test_edf_and_least_slack_disagree_where_the_later_deadline_is_the_tighter() -> None:
    queue = [real("first", 4, 1), real("soon", 4, 1, 0.5, 9), real("long", 4, 7, 0.5, 10)]
    assert ends_h(queue, [hollow()], EDF) == {"first": 1, "soon": 2, "long": 9}
    assert ends_h(queue, [hollow()], SLACK) == {"first": 1, "long": 8, "soon": 9}


def test_the_tide_stops_what_stands_there_and_a_checkpoint_keeps_its_part() -> None:
    night = tide([(0, 1), (3, 0), (6, 1)])
    kept = real("kept", 2, 4, checkpoint_interval_s=2.0 * H)
    lost = real("lost", 2, 4)
    one, other = simulated_jobs([kept, lost], [night], BEST_EFFORT)
    assert (one.end_s, one.wasted_gpu_s) == (8 * H, 2 * H)  # two hours were kept, one on two GPUs is lost
    assert (other.end_s, other.wasted_gpu_s) == (10 * H, 6 * H)


def test_a_taint_keeps_off_what_must_not_be_interrupted_and_a_check_lets_in_what_ends_in_time() -> None:
    night = tide([(0, 1), (3, 0), (24, 1)])
    queue = [real("short", 2, 2), real("long", 2, 4)]
    assert ends_h(queue, [night], TAINT) == {"short": None, "long": None}
    assert ends_h(queue, [night], EDF) == {"short": 2, "long": 28}


def test_four_jobs_on_four_gpus_are_all_in_time_by_the_door() -> None:
    queue = [real(f"j{k}", 2, 2, 0, 4.2) for k in range(4)]
    policy = Door()
    found = simulated_jobs(queue, [hollow()], policy)
    assert [one.in_time for one in found] == [True] * 4
    assert {name: one.start_s for name, one in policy.promises.items()} == {
        one.job.name: one.stays[0].start_s for one in found
    }


def test_the_door_holds_a_wide_urgent_job_its_place_where_best_effort_gives_it_away() -> None:
    """At 1 h two GPUs are free; the small long job behind would take them until after the wide one's deadline."""
    queue = [real("a", 2, 2), real("wide", 4, 2, 0.5, 5), real("small", 2, 6, 0.75, 40)]
    reserved = [hollow()]
    assert ends_h(queue, reserved, BEST_EFFORT)["wide"] == pytest.approx(8.75)
    assert ends_h(queue, reserved, Door()) == {"a": 2, "wide": 4, "small": 10}


def test_a_job_that_runs_long_moves_who_waits_for_it_and_nobody_is_stopped() -> None:
    long = job("long", 4, duration=Duration(expected_s=1.0 * H, p90_s=1.3 * H))
    found = simulated_jobs([Real(job=long, lasts_s=5.0 * H), real("next", 4, 1, 0.5, 9)], [hollow()], Door())
    assert [(one.end_s, one.wasted_gpu_s) for one in found] == [(5 * H, 0), (6 * H, 0)]


def test_the_door_does_not_take_the_end_of_the_simulation_for_the_end_of_the_world() -> None:
    shorter = job("a", 2, duration=Duration.usual(3.0 * H), earliest_start_s=46.0 * H)
    (found,) = simulated_jobs([Real(job=shorter, lasts_s=1.0 * H)], [hollow(until_h=48.0)], Door())
    assert found.end_s == 47 * H


def test_predecessors_are_refused() -> None:
    with pytest.raises(ValueError, match="predecessors"):
        simulated_jobs([real("a", 1, 1), real("b", 1, 1, after=("a",))], [hollow()], STRICT)


@st.composite
def draws(draw: st.DrawFn) -> tuple[list[Real], list[Hollow]]:
    hours = sorted(draw(st.sets(st.integers(1, 40), max_size=5)))
    counts = draw(st.lists(st.integers(0, 3), min_size=len(hours) + 1, max_size=len(hours) + 1))
    hollows = [tide(list(zip([0, *hours], counts, strict=True)), pool="tide"), hollow(draw(st.integers(1, 2)))]
    jobs = []
    for number in range(draw(st.integers(1, 8))):
        one = job(
            f"job-{number}",
            draw(st.integers(1, 4)),
            duration=Duration.usual(draw(st.sampled_from([0.5, 3.0, 9.0])) * H),
            pods=draw(st.integers(1, 3)),
            earliest_start_s=float(draw(st.integers(0, 20)) * H),
            deadline_s=draw(st.none() | st.integers(1, 48).map(lambda hour: float(hour * H))),
            value_usd=1.0,
            checkpoint_interval_s=draw(st.none() | st.just(1800.0)),
        )
        jobs.append(Real(job=one, lasts_s=float(draw(st.integers(600, 50_000)))))
    return jobs, hollows


@settings(max_examples=25, deadline=None)
@given(draws(), st.sampled_from(POLICIES))
def test_nothing_is_overfull_lost_or_done_twice(
    problem: tuple[list[Real], list[Hollow]], make: Callable[[], JobPolicy]
) -> None:
    real, hollows = problem
    found = simulated_jobs(real, hollows, make())
    assert overfull(found, hollows) == []
    for one, ending in zip(real, found, strict=True):
        done = sum(stay.kept_s for stay in ending.stays)
        assert ending.job == one.job
        assert done == one.lasts_s if ending.end_s is not None else done < one.lasts_s
        assert all(stay.start_s >= one.job.earliest_start_s for stay in ending.stays)
        assert all(a.end_s <= b.start_s for a, b in pairwise(ending.stays))
        assert all(sum(pods for _, pods in stay.nodes) == one.job.pods for stay in ending.stays)


def overfull(found: list[Ending], hollows: list[Hollow]) -> list[str]:
    """Nodes that hold more than they have, or that are away."""
    uses = [
        (stay, node, pods * one.job.gpus_per_pod) for one in found for stay in one.stays for node, pods in stay.nodes
    ]
    wrong = []
    for stay, node, _ in uses:
        own = hollows[stay.hollow]
        if not any(start <= stay.start_s and stay.end_s <= end for start, end in own.stays(node)):
            wrong.append(f"node {node} is away")
        at_once = sum(
            gpus
            for other, where, gpus in uses
            if (other.hollow, where) == (stay.hollow, node) and other.start_s <= stay.start_s < other.end_s
        )
        if at_once > own.gpus_per_node:
            wrong.append(f"node {node} is overfull")
    return wrong
