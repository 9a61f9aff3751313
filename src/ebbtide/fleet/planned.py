"""Demand to plan for: per workload and window the rates of past days as a distribution, never one number (§5.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ebbtide.fleet.demand import Floats

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WindowDemand:
    """One workload's planned demand in one window.

    Targets are judged on *scenarios*: scenario ``g`` holds the samples ``offsets[g]:offsets[g+1]`` of ``rates_rps``
    (equal lengths of time, margin applied) and belongs to past day ``day[g]`` (0 … ``days``−1). With n replicas a
    scenario attains Σ rate·P(within target) / Σ rate; a day holds if all its scenarios do; the window is to hold on
    the share ``confidence`` of days. Money is counted on ``value_rates_rps``: the same window's past rates without
    margin. ``service_time_s`` and ``service_scv`` are the Fleet's or, where it says observed, the trace's.
    """

    rates_rps: Floats
    scv: Floats
    offsets: Ints
    day: Ints
    days: int
    value_rates_rps: Floats
    value_scv: Floats
    service_time_s: float
    service_scv: float

    @property
    def mean_rate_rps(self) -> float:
        """Mean of the past rates, without margin; 0 where the window never saw a request."""
        return float(self.value_rates_rps.mean()) if len(self.value_rates_rps) else 0.0


def confidence_rank(days: int, confidence: float) -> int:
    """How many of ``days`` past days must hold: ⌈confidence·days⌉, at least one (§5.3).

    >>> [confidence_rank(days, 0.95) for days in (1, 7, 19, 20, 21, 40)]
    [1, 7, 19, 19, 20, 38]
    """
    # 0.95 · 20 is 19.000000000000004 in some orders of evaluation; a part in 1e9 of a day is no day.
    return min(max(math.ceil(confidence * days - 1e-9), 1), max(days, 1))
