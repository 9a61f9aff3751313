"""Chosen boundaries against exhaustive search (§5.11): every set of boundaries, every node count in every window."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.allocate.arcs import DayArcs, Missed
from ebbtide.allocate.boundaries import States, choose_daily, choose_weekly

Windows = tuple[tuple[int, int], ...]


@st.composite
def arcs(draw: st.DrawFn, states: States, *, cyclic: bool, days: int = 1, short: bool = False) -> DayArcs:
    base = draw(st.integers(2, 8 if cyclic else 5))
    shortest = draw(st.integers(1, 2))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    need = rng.integers(0, 20, (base, states.count)).astype(float)
    rows = np.full((base, base + 1), -1, dtype=np.int64)
    costs, shortage, unserved = [], [], []
    for start in range(base):
        for length in range(shortest, base + 1):
            inside = length < base or start == 0
            if (inside and cyclic) or start + length <= base:
                covered = [(start + n) % base for n in range(length)]
                rows[start, length] = len(costs)
                costs.append(need[covered].max(axis=0) * length + rng.integers(0, 3, states.count))
                shortage.append(float(rng.integers(0, 2)) if short else 0.0)
                unserved.append(float(rng.integers(0, 3)) if short else 0.0)
    table = np.array(costs)
    table[:, :-1][rng.random((len(table), states.count - 1)) < 0.1] = np.inf
    missed = (Missed(by_arc=np.array(shortage)), Missed(by_arc=np.array(unserved)))
    return DayArcs(rows=rows, costs_usd=table, missed=missed, at_most=draw(st.integers(1, 4)), days=days)


def partitions(day: DayArcs, first: int) -> Iterator[Windows]:
    def extend(at: int, so_far: Windows) -> Iterator[Windows]:
        if at == day.base:
            yield so_far
        elif len(so_far) < day.at_most:
            for length in range(1, day.base - at + 1):
                start = (first + at) % day.base
                if day.rows[start, length] >= 0:
                    yield from extend(at + length, (*so_far, (start, length)))

    yield from extend(0, ())


def missed_by(day: DayArcs, windows: Windows) -> tuple[float, ...]:
    """Shortage, unserved load: compared as a pair."""
    return tuple(sum(float(one.by_arc[day.rows[window]]) for window in windows) for one in day.missed)


def day_value(day: DayArcs, states: States, windows: Windows) -> float:
    """Least cost over all states of all windows, closed."""
    distance = states.distance_usd()
    tables = [day.costs_usd[day.rows[window]] for window in windows]
    best = math.inf
    for first in range(states.count):
        reach = np.full(states.count, math.inf)
        reach[first] = tables[0][first]
        for table in tables[1:]:
            reach = (reach[:, None] + distance).min(axis=0) + table
        best = min(best, float((reach + distance[:, first]).min()))
    return best


ONE = States(sizes=(3,), move_usd=(2.0,))
TWO = States(sizes=(2, 3), move_usd=(1.0, 4.0))


@settings(max_examples=60)
@given(data=st.data(), states=st.sampled_from([ONE, TWO]), short=st.booleans())
def test_a_day_is_cut_as_exhaustive_search_cuts_it(data: st.DataObject, states: States, short: bool) -> None:
    day = data.draw(arcs(states, cyclic=True, short=short))
    every = [windows for first in range(day.base) for windows in partitions(day, first)]
    least = min(missed_by(day, windows) for windows in every)
    value = min(day_value(day, states, windows) for windows in every if missed_by(day, windows) == least)
    found = choose_daily(day, states, budget=10**9)
    assert found.exact
    assert found.value_usd == pytest.approx(value)
    assert missed_by(day, found.windows) == least
    assert day_value(day, states, found.windows) == pytest.approx(value)


def test_what_differs_by_rounding_alone_leaves_the_choice_to_what_comes_after_it() -> None:
    rows = np.array([[-1, 0, 1], [-1, 2, -1]])  # either half of the day, or the whole at once
    costs, missed = np.array([[4.0], [5.0], [4.0]]), np.array([2.0, 4.0 + 3e-8, 2.0])
    none = Missed(by_arc=np.zeros(3))
    one = States(sizes=(1,), move_usd=(1.0,))
    for place in (0, 1):

        def day(rounding: float, place: int = place) -> DayArcs:
            kinds = [none, none]
            kinds[place] = Missed(by_arc=missed, rounding=rounding)
            return DayArcs(rows=rows, costs_usd=costs, missed=tuple(kinds), at_most=2, days=1)

        assert choose_daily(day(0.0), one, budget=1000).windows == ((0, 1), (1, 1))
        assert choose_daily(day(1e-7), one, budget=1000).windows == ((0, 2),)


@pytest.mark.parametrize("short", [False, True])
def test_a_day_of_twenty_four_hours_is_cut_as_exhaustive_search_cuts_it(short: bool) -> None:
    rng = np.random.default_rng(5)
    hourly = 10.0 + 8.0 * np.sin(np.arange(24) / 24 * 2 * np.pi) + rng.normal(0.0, 1.0, 24)
    rows = np.full((24, 25), -1, dtype=np.int64)
    costs = []
    nodes = np.arange(21.0)
    for start in range(24):
        for length in range(2, 25):
            if length < 24 or start == 0:
                need = hourly[[(start + n) % 24 for n in range(length)]].max()
                rows[start, length] = len(costs)
                costs.append(length * np.where(nodes >= need, nodes, np.inf))
    states = States(sizes=(21,), move_usd=(2.5,))
    missed = tuple(Missed(by_arc=kind) for kind in rng.integers(0, 2, (2, len(costs))).astype(float) * short)
    day = DayArcs(rows=rows, costs_usd=np.array(costs), missed=missed, at_most=3, days=1)
    every = [windows for first in range(24) for windows in partitions(day, first)]
    least = min(missed_by(day, windows) for windows in every)
    value = min(day_value(day, states, windows) for windows in every if missed_by(day, windows) == least)
    found = choose_daily(day, states, budget=10**10)
    assert found.exact
    assert found.value_usd == pytest.approx(value)


def week_value(days: Sequence[DayArcs], followed: Sequence[tuple[int, int, int]], cut: Sequence[Windows]) -> float:
    tables = [[day.costs_usd[day.rows[window]] for window in windows] for day, windows in zip(days, cut, strict=True)]
    sizes = [len(windows) for windows in cut]
    best = math.inf
    for states in itertools.product(range(ONE.count), repeat=sum(sizes)):
        at, total, ends = 0, 0.0, []
        for day, table in zip(days, tables, strict=True):
            mine = states[at : at + len(table)]
            at += len(table)
            inner = sum(ONE.move_usd[0] * abs(a - b) for a, b in itertools.pairwise(mine))
            total += day.days * (inner + sum(float(costs[s]) for costs, s in zip(table, mine, strict=True)))
            ends.append((mine[0], mine[-1]))
        total += sum(times * ONE.move_usd[0] * abs(ends[p][1] - ends[q][0]) for p, q, times in followed)
        best = min(best, total)
    return best


@settings(max_examples=12)
@given(data=st.data(), short=st.booleans())
def test_a_week_of_two_patterns_is_cut_as_exhaustive_search_cuts_it(data: st.DataObject, short: bool) -> None:
    days = [data.draw(arcs(ONE, cyclic=False, days=count, short=short)) for count in (5, 2)]
    days = [replace(day, at_most=min(day.at_most, 3)) for day in days]
    followed = [(0, 0, 4), (0, 1, 1), (1, 1, 1), (1, 0, 1)]
    ways = [list(partitions(day, 0)) for day in days]
    least = [min(missed_by(day, way) for way in mine) for day, mine in zip(days, ways, strict=True)]
    cuts = itertools.product(
        *([way for way in mine if missed_by(day, way) == one] for day, mine, one in zip(days, ways, least, strict=True))
    )
    value = min(week_value(days, followed, cut) for cut in cuts)
    found = choose_weekly(days, followed, ONE)
    assert found is not None
    assert week_value(days, followed, found) == pytest.approx(value)
