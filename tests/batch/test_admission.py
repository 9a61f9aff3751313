"""The door: who may start on ephemeral nodes, and what is due (§7.4)."""

from __future__ import annotations

import pytest

from batchlab import H, hollow, job, tide
from ebbtide.batch.admission import Gang, Held, Verdict, Why, admit, due, may_start, next_due_s
from ebbtide.batch.durations import Duration
from ebbtide.batch.search import plan_batch

NIGHT = tide([(0, 4), (6, 1), (20, 4)], gpus=8)


def gang(pods: int = 1, hours: float | None = 2.0, *, preemptible: bool = False) -> Gang:
    duration = None if hours is None else Duration(expected_s=hours * H / 1.3, p90_s=hours * H)
    return Gang(name="g", pods=pods, gpus_per_pod=8, duration=duration, preemptible=preemptible)


@pytest.mark.parametrize(
    ("one", "at_h", "held", "why"),
    [
        (gang(2, 5.9), 0, (), Why.ENDS_IN_TIME),
        (gang(2, 6.1), 0, (), Why.TIDE_TURNS_FIRST),
        (gang(1, 12), 0, (), Why.ENDS_IN_TIME),  # one node stays
        (gang(1, 12), 0, (Held(nodes=1, until_s=7 * H),), Why.TIDE_TURNS_FIRST),  # and is spoken for
        (gang(1, 12), 0, (Held(nodes=1, until_s=6 * H),), Why.ENDS_IN_TIME),  # until the turn only
        (gang(2, 6.1, preemptible=True), 0, (), Why.PREEMPTIBLE),
        (gang(2, None), 0, (), Why.UNKNOWN_DURATION),
        (gang(2, None, preemptible=True), 0, (), Why.PREEMPTIBLE),
        (gang(2, 1), 8, (), Why.NO_NODES),
        (gang(5, 1, preemptible=True), 0, (), Why.NO_NODES),
    ],
)
def test_the_answer_without_a_plan(one: Gang, at_h: float, held: tuple[Held, ...], why: Why) -> None:
    answer = may_start(one, NIGHT, at_s=at_h * H, held=held)
    assert answer.why is why
    ready = why in (Why.ENDS_IN_TIME, Why.PREEMPTIBLE)
    assert answer.verdict is (Verdict.READY if ready else Verdict.RETRY)


def test_a_retry_says_when_nodes_come() -> None:
    assert may_start(gang(2, 7), NIGHT, at_s=0.0).retry_s == 20 * H


def test_what_is_planned_starts_when_its_time_has_come() -> None:
    plan = plan_batch([job(name, 2, 3.0) for name in "abcd"] + [job("wide", 9)], [hollow(1, 4)], at_s=0.0)
    assert [one.job.name for one in due(plan, at_s=0.0)] == ["a", "b"]
    assert [one.job.name for one in due(plan, at_s=3.0 * H, started=("a",))] == ["b", "c", "d"]
    assert next_due_s(plan, at_s=0.0) == 3 * H
    assert next_due_s(plan, at_s=3.0 * H) is None
    early, late, never = (admit(name, plan, at_s=0.0) for name in ("a", "c", "wide"))
    assert (early.why, late.why, late.retry_s, never.why) == (Why.DUE, Why.NOT_DUE, 3 * H, Why.NO_PLACE)
    assert admit("stranger", plan, at_s=0.0) is None
