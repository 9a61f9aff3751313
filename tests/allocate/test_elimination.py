"""Variable elimination against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.allocate.elimination import L1Problem, l1_transform, minimise


@st.composite
def problems(draw: st.DrawFn) -> L1Problem:
    count = draw(st.integers(1, 5))
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=count, max_size=count)))
    lows = tuple(draw(st.lists(st.integers(0, 4), min_size=count, max_size=count)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tables = [((i,), rng.integers(0, 12, sizes[i]).astype(float)) for i in range(count)]
    if count > 1 and draw(st.booleans()):
        tables.append(((1, 0), rng.integers(0, 12, (sizes[1], sizes[0])).astype(float)))
    ends = st.integers(0, count - 1)
    edges = draw(st.lists(st.tuples(ends, ends, st.integers(0, 4).map(float)), max_size=8))
    return L1Problem(lows=lows, sizes=sizes, tables=tuple(tables), edges=tuple(edges))


def value(problem: L1Problem, at: tuple[int, ...]) -> float:
    tables = sum(table[tuple(at[i] - problem.lows[i] for i in scope)] for scope, table in problem.tables)
    return float(tables + sum(weight * abs(at[i] - at[j]) for i, j, weight in problem.edges))


@settings(max_examples=300)
@given(problem=problems(), kept_cells=st.sampled_from([2, 10**6]))
def test_elimination_finds_the_least_of_all_assignments(problem: L1Problem, kept_cells: int) -> None:
    domains = [range(low, low + size) for low, size in zip(problem.lows, problem.sizes, strict=True)]
    least = min(value(problem, at) for at in itertools.product(*domains))
    found = minimise(problem, kept_cells=kept_cells)
    assert found is not None
    assert found[1] == pytest.approx(least)
    assert value(problem, found[0]) == pytest.approx(least)


def test_tables_above_the_cap_are_refused_not_made() -> None:
    zeros = np.zeros(100)
    ring = L1Problem(
        lows=(0,) * 3,
        sizes=(100,) * 3,
        tables=tuple(((i,), zeros) for i in range(3)),
        edges=((0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0)),
    )
    assert minimise(ring, table_cells=9_999) is None
    assert minimise(ring, table_cells=10_000) is not None


@given(
    table=st.lists(st.integers(0, 30).map(float), min_size=1, max_size=9),
    weight=st.integers(0, 5).map(float),
    new_low=st.integers(-4, 12),
    new_size=st.integers(1, 9),
)
def test_the_distance_transform_is_the_least_over_all_origins(
    table: list[float], weight: float, new_low: int, new_size: int
) -> None:
    expected = [
        min(cost + weight * abs(x - y) for x, cost in enumerate(table)) for y in range(new_low, new_low + new_size)
    ]
    moved = l1_transform(np.array(table), weight, low=0, new_low=new_low, new_size=new_size)
    assert moved.tolist() == expected
