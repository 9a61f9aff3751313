"""Two settings against each other: the interval of the ratio of their sustained rates (§M.9).

Blocks alternate A B B A, so that what drifts slowly (a warming GPU, a noisy neighbour) weighs on both alike; both get
the same seeds and arrivals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, hypot


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One setting's crossing, ln(rate), with its interval; an end may be infinite."""

    at: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """First over second; an end is 0 or infinite where one of them has none."""

    ratio: float
    low: float
    high: float

    @property
    def differs(self) -> bool:
        """Whether the interval leaves 1 out."""
        return self.low > 1.0 or self.high < 1.0


def order() -> Iterator[int]:
    """0 and 1 as A B B A A B B A …

    >>> from itertools import islice
    >>> list(islice(order(), 6))
    [0, 1, 1, 0, 0, 1]
    """
    while True:
        yield from (0, 1, 1, 0)


def ratio(first: Side, second: Side) -> Ratio:
    """By the method of variance estimates recovery on the logarithm (Zou and Donner, 2008, Stat. in Medicine 27:1693).

    Taken as independent, which equal arrivals make cautious: what both have in common falls out of their ratio.

    >>> found = ratio(Side(at=0.1, low=0.05, high=0.15), Side(at=0.0, low=-0.05, high=0.05))
    >>> round(found.low, 3), round(found.high, 3), found.differs
    (1.03, 1.186, True)
    """
    apart = first.at - second.at
    down = hypot(first.at - first.low, second.high - second.at)
    up = hypot(first.high - first.at, second.at - second.low)
    return Ratio(ratio=exp(apart), low=exp(apart - down), high=exp(apart + up))
