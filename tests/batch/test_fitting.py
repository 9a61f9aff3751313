"""Placing jobs one after the other: no rule is ever broken, and small cases come out as by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from batchlab import H, hollow, job, problems, tide
from ebbtide.batch.fitting import best_of_rules, place
from ebbtide.batch.hollows import Tenure
from ebbtide.batch.instance import instance_of
from ebbtide.batch.rules import RULES, order_of

COMMON = settings(deadline=None, max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])


@COMMON
@given(problem=problems(), rule=st.sampled_from(sorted(RULES)), thrift=st.booleans())
def test_no_placing_breaks_a_rule(problem, rule, thrift, judge) -> None:
    instance = instance_of(*problem, at_s=0.0)
    found = place(instance, order_of(instance, RULES[rule](instance)), thrift=thrift)
    assert judge(found) == []


@COMMON
@given(problem=problems())
def test_the_best_rule_is_no_worse_than_any(problem) -> None:
    instance = instance_of(*problem, at_s=0.0)
    _, best = best_of_rules(instance)
    for rule in RULES.values():
        assert best.score >= place(instance, order_of(instance, rule(instance))).score


def test_four_jobs_on_four_gpus_are_two_and_two(places) -> None:
    jobs = [job(name, 2, 3.0, deadline_s=8.0 * H) for name in "abcd"]
    _, found = best_of_rules(instance_of(jobs, [hollow(1, 4)], at_s=0.0))
    assert [places(found)[name].start_s / H for name in "abcd"] == [0, 0, 3, 3]
    assert found.in_time.all()


def test_a_pod_never_spans_nodes_and_a_gang_may(places) -> None:
    instance = instance_of([job("wide", 6), job("gang", 2, pods=4)], [hollow(2, 4)], at_s=0.0)
    found = places(place(instance, np.array([0, 1])))
    assert found["wide"] is None
    assert found["gang"].nodes == ((0, 2), (1, 2))


def test_what_must_not_be_interrupted_ends_before_the_tide_turns(places) -> None:
    night = tide([(0, 2), (6, 0), (20, 2)])
    instance = instance_of([job("long", 4, 7.0), job("short", 4, 6.0)], [night], at_s=0.0)
    found = places(place(instance, np.array([0, 1])))
    assert (found["short"].start_s, found["long"].start_s / H) == (0.0, 20)


def test_what_may_be_interrupted_goes_on_after_the_turn_and_loses_its_interval(places) -> None:
    night = tide([(0, 1), (6, 0), (20, 1)])
    one = job("train", 4, 10.0, checkpoint_interval_s=1800.0)
    found = places(place(instance_of([one], [night], at_s=0.0), np.array([0])))["train"]
    assert [(run.start_s / H, run.end_s / H) for run in found.runs] == [(0, 6), (20, 24.5)]


def test_reserved_nodes_are_left_free_where_it_makes_no_difference(places) -> None:
    hollows = [hollow(1, 4), tide([(0, 1)])]
    found = places(
        place(instance_of([job("a", 4, 2.0, checkpoint_interval_s=600.0)], hollows, at_s=0.0), np.array([0]))
    )
    assert found["a"].tenure is Tenure.EPHEMERAL


def test_predecessors_first_and_a_circle_is_refused(places) -> None:
    jobs = [job("eval", 4, 1.0, after=("train",), deadline_s=5.0 * H), job("train", 4, 3.0)]
    instance = instance_of(jobs, [hollow(1, 4)], at_s=0.0)
    _, found = best_of_rules(instance)
    assert (places(found)["train"].start_s / H, places(found)["eval"].start_s / H) == (0, 3)
    circle = instance_of([job("a", after=("b",)), job("b", after=("a",))], [hollow()], at_s=0.0)
    with pytest.raises(ValueError, match="circle"):
        best_of_rules(circle)


def test_a_wider_shape_only_where_the_narrow_one_is_late(places) -> None:
    from ebbtide.batch.job import Width

    wide = (Width(pods=2, speedup=1.5),)
    late = job("late", 4, 3.0, widths=wide, deadline_s=2.5 * H)
    calm = job("calm", 4, 3.0, widths=wide, deadline_s=9.0 * H)
    found = places(place(instance_of([late, calm], [hollow(2, 4)], at_s=0.0), np.array([0, 1])))
    assert (found["late"].pods, found["calm"].pods) == (2, 1)


def test_what_cannot_be_in_time_is_placed_after_all_others(places) -> None:
    jobs = [job("hopeless", 4, 5.0, deadline_s=4.0 * H), job("other", 4, 2.0, deadline_s=3.0 * H)]
    _, found = best_of_rules(instance_of(jobs, [hollow(1, 4)], at_s=0.0))
    assert (places(found)["other"].start_s / H, places(found)["hopeless"].start_s / H) == (0, 2)
    assert found.score.in_time == 1
