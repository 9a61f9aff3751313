"""The crossing and its interval against draws from known lines, and against an independent optimiser."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from ebbtide.capacity.fit import Blocks, crossing, line, logit

RATES = np.repeat([0.95, 1.0, 1.04], 12)


def drawn(rng: np.random.Generator, *, at: float, slope: float, trials: int, inflation: int = 1) -> Blocks:
    """Blocks whose requests come in groups of ``inflation`` with one fate: the variance is that many times binomial."""
    share = 1.0 / (1.0 + np.exp(-(logit(0.05) + slope * (RATES - at))))
    bad = inflation * rng.binomial(trials // inflation, share)
    return Blocks(x=RATES, trials=np.full(len(RATES), float(trials)), bad=bad.astype(float))


def test_the_line_is_the_likeliest() -> None:
    blocks = drawn(np.random.default_rng(1), at=1.0, slope=12.0, trials=500)

    def loss(parameters: np.ndarray) -> float:
        heights = parameters[0] + parameters[1] * (blocks.x - 1.0)
        return float((blocks.trials * np.logaddexp(0.0, heights) - blocks.bad * heights).sum())

    found = line(blocks, 1.0)
    assert found is not None
    assert found == pytest.approx(minimize(loss, [-3.0, 5.0], tol=1e-12).x, rel=1e-3)


@pytest.mark.parametrize("inflation", [1, 20])
def test_the_interval_holds_the_truth_as_often_as_it_says(inflation: int) -> None:
    rng = np.random.default_rng(2)
    found = [crossing(drawn(rng, at=1.0, slope=15.0, trials=800, inflation=inflation), 0.05, 0.95) for _ in range(400)]
    inside = np.mean([one is not None and one.low <= 1.0 <= one.high for one in found])
    above = np.mean([one is not None and one.low > 1.0 for one in found])
    assert inside >= 0.92
    assert above <= 0.05


def test_without_a_slope_the_interval_is_open() -> None:
    flat = Blocks(x=RATES, trials=np.full(36, 100.0), bad=np.tile([4.0, 5.0, 6.0, 5.0], 9))
    found = crossing(flat, 0.05, 0.95)
    assert found is None or not np.isfinite(found.high - found.low)


def test_no_bad_request_is_no_line() -> None:
    assert crossing(Blocks(x=RATES, trials=np.full(36, 100.0), bad=np.zeros(36)), 0.05, 0.95) is None
