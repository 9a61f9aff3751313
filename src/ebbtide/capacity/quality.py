"""Whether answers under load are as good as at idle: paired non-inferiority (§M.6).

The same prompts are answered at idle and at the steps around the crossing. Pairs that are right (or wrong) both times
tell nothing of a difference; the discordant ones do. Source: Tango (1998), Statistics in Medicine 17:891, the score
test and interval of a difference of paired proportions.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import ceil, sqrt

from scipy.special import ndtri

MARGIN = 0.01
ERROR = 0.05
POWER = 0.9


class Shown(StrEnum):
    """What the pairs say: ``worse`` where even the least loss exceeds the margin."""

    NOT_WORSE = "not worse"
    WORSE = "worse"
    NOT_SHOWN = "not shown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Counts of prompts answered twice: ``lost`` were right at idle and wrong under load, ``gained`` the reverse."""

    pairs: int
    lost: int
    gained: int

    def __post_init__(self) -> None:
        if min(self.pairs, self.lost, self.gained) < 0 or self.lost + self.gained > self.pairs:
            raise ValueError(f"discordant pairs are pairs: {self.lost} + {self.gained} of {self.pairs}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The loss of the right share (points as a share of 1), its one-sided ends, and the pairs needed to show it."""

    shown: Shown
    loss: float
    low: float
    high: float
    needed_pairs: int


def compared(pairs: Pairs, *, margin: float = MARGIN, error: float = ERROR) -> Comparison:
    """Non-inferior where the upper end of the loss, one-sided at ``error``, stays below ``margin``.

    >>> compared(Pairs(pairs=2000, lost=10, gained=9)).shown
    <Shown.NOT_WORSE: 'not worse'>
    >>> few = compared(Pairs(pairs=200, lost=1, gained=1))
    >>> str(few.shown), round(few.high, 3), few.needed_pairs
    ('not shown', 0.018, 857)
    """
    if not pairs.pairs:
        return Comparison(shown=Shown.NOT_SHOWN, loss=0.0, low=-1.0, high=1.0, needed_pairs=needed_pairs(0.01, margin))
    loss = (pairs.lost - pairs.gained) / pairs.pairs
    quantile = -float(ndtri(error))
    low, high = _end(pairs, quantile, -1.0, loss), _end(pairs, -quantile, loss, 1.0)
    shown = Shown.NOT_WORSE if high < margin else Shown.WORSE if low > margin else Shown.NOT_SHOWN
    # With no discordant pair seen, one is assumed: a share of 0 would need no pairs at all.
    discordant = max(pairs.lost + pairs.gained, 1) / pairs.pairs
    return Comparison(shown=shown, loss=loss, low=low, high=high, needed_pairs=needed_pairs(discordant, margin))


def needed_pairs(discordant: float, margin: float = MARGIN, *, error: float = ERROR, power: float = POWER) -> int:
    """Pairs that show non-inferiority with that power where nothing is lost: (z_α + z_β)² ψ / margin².

    >>> needed_pairs(0.01)
    857
    """
    return ceil((float(ndtri(1.0 - error)) + float(ndtri(power))) ** 2 * discordant / margin**2)


def _score(pairs: Pairs, loss: float) -> float:
    """Tango's standardised difference: (b − c − n Δ) / √(n (2 p̃₂₁ + Δ (1 − Δ)))."""
    n, lost, gained = float(pairs.pairs), float(pairs.lost), float(pairs.gained)
    linear = -lost - gained + (2.0 * n - lost + gained) * loss
    constant = -gained * loss * (1.0 - loss)
    share = (sqrt(max(linear**2 - 8.0 * n * constant, 0.0)) - linear) / (4.0 * n)
    variance = n * (2.0 * share + loss * (1.0 - loss))
    difference = lost - gained - n * loss
    if variance <= 0.0:
        return 0.0 if difference == 0.0 else difference * float("inf")
    return difference / sqrt(variance)


def _end(pairs: Pairs, quantile: float, low: float, high: float) -> float:
    """The loss at which the score, which falls with it, is ``quantile``."""
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _score(pairs, middle) > quantile else (low, middle)
    return 0.5 * (low + high)
