"""What a report is made from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.schedule import Explanation, Schedule


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DemandProfile:
    """One workload's demand as it was seen, folded onto the cycle in the fleet's zone.

    ``minutes[b]`` is bin b's start in minutes since the cycle's (midnight, or Monday's), ``turns`` the ordinal of each
    past day (or week): days since 1970-01-01 of its first date. ``rates_rps[turn, b]`` is the mean rate in the bin,
    NaN where nothing was observed. ``gpus_per_rps`` are the GPUs that one request per second keeps busy: service time
    × GPUs of a replica ÷ its slots.
    """

    workload: str
    minutes: NDArray[np.int64]
    turns: NDArray[np.int64]
    rates_rps: Floats
    gpus_per_rps: float

    @property
    def low_rps(self) -> Floats:
        """The lowest past turn, per bin; NaN where no turn was observed."""
        return across_turns(self.rates_rps, 0.0)

    @property
    def median_rps(self) -> Floats:
        """The median past turn, per bin; NaN where no turn was observed."""
        return across_turns(self.rates_rps, 0.5)

    @property
    def high_rps(self) -> Floats:
        """The highest past turn, per bin; NaN where no turn was observed."""
        return across_turns(self.rates_rps, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReportInput:
    """A plan, what it was made for, and the demand it was made from (one profile a workload; any may be absent)."""

    fleet: Fleet
    schedule: Schedule
    explanation: Explanation
    profiles: tuple[DemandProfile, ...]


def across_turns(values: Floats, share: float) -> Floats:
    """The quantile over the first axis of what was observed; NaN in bins that no turn observed.

    >>> across_turns(np.array([[1.0, np.nan], [3.0, np.nan]]), 0.5)
    array([ 2., nan])
    """
    counts = (~np.isnan(values)).sum(axis=0)
    if not len(values) or not counts.any():
        return np.full(values.shape[1], np.nan)
    # Sorting puts NaN last; numpy's own nanquantile goes bin by bin and is a hundred times slower.
    ranked = np.sort(values, axis=0)
    place = share * np.maximum(counts - 1, 0)
    below = np.floor(place).astype(np.int64)
    low = np.take_along_axis(ranked, below[np.newaxis], axis=0)[0]
    high = np.take_along_axis(ranked, np.ceil(place).astype(np.int64)[np.newaxis], axis=0)[0]
    result: Floats = low + (high - low) * (place - below)
    return result
