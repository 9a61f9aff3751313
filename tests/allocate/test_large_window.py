"""Large pools: the walk against the exact answer, and the proven bound below both."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.allocate.exact_window import solve_exactly
from ebbtide.allocate.fit import pack
from ebbtide.allocate.hull import hull_steps
from ebbtide.allocate.knapsack import Choices
from ebbtide.allocate.large_window import Base, solve_large
from ebbtide.allocate.packing import Packing, node_shape
from ebbtide.allocate.shortage import least_shortage

NODE_VALUE = 16.0  # 8 GPUs at 2 USD/h


def falling_curves(rng: np.random.Generator, widths: np.ndarray, length: int, *, short: bool) -> Choices:
    """Money like M/M/c above its floor: falling by halves; shortage S-shaped over the first half of the counts.

    Behind a shortage stands unserved load, falling in a line to the bend.
    """
    moneys, deficits = [], []
    for width in widths:
        decay = rng.uniform(0.3, 0.8)
        moneys.append(rng.uniform(1.0, 60.0) * float(width) * decay ** np.arange(length))
        bend = rng.uniform(2.0, length / 2)
        share = 1.0 / (1.0 + np.exp(2.0 * (np.arange(length) - bend)))
        deficit = np.rint(rng.uniform(0.5, 2.0) * 1e6 * share).astype(np.int64)
        unserved = 2.0**16 / len(widths) * np.maximum(0.0, 1.0 - np.arange(length) / bend)
        deficit = deficit * 2**17 + unserved.astype(np.int64)
        deficit[int(bend) + 3 :] = 0
        deficits.append(deficit if short else np.zeros(length, dtype=np.int64))
    return Choices(
        width=widths,
        start=np.arange(len(widths)) * length,
        length=np.full(len(widths), length),
        deficit=np.concatenate(deficits),
        money=np.concatenate(moneys),
    )


def objective(money: np.ndarray) -> np.ndarray:
    return np.arange(len(money)) * NODE_VALUE + money


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("nodes", "workloads"), [(200, 80), (500, 150)])
def test_dividing_widths_stay_within_a_twentieth_of_a_percent(seed: int, nodes: int, workloads: int) -> None:
    rng = np.random.default_rng(seed)
    shape = node_shape(8, rng.choice([1, 2, 4, 8], workloads).tolist())
    low = np.maximum(1, (0.7 * nodes * shape.node_units / workloads / shape.width_units).astype(np.int64))
    choices = falling_curves(rng, shape.width_units, 12, short=False)
    packed = pack(shape, low)
    large = solve_large(shape, choices, Base(low=low, packed=packed), nodes, node_value=NODE_VALUE)
    exact = solve_exactly(shape, choices, low, nodes)
    assert exact is not None
    assert large.needed_nodes == exact.needed_nodes
    assert (large.bound <= exact.money * (1 + 1e-12)).all()
    assert (exact.money <= large.money * (1 + 1e-12)).all()
    assert 1.0 - objective(large.bound).min() / objective(large.money).min() <= 0.0005


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("widths", [(3, 5, 6), (2, 3, 5, 7), (1, 3, 6, 16)])
def test_other_widths_stay_within_half_a_percent_of_the_pattern_bound(seed: int, widths: tuple[int, ...]) -> None:
    rng = np.random.default_rng(seed)
    nodes, workloads = 120, 40
    shape = node_shape(8, rng.choice(widths, workloads).tolist())
    low = np.maximum(1, (0.55 * nodes * shape.node_units / workloads / shape.width_units).astype(np.int64))
    choices = falling_curves(rng, shape.width_units, 12, short=False)
    large = solve_large(shape, choices, Base(low=low, packed=pack(shape, low)), nodes, node_value=NODE_VALUE)
    assert 1.0 - objective(large.bound).min() / objective(large.money).min() <= 0.005
    for count in (large.needed_nodes, (large.needed_nodes + nodes) // 2, nodes):
        replicas = large.replicas(count)
        assert pack(shape, replicas).nodes <= count
        assert choices.total(replicas - low)[1] == pytest.approx(large.money[count], rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_shortage_is_near_its_least_and_bounded_from_below(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes, workloads = 60, 60
    shape = node_shape(8, rng.choice([1, 2, 4, 8], workloads).tolist())
    low = np.ones(workloads, dtype=np.int64)
    choices = falling_curves(rng, shape.width_units, 20, short=True)
    split = least_shortage(shape, choices, low, nodes, pack(shape, low))
    exact = solve_exactly(shape, choices, low, nodes)
    assert exact is not None
    shortage = choices.total(split.more)[0]
    assert split.deficit_bound <= exact.deficit <= shortage
    assert shortage <= exact.deficit + 0.001 * float(choices.deficit[choices.start].sum())
    assert pack(shape, low + split.more).nodes <= nodes


def test_replicas_that_lie_badly_one_by_one_are_packed_anew_until_no_room_is_left() -> None:
    # 3 of 8 GPUs: two replicas leave 2 GPUs free on each node, which the narrow ones fill.
    rng = np.random.default_rng(8)
    nodes, counts = 300, 900
    shape = node_shape(8, [1, 3])
    low = np.zeros(2, dtype=np.int64)
    missing = np.where(np.arange(counts) < counts - 100, 10**8, 0)
    unserved = (2**15 * np.maximum(0.0, 1.0 - np.arange(counts) / (counts - 120))).astype(np.int64)
    choices = Choices(
        width=shape.width_units,
        start=np.array([0, counts]),
        length=np.array([counts, counts]),
        deficit=np.tile(missing * 2**17 + unserved, 2),
        money=np.sort(rng.random(2 * counts).reshape(2, counts))[:, ::-1].ravel() * 1e4,
    )
    base = pack(shape, low)
    split = least_shortage(shape, choices, low, nodes, base)
    assert pack(shape, low + split.more).nodes == split.packed.nodes
    assert int(split.more @ shape.width_units) >= 0.99 * nodes * 8
    found = solve_large(
        shape, choices.beyond(split.more), Base(low=split.more, packed=split.packed), nodes, node_value=NODE_VALUE
    )
    assert found.needed_nodes == int(np.isfinite(found.money).argmax())


def test_nodes_below_the_needed_ones_are_never_priced() -> None:
    # The base lies badly: one node for each of its replicas. A leg that packs anew takes fewer.
    shape = node_shape(8, [1, 3])
    low = np.array([40, 40])
    badly = Packing(nodes=80, free=np.array([0, 0, 0, 0, 0, 40, 0, 40, 0]))
    choices = Choices(
        width=shape.width_units,
        start=np.array([0, 30]),
        length=np.array([30, 30]),
        deficit=np.zeros(60, dtype=np.int64),
        money=np.concatenate([100.0 * 0.8 ** np.arange(30), 300.0 * 0.8 ** np.arange(30)]),
    )
    found = solve_large(shape, choices, Base(low=low, packed=badly), 100, node_value=NODE_VALUE)
    assert found.needed_nodes < 80
    assert np.isinf(found.money[: found.needed_nodes]).all()
    assert np.isfinite(found.money[found.needed_nodes :]).all()
    for count in range(found.needed_nodes, 101):
        assert pack(shape, found.replicas(count)).nodes <= count


curves = st.lists(
    st.lists(st.integers(0, 30), min_size=1, max_size=7).map(lambda one: sorted(one, reverse=True)),
    min_size=1,
    max_size=4,
)


@settings(max_examples=200)
@given(curves, st.lists(st.integers(1, 4), min_size=4, max_size=4))
def test_hull_steps_are_the_convex_minorant(lists: list[list[int]], widths: list[int]) -> None:
    width = np.array(widths[: len(lists)])
    values = np.concatenate([np.array(one, dtype=float) for one in lists])
    start = np.cumsum([0, *[len(one) for one in lists[:-1]]])
    steps = hull_steps(values, start, np.array([len(one) for one in lists]), width)
    slopes = steps.saving / (steps.replicas * width[steps.workload])
    assert (np.diff(slopes) <= 1e-12).all()
    for w, one in enumerate(lists):
        mine = np.flatnonzero(steps.workload == w)
        assert steps.origin[mine].tolist() == np.cumsum([0, *steps.replicas[mine].tolist()])[:-1].tolist()
        corners = np.concatenate([[0], np.cumsum(steps.replicas[mine])])
        heights = one[0] - np.concatenate([[0.0], np.cumsum(steps.saving[mine])])
        below = np.interp(np.arange(len(one)), corners, heights)
        assert (below <= np.array(one) + 1e-9).all()
        assert all(heights[i] == one[corner] for i, corner in enumerate(corners.tolist()))
        assert heights[-1] == one[-1]
