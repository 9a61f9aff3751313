"""The daily wave of several workloads together: GPUs that requests keep busy, summed day by day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ebbtide.adapters.report.inputs import DemandProfile, across_turns
from ebbtide.fleet.demand import Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wave:
    """Busy GPUs over the cycle: lowest, median and highest of the past turns, per bin of equal length; NaN: unseen."""

    minutes: NDArray[np.int64]
    low_gpus: Floats
    median_gpus: Floats
    high_gpus: Floats
    turns: int

    @property
    def bin_minutes(self) -> int:
        """Length of a bin."""
        return int(self.minutes[1] - self.minutes[0]) if len(self.minutes) > 1 else int(self.minutes[0]) or 1440


def wave_of(profiles: Sequence[DemandProfile]) -> Wave | None:
    """The sum of the profiles, turn by turn where they share turns, else of their quantiles; None without demand."""
    known = [profile for profile in profiles if np.isfinite(profile.gpus_per_rps) and len(profile.turns)]
    if not known:
        return None
    grid = min((profile.minutes for profile in known), key=lambda minutes: int(-len(minutes)))
    turns = np.unique(np.concatenate([profile.turns for profile in known]))
    total = sum((_gpus(profile, grid, turns) for profile in known), np.zeros((len(turns), len(grid))))
    low, median, high = (across_turns(total, share) for share in (0.0, 0.5, 1.0))
    if np.isnan(median).all():
        low, median, high = _summed_quantiles(known, grid, turns)
    return Wave(
        minutes=grid,
        low_gpus=low,
        median_gpus=median,
        high_gpus=high,
        turns=int((~np.isnan(total).all(axis=1)).sum()) or len(turns),
    )


def _gpus(profile: DemandProfile, grid: NDArray[np.int64], turns: NDArray[np.int64]) -> Floats:
    """The profile on the common grid and turns, in GPUs; NaN in turns that it lacks."""
    values = np.full((len(turns), len(grid)), np.nan)
    step = int(profile.minutes[1]) if len(profile.minutes) > 1 else 1440
    values[np.searchsorted(turns, profile.turns)] = profile.rates_rps[:, grid // step] * profile.gpus_per_rps
    return values


def _summed_quantiles(
    profiles: Sequence[DemandProfile], grid: NDArray[np.int64], turns: NDArray[np.int64]
) -> tuple[Floats, Floats, Floats]:
    """Where no turn saw all of them: each workload's own quantiles, summed."""
    sums = []
    for share in (0.0, 0.5, 1.0):
        parts = [across_turns(_gpus(profile, grid, turns), share) for profile in profiles]
        sums.append(np.sum(parts, axis=0))
    return sums[0], sums[1], sums[2]
