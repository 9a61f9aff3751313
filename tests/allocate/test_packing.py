"""Packing onto whole nodes: counts against exhaustive search, prices against every pattern."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ebbtide.allocate.fit import do_not_fit, pack
from ebbtide.allocate.packing import NodeShape, first_fit, free_units, node_shape
from ebbtide.allocate.packing_bound import dearest_node, packing_prices
from ebbtide.allocate.packing_table import packing_table, tabled_widths


@cache
def fewest_by_search(node: int, items: tuple[int, ...]) -> int:
    """Nodes for narrow items: the widest goes into the first node, with every set of others that fits beside it."""
    if not items:
        return 0
    first, others = items[0], items[1:]
    best = len(items)
    for size in range(len(others) + 1):
        for beside in set(itertools.combinations(others, size)):
            if first + sum(beside) <= node:
                left = list(others)
                for item in beside:
                    left.remove(item)
                best = min(best, 1 + fewest_by_search(node, tuple(left)))
    return best


def expected_nodes(node: int, widths: list[int], replicas: list[int]) -> int:
    whole = sum(-(-width // node) * count for width, count in zip(widths, replicas, strict=True) if width >= node)
    narrow = [width for width, count in zip(widths, replicas, strict=True) if width < node for _ in range(count)]
    return whole + fewest_by_search(node, tuple(sorted(narrow, reverse=True)))


fleets = st.integers(3, 9).flatmap(
    lambda node: st.tuples(
        st.just(node),
        st.lists(st.tuples(st.integers(1, node + 3), st.integers(0, 3)), min_size=1, max_size=4),
    )
)


@settings(max_examples=60)
@given(st.integers(4, 9), st.lists(st.integers(2, 8), min_size=2, max_size=3, unique=True), st.integers(1, 4))
def test_the_table_holds_the_fewest_nodes_of_every_mix(node: int, widths: list[int], limit: int) -> None:
    shape = node_shape(node, widths)
    tabled = tabled_widths(shape)
    if shape.perfect or not tabled:
        return
    table = packing_table(shape, np.full(len(widths), 3), limit)
    assert table is not None
    for counts in itertools.product(*(range(most + 1) for most in table.most.tolist())):
        items = tuple(width for width, count in zip(tabled, counts, strict=True) for _ in range(count))
        fewest = fewest_by_search(shape.node_units, items)
        assert table.fewest(np.array(counts)) == min(fewest, limit + 1)


def test_a_table_that_would_be_too_large_is_none() -> None:
    shape = node_shape(72, [2, 3, 5, 7, 11])
    assert packing_table(shape, np.full(5, 1000), 40) is None
    assert packing_table(shape, np.full(5, 1), 40) is not None


@pytest.mark.parametrize("tabled", [True, False])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fleet=fleets, nodes=st.integers(0, 5))
def test_what_does_not_fit_needs_more_nodes(
    fleet: tuple[int, list[tuple[int, int]]], nodes: int, *, tabled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, rows = fleet
    widths, replicas = [width for width, _ in rows], [count for _, count in rows]
    fewer = [max(count - 1, 0) for count in replicas]
    with monkeypatch.context() as patch:
        if not tabled:
            patch.setattr("ebbtide.allocate.fit.packing_table", lambda *_, **__: None)
        over = do_not_fit(node_shape(node, widths), np.array([replicas, fewer]).T, nodes)
    assert over.tolist() == [expected_nodes(node, widths, counts) > nodes for counts in (replicas, fewer)]


@pytest.mark.parametrize("tabled", [True, False])
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fleet=fleets)
def test_pack_takes_the_fewest_nodes(
    fleet: tuple[int, list[tuple[int, int]]], *, tabled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, rows = fleet
    widths, replicas = [width for width, _ in rows], [count for _, count in rows]
    shape = node_shape(node, widths)
    with monkeypatch.context() as patch:
        if not tabled:
            patch.setattr("ebbtide.allocate.fit.packing_table", lambda *_, **__: None)
        packed = pack(shape, np.array(replicas))
    assert packed.nodes == expected_nodes(node, widths, replicas)
    assert packed.free.sum() == packed.nodes
    used = int((np.array(replicas) * shape.width_units).sum())
    assert used + int(packed.free @ np.arange(shape.node_units + 1)) == packed.nodes * shape.node_units


@settings(max_examples=150)
@given(fleets)
def test_first_fit_is_a_packing(fleet: tuple[int, list[tuple[int, int]]]) -> None:
    node, rows = fleet
    widths = sorted({width for width, _ in rows if width < node}, reverse=True) or [1]
    counts = [3] * len(widths)
    packed = first_fit(node, widths, counts)
    assert packed.nodes >= expected_nodes(node, widths, counts)
    free = int(packed.free @ np.arange(node + 1))
    assert packed.nodes * node - free == sum(width * 3 for width in widths)


def wide_gpus(shape: NodeShape) -> list[int]:
    return shape.width_gpus.tolist()


def test_wide_replicas_take_whole_nodes() -> None:
    shape = node_shape(8, [12, 16, 1])
    assert wide_gpus(shape) == [16, 16, 1]
    assert pack(shape, np.array([1, 2, 3])).nodes == 7


def test_replicas_that_leave_gpus_unused_pack_by_what_they_can_fill() -> None:
    shape = node_shape(8, [3])
    assert (shape.node_units, shape.perfect) == (2, True)
    assert pack(shape, np.array([5])).nodes == 3


@pytest.mark.parametrize("units", range(13))
def test_free_units_add_up(units: int) -> None:
    free = free_units(4, units)
    assert int(free @ np.arange(5)) == units


@settings(max_examples=100)
@given(
    st.integers(3, 12).flatmap(
        lambda node: st.tuples(
            st.just(node),
            st.lists(
                st.tuples(st.integers(1, node - 1), st.integers(0, 30)),
                min_size=1,
                max_size=4,
                unique_by=lambda r: r[0],
            ),
        )
    )
)
def test_prices_never_ask_more_than_a_node_of_any_pattern(fleet: tuple[int, list[tuple[int, int]]]) -> None:
    node, rows = fleet
    widths, mix = [width for width, _ in rows], np.array([count for _, count in rows])
    for prices in packing_prices(node, widths, [mix]):
        assert dearest_node(node, widths, prices) <= 1.0 + 1e-12
        for pattern in itertools.product(*[range(node // width + 1) for width in widths]):
            if sum(count * width for count, width in zip(pattern, widths, strict=True)) <= node:
                assert float(prices @ np.array(pattern)) <= 1.0 + 1e-9


def test_prices_see_what_volume_does_not() -> None:
    # Replicas of 5 GPUs stand alone on a node of 8: forty of them take forty nodes, not 25.
    prices = packing_prices(8, [5], [np.array([40])])
    assert max(float(one @ np.array([40])) for one in prices) == pytest.approx(40.0)
