"""Paired non-inferiority against Tango's own example and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from ebbtide.capacity.quality import Pairs, Shown, compared, needed_pairs


def score(pairs: Pairs, loss: float) -> float:
    """The score by maximising the constrained likelihood numerically: p₁₂ = p₂₁ + Δ."""
    rest = pairs.pairs - pairs.lost - pairs.gained

    def cost(gained: float) -> float:
        shares = (gained + loss, gained, 1.0 - 2.0 * gained - loss)
        return -sum(n * np.log(max(p, 1e-300)) for n, p in zip((pairs.lost, pairs.gained, rest), shares, strict=True))

    low, high = max(0.0, -loss), 0.5 * (1.0 - loss)
    gained = minimize_scalar(cost, bounds=(low, high), method="bounded", options={"xatol": 1e-12}).x
    variance = pairs.pairs * (2.0 * gained + loss - loss**2)
    return float((pairs.lost - pairs.gained - pairs.pairs * loss) / np.sqrt(variance))


@pytest.mark.parametrize("pairs", [Pairs(pairs=60, lost=5, gained=3), Pairs(pairs=2000, lost=40, gained=25)])
def test_the_ends_are_where_the_constrained_likelihoods_score_is_the_quantile(pairs: Pairs) -> None:
    found = compared(pairs, error=0.025)
    assert score(pairs, found.low) == pytest.approx(1.96, abs=0.01)
    assert score(pairs, found.high) == pytest.approx(-1.96, abs=0.01)


def test_worse_is_found_and_few_pairs_show_nothing() -> None:
    assert compared(Pairs(pairs=1000, lost=60, gained=5)).shown is Shown.WORSE
    assert compared(Pairs(pairs=50, lost=0, gained=0)).shown is Shown.NOT_SHOWN
    assert compared(Pairs(pairs=0, lost=0, gained=0)).shown is Shown.NOT_SHOWN


def test_the_pairs_needed_have_the_power_that_they_are_said_to_have() -> None:
    rng = np.random.default_rng(1)
    pairs = needed_pairs(0.02)
    shown = 0
    for _ in range(400):
        discordant = rng.binomial(pairs, 0.02)
        lost = rng.binomial(discordant, 0.5)
        shown += compared(Pairs(pairs=pairs, lost=lost, gained=discordant - lost)).shown is Shown.NOT_WORSE
    assert 0.84 <= shown / 400 <= 0.96


def test_a_loss_of_the_margin_is_rarely_shown_as_none() -> None:
    rng = np.random.default_rng(2)
    shown = 0
    for _ in range(400):
        lost, gained, _ = rng.multinomial(2000, (0.02, 0.01, 0.97))
        shown += compared(Pairs(pairs=2000, lost=lost, gained=gained)).shown is Shown.NOT_WORSE
    assert shown / 400 <= 0.08


def test_discordant_pairs_are_pairs() -> None:
    with pytest.raises(ValueError, match="discordant"):
        Pairs(pairs=3, lost=2, gained=2)
