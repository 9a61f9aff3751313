"""One window of a small pool against an independent integer program: patterns of whole nodes, a binary per count."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from ebbtide.allocate.exact_window import solve_exactly
from ebbtide.allocate.knapsack import Choices
from ebbtide.allocate.packing import node_shape
from ebbtide.allocate.packing_table import packing_table

UNSERVED_MOST = 2**16  # unserved load of a whole window at most
SHORTAGE_UNIT = 1_000_000  # shortages in the tests are whole multiples, far above the solver's tolerance


@dataclass(frozen=True)
class Case:
    """A window: node size, nodes, and per workload a width, a low, and the curves above it."""

    gpus_per_node: int
    nodes: int
    widths: list[int]
    lows: list[int]
    deficits: list[list[int]]
    moneys: list[list[float]]
    unserved: list[list[int]] | None = None

    def unserved_of(self, w: int, j: int) -> int:
        return 0 if self.unserved is None else self.unserved[w][j]

    def joint(self, w: int, j: int) -> int:
        return self.deficits[w][j] * SHORTAGE_UNIT * 2 * UNSERVED_MOST + self.unserved_of(w, j)

    def solve(self, *, tabled: bool = True):
        shape = node_shape(self.gpus_per_node, self.widths)
        lengths = [len(money) for money in self.moneys]
        choices = Choices(
            width=shape.width_units,
            start=np.cumsum([0, *lengths[:-1]]),
            length=np.array(lengths),
            deficit=np.array([self.joint(w, j) for w, length in enumerate(lengths) for j in range(length)]),
            money=np.concatenate([np.array(one, dtype=float) for one in self.moneys]),
        )
        most = np.array(self.lows) + choices.length - 1
        table = None if shape.perfect or not tabled else packing_table(shape, most, self.nodes)
        return solve_exactly(shape, choices, np.array(self.lows), self.nodes, table)


def patterns(gpus_per_node: int, widths: list[int]) -> list[tuple[int, ...]]:
    """Every way to fill one node with replicas of the narrow widths."""
    ranges = [range(gpus_per_node // width + 1) for width in widths]
    return [
        counts
        for counts in itertools.product(*ranges)
        if sum(count * width for count, width in zip(counts, widths, strict=True)) <= gpus_per_node
    ]


class Oracle:
    """Binaries for (workload, count), integers for node patterns; each objective solved on its own."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.narrow = sorted({width for width in case.widths if width < case.gpus_per_node})
        self.patterns = patterns(case.gpus_per_node, self.narrow)
        self.picks = [(w, j) for w, money in enumerate(case.moneys) for j in range(len(money))]
        self.columns = len(self.picks) + len(self.patterns)
        self.deficit = [float(case.deficits[w][j]) for w, j in self.picks] + [0.0] * len(self.patterns)
        self.unserved = [float(case.unserved_of(w, j)) for w, j in self.picks] + [0.0] * len(self.patterns)
        self.money = [case.moneys[w][j] for w, j in self.picks] + [0.0] * len(self.patterns)
        self.node_use = [float(self.whole_nodes(w, j)) for w, j in self.picks] + [1.0] * len(self.patterns)

    def whole_nodes(self, w: int, j: int) -> int:
        width, node = self.case.widths[w], self.case.gpus_per_node
        return -(-width // node) * (self.case.lows[w] + j) if width >= node else 0

    def least(self, objective: list[float], *limits: tuple[list[float], float]) -> float | None:
        case = self.case
        rows, lower, upper = [], [], []
        for w in range(len(case.widths)):
            rows.append([float(owner == w) for owner, _ in self.picks] + [0.0] * len(self.patterns))
            lower.append(1.0)
            upper.append(1.0)
        for i, width in enumerate(self.narrow):
            need = [-float(case.lows[w] + j) if case.widths[w] == width else 0.0 for w, j in self.picks]
            rows.append(need + [float(pattern[i]) for pattern in self.patterns])
            lower.append(0.0)
            upper.append(np.inf)
        for row, most in limits:
            rows.append(row)
            lower.append(-np.inf)
            upper.append(most)
        high = [1.0] * len(self.picks) + [np.inf] * len(self.patterns)
        found = milp(
            objective,
            integrality=np.ones(self.columns, dtype=int),
            bounds=Bounds(0.0, high),
            constraints=LinearConstraint(np.array(rows), lower, upper),
            options={"mip_rel_gap": 0.0},
        )
        return None if found.x is None else float(found.fun)

    def answer(self):
        """(needed nodes, least shortage, least unserved load at it, least money at both for every count of nodes)."""
        nodes = float(self.case.nodes)
        shortage = self.least(self.deficit, (self.node_use, nodes))
        if shortage is None:
            return None
        shortage_held = (self.deficit, shortage + 0.25)
        unserved = self.least(self.unserved, shortage_held, (self.node_use, nodes))
        held = (shortage_held, (self.unserved, unserved + 0.25))
        needed = round(self.least(self.node_use, *held))
        money = [
            self.least(self.money, *held, (self.node_use, float(m))) if m >= needed else np.inf
            for m in range(self.case.nodes + 1)
        ]
        return needed, round(shortage), round(unserved), money


def falling(values: list[float]) -> list[float]:
    return sorted(values, reverse=True)


@st.composite
def windows(draw) -> Case:
    node = draw(st.sampled_from([4, 6, 7, 8]))
    widths = draw(st.lists(st.integers(1, node + 2), min_size=1, max_size=5))
    short = draw(st.booleans())
    lows, deficits, moneys, unserved = [], [], [], []
    for _ in widths:
        length = draw(st.integers(1, 5))
        lows.append(draw(st.integers(0, 2)))
        # Not convex: any falling numbers, ties included.
        moneys.append(falling(draw(st.lists(st.integers(0, 40).map(float), min_size=length, max_size=length))))
        levels = draw(st.lists(st.integers(0, 6), min_size=length, max_size=length)) if short else [0] * length
        deficits.append([int(level) for level in falling(levels)])
        loads = draw(st.lists(st.integers(0, UNSERVED_MOST // 5), min_size=length, max_size=length))
        unserved.append([int(load) if level else 0 for load, level in zip(falling(loads), deficits[-1], strict=True)])
    return Case(node, draw(st.integers(1, 6)), widths, lows, deficits, moneys, unserved)


def assert_equal_to_oracle(case: Case) -> None:
    """By the table of what packs, and by the program that answers where that is too large."""
    wanted = Oracle(case).answer()
    for found in (case.solve(), case.solve(tabled=False)):
        if wanted is None:
            assert found is None
            continue
        needed, shortage, unserved, money = wanted
        assert divmod(found.deficit, 2 * UNSERVED_MOST) == (shortage * SHORTAGE_UNIT, unserved)
        assert found.needed_nodes == needed
        np.testing.assert_allclose(found.money, money, rtol=1e-6, atol=1e-6)


@settings(max_examples=80)
@given(windows())
def test_equals_the_integer_program(case: Case) -> None:
    assert_equal_to_oracle(case)


@settings(max_examples=80)
@given(windows(), st.booleans())
def test_allocation_is_worth_what_it_says_and_packs(case: Case, tabled: bool) -> None:
    found = case.solve(tabled=tabled)
    if found is None:
        return
    for nodes in range(found.needed_nodes, case.nodes + 1):
        replicas = found.replicas(nodes)
        deficit, money = found.choices.total(replicas - np.array(case.lows))
        assert deficit == found.deficit
        assert money == pytest.approx(found.money[nodes], rel=1e-12, abs=1e-12)
        given_only = Case(
            case.gpus_per_node,
            nodes,
            case.widths,
            replicas.tolist(),
            [[0]] * len(case.widths),
            [[0.0]] * len(case.widths),
        )
        assert Oracle(given_only).answer() is not None


@pytest.mark.parametrize("tabled", [True, False])
@pytest.mark.parametrize(
    ("widths", "seed"),
    [((1, 2, 4, 8), 1), ((3, 5, 6), 2), ((2, 3, 5, 6, 7, 16), 3), ((3, 6), 4)],
)
def test_forty_nodes_equal_the_integer_program(widths: tuple[int, ...], seed: int, tabled: bool) -> None:
    rng = np.random.default_rng(seed)
    owners = [int(width) for width in rng.choice(widths, 12)]
    share = 40 * 8 / len(owners)
    lows = [max(1, int(0.8 * share / width)) for width in owners]
    curves = [falling((rng.random(8) ** 3 * 100).tolist()) for _ in owners]
    case = Case(8, 40, owners, lows, [[0] * 8 for _ in owners], curves)
    found = case.solve(tabled=tabled)
    oracle = Oracle(case)
    assert found.needed_nodes == round(oracle.least(oracle.node_use))
    for nodes in range(found.needed_nodes, 41, 2):
        wanted = oracle.least(oracle.money, (oracle.node_use, float(nodes)))
        assert found.money[nodes] == pytest.approx(wanted, rel=1e-6)


def test_ties_are_broken_for_fewer_replicas() -> None:
    # The third replica of the first workload saves nothing, and nor does any of the second.
    case = Case(4, 2, [1, 1], [1, 1], [[0] * 3, [0] * 3], [[9.0, 4.0, 4.0], [2.0, 2.0, 2.0]])
    assert case.solve().replicas(2).tolist() == [2, 1]


def test_shortage_comes_before_any_money() -> None:
    case = Case(2, 1, [1, 1], [0, 0], [[3, 0], [2, 0]], [[0.0, 0.0], [0.0, 0.0]])
    assert case.solve().replicas(1).tolist() == [1, 1]
    scarce = Case(1, 1, [1, 1], [0, 0], [[3, 0], [2, 0]], [[5.0, 4.0], [1e6, 0.0]])
    assert scarce.solve().replicas(1).tolist() == [1, 0]


def test_unserved_load_decides_between_equal_shortages_before_money_and_fewer_nodes() -> None:
    equal = [[3, 3, 3], [2, 2, 2]]
    case = Case(3, 2, [1, 3], [0, 0], equal, [[9.0, 0.0, 0.0], [0.0, 0.0, 0.0]], [[50, 20, 0], [400, 200, 0]])
    found = case.solve()
    assert (found.needed_nodes, found.replicas(2).tolist()) == (2, [0, 2])
