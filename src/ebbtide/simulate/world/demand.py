"""What the workloads are asked for while the world runs: rates over time, seen live and by autoscalers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LiveDemand:
    """``rates_rps[workload][j]`` holds from ``starts_s[j]`` on; NaN: not observed then.

    >>> live = LiveDemand(starts_s=np.array([0.0, 60.0]), rates_rps={"chat": np.array([2.0, np.nan])})
    >>> dict(live.at(30.0)), dict(live.at(90.0)), live.rate_rps("chat", 30.0)
    ({'chat': 2.0}, {}, 2.0)
    """

    starts_s: NDArray[np.float64]
    rates_rps: Mapping[str, NDArray[np.float64]]
    _starts: list[float] = field(default_factory=list)
    _kept: dict[int, dict[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._starts.extend(self.starts_s.tolist())

    def interval(self, at_s: float) -> int:
        """The interval that holds an instant; −1 before the first."""
        return bisect_right(self._starts, at_s) - 1

    def at(self, at_s: float) -> Mapping[str, float]:
        """Rates by workload, those that are observed; the same mapping throughout an interval."""
        now = self.interval(at_s)
        if now < 0:
            return {}
        if now not in self._kept:
            self._kept.clear()
            rates = {name: float(values[now]) for name, values in self.rates_rps.items()}
            self._kept[now] = {name: rate for name, rate in rates.items() if rate == rate}
        return self._kept[now]

    def rate_rps(self, workload: str, at_s: float) -> float | None:
        """One workload's rate; None: not observed."""
        return self.at(at_s).get(workload)

    def next_change_s(self, at_s: float) -> float | None:
        """When the next interval begins; None after the last."""
        after = self.interval(at_s) + 1
        return self._starts[after] if after < len(self._starts) else None
