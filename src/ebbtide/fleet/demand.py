"""Demand that was seen: per workload a rate for each interval, and whether the interval was observed at all (§5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Seen(IntEnum):
    """What is known of an interval; the codes of ``Series.seen``."""

    OBSERVED = 0
    MISSING = 1
    OUTAGE = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Series:
    """One workload's demand on a regular grid of intervals.

    ``rate_rps[i]`` is the mean arrival rate over ``[start_s + i·interval_s, start_s + (i+1)·interval_s)`` (seconds
    since the Unix epoch); it counts only where ``seen[i] == Seen.OBSERVED`` and is NaN elsewhere, so that a use by
    mistake shows. ``arrival_scv`` (squared coefficient of variation of inter-arrival times), ``service_mean_s`` and
    ``service_scv`` are None where the trace holds no such thing, and NaN in intervals that have too few requests.
    """

    key: str
    start_s: int
    interval_s: int
    rate_rps: Floats
    seen: NDArray[np.uint8]
    arrival_scv: Floats | None = None
    service_mean_s: Floats | None = None
    service_scv: Floats | None = None

    def __post_init__(self) -> None:
        if self.rate_rps.shape != self.seen.shape:
            raise ValueError(f"rates and states differ in length: {self.rate_rps.shape}, {self.seen.shape}")

    @property
    def end_s(self) -> int:
        """End of the last interval, seconds since the epoch."""
        return self.start_s + self.interval_s * len(self.rate_rps)

    @property
    def observed(self) -> NDArray[np.bool_]:
        """True where the rate counts."""
        return np.equal(self.seen, Seen.OBSERVED)

    @property
    def starts_s(self) -> NDArray[np.int64]:
        """Start of every interval, seconds since the epoch."""
        return self.start_s + self.interval_s * np.arange(len(self.rate_rps), dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A stretch in which the collector saw nothing: left out, never planned on. Instants in seconds since the epoch."""

    start_s: int
    end_s: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """What one demand source holds: its series by key, and what was found about it.

    ``sums`` are keys left out because they are the sum of others; ``outages`` are merged and sorted;
    ``duplicate_rows`` and ``unordered_rows`` count what had to be put right; ``sha256`` is of the files' bytes
    (empty for a table). ``rest_rps`` is the mean rate of the series that nobody asked for, sums left aside.
    """

    source: str
    files: tuple[str, ...]
    sha256: str
    interval_s: int
    series: dict[str, Series]
    sums: tuple[str, ...] = ()
    outages: tuple[Outage, ...] = ()
    duplicate_rows: int = 0
    unordered_rows: int = 0
    rest_rps: float = 0.0

    @property
    def start_s(self) -> int:
        """First interval of any series."""
        return min(series.start_s for series in self.series.values())

    @property
    def end_s(self) -> int:
        """End of the last interval of any series."""
        return max(series.end_s for series in self.series.values())
