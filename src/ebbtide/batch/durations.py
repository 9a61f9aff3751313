"""How long a job runs: an estimate with its spread, as a log-normal law (§7.1).

Half of a job's runs end within ``expected_s``, nine of ten within ``p90_s``: the median and the 90th percentile fix the
law. Job durations spread over orders of magnitude, so a law of the logarithm is the usual choice (Feitelson, Workload
Modeling for Computer Systems Performance Evaluation, 2015, §3.2); the median is what a person names when asked.

What belongs here: the law and its percentiles. What doesn't: where an estimate comes from (documents, traces).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

_NORMAL = NormalDist()
_Z90 = _NORMAL.inv_cdf(0.9)
USUAL_SPREAD = 1.3  # p90 over expected where only one number is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Duration:
    """A job's duration: the median ``expected_s`` and the 90th percentile ``p90_s``, both above 0.

    ``ValueError`` where ``p90_s`` is below ``expected_s``, or either is not above 0.

    >>> train = Duration(expected_s=5 * 3600.0, p90_s=6.5 * 3600.0)
    >>> round(train.quantile_s(0.5) / 3600, 6), round(train.quantile_s(0.9) / 3600, 6)
    (5.0, 6.5)
    """

    expected_s: float
    p90_s: float

    def __post_init__(self) -> None:
        if not 0 < self.expected_s <= self.p90_s < math.inf:
            raise ValueError(f"a duration needs 0 < expected <= p90, not {self.expected_s} and {self.p90_s}")

    @classmethod
    def usual(cls, expected_s: float) -> Duration:
        """A duration of which only the median is known: the 90th percentile is 1.3 times that.

        >>> Duration.usual(100.0).p90_s
        130.0
        """
        return cls(expected_s=expected_s, p90_s=USUAL_SPREAD * expected_s)

    @property
    def sigma(self) -> float:
        """Standard deviation of the logarithm; 0: the duration is known exactly."""
        return math.log(self.p90_s / self.expected_s) / _Z90

    def quantile_s(self, share: float) -> float:
        """The time within which so large a share (inside (0, 1)) of the runs ends."""
        return self.expected_s * math.exp(self.sigma * _NORMAL.inv_cdf(share))

    def probability_within(self, time_s: float) -> float:
        """The share of the runs that ends within ``time_s``.

        >>> Duration(expected_s=100.0, p90_s=130.0).probability_within(130.0)
        0.9
        """
        if time_s <= 0:
            return 0.0
        if self.sigma == 0.0:
            return 1.0 if time_s >= self.expected_s else 0.0
        return round(_NORMAL.cdf(math.log(time_s / self.expected_s) / self.sigma), 12)

    def remaining_quantile_s(self, share: float, ran_s: float) -> float:
        """The time that is still left, for so large a share of the runs that have run for ``ran_s`` and not ended.

        Where the law leaves no run that long (a duration known exactly, overrun), a tenth of what was expected.

        >>> law = Duration(expected_s=100.0, p90_s=130.0)
        >>> law.remaining_quantile_s(0.9, 0.0) == law.quantile_s(0.9), round(law.remaining_quantile_s(0.5, 130.0), 1)
        (True, 10.0)
        """
        gone = self.probability_within(ran_s)
        if gone <= 0.0:
            return self.quantile_s(share) - max(ran_s, 0.0)
        whole = gone + share * (1.0 - gone)
        if whole >= 1.0:
            return 0.1 * self.expected_s
        return max(self.quantile_s(whole) - ran_s, 1.0)

    def times(self, factor: float) -> Duration:
        """The duration of a run that takes ``factor`` (above 0) times as long."""
        return Duration(expected_s=self.expected_s * factor, p90_s=self.p90_s * factor)


def duration_of_past(runs_s: Sequence[float]) -> Duration:
    """The duration that past runs of the same job show: their median and their 90th percentile.

    With m runs the k-th smallest stands for the share k/(m+1) (Weibull 1939): few runs are not taken for all there is.
    The 90th percentile needs nine of them; with fewer the usual spread is assumed where it is the larger one.
    ``ValueError`` without a run, or with one that is not above 0.

    >>> duration_of_past([60.0, 50.0, 70.0])
    Duration(expected_s=60.0, p90_s=78.0)
    """
    ordered = sorted(runs_s)
    if not ordered or ordered[0] <= 0:
        raise ValueError("past runs are needed, all above 0 s")
    median = _at_share(ordered, 0.5)
    tail = _at_share(ordered, 0.9)
    return Duration(expected_s=median, p90_s=max(tail, median if len(ordered) >= 9 else USUAL_SPREAD * median))


def _at_share(ordered: Sequence[float], share: float) -> float:
    place = min(max(share * (len(ordered) + 1) - 1, 0.0), len(ordered) - 1.0)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
