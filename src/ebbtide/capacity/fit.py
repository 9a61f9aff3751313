"""The rate at which the bad share crosses its limit, by a local fit with a profile interval (§M.3).

The bad share p of rates near the crossing follows logit p = logit α + b · (x − θ), x the rate in units of a guess, θ
the crossing: a straight line, which holds within about a tenth of the rate only. In the rate itself, not in its
logarithm: the tail of an M/M/c wait is exp(−(cμ − λ) t), and most shares bend upwards against ln(rate).

Quasi-binomial: the counts of blocks of many memories are independent, their variance is φ times the binomial one. φ is
taken from what the blocks' own scatter says of the crossing (a sum of squared influences, so that memories that grow
with the rate weigh as they should), and is never less than the memory. Sources: McCullagh and Nelder, Generalized
Linear Models (1989), §4.5; Liang and Zeger (1986), Biometrika 73:13, for the variance from independent clusters; the
profile interval inverts the quasi-likelihood ratio test of θ.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
from scipy.special import stdtrit

from ebbtide.capacity import kernels
from ebbtide.capacity.limits import Floats

# Beyond this share of the rate from the crossing nothing is said: the interval is open at that end.
FARTHEST = 0.7


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Blocks:
    """Independent counts: ``x`` the rate in any unit near it, ``trials`` and ``bad`` of each block."""

    x: Floats
    trials: Floats
    bad: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """``x`` where the line crosses the limit, ``slope`` b, ``inflation`` φ, and the interval's ends.

    An end is infinite where the data don't bound it.
    """

    at: float
    slope: float
    inflation: float
    low: float
    high: float
    blocks: int


def logit(share: float) -> float:
    """ln(p / (1 − p)).

    >>> logit(0.5)
    0.0
    """
    return log(share / (1.0 - share))


def line(blocks: Blocks, centre: float, *, slope: float = 0.0, weight: float = 0.0) -> tuple[float, float] | None:
    """Height at ``centre`` and slope of the likeliest logit line; ``weight`` is how sure a slope was held beforehand.

    None where no line is likeliest: none bad, all bad, or one rate only and no weight.
    """
    bad, trials = float(blocks.bad.sum()), float(blocks.trials.sum())
    if not 0.0 < bad < trials or (weight == 0.0 and float(np.ptp(blocks.x)) < 1e-9):
        return None
    fitted, height, steep = kernels.logit_line(blocks.x, blocks.trials, blocks.bad, centre, slope, weight)
    return (float(height), float(steep)) if fitted else None


def crossing(blocks: Blocks, limit: float, confidence: float, *, least_inflation: float = 1.0) -> Crossing | None:
    """Where the bad share crosses ``limit``, with its interval; None where no rising line can be fitted.

    >>> x = np.repeat([0.95, 1.0, 1.05], 8)
    >>> bad = np.tile([2, 3, 4, 3, 3, 2, 4, 3], 3) * np.repeat([1.0, 2.0, 4.0], 8)
    >>> found = crossing(Blocks(x=x, trials=np.full(24, 120.0), bad=bad), 0.05, 0.95)
    >>> round(found.low, 3), round(found.at, 3), round(found.high, 3)
    (0.984, 0.999, 1.011)
    """
    count = len(blocks.x)
    centre = float(np.average(blocks.x, weights=blocks.trials)) if count else 0.0
    found = line(blocks, centre)
    if count < 4 or found is None or found[1] <= 0.0:
        return None
    inflation = max(least_inflation, _Line(blocks, centre, found).inflation(limit))
    # The likeliest line of few effective observations is too steep and too low; half of what each block could pull the
    # line is added (Firth, 1993, Biometrika 80:27), on the scale of effective observations.
    blocks = _Line(blocks, centre, found).reduced(inflation)
    found = line(blocks, centre)
    if found is None or found[1] <= 0.0:
        return None
    height, steep = found
    at = centre + (logit(limit) - height) / steep
    allowed = inflation * float(stdtrit(count - 2, 0.5 + confidence / 2.0)) ** 2
    data = (blocks.x, blocks.trials, blocks.bad, logit(limit), at, steep, allowed / 2.0)
    ends = [float(kernels.profile_end(*data, side, FARTHEST)) for side in (-1.0, 1.0)]
    return Crossing(at=at, slope=steep, inflation=inflation, low=ends[0], high=ends[1], blocks=count)


class _Line:
    """A fitted line with what the blocks' residuals say of it."""

    def __init__(self, blocks: Blocks, centre: float, found: tuple[float, float]) -> None:
        self.blocks, self.centre, (self.height, self.steep) = blocks, centre, found
        self.apart = blocks.x - centre
        self.share = 1.0 / (1.0 + np.exp(-(self.height + self.steep * self.apart)))
        spread = blocks.trials * self.share * (1.0 - self.share)
        apart = self.apart
        self.h00, self.h01, self.h11 = float(spread.sum()), float(spread @ apart), float(spread @ apart**2)
        self.determinant = self.h00 * self.h11 - self.h01**2
        self.leverage = spread * (self.h11 - 2.0 * self.h01 * apart + self.h00 * apart**2) / self.determinant

    def inflation(self, limit: float) -> float:
        """Variance of the crossing as the blocks' own scatter has it, over the binomial one.

        The crossing's gradient in (height, slope) is −(1, d) / b with d its distance from the centre; times the
        inverse information it weighs every block's residual.
        """
        d = (logit(limit) - self.height) / self.steep
        rest = (self.blocks.bad - self.blocks.trials * self.share) / np.sqrt(np.maximum(1.0 - self.leverage, 0.1))
        scale = self.steep * self.determinant
        influence = ((self.h11 - self.h01 * d) + (self.h00 * d - self.h01) * self.apart) * rest / scale
        binomial = (self.h11 - 2.0 * self.h01 * d + self.h00 * d * d) / (self.steep * scale)
        return float(np.square(influence).sum()) / binomial

    def reduced(self, inflation: float) -> Blocks:
        """The blocks with half their leverage added to the bad and to the good, times the inflation."""
        half = 0.5 * inflation * self.leverage
        return Blocks(x=self.blocks.x, trials=self.blocks.trials + 2.0 * half, bad=self.blocks.bad + half)
