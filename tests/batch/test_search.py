"""The search against independent optima, its bound, and that nothing it does breaks a rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, milp

from batchlab import H, broken_rules, crowded_nodes, hollow, job, problems, tide
from ebbtide.batch.bound import value_bound
from ebbtide.batch.fitting import best_of_rules
from ebbtide.batch.hollows import Hollow
from ebbtide.batch.instance import Instance, instance_of
from ebbtide.batch.neighbourhoods import Effort, improved
from ebbtide.batch.search import bound_of, plan_batch, searched

SMALL = Effort(reinsertions=60, models=0)
COMMON = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])


@COMMON
@given(problem=problems(), seed=st.integers(0, 3))
def test_the_search_breaks_no_rule_is_no_worse_and_stays_below_its_bound(problem, seed) -> None:
    instance = instance_of(*problem, at_s=0.0)
    _, begun = best_of_rules(instance)
    found = improved(begun, seed=seed, effort=SMALL)
    assert [*broken_rules(found), *crowded_nodes(found)] == []
    assert found.score >= begun.score
    assert found.score.value_usd <= value_bound(instance) + 1e-6
    assert bound_of(found).gap >= 0


@settings(COMMON, max_examples=15)
@given(problem=problems())
def test_an_answer_of_cp_sat_is_put_on_nodes_by_the_rules(problem) -> None:
    _, begun = best_of_rules(instance_of(*problem, at_s=0.0))
    found = improved(begun, seed=1, effort=Effort(reinsertions=121, models=1))
    assert [*broken_rules(found), *crowded_nodes(found)] == []
    assert found.score >= begun.score


def random_instance(seed: int) -> Instance:
    """A handful of jobs of one pod on two nodes that are always there and one that comes and goes, hour by hour."""
    rng = np.random.default_rng(seed)
    jobs = []
    for number in range(9):
        start, hours = int(rng.integers(0, 8)), int(rng.integers(1, 6))
        jobs.append(
            job(
                f"j{number}",
                int(rng.integers(1, 5)),
                hours,
                earliest_start_s=float(start * H),
                deadline_s=float(min(start + hours + int(rng.integers(0, 5)), 14) * H),
                value_usd=float(rng.integers(1, 20)),
            )
        )
    hollows = [hollow(1, 4, until_h=14), tide([(0, 1), (int(rng.integers(3, 7)), 0), (9, 1)], until_h=14)]
    return instance_of(jobs, hollows, at_s=0.0)


def best_value(instance: Instance) -> float:
    """The optimum by a time-indexed integer program on nodes: an oracle that shares nothing with the scheduler."""
    nodes = [(one, number) for one in instance.hollows for number in range(one.most_nodes)]
    columns = []
    for index, one in enumerate(instance.jobs):
        hours = round(one.duration.expected_s / H)
        for node, (held, number) in enumerate(nodes):
            for start in range(14):
                inside = start * H >= one.earliest_start_s and (start + hours) * H <= (one.deadline_s or 14 * H)
                there = any(a <= start * H and (start + hours) * H <= b for a, b in held.stays(number))
                if inside and there:
                    columns.append((index, node, start, hours))
    rows = np.zeros((len(instance.jobs) + len(nodes) * 14, len(columns)))
    for place, (index, node, start, hours) in enumerate(columns):
        rows[index, place] = 1
        for hour in range(start, start + hours):
            rows[len(instance.jobs) + node * 14 + hour, place] = instance.jobs[index].gpus
    limits = np.concatenate([np.ones(len(instance.jobs)), np.full(len(nodes) * 14, 4)])
    values = np.array([instance.jobs[index].value_usd for index, *_ in columns])
    found = milp(-values, constraints=LinearConstraint(rows, -np.inf, limits), integrality=np.ones(len(columns)))
    return -float(found.fun)


@pytest.mark.parametrize("seed", range(12))
def test_small_problems_are_solved_to_the_optimum(seed: int) -> None:
    instance = random_instance(seed)
    best = best_value(instance)
    _, found = searched(instance, seed=1, effort=Effort(reinsertions=600, models=2))
    assert found.score.value_usd == pytest.approx(best)
    assert value_bound(instance) >= best - 1e-6


def test_the_bound_tells_an_overload() -> None:
    jobs = [job(f"j{k}", 4, 4.0, deadline_s=8.0 * H, value_usd=float(k)) for k in range(1, 7)]
    instance = instance_of(jobs, [hollow(1, 4)], at_s=0.0)
    assert value_bound(instance) == pytest.approx(11.0)  # two of them fit, the dearest are worth 5 and 6
    _, found = searched(instance, seed=1)
    assert bound_of(found).gap == pytest.approx(0.0, abs=1e-9)


def test_the_bound_knows_that_the_tide_turns() -> None:
    night = Hollow(
        pool="h100", tenure="ephemeral", gpus_per_node=4, edges_s=(0.0, 6.0 * H, 20.0 * H, 24.0 * H), nodes=(1, 0, 1)
    )
    jobs = [job("long", 4, 7.0, value_usd=5.0), job("short", 4, 4.0, value_usd=1.0)]
    instance = instance_of(jobs, [night], at_s=0.0)
    assert value_bound(instance) == pytest.approx(1.0)


def test_the_same_seed_the_same_plan() -> None:
    instance = random_instance(3)
    plans = [plan_batch(instance.jobs, instance.hollows, at_s=0.0, seed=seed, effort=SMALL) for seed in (5, 5)]
    assert plans[0] == plans[1]


def test_a_deadline_that_every_rule_misses_is_found() -> None:
    # Two wide jobs and four narrow ones fill eight hours of one node exactly, in one way up to symmetry.
    jobs = [job("a", 4, 3.0), job("b", 4, 1.0), *(job(f"n{k}", 2, 2.0) for k in range(4))]
    due = [job(one.name, one.gpus, one.duration.expected_s / H, deadline_s=8.0 * H, value_usd=1.0) for one in jobs]
    _, found = searched(instance_of(due, [hollow(1, 4)], at_s=0.0), seed=1)
    assert found.in_time.all()
