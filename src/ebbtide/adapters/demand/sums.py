"""Sums beside their parts: series that hold no workload of their own (§5.2)."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from ebbtide.adapters.demand.grid import Grid
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
    or where it is named ``total`` and is never below that sum. A source's only series is kept.
    """
    value = grid.value
    means = (
        np.nanmean(np.where(np.isfinite(value), value, np.nan), axis=1, where=np.isfinite(value)) if value.size else []
    )
    sums = np.zeros(len(grid.keys), dtype=np.bool_)
    groups = np.array([_group(key) for key in grid.keys])
    for candidate in np.argsort(np.nan_to_num(means), kind="stable"):
        smaller = ~sums & (np.nan_to_num(means) <= np.nan_to_num(means)[candidate])
        smaller[candidate] = False
        for parts in (smaller & (groups == groups[candidate]), smaller):
            if _equals(value[candidate], value[parts]):
                sums[candidate] = True
    for candidate, key in enumerate(grid.keys):
        own = ~sums & (groups == groups[candidate])
        own[candidate] = False
        if _named_total(key) and not sums[candidate] and own.any():
            sums[candidate] = _never_below(value[candidate], value[own])
    return sums


def _group(key: str) -> str:
    """What stands before the last slash: ``m-small/c5`` and ``m-small/total`` belong together."""
    return key.rpartition("/")[0]


def _named_total(key: str) -> bool:
    return re.split(r"[/:._ -]", key.casefold())[-1] == "total"


def _equals(whole: Floats, parts: Floats) -> bool:
    if len(parts) < 2 or (np.nansum(parts, axis=1) > 0).sum() < 2:
        return False
    both = np.isfinite(whole) & np.isfinite(parts).any(axis=0)
    added = np.nansum(parts[:, both], axis=0)
    if (added > 0).sum() < _FEWEST_INTERVALS:
        return False
    return bool((np.abs(whole[both] - added) <= _tolerance(whole[both], parts)).all())


def _never_below(whole: Floats, parts: Floats) -> bool:
    both = np.isfinite(whole) & np.isfinite(parts).any(axis=0)
    added = np.nansum(parts[:, both], axis=0)
    return bool(both.any() and (whole[both] >= added - _tolerance(whole[both], parts)).all())


def _tolerance(whole: Floats, parts: Floats) -> Floats:
    return (len(parts) + 1) * 0.5 * 10.0 ** -_decimals(parts) + _RELATIVE * np.abs(whole)


def _decimals(values: Floats) -> int:
    """Decimals to which the numbers are rounded; the most that is looked for where they are not."""
    finite = values[np.isfinite(values)]
    for decimals in range(_MOST_DECIMALS):
        if (np.abs(finite - np.round(finite, decimals)) <= 1e-9 * np.maximum(np.abs(finite), 1.0)).all():
            return decimals
    return _MOST_DECIMALS
