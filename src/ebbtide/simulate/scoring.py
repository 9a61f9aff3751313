"""Scores of requests that are done with: waits by window, and which windows kept their targets.

What belongs here: counts and histograms that grow piece by piece, and percentiles of them. What doesn't: queues, hours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints
from ebbtide.fleet.workload import TargetKind, Workload
from ebbtide.simulate.kernels import SERVED
from ebbtide.simulate.runs import Done
from ebbtide.simulate.streams import Stream

# Waits are counted in bins 2 % wide from a tenth of a millisecond to 11 days; a percentile is right to half of that.
SHORTEST_S, RATIO, BINS = 1e-4, 1.02, 1200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """The instances of a fold's windows: cell c is window ``window[c]`` on ``[starts_s[c], starts_s[c+1])``."""

    starts_s: Floats
    window: Ints
    end_s: float
    windows: int


@dataclass(slots=True, kw_only=True, eq=False)
class Tally:
    """What became of one workload's scored requests, by cell. ``within[:, -1]`` counts those within all targets."""

    cells: Cells
    percentiles: tuple[float, ...]
    requests: Ints
    within: NDArray[np.int64]
    waits: NDArray[np.int64]
    _latency: NDArray[np.bool_]
    _bounds_s: Floats
    _scored: NDArray[np.bool_]
    _start_s: float
    _interval_s: float

    @classmethod
    def of(cls, workload: Workload, stream: Stream, cells: Cells) -> Tally:
        """An empty one."""
        count, targets = len(cells.window), workload.targets
        return cls(
            cells=cells,
            percentiles=tuple(target.percentile for target in targets),
            requests=np.zeros(count, dtype=np.int64),
            within=np.zeros((count, len(targets) + 1), dtype=np.int64),
            waits=np.zeros((count, BINS), dtype=np.int64),
            _latency=np.array([target.kind is TargetKind.LATENCY for target in targets]),
            _bounds_s=np.array([target.bound_s for target in targets]),
            _scored=stream.scored,
            _start_s=float(stream.start_s),
            _interval_s=float(stream.interval_s),
        )

    def add(self, done: Done) -> None:
        """Count the scored ones of some requests; a wait that ended in giving up counts as long as it lasted."""
        _count(
            (done.arrival_s, done.service_s, done.wait_s, done.outcome),
            (self._scored, self._start_s, self._interval_s, self.cells.starts_s),
            (self._latency, self._bounds_s),
            (self.requests, self.within, self.waits),
        )

    @property
    def held(self) -> NDArray[np.bool_]:
        """By cell: every target kept; a cell without scored requests keeps them."""
        asked = self.requests[:, None] * np.array(self.percentiles)
        return np.asarray((self.within[:, :-1] >= asked - 1e-9).all(axis=1))

    @property
    def score(self) -> Score:
        """The sums that outlive the fold."""
        by_window = np.zeros((self.cells.windows, BINS), dtype=np.int64)
        np.add.at(by_window, self.cells.window, self.waits)
        seen = self.requests > 0
        return Score(
            requests=self._by_window(self.requests),
            within=self._by_window(self.within[:, -1]),
            waits=by_window,
            cells=self._by_window(seen.astype(np.int64)),
            held=self._by_window((seen & self.held).astype(np.int64)),
        )

    def wait_s(self, share: float) -> Floats:
        """A percentile of the wait in every cell; NaN where nobody was scored."""
        return np.array([wait_percentile_s(row, share) for row in self.waits])

    def _by_window(self, per_cell: Ints) -> Ints:
        return np.bincount(self.cells.window, weights=per_cell, minlength=self.cells.windows).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Score:
    """Sums by window: requests, those within all targets, their waits by bin; instances seen, and those held."""

    requests: Ints
    within: Ints
    waits: NDArray[np.int64]
    cells: Ints
    held: Ints

    def wait_s(self, share: float) -> float:
        """A percentile of all waits, seconds; NaN without requests."""
        return wait_percentile_s(self.waits.sum(axis=0), share)

    @property
    def attained(self) -> float:
        """The share of requests within all targets; NaN without requests."""
        total = int(self.requests.sum())
        return int(self.within.sum()) / total if total else math.nan

    @property
    def held_share(self) -> float:
        """The share of window instances that kept every target; NaN without any."""
        total = int(self.cells.sum())
        return int(self.held.sum()) / total if total else math.nan

    def of_window(self, window: int) -> Score:
        """One window's part."""
        one = slice(window, window + 1)
        return Score(
            requests=self.requests[one],
            within=self.within[one],
            waits=self.waits[one],
            cells=self.cells[one],
            held=self.held[one],
        )


def together(scores: list[Score]) -> Score:
    """The sum over workloads or folds, as one window."""
    return Score(
        requests=np.array([sum(int(one.requests.sum()) for one in scores)]),
        within=np.array([sum(int(one.within.sum()) for one in scores)]),
        waits=np.sum([one.waits.sum(axis=0) for one in scores], axis=0)[None, :],
        cells=np.array([sum(int(one.cells.sum()) for one in scores)]),
        held=np.array([sum(int(one.held.sum()) for one in scores)]),
    )


def wait_percentile_s(waits: NDArray[np.int64], share: float) -> float:
    """The wait that the given share of a histogram's requests keep to, seconds; inf where they never start.

    >>> row = np.zeros(BINS, dtype=np.int64)
    >>> row[0], row[400] = 95, 5
    >>> wait_percentile_s(row, 0.95), round(wait_percentile_s(row, 0.96), 3)
    (0.0, 0.273)
    """
    total = int(waits.sum())
    if not total:
        return math.nan
    place = int(np.searchsorted(np.cumsum(waits), max(share * total - 1e-9, 1)))
    if place == 0:
        return 0.0
    return math.inf if place == BINS - 1 else SHORTEST_S * RATIO ** (place - 0.5)


@njit(cache=True, nogil=True)
def _count(done, places, targets, sums):  # type: ignore[no-untyped-def] # numba infers from the call
    arrival_s, service_s, wait_s, outcome = done
    scored, start_s, interval_s, starts_s = places
    latency, bounds_s = targets
    requests, within, waits = sums
    cell = 0
    per_bin = 1.0 / np.log(RATIO)
    for i in range(arrival_s.size):
        interval = min(int((arrival_s[i] - start_s) / interval_s), scored.size - 1)
        if not scored[interval]:
            continue
        while cell + 1 < starts_s.size and starts_s[cell + 1] <= arrival_s[i]:
            cell += 1
        wait = wait_s[i]
        requests[cell] += 1
        if wait == 0.0:
            waits[cell, 0] += 1
        elif wait == np.inf:
            waits[cell, -1] += 1
        else:
            place = 1 + int(max(np.log(wait / SHORTEST_S) * per_bin, 0.0))
            waits[cell, min(place, waits.shape[1] - 2)] += 1
        if outcome[i] != SERVED:
            continue
        every = True
        for target in range(bounds_s.size):
            kept = wait + service_s[i] * latency[target] <= bounds_s[target]
            within[cell, target] += kept
            every = every and kept
        within[cell, bounds_s.size] += every
