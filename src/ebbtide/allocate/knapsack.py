"""Exact choice of replicas for one window: a multiple-choice knapsack by (min, +) convolution.

Every workload has a curve over its replicas; its entries are pairs (shortage, money), compared in that order (§5.7).
The dynamic program over workloads keeps, for every count of GPUs, the least pair that uses exactly that many, so that
among equal pairs the fewest GPUs can be chosen. Exact for any curves, convex or not.
Source: H. Kellerer, U. Pferschy, D. Pisinger, Knapsack Problems (2004), section 11.5 (multiple choice, dynamic
programming by profits' dual, weights).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints

# Shortage counts in whole units (see ``curves.SHORTAGE_UNITS``); this one stands for "cannot be reached".
UNREACHABLE = np.int64(2**62)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Choices:
    """The curves of some workloads in one window, above a first count of replicas each.

    Workload ``i`` may take ``0 … length[i]-1`` replicas more, each ``width[i]`` wide; with j more its pair is
    ``(deficit[start[i]+j], money[start[i]+j])``.
    """

    width: Ints
    start: Ints
    length: Ints
    deficit: Ints
    money: Floats

    def pick(self, workloads: Ints) -> Choices:
        """The choices of some of the workloads, in that order."""
        return Choices(
            width=self.width[workloads],
            start=self.start[workloads],
            length=self.length[workloads],
            deficit=self.deficit,
            money=self.money,
        )

    def beyond(self, more: Ints) -> Choices:
        """What is left to choose above ``more`` replicas each."""
        return Choices(
            width=self.width,
            start=self.start + more,
            length=self.length - more,
            deficit=self.deficit,
            money=self.money,
        )

    def total(self, more: Ints) -> tuple[int, float]:
        """Shortage units and money of one choice."""
        at = self.start + more
        return int(self.deficit[at].sum()), float(self.money[at].sum())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stages:
    """The dynamic program's tables: row i holds the least pairs of the first i workloads by exact width used."""

    choices: Choices
    deficit: NDArray[np.int64]
    money: NDArray[np.float64]

    @property
    def last(self) -> tuple[Ints, Floats]:
        """Least shortage and, with it, least money for every width used exactly; UNREACHABLE and inf where none."""
        return self.deficit[-1], self.money[-1]

    def back(self, used: int) -> Ints:
        """Replicas more per workload of the best choice that uses exactly ``used``."""
        choices = self.choices
        return np.asarray(
            _trace_back(
                self.deficit,
                self.money,
                choices.width,
                choices.start,
                choices.length,
                choices.deficit,
                choices.money,
                used,
            ),
            dtype=np.int64,
        )


def least_pairs(choices: Choices, budget: int) -> tuple[Ints, Floats]:
    """Least (shortage, money) for every exact width used 0 … budget: int64[budget+1], float64[budget+1].

    >>> two = Choices(width=np.array([2, 1]), start=np.array([0, 2]), length=np.array([2, 3]),
    ...               deficit=np.zeros(5, dtype=np.int64), money=np.array([5.0, 0.0, 4.0, 3.0, 2.5]))
    >>> least_pairs(two, 3)[1].tolist()
    [9.0, 8.0, 4.0, 3.0]
    """
    deficit, money = _run(choices.width, choices.start, choices.length, choices.deficit, choices.money, budget, False)
    return deficit[-1], money[-1]


def staged_pairs(choices: Choices, budget: int) -> Stages:
    """The same with every stage kept, for tracing back."""
    deficit, money = _run(choices.width, choices.start, choices.length, choices.deficit, choices.money, budget, True)
    return Stages(choices=choices, deficit=deficit, money=money)


def best_within(deficit: Ints, money: Floats) -> Ints:
    """For every budget the width to use: least shortage, then least money, then the fewest; -1 where none is reachable.

    >>> best_within(np.array([3, 0, 0]), np.array([1.0, 2.0, 2.0])).tolist()
    [0, 1, 1]
    """
    return np.asarray(_best_within(deficit, money), dtype=np.int64)


@njit(cache=True)
def _run(width, start, length, deficit, money, budget, keep):  # type: ignore[no-untyped-def]  # numba infers types
    rows = len(width) + 1 if keep else 2
    best_deficit = np.full((rows, budget + 1), UNREACHABLE)
    best_money = np.full((rows, budget + 1), np.inf)
    row = 0
    best_deficit[0, 0] = 0
    best_money[0, 0] = 0.0
    reach = 0
    for i in range(len(width)):
        following = row + 1 if keep else 1 - row
        best_deficit[following, :] = UNREACHABLE
        best_money[following, :] = np.inf
        last = min(reach, budget)
        for j in range(length[i]):
            shift = j * width[i]
            if shift > budget:
                break
            d = deficit[start[i] + j]
            m = money[start[i] + j]
            for used in range(min(last, budget - shift) + 1):
                if best_deficit[row, used] == UNREACHABLE:
                    continue
                total = best_deficit[row, used] + d
                usd = best_money[row, used] + m
                known = best_deficit[following, used + shift]
                if total < known or (total == known and usd < best_money[following, used + shift]):
                    best_deficit[following, used + shift] = total
                    best_money[following, used + shift] = usd
        reach += (length[i] - 1) * width[i]
        row = following
    if keep:
        return best_deficit, best_money
    return best_deficit[row : row + 1], best_money[row : row + 1]


@njit(cache=True)
def _trace_back(best_deficit, best_money, width, start, length, deficit, money, used):  # type: ignore[no-untyped-def]  # numba infers types
    more = np.zeros(len(width), dtype=np.int64)
    for i in range(len(width) - 1, -1, -1):
        for j in range(length[i]):
            before = used - j * width[i]
            if before < 0:
                break
            # The same sums in the same order as on the way there, so equality is exact.
            if (
                best_deficit[i, before] != UNREACHABLE
                and best_deficit[i, before] + deficit[start[i] + j] == best_deficit[i + 1, used]
                and best_money[i, before] + money[start[i] + j] == best_money[i + 1, used]
            ):
                more[i] = j
                used = before
                break
    return more


@njit(cache=True)
def _best_within(deficit, money):  # type: ignore[no-untyped-def]  # numba infers types
    chosen = np.full(len(deficit), -1)
    best = -1
    for used in range(len(deficit)):
        if deficit[used] != UNREACHABLE and (
            best < 0 or deficit[used] < deficit[best] or (deficit[used] == deficit[best] and money[used] < money[best])
        ):
            best = used
        chosen[used] = best
    return chosen
