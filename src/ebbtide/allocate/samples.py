"""One workload's planned demand over all windows as one ragged batch, for a single call of the queueing curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints, WindowDemand

Number = TypeVar("Number", np.float64, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WorkloadSamples:
    """All windows of one workload, concatenated.

    Scenario ``g`` of all windows holds the samples ``offsets[g]:offsets[g+1]`` of ``rates_rps`` and ``scv`` and belongs
    to past day ``day[g]`` of its window; window ``k`` holds the scenarios ``windows[k]:windows[k+1]`` and the value
    samples ``value_offsets[k]:value_offsets[k+1]``. ``days``, ``service_time_s`` and ``service_scv`` are per window.
    """

    rates_rps: Floats
    scv: Floats
    offsets: Ints
    day: Ints
    windows: Ints
    days: Ints
    value_rates_rps: Floats
    value_scv: Floats
    value_offsets: Ints
    service_time_s: Floats
    service_scv: Floats

    @property
    def scenarios_per_window(self) -> Ints:
        """Count of scenarios in every window, int64[windows]."""
        return np.diff(self.windows)

    def per_scenario(self, per_window: NDArray[Number]) -> NDArray[Number]:
        """A number per window, repeated for each of its scenarios."""
        return np.repeat(per_window, self.scenarios_per_window)

    @property
    def scenario_mean_rps(self) -> Floats:
        """Mean planned rate of every scenario; 0 for one without samples."""
        return ragged_means(self.rates_rps, self.offsets)

    @property
    def value_mean_rps(self) -> Floats:
        """Mean past rate of every window, without margin; 0 for a window without samples."""
        return ragged_means(self.value_rates_rps, self.value_offsets)

    @property
    def planned_mean_rps(self) -> Floats:
        """Mean planned rate of every window, over all its scenarios' samples."""
        return ragged_means(self.rates_rps, self.offsets[self.windows])

    def pick(self, windows: Ints) -> WorkloadSamples:
        """The batch of some of the windows, in the given order."""
        scenarios, scenario_bounds = stretches(self.windows, windows)
        rows, row_bounds = stretches(self.offsets, scenarios)
        values, value_bounds = stretches(self.value_offsets, windows)
        return WorkloadSamples(
            rates_rps=self.rates_rps[rows],
            scv=self.scv[rows],
            offsets=row_bounds,
            day=self.day[scenarios],
            windows=scenario_bounds,
            days=self.days[windows],
            value_rates_rps=self.value_rates_rps[values],
            value_scv=self.value_scv[values],
            value_offsets=value_bounds,
            service_time_s=self.service_time_s[windows],
            service_scv=self.service_scv[windows],
        )


def samples_of(windows: Sequence[WindowDemand]) -> WorkloadSamples:
    """The ragged batch of one workload's windows, in their order.

    >>> one = np.ones(1); bounds = np.array([0, 1]); zero = np.zeros(1, dtype=np.int64)
    >>> window = WindowDemand(rates_rps=2 * one, scv=one, offsets=bounds, day=zero, days=1, value_rates_rps=one,
    ...                       value_scv=one, service_time_s=3.0, service_scv=1.0)
    >>> samples_of([window, window]).offsets.tolist(), samples_of([window, window]).value_mean_rps.tolist()
    ([0, 1, 2], [1.0, 1.0])
    """
    sample_counts = [len(window.rates_rps) for window in windows]
    first_sample = _running(sample_counts)
    ends = [window.offsets[1:] + first for window, first in zip(windows, first_sample.tolist(), strict=False)]
    return WorkloadSamples(
        rates_rps=np.concatenate([window.rates_rps for window in windows]),
        scv=np.concatenate([window.scv for window in windows]),
        offsets=np.concatenate([np.zeros(1, dtype=np.int64), *ends]),
        day=np.concatenate([window.day for window in windows]),
        windows=_running([len(window.day) for window in windows]),
        days=np.array([window.days for window in windows], dtype=np.int64),
        value_rates_rps=np.concatenate([window.value_rates_rps for window in windows]),
        value_scv=np.concatenate([window.value_scv for window in windows]),
        value_offsets=_running([len(window.value_rates_rps) for window in windows]),
        service_time_s=np.array([window.service_time_s for window in windows]),
        service_scv=np.array([window.service_scv for window in windows]),
    )


def ragged_means(values: Floats, offsets: Ints) -> Floats:
    """Mean of every stretch ``offsets[i]:offsets[i+1]``; 0 where it is empty.

    >>> ragged_means(np.array([1.0, 3.0, 5.0]), np.array([0, 2, 2, 3])).tolist()
    [2.0, 0.0, 5.0]
    """
    sums = np.concatenate([np.zeros(1), np.cumsum(values)])
    counts = np.diff(offsets)
    means: Floats = (sums[offsets[1:]] - sums[offsets[:-1]]) / np.maximum(counts, 1)
    return means


def stretches(offsets: Ints, chosen: Ints) -> tuple[Ints, Ints]:
    """The indices inside the chosen stretches ``offsets[i]:offsets[i+1]``, and the chosen stretches' own offsets.

    >>> inside, bounds = stretches(np.array([0, 2, 5]), np.array([1]))
    >>> inside.tolist(), bounds.tolist()
    ([2, 3, 4], [0, 3])
    """
    lengths = np.diff(offsets)[chosen]
    bounds = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    inside = np.arange(bounds[-1]) + np.repeat(offsets[:-1][chosen] - bounds[:-1], lengths)
    return inside, bounds


def _running(counts: list[int]) -> Ints:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(np.array(counts, dtype=np.int64), dtype=np.int64)])
