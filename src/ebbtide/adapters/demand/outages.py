"""Outages of the collector: all workloads of a source silent at once, where past days of that hour were not (§5.2)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ebbtide.adapters.demand.grid import Grid
from ebbtide.adapters.demand.zones import clock_over
from ebbtide.fleet.demand import Outage

# §5.2: with fewer, absent is missing and 0 is 0.
FEWEST_WORKLOADS = 3


def find_outages(grid: Grid, *, counted: NDArray[np.bool_], zone: str | None) -> NDArray[np.bool_]:
    """For every interval whether the collector saw nothing, shape (intervals,).

    An interval is an outage where all series are absent or 0 and at least three of the ``counted`` ones (workloads:
    sums do not count) had requests in more than half of the intervals of that hour on the days before, outages left
    aside. Hours are the zone's, else UTC's. On the first day nothing is known yet: absent is missing and 0 is 0.
    """
    silent: NDArray[np.bool_] = ~np.any(grid.value > 0, axis=0)
    outage = np.zeros(len(silent), dtype=np.bool_)
    if counted.sum() < FEWEST_WORKLOADS or not silent.any():
        return outage
    value = grid.value[counted]
    days, hours = _days_and_hours(grid, zone)
    seen, above = np.zeros((len(value), 24)), np.zeros((len(value), 24))
    bounds = np.flatnonzero(np.diff(days, prepend=days[0] - 1, append=days[-1] + 1))
    for start, end in pairwise(bounds.tolist()):
        hour = hours[start:end]
        expected = (2.0 * above > seen).sum(axis=0) >= FEWEST_WORKLOADS
        outage[start:end] = silent[start:end] & expected[hour]
        today = value[:, start:end][:, ~outage[start:end]]
        kept = hour[~outage[start:end]]
        of_hour = np.equal.outer(kept, np.arange(24)).astype(np.float64)
        seen += np.isfinite(today) @ of_hour
        above += (today > 0) @ of_hour
    return outage


def outage_spans(grid: Grid, outage: NDArray[np.bool_]) -> tuple[Outage, ...]:
    """Outages as stretches of time, merged and sorted."""
    edges = np.flatnonzero(np.diff(outage.astype(np.int8), prepend=0, append=0))
    at_s = grid.start_s + grid.interval_s * edges
    return tuple(Outage(start_s=int(start), end_s=int(end)) for start, end in zip(at_s[::2], at_s[1::2], strict=True))


def _days_and_hours(grid: Grid, zone: str | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    starts_s = grid.start_s + grid.interval_s * np.arange(grid.value.shape[1], dtype=np.int64)
    if zone is not None:
        starts_s = starts_s + clock_over(zone, int(starts_s[0]), int(starts_s[-1])).offset_at(starts_s)
    return starts_s // 86_400, starts_s % 86_400 // 3600
