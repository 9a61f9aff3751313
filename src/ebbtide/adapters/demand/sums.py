"""Sums beside their parts: series that hold no workload of their own (§5.2)."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from ebbtide.adapters.demand.grid import Grid
from ebbtide.adapters.demand.subset_sums import subset_sums
from ebbtide.fleet.demand import Floats

# Two short series of small whole numbers add up to a third by chance; a day of hours does not.
_FEWEST_INTERVALS = 24
# Single precision keeps 24 bits: a sum of parts that passed through it is off by some 1e-7 of itself.
_RELATIVE = 1e-6
_MOST_DECIMALS = 7


def find_sums(grid: Grid) -> NDArray[np.bool_]:
    """For every series whether it is the sum of others in the source, shape (keys,).

    A series is a sum where it equals, within the rounding of its numbers, the sum of all smaller ones that are no sums
    themselves (of its group ``X/…``, or of the whole source; at least two of them above 0, over at least 24 intervals);
    or the sum of some of the smaller ones (``subset_sums``); or where it is named ``total`` and is never below the sum
    of its group. A source's only series is kept.
    """
    value = grid.value
    filled, finite = np.nan_to_num(value), np.isfinite(value)
    rounding = 0.5 * 10.0 ** -_decimals(value)
    means = filled.sum(axis=1) / np.maximum(finite.sum(axis=1), 1)
    sums = _subsets(grid.keys, value, rounding)
    groups: dict[str | None, _Added] = {}
    for number in np.argsort(means, kind="stable").tolist():
        if sums[number]:
            continue
        around = [groups.setdefault(name, _Added(value.shape[1])) for name in (_group(grid.keys[number]), None)]
        if any(added.equals(filled[number], finite[number], rounding) for added in around):
            sums[number] = True
            continue
        for added in around:
            added.add(filled[number], finite[number])
    for number, key in enumerate(grid.keys):
        if _named_total(key) and not sums[number]:
            own = [_group(other) == _group(key) for other in grid.keys] & ~sums
            own[number] = False
            sums[number] = _never_below(value[number], value[own], rounding)
    return sums


def _subsets(keys: tuple[str, ...], value: Floats, rounding: float) -> NDArray[np.bool_]:
    """Sums of some of a group's series, and of some of all that are left: a group has fewer series to choose from."""
    sums = np.zeros(len(keys), dtype=np.bool_)
    by_group: dict[str, list[int]] = {}
    for number, key in enumerate(keys):
        by_group.setdefault(_group(key), []).append(number)
    for members in by_group.values():
        sums[members] = subset_sums(value[members], rounding)
    if len(by_group) > 1:
        left = np.flatnonzero(~sums)
        sums[left] = subset_sums(value[left], rounding)
    return sums


class _Added:
    """What the smaller series of a group add up to."""

    def __init__(self, intervals: int) -> None:
        self._total = np.zeros(intervals)
        self._seen = np.zeros(intervals, dtype=np.bool_)
        self._series = 0
        self._above_zero = 0

    def add(self, filled: Floats, finite: NDArray[np.bool_]) -> None:
        self._total += filled
        self._seen |= finite
        self._series += 1
        self._above_zero += int(filled.sum() > 0)

    def equals(self, whole: Floats, finite: NDArray[np.bool_], rounding: float) -> bool:
        both = finite & self._seen
        if self._above_zero < 2 or (self._total[both] > 0).sum() < _FEWEST_INTERVALS:
            return False
        slack = (self._series + 1) * rounding + _RELATIVE * whole[both]
        return bool((np.abs(whole[both] - self._total[both]) <= slack).all())


def _group(key: str) -> str:
    """What stands before the last slash: ``m-small/c5`` and ``m-small/total`` belong together."""
    return key.rpartition("/")[0]


def _named_total(key: str) -> bool:
    return re.split(r"[/:._ -]", key.casefold())[-1] == "total"


def _never_below(whole: Floats, parts: Floats, rounding: float) -> bool:
    if len(parts) == 0:
        return False
    both = np.isfinite(whole) & np.isfinite(parts).any(axis=0)
    slack = (len(parts) + 1) * rounding + _RELATIVE * np.abs(whole[both])
    return bool(both.any() and (whole[both] >= np.nansum(parts[:, both], axis=0) - slack).all())


def _decimals(values: Floats) -> int:
    """Decimals to which the numbers are rounded; the most that is looked for where they are not."""
    finite = values[np.isfinite(values)]
    for decimals in range(_MOST_DECIMALS):
        if (np.abs(finite - np.round(finite, decimals)) <= 1e-9 * np.maximum(np.abs(finite), 1.0)).all():
            return decimals
    return _MOST_DECIMALS
