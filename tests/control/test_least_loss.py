"""Which nodes go back (§6.2): least loss over whole Workloads, against every possible choice."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.control import cover
from ebbtide.control.least_loss import UNWILLING, Losses, least_loss
from ebbtide.control.state import Node, ResearchWork, Tenure

LOSSES = Losses(at_s=1000.0, due_s=4000.0, end_overrunning_work=False)


def nodes(count: int) -> list[Node]:
    return [Node(name=f"n{k}", tenure=Tenure.EPHEMERAL, provider_id=f"id{k}", gpus=8) for k in range(count)]


def work(name: str, on, gpus: int = 8, age_s: float = 100.0, **more) -> ResearchWork:
    fields = {"preemptible": True, "checkpointed_s": 1000.0 - age_s, **more}
    return ResearchWork(name=name, pool="h100", gpus=gpus, nodes=tuple(on), **fields)


def loss_of(chosen, works) -> float:
    names = {one.name for one in chosen}
    return math.fsum(LOSSES.of(one) for one in works if names & set(one.nodes))


def best(count: int, pool, works) -> tuple[int, float]:
    """Brute force: the most nodes, then the least loss."""
    found = (0, 0.0)
    for size in range(min(count, len(pool)), 0, -1):
        losses = [loss_of(some, works) for some in itertools.combinations(pool, size)]
        finite = [one for one in losses if math.isfinite(one)]
        if finite:
            return size, min(finite)
    return found


@st.composite
def fleets(draw):
    count = draw(st.integers(1, 8))
    pool = nodes(count)
    names = [one.name for one in pool]
    works = [
        work(
            f"w{k}",
            draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True)),
            gpus=draw(st.integers(1, 16)),
            age_s=float(draw(st.integers(0, 50))),
            preemptible=draw(st.integers(0, 6)) > 0,
            managed=draw(st.integers(0, 9)) > 0,
        )
        for k in range(draw(st.integers(0, 8)))
    ]
    return draw(st.integers(1, count)), pool, works


@given(fleets())
@settings(deadline=None, max_examples=200)
def test_it_takes_as_many_as_can_be_had_and_says_truly_what_they_lose(fleet):
    count, pool, works = fleet
    chosen, lost = least_loss(count, pool, works, LOSSES)
    assert len({one.name for one in chosen}) == len(chosen)
    assert lost == math.fsum([loss_of(chosen, works)]) or math.isclose(lost, loss_of(chosen, works))
    assert math.isfinite(lost)
    assert len(chosen) == best(count, pool, works)[0]


@given(fleets())
@settings(deadline=None, max_examples=200)
def test_it_loses_no_more_than_any_other_choice_would(fleet):
    count, pool, works = fleet
    _, lost = least_loss(count, pool, works, LOSSES)
    assert lost <= best(count, pool, works)[1] * (1 + 1e-12)


def dense(seed: int):
    """Eight nodes with as many gangs as can be, every one on several nodes: one part, nothing apart."""
    rng = random.Random(seed)
    pool = nodes(rng.randint(2, 8))
    names = [one.name for one in pool]
    works = [
        work(f"w{k}", rng.sample(names, min(rng.randint(1, 4), len(names))), rng.randint(1, 16), rng.randint(1, 50))
        for k in range(rng.randint(1, 8))
    ]
    return rng.randint(1, len(pool)), pool, works


def test_dense_gangs_are_chosen_exactly_too():
    for seed in range(500):
        count, pool, works = dense(seed)
        _, lost = least_loss(count, pool, works, LOSSES)
        assert lost <= best(count, pool, works)[1] * (1 + 1e-12), seed


def test_the_greedy_cover_of_large_parts_is_seldom_and_boundedly_off(monkeypatch):
    """Made to cover greedily what is small enough to know: at most one in ten off, 2 % in the mean, never 2.5 times."""
    monkeypatch.setattr(cover, "EXACT", -1)
    over = []
    for seed in range(1000):
        count, pool, works = dense(seed)
        _, lost = least_loss(count, pool, works, LOSSES)
        least = best(count, pool, works)[1]
        over.append(lost / least if least else 1.0)
    assert min(over) >= 1 - 1e-12
    assert sum(one > 1 + 1e-12 for one in over) <= 100
    assert sum(over) / len(over) <= 1.02
    assert max(over) <= 2.5


def test_many_parts_and_single_nodes_are_joined_exactly():
    """Gangs of one to four nodes side by side: a knapsack, against all subsets of gangs."""
    for seed in range(60):
        rng = random.Random(seed)
        pool, works, gangs = nodes(30), [], []
        free = [one.name for one in pool]
        while len(free) >= 4 and len(gangs) < 10:
            size = rng.randint(1, 4)
            gangs.append((size, work(f"w{len(gangs)}", free[:size], rng.randint(1, 16), rng.randint(1, 50))))
            works.append(gangs[-1][1])
            free = free[size:]
        pool = [one for one in pool if one.name not in free]
        count = rng.randint(1, len(pool))
        least = min(
            sum(LOSSES.of(one) for _, one in some)
            for width in range(1, len(gangs) + 1)
            for some in itertools.combinations(gangs, width)
            if sum(size for size, _ in some) >= count
        )
        chosen, lost = least_loss(count, pool, works, LOSSES)
        assert len(chosen) == count
        assert math.isclose(lost, least), seed


def test_empty_nodes_go_first_the_emptiest_of_them(change):
    pool = nodes(4)
    pool[0] = change(pool[0], pods=2)
    pool[2] = change(pool[2], pods=1, stuck_pods=1)
    chosen, lost = least_loss(2, pool, [work("w", ["n1"])], LOSSES)
    assert ([one.name for one in chosen], lost) == (["n3", "n0"], 0.0)


def test_of_many_a_gang_that_ends_gives_all_its_nodes():
    """Two nodes of one gang cost its loss once; two of two gangs cost both."""
    works = [work("a", ["n0"], age_s=10.0), work("b", ["n1"], age_s=10.0), work("gang", ["n2", "n3"], age_s=15.0)]
    chosen, lost = least_loss(2, nodes(4), works, LOSSES)
    assert ({one.name for one in chosen}, lost) == ({"n2", "n3"}, 15.0 * 8)


@pytest.mark.parametrize(
    ("more", "loss"),
    [
        ({}, 800.0),
        ({"managed": False}, math.inf),
        ({"preemptible": False}, math.inf),
        ({"preemptible": False, "ends_s": 4000.0}, 0.0),
        ({"preemptible": False, "ends_s": 4001.0}, math.inf),
        ({"preemptible": False, "ends_s": 999.0}, math.inf),  # over already, it says: it promises nothing
        ({"requeues": False}, 800.0 + UNWILLING),
        ({"active": False}, 0.0),
        ({"checkpointed_s": 2000.0}, 0.0),  # a clock that was ahead
    ],
)
def test_what_ending_work_costs(more, loss):
    assert LOSSES.of(work("w", ["n0"], **more)) == loss


def test_work_that_other_moves_end_costs_nothing_more():
    losses = Losses(at_s=1000.0, due_s=4000.0, end_overrunning_work=False, doomed=frozenset({"gang"}))
    works = [work("gang", ["n0", "n1"]), work("w", ["n2"], age_s=1.0)]
    chosen, lost = least_loss(1, nodes(3), works, losses)
    assert ([one.name for one in chosen], lost) == (["n0"], 0.0)


def test_work_that_does_not_requeue_goes_last_but_before_what_must_stay():
    works = [work("bare", ["n0"], age_s=0.0, requeues=False), work("w", ["n1"], age_s=900.0)]
    assert [one.name for one in least_loss(1, nodes(2), works, LOSSES)[0]] == ["n1"]
    fixed = work("fixed", ["n1"], preemptible=False)
    assert [one.name for one in least_loss(2, nodes(2), [works[0], fixed], LOSSES)[0]] == ["n0"]


def test_the_same_fleet_in_another_order_gives_the_same_nodes():
    for seed in range(50):
        count, pool, works = dense(seed)
        rng = random.Random(seed)
        chosen, _ = least_loss(count, pool, works, LOSSES)
        again, _ = least_loss(count, rng.sample(pool, len(pool)), rng.sample(works, len(works)), LOSSES)
        assert {one.name for one in chosen} == {one.name for one in again}
