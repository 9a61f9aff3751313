"""Sums of some of the series are found whatever they are called; noise is never taken for one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.adapters.demand.grid import Grid
from ebbtide.adapters.demand.subset_sums import MOST_SERIES, subset_sums
from ebbtide.adapters.demand.sums import find_sums

SEEDS = st.integers(0, 2**32 - 1)


def services(rng: np.random.Generator, count: int, intervals: int, decimals: int) -> np.ndarray:
    """Rates of services that share a day's wave, from small to large, rounded."""
    wave = 2.0 + np.sin(np.linspace(0.0, 12.0, intervals))
    size = 10.0 ** rng.uniform(0.0, 3.0, (count, 1))
    return np.round(size * (wave + rng.uniform(-0.5, 0.5, (count, intervals))), decimals)


@settings(max_examples=150)
@given(seed=SEEDS, count=st.integers(3, 40), decimals=st.integers(2, 6), data=st.data())
def test_sums_of_random_subsets_are_found(seed: int, count: int, decimals: int, data: st.DataObject) -> None:
    rng = np.random.default_rng(seed)
    value = services(rng, count, 200, 9)
    subset = st.lists(st.integers(0, count - 1), min_size=2, max_size=count, unique=True)
    wanted = data.draw(st.lists(subset, min_size=1, max_size=3, unique_by=lambda one: tuple(sorted(one))))
    added = np.vstack([value[one].sum(axis=0) for one in wanted])
    everything = np.round(np.vstack([value, added]), decimals)
    mixed = rng.permutation(len(everything))
    found = subset_sums(everything[mixed], 0.5 * 10.0**-decimals)
    assert set(mixed[found].tolist()) == set(range(count, len(everything)))


@settings(max_examples=150)
@given(
    seed=SEEDS, count=st.integers(3, 60), intervals=st.integers(50, 300), decimals=st.integers(0, 6), kind=st.booleans()
)
def test_independent_series_are_no_sums(seed: int, count: int, intervals: int, decimals: int, kind: bool) -> None:
    rng = np.random.default_rng(seed)
    value = (
        services(rng, count, intervals, decimals)
        if kind
        else rng.poisson(rng.uniform(0.0, 9.0, (count, 1)), (count, intervals)) * 1.0
    )
    assert not subset_sums(value, 0.5 * 10.0**-decimals).any()


def test_series_of_one_shape_are_no_sums() -> None:
    """Multiples of one wave add up to each other in many ways: nothing tells which, so none is called a sum."""
    wave = 2.0 + np.sin(np.linspace(0.0, 40.0, 400))
    sizes = np.arange(1.0, 9.0)[:, None]
    for decimals in (0, 1, 3, 9):
        value = np.round(100.0 * sizes * wave, decimals)
        assert not subset_sums(value, 0.5 * 10.0**-decimals).any()


def test_services_below_the_rounding_do_not_hide_a_sum() -> None:
    rng = np.random.default_rng(7)
    value = services(rng, 8, 300, 3)
    tiny = np.round(rng.uniform(0.0, 0.0015, (5, 300)), 3)
    everything = np.vstack([tiny, value, np.round(value[[1, 4, 6]].sum(axis=0), 3)])
    assert np.flatnonzero(subset_sums(everything, 0.0005)).tolist() == [13]


def test_gaps_of_the_parts_and_of_the_sum_do_not_hide_it() -> None:
    rng = np.random.default_rng(3)
    value = services(rng, 8, 300, 3)
    whole = np.round(value[[1, 4, 6]].sum(axis=0), 3)
    everything = np.vstack([value, whole])
    everything[rng.uniform(size=everything.shape) < 0.05] = np.nan
    assert np.flatnonzero(subset_sums(everything, 0.0005)).tolist() == [8]


@pytest.mark.parametrize(("intervals", "found"), [(45, []), (70, [5])])
def test_fifty_intervals_that_move_are_needed(intervals: int, found: list[int]) -> None:
    value = services(np.random.default_rng(4), 5, intervals, 3)
    everything = np.vstack([value, value[1] + value[3]])
    assert np.flatnonzero(subset_sums(everything, 0.0005)).tolist() == found
    still = np.concatenate([everything, np.repeat(everything[:, -1:], 200, axis=1)], axis=1)
    assert np.flatnonzero(subset_sums(still, 0.0005)).tolist() == found


def test_one_interval_that_differs_makes_it_no_sum() -> None:
    value = services(np.random.default_rng(5), 5, 200, 3)
    whole = value[1] + value[3]
    whole[100] += 0.01
    assert not subset_sums(np.vstack([value, whole]), 0.0005).any()


def test_a_subset_of_one_source_beside_sums_of_all(tmp_path: object) -> None:
    value = services(np.random.default_rng(6), 8, 200, 3)
    gpu, everything = value[[0, 3, 5]].sum(axis=0), value.sum(axis=0)
    keys = (*(f"svc-{k}" for k in range(8)), "gpu-all", "everything")
    grid = Grid(keys=keys, start_s=0, interval_s=600, value=np.vstack([value, gpu, everything]))
    assert [key for key, is_sum in zip(keys, find_sums(grid), strict=True) if is_sum] == ["gpu-all", "everything"]


def test_more_series_than_a_fleet_holds_are_not_searched() -> None:
    assert not subset_sums(np.ones((MOST_SERIES + 1, 60)), 0.5).any()
