"""Where verdicts put the sustained rate: between the highest that passed and the lowest that failed (§M.1, §M.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from ebbtide.capacity.verdict import Verdict

FACTOR = 2.0
# Narrow enough for a first guess in its middle to lie within a tenth of the crossing.
NARROW = 1.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Bracket:
    """``low_rps`` passed, ``high_rps`` failed, None where nothing has yet; ``near_rps`` could not be decided.

    Rates above the lowest that failed do not count: the sustained rate is the largest *below which* none fails.
    ``monotone`` is False where a higher rate passed all the same.
    """

    low_rps: float | None
    high_rps: float | None
    near_rps: float | None
    monotone: bool

    @property
    def narrow(self) -> bool:
        """Whether the search around the crossing can begin."""
        if self.near_rps is not None:
            return True
        return self.low_rps is not None and self.high_rps is not None and self.high_rps <= NARROW * self.low_rps

    def next_rps(self, start_rps: float) -> float:
        """The rate to try next: up or down by a factor of 2, then the geometric middle.

        >>> Bracket(low_rps=2.0, high_rps=8.0, near_rps=None, monotone=True).next_rps(1.0)
        4.0
        """
        if self.low_rps is None:
            return self.high_rps / FACTOR if self.high_rps is not None else start_rps
        return sqrt(self.low_rps * self.high_rps) if self.high_rps is not None else self.low_rps * FACTOR

    @property
    def centre_rps(self) -> float:
        """A first guess of the crossing, once ``narrow``; the bracket's middle or its one known end before that."""
        if self.near_rps is not None:
            return self.near_rps
        if self.low_rps is None or self.high_rps is None:
            return self.low_rps or self.high_rps or 1.0
        return sqrt(self.low_rps * self.high_rps)


def bracketed(verdicts: Sequence[tuple[float, Verdict]]) -> Bracket:
    """What the verdicts so far, of (rate, verdict), say together; a later verdict of a rate replaces an earlier one.

    >>> bracketed([(2.0, Verdict.PASSES), (4.0, Verdict.FAILS), (8.0, Verdict.PASSES)])
    Bracket(low_rps=2.0, high_rps=4.0, near_rps=None, monotone=False)
    """
    last = dict(verdicts)
    high = min((rate for rate, verdict in last.items() if verdict is Verdict.FAILS), default=None)
    passed = [rate for rate, verdict in last.items() if verdict is Verdict.PASSES]
    low = max((rate for rate in passed if high is None or rate < high), default=None)
    near = [rate for rate, verdict in last.items() if verdict is Verdict.NEAR and (high is None or rate < high)]
    monotone = high is None or not any(rate > high for rate in passed)
    return Bracket(low_rps=low, high_rps=high, near_rps=min(near, default=None), monotone=monotone)
