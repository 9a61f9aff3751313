"""The memory against autoregressive series, whose integrated autocorrelation time is known."""

from __future__ import annotations

import numpy as np
import pytest

from ebbtide.capacity.batches import batches
from ebbtide.capacity.limits import Answers, Limit, LimitKind
from ebbtide.capacity.memory import memories, memory, scatter

LIMIT = Limit(kind=LimitKind.LATENCY, bad_share=0.05, bound_s=1.0)


def autoregressive(phi: float, count: int, seed: int) -> np.ndarray:
    """A normal AR(1) series of variance 1: its integrated autocorrelation time is (1 + φ) / (1 − φ)."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal(count) * np.sqrt(1.0 - phi**2)
    values = np.empty(count)
    values[0] = rng.standard_normal()
    for i in range(1, count):
        values[i] = phi * values[i - 1] + noise[i]
    return values


def scattered(latency_s: np.ndarray):  # type: ignore[no-untyped-def] # a test's shorthand
    return scatter(batches(LIMIT, Answers(latency_s=latency_s, failed=np.zeros(len(latency_s), dtype=bool))))


@pytest.mark.parametrize("phi", [0.0, 0.9, 0.98])
def test_the_latencys_memory_is_the_autocorrelation_time(phi: float) -> None:
    true = (1.0 + phi) / (1.0 - phi)
    # Small swings around half the bound: nothing is capped, nothing is late.
    of_level = [memories([scattered(0.5 + 0.05 * autoregressive(phi, 40_000, seed))])[1][0] for seed in range(5)]
    assert 0.8 * true <= np.median(of_level) <= 1.7 * true


def test_few_late_requests_hide_the_memory_that_the_latency_shows() -> None:
    latency_s = 0.5 + 0.05 * autoregressive(0.98, 20_000, 1)
    (of_bad, _), (of_level, _) = memories([scattered(latency_s)])
    assert of_bad == 1.0
    assert of_level > 40.0
    assert memory([scattered(latency_s)]) == of_level


def test_steps_pool_around_their_own_means() -> None:
    low, high = (0.5 + level + 0.01 * autoregressive(0.0, 4000, 3) for level in (0.0, 0.3))
    assert memory([scattered(low), scattered(high)]) < 2.0
