"""Where windows begin, chosen so that the plan costs least: exact search over boundaries and node counts together.

A day is a grid of base intervals; a window is an *arc* (start, length) of the grid with a cost for every joint state of
the pools' node counts. A dynamic program runs backwards over (boundary, windows used, state); steps between states cost
moves, found by the L1 distance transform along every pool's axis. It is closed over the first boundary and the first
state. Closing is bounded from below by its Lagrangian, weight · |last − first| ≥ λ · (last − first) for |λ| ≤ weight,
so that few first states need a program of their own.

What is missed comes before money (§5.7): only arcs on a way of least shortage take part and, of these, only those on a
way that leaves the least load unserved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

from ebbtide.allocate.arcs import DayArcs, least_missed
from ebbtide.allocate.elimination import L1Problem, minimise
from ebbtide.fleet.demand import Floats

_PULLS = (-1.0, -0.5, 0.0, 0.5, 1.0)  # λ as shares of the move cost


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class States:
    """Joint states of the pools: ``sizes[p]`` node counts, ``move_usd[p]`` a node and step; the last pool is minor."""

    sizes: tuple[int, ...]
    move_usd: tuple[float, ...]

    @property
    def count(self) -> int:
        """Number of joint states."""
        return math.prod(self.sizes)

    def distance_usd(self) -> Floats:
        """Cost of the step between any two states, float64[states, states]."""
        total = np.zeros((self.count, self.count))
        for nodes, usd in zip(np.unravel_index(np.arange(self.count), self.sizes), self.move_usd, strict=True):
            total += usd * np.abs(nodes[:, None] - nodes[None, :])
        return total

    def pull_usd(self) -> Floats:
        """Σ over pools of move cost · nodes, float64[states]: what λ = weight pays for a state."""
        nodes = np.unravel_index(np.arange(self.count), self.sizes)
        pull: Floats = np.sum([usd * n for n, usd in zip(nodes, self.move_usd, strict=True)], axis=0)
        return pull

    def from_usd(self, state: int) -> Floats:
        """Cost of the step from every state to one, float64[states]."""
        nodes = np.unravel_index(np.arange(self.count), self.sizes)
        there = np.unravel_index(state, self.sizes)
        cost: Floats = np.sum(
            [usd * np.abs(n - t) for n, t, usd in zip(nodes, there, self.move_usd, strict=True)], axis=0
        )
        return cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A day's windows as (start, length) in base intervals, in order; ``value_usd`` is the search's own objective."""

    windows: tuple[tuple[int, int], ...]
    value_usd: float
    exact: bool


class _Day:
    """The program of one pattern whose day begins at ``first``."""

    def __init__(self, arcs: DayArcs, states: States, first: int, room: tuple[Floats, Floats]) -> None:
        self.arcs, self.states, self.first = arcs, states, first
        self.rows = np.roll(arcs.rows, -first, axis=0)
        self.rows[np.arange(arcs.base)[:, None] + np.arange(arcs.base + 1)[None, :] > arcs.base] = -1
        self.missed, self.allowed = least_missed(self.rows, arcs)
        self.ahead, self.here = room  # shared: only the last run's is read

    def run(self, terminal_usd: Floats) -> Floats:
        """Least cost of the day for each state of its first window, given what each last state costs at the end."""
        _suffix(
            self.arcs.costs_usd,
            self.rows,
            self.allowed,
            np.array(self.states.sizes),
            np.array(self.states.move_usd),
            terminal_usd,
            self.ahead,
            self.here,
        )
        result: Floats = self.here[0, 0].copy()
        return result

    def windows(self, state: int) -> tuple[tuple[int, int], ...]:
        """The windows that ``run`` chose, for a state of the first window."""
        found = []
        at, used = 0, 0
        while at < self.arcs.base:
            lengths = np.flatnonzero(self.allowed[used, at])
            ways = [self.arcs.costs_usd[self.rows[at, n], state] + self.ahead[at + n, used + 1, state] for n in lengths]
            length = int(lengths[int(np.argmin(ways))])
            found.append(((self.first + at) % self.arcs.base, length))
            at, used = at + length, used + 1
            if at < self.arcs.base:
                state = int(np.argmin(self.states.from_usd(state) + self.here[at, used]))
        return tuple(found)


def _room(arcs: DayArcs, states: States) -> tuple[Floats, Floats]:
    shape = (arcs.base + 1, arcs.at_most + 1, states.count)
    return np.empty(shape), np.empty(shape)


def work(arcs: DayArcs, states: States) -> int:
    """Steps of one program."""
    return int((arcs.rows >= 0).sum()) * arcs.at_most * states.count


def choose_daily(arcs: DayArcs, states: States, *, budget: int) -> Cut:
    """The best windows of a day that follows itself; windows may cross the grid's end.

    ``exact`` where proven; otherwise ``budget`` steps were spent and the best so far is the answer.
    """
    room = _room(arcs, states)
    days = [_Day(arcs, states, first, room) for first in range(arcs.base)]
    for level, missed in enumerate(arcs.missed):
        limit = missed.equal_up_to(min(day.missed[level] for day in days))
        days = [day for day in days if day.missed[level] <= limit]
    pull = states.pull_usd()
    bounds = np.array([np.max([day.run(share * pull) - share * pull for share in _PULLS], axis=0) for day in days])
    best = Cut(windows=(), value_usd=math.inf, exact=True)
    left = max(1, budget // max(1, work(arcs, states)))
    for flat in np.argsort(bounds, axis=None, kind="stable").tolist():
        day, state = divmod(flat, states.count)
        if bounds[day, state] >= best.value_usd:
            break
        if left == 0:
            return Cut(windows=best.windows, value_usd=best.value_usd, exact=False)
        left -= 1
        value = float(days[day].run(states.from_usd(state))[state])
        if value < best.value_usd:
            best = Cut(windows=days[day].windows(state), value_usd=value, exact=True)
    return best


def choose_weekly(
    patterns: Sequence[DayArcs], followed: Sequence[tuple[int, int, int]], states: States
) -> list[tuple[tuple[int, int], ...]] | None:
    """The best windows of every pattern of a week, all days beginning at the grid's start.

    ``followed``: (pattern, pattern of the next day, times in a cycle). None where tables get too large.
    """
    days = [_Day(arcs, states, 0, _room(arcs, states)) for arcs in patterns]
    tables = [((2 * p, 2 * p + 1), _first_by_last(day)) for p, day in enumerate(days)]
    edges = tuple((2 * one + 1, 2 * other, float(times)) for one, other, times in followed)
    count = 2 * len(patterns)
    joint: list[tuple[tuple[int, ...], Floats]] = list(tables)
    if len(states.sizes) > 1:
        distance = states.distance_usd()
        joint += [((one, other), times * distance) for one, other, times in edges]
        edges = ()
    edges = tuple((one, other, times * states.move_usd[0]) for one, other, times in edges)
    found = minimise(L1Problem(lows=(0,) * count, sizes=(states.count,) * count, tables=tuple(joint), edges=edges))
    if found is None:
        return None
    chosen = []
    for p, day in enumerate(days):
        first, last = found[0][2 * p], found[0][2 * p + 1]
        day.run(_only(states.count, last))
        chosen.append(day.windows(first))
    return chosen


def _first_by_last(day: _Day) -> Floats:
    """Cost of all the pattern's days for every first and last state."""
    count = day.states.count
    return day.arcs.days * np.column_stack([day.run(_only(count, last)) for last in range(count)])


def _only(count: int, state: int) -> Floats:
    terminal = np.full(count, np.inf)
    terminal[state] = 0.0
    return terminal


@njit(cache=True)
def _step(values, sizes, move_usd):  # type: ignore[no-untyped-def]  # numba infers types
    """In place: the least over all states of its value and the moves from there; one axis after the other."""
    count = len(values)
    stride = count
    for axis in range(len(sizes)):
        stride //= sizes[axis]
        for s in range(count):
            if (s // stride) % sizes[axis] > 0:
                values[s] = min(values[s], values[s - stride] + move_usd[axis])
        for s in range(count - 1, -1, -1):
            if (s // stride) % sizes[axis] < sizes[axis] - 1:
                values[s] = min(values[s], values[s + stride] + move_usd[axis])


@njit(cache=True)
def _suffix(costs, rows, allowed, sizes, move_usd, terminal, ahead, here):  # type: ignore[no-untyped-def]  # numba infers types
    """here[at, used, s]: least cost from a boundary to the day's end with state s in the window that begins there;
    ahead[at, used, s]: the same with state s in the window that ends there, the step included."""
    at_most, base = allowed.shape[0], allowed.shape[1]
    count = costs.shape[1]
    for used in range(at_most + 1):
        ahead[base, used] = terminal
    for at in range(base - 1, -1, -1):
        for used in range(at_most):
            best = here[at, used]
            best[:] = np.inf
            for length in range(1, base - at + 1):
                if allowed[used, at, length]:
                    own = costs[rows[at, length]]
                    later = ahead[at + length, used + 1]
                    for s in range(count):
                        best[s] = min(best[s], own[s] + later[s])
            ahead[at, used] = best
            _step(ahead[at, used], sizes, move_usd)
