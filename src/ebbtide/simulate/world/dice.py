"""Random choices, one stream for each concern: what a pod draws never shifts what a machine will draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")
_DRAWN = 4096  # uniforms drawn in one call of numpy: one at a time costs ten times as much


class Dice:
    """Choices by seed and stream: same seed, same choices, on one version of numpy.

    >>> Dice(7, 1).share() == Dice(7, 1).share(), Dice(7, 1).share() == Dice(7, 2).share()
    (True, False)
    """

    __slots__ = ("_left", "_rng")

    def __init__(self, seed: int, stream: int) -> None:
        self._rng = np.random.default_rng([seed, stream])
        self._left: list[float] = []

    def share(self) -> float:
        """Uniform on [0, 1)."""
        if not self._left:
            self._left = self._rng.random(_DRAWN).tolist()
        return self._left.pop()

    def chance(self, probability: float) -> bool:
        """True with that probability; what cannot happen draws nothing."""
        return probability > 0.0 and self.share() < probability

    def between(self, span_s: tuple[float, float]) -> float:
        """Between two positive ends, in the logarithm: most are short and a few long, as times of moves are."""
        low_s, high_s = span_s
        return low_s * math.exp(self.share() * math.log(high_s / low_s)) if high_s > low_s else low_s

    def gap_s(self, per_day: float) -> float:
        """Time until the next of events that come ``per_day`` times a day, independently of each other."""
        return -math.log1p(-self.share()) * 86_400.0 / per_day

    def pick(self, from_: Sequence[T]) -> T:
        """One of several, each as likely."""
        return from_[int(self.share() * len(from_))]
