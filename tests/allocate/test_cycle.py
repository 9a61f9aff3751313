"""The cycle's program against enumeration, on tables too small for it, and on sizes where only bounds can tell."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from whenever import Time

from ebbtide.allocate.cycle import CycleProblem, solve_cycle
from ebbtide.allocate.moves import Timeline, timeline_of
from ebbtide.fleet.horizon import WEEK, DayPattern, Weekday, windows_of

DAYS = {
    1: (WEEK,),
    2: (WEEK[:5], WEEK[5:]),
    3: ((WEEK[0], WEEK[2], WEEK[4]), (WEEK[1], WEEK[3]), WEEK[5:]),
}


def timeline(patterns: tuple[tuple[Weekday, ...], ...], windows: list[int]) -> Timeline:
    every = []
    for days, count in zip(patterns, windows, strict=True):
        starts = tuple(Time(*divmod(1440 // count * k, 60)) for k in range(count))
        every += windows_of(DayPattern(days=tuple(days), starts=starts))
    return timeline_of(every)


@st.composite
def cycles(draw: st.DrawFn) -> CycleProblem:
    patterns = DAYS[draw(st.integers(1, 3))]
    most = {1: 5, 2: 3, 3: 2}[len(patterns)]
    counts = draw(st.lists(st.integers(1, most), min_size=len(patterns), max_size=len(patterns)))
    order = timeline(patterns, counts)
    top = draw(st.integers(0, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    costs = rng.integers(0, 20, (len(order.windows), top + 1)).astype(float)
    costs[:, :top][rng.random((len(costs), top)) < 0.15] = np.inf
    return CycleProblem(timeline=order, costs_usd=costs, move_usd=float(draw(st.integers(0, 3))))


def best_of_all(problem: CycleProblem) -> tuple[float, float]:
    """Least objective, and the fewest node-hours among those that reach it."""
    hours = problem.timeline.hours_per_cycle
    counts = range(problem.costs_usd.shape[1])
    return min(
        (problem.objective_usd(nodes), sum(h * m for h, m in zip(hours, nodes, strict=True)))
        for nodes in itertools.product(counts, repeat=len(hours))
    )


@settings(max_examples=120)
@given(problem=cycles())
def test_the_cycle_is_the_least_of_all_and_ties_go_to_fewer_nodes(problem: CycleProblem) -> None:
    least, fewest = best_of_all(problem)
    answer = solve_cycle(problem)
    assert answer.objective_usd == pytest.approx(least)
    assert answer.lower_bound_usd == answer.objective_usd
    hours = problem.timeline.hours_per_cycle
    assert sum(h * m for h, m in zip(hours, answer.nodes, strict=True)) == pytest.approx(fewest)


@settings(max_examples=60)
@given(problem=cycles())
def test_with_tables_too_small_the_bound_still_holds(problem: CycleProblem) -> None:
    least, _ = best_of_all(problem)
    answer = solve_cycle(problem, table_cells=1)
    assert answer.lower_bound_usd <= least + 1e-9
    assert answer.objective_usd >= least - 1e-9


def wave(order: Timeline, top: int, seed: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    rng = np.random.default_rng(seed)
    count = len(order.windows)
    need = top * (0.5 + 0.4 * np.sin(np.arange(count) / count * 2 * np.pi)) + rng.normal(0, top / 100, count)
    nodes = np.arange(top + 1)
    spare = np.maximum(nodes - need[:, None], 0.0)
    costs = np.array(order.hours_per_cycle)[:, None] * (8.0 * nodes + 300.0 / (1.0 + spare))
    return np.where(nodes < need[:, None], np.inf, costs)


@pytest.mark.parametrize("patterns", [1, 2])
def test_large_cycles_are_solved_exactly(patterns: int) -> None:
    order = timeline(DAYS[patterns], [24] * patterns)
    answer = solve_cycle(CycleProblem(timeline=order, costs_usd=wave(order, 400, 3), move_usd=8.0))
    assert answer.lower_bound_usd == answer.objective_usd


def test_three_patterns_on_many_nodes_state_a_small_gap_or_none() -> None:
    order = timeline(DAYS[3], [8] * 3)
    answer = solve_cycle(CycleProblem(timeline=order, costs_usd=wave(order, 300, 4), move_usd=8.0), table_cells=400)
    assert 0 <= answer.objective_usd - answer.lower_bound_usd <= 0.05 * answer.objective_usd


def test_nodes_do_not_move_for_less_than_the_move() -> None:
    order = timeline(DAYS[1], [4])
    costs = np.array([[0.0, 5.0], [3.0, 0.0], [0.0, 5.0], [0.0, 5.0]])
    assert solve_cycle(CycleProblem(timeline=order, costs_usd=costs, move_usd=2.0)).nodes == (0, 0, 0, 0)
    assert solve_cycle(CycleProblem(timeline=order, costs_usd=costs, move_usd=1.0)).nodes == (0, 1, 0, 0)


def test_a_window_without_any_count_is_refused() -> None:
    order = timeline(DAYS[1], [2])
    with pytest.raises(ValueError, match="no node count"):
        solve_cycle(CycleProblem(timeline=order, costs_usd=np.array([[1.0], [np.inf]]), move_usd=1.0))
