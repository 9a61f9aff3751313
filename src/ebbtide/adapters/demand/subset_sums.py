"""Series that are the sum of some of the others: found by linear algebra, believed only where the numbers agree.

A sum of a subset is a linear combination with coefficients 0 and 1. One QR decomposition of all series, smallest first,
shows which of them lie in the span of smaller ones; a second one gives their coefficients over those that do not.
Coefficients near 0 and 1 that the data determine name a subset, and the subset is added up and compared, interval by
interval. The work is bounded by ``MOST_SERIES`` and ``_MOST_ROWS``, whatever the numbers are.

What belongs here: sums of subsets. What doesn't: sums of all (``sums``), which need no algebra and fewer intervals.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ebbtide.fleet.demand import Floats

Mask = NDArray[np.bool_]

# Two decompositions of 2,000 series over 4,096 intervals take some seconds and 130 MB; a Fleet holds no more.
MOST_SERIES = 2_000
_MOST_ROWS = 4_096
# Intervals in which the sum moved by more than its rounding: noise that fits so often by chance was never seen.
_FEWEST_MOVES = 50
# With fewer intervals to a series, every series is nearly a combination of the others.
_ROWS_PER_SERIES = 2
# A coefficient this near to 0 or 1, with a standard error of a third of it at most, is 0 or 1; what it is wrong about,
# the addition shows.
_NEAR = 0.25
# What a series has that the others have not is its own where it is so many times its rounding, else it may be that:
# multiples of one wave are told apart by nothing else.
_OWN = 10.0
# Single precision keeps 24 bits: a sum of parts that passed through it is off by some 1e-7 of itself.
_RELATIVE = 1e-6
_EPSILON = 1e-12


def subset_sums(value: Floats, rounding: float) -> Mask:
    """For every series (rows of ``value``, NaN: not observed) whether it is a sum of others, shape (keys,).

    It is where it equals, within the rounding of the numbers, the sum of two or more smaller series (means over time)
    that are no such sums themselves, at every interval where it and they were observed, 50 of which moved it.
    None is found among more than 2,000 series, nor where there are fewer than two intervals to a series.

    >>> day = np.random.default_rng(1).uniform(1.0, 9.0, (3, 100))
    >>> subset_sums(np.vstack([day, day[0] + day[2]]), rounding=1e-9).tolist()
    [False, False, False, True]
    """
    sums = np.zeros(len(value), dtype=np.bool_)
    filled, seen = np.nan_to_num(value), np.isfinite(value)
    means = filled.sum(axis=1) / np.maximum(seen.sum(axis=1), 1)
    order = [int(k) for k in np.argsort(means, kind="stable") if means[k] > 0]
    if not 3 <= len(order) <= MOST_SERIES:
        return sums
    rows = _rows(seen[order])
    if len(rows) < max(_FEWEST_MOVES, _ROWS_PER_SERIES * len(order)):
        return sums
    spanned = _Span(filled[order][:, rows], rounding)
    for place, parts in spanned.subsets():
        whole, chosen = order[place], [order[part] for part in parts]
        sums[whole] = _adds_up(filled, seen, whole, chosen, rounding)
    return sums


def _rows(seen: Mask) -> NDArray[np.int64]:
    """The intervals for the algebra: where all were observed or, where those are few, where any was (missing is 0)."""
    rows = np.flatnonzero(seen.all(axis=0))
    if len(rows) < max(_FEWEST_MOVES, _ROWS_PER_SERIES * len(seen)):
        rows = np.flatnonzero(seen.any(axis=0))
    if len(rows) > _MOST_ROWS:
        rows = rows[np.linspace(0, len(rows) - 1, _MOST_ROWS).astype(np.int64)]
    return rows.astype(np.int64)


class _Span:
    """Series, smallest first, split into a basis and those that lie in the span of smaller ones."""

    def __init__(self, series: Floats, rounding: float) -> None:
        self._count, self._rows = series.shape
        norms = np.linalg.norm(series, axis=1)
        residuals = np.abs(np.diagonal(np.linalg.qr(series.T, mode="r")))
        # The rounding of a sum and of its parts, of which there are at most all smaller ones.
        noise = rounding * np.sqrt(self._rows * (1.0 + np.arange(self._count))) + _RELATIVE * norms
        self._inside = np.flatnonzero(residuals <= np.minimum(noise, 0.01 * norms))
        self._basis = np.setdiff1d(np.arange(self._count), self._inside)
        self._norms = norms
        self._largest = series.max(axis=1)
        self._rounding = rounding
        self._series = series

    def subsets(self) -> list[tuple[int, NDArray[np.int64]]]:
        """Places in the order whose coefficients are 0 and 1, each with the places of its parts."""
        if len(self._inside) == 0 or len(self._basis) < 2:
            return []
        both = np.concatenate([self._basis, self._inside])
        r = np.asarray(np.linalg.qr(self._series[both].T, mode="r"), dtype=np.float64)
        size = len(self._basis)
        inverse = np.asarray(np.linalg.inv(r[:size, :size]), dtype=np.float64)
        found = []
        for column, place in enumerate(self._inside.tolist(), start=size):
            smaller = int(np.searchsorted(self._basis, place))
            chosen = self._chosen(r[:, column], inverse[:smaller, :smaller], place)
            if chosen is not None:
                found.append((place, self._basis[:smaller][chosen]))
        return found

    def _chosen(self, projected: Floats, inverse: Floats, place: int) -> Mask | None:
        smaller = len(inverse)
        coefficients = inverse @ projected[:smaller]
        # What the smaller ones leave of it; the diagonal below them holds the rest of its norm.
        rest = np.sqrt(max(self._norms[place] ** 2 - float(projected[:smaller] @ projected[:smaller]), 0.0))
        noise = max(rest, _EPSILON * self._norms[place]) / np.sqrt(self._rows - smaller)
        spread = np.linalg.norm(inverse, axis=1)  # one over the norm of what each series has of its own
        chosen = coefficients > 0.5
        determined = (np.abs(coefficients - chosen) <= _NEAR) & (noise * spread <= _NEAR / 3.0)
        determined &= _OWN * self._rounding * np.sqrt(self._rows / 3.0) * spread <= 1.0
        # A series that the rounding of the sum swallows may be a part or not: nobody can tell, and nobody need.
        swallowed = self._largest[self._basis[:smaller]] <= (chosen.sum() + 1) * self._rounding
        return chosen if chosen.sum() >= 2 and bool((determined | swallowed).all()) else None


def _adds_up(filled: Floats, seen: Mask, whole: int, parts: list[int], rounding: float) -> bool:
    """Whether the parts add up to the whole where all were observed or, where that is too seldom, with missing as 0."""
    both = seen[whole] & seen[parts].all(axis=0)
    if both.sum() <= _FEWEST_MOVES:
        both = seen[whole] & seen[parts].any(axis=0)
    total, sums = filled[whole][both], filled[parts][:, both].sum(axis=0)
    slack = (len(parts) + 1) * rounding + _RELATIVE * total
    moves = np.abs(np.diff(total)) > 2.0 * slack[1:]
    return bool((np.abs(total - sums) <= slack).all() and moves.sum() >= _FEWEST_MOVES)
