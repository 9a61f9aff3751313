"""The services under load against closed forms and by hand."""

from __future__ import annotations

from math import exp, factorial

import numpy as np
import pytest

from ebbtide.simulate.services import Batching, FadingServers, Servers, SheddingServers, StallingServers, exponential


def constant(time_s: float):  # type: ignore[no-untyped-def] # a test's shorthand
    return lambda _rng, count: np.full(count, time_s)


def test_late_share_of_m_m_c() -> None:
    """Erlang C: P(T > t) = (1 − C) e^(−t) + C ((c − λ) e^(−t) − e^(−(c−λ)t)) / (c − λ − 1)."""
    rate, bound = 3.2, 4.0
    head, tail = sum(rate**n / factorial(n) for n in range(4)), rate**4 / factorial(4) / (1.0 - rate / 4.0)
    waits, spare = tail / (head + tail), 4.0 - rate
    true = (1.0 - waits) * exp(-bound) + waits * (spare * exp(-bound) - exp(-spare * bound)) / (spare - 1.0)
    service = Servers(4, exponential(1.0), np.random.default_rng(1))
    service.begin(rate)
    assert np.mean(service.more(1_000_000).latency_s > bound) == pytest.approx(true, rel=0.07)


def test_a_step_goes_on_where_it_stood() -> None:
    service = Servers(1, constant(10.0), np.random.default_rng(1))
    service.begin(1.0)
    first = service.more(5).latency_s
    both = service.more(5).latency_s
    assert both[:5].tolist() == first.tolist()
    assert both[5] > 30.0
    service.drain()
    service.begin(1e-3)
    assert service.more(1).latency_s[0] == pytest.approx(10.0)


def test_shed_share_of_m_m_c_k() -> None:
    weights = np.cumprod(np.concatenate(([1.0], 3.0 / np.minimum(np.arange(1, 7), 4))))
    service = SheddingServers(4, exponential(1.0), np.random.default_rng(1), waiting_room=2)
    service.begin(3.0)
    shed = np.mean(np.isinf(service.more(500_000).latency_s))
    assert shed == pytest.approx(weights[-1] / weights.sum(), rel=0.03)


def test_nothing_is_served_during_a_stall() -> None:
    service = StallingServers(1, constant(1.0), np.random.default_rng(1), period_s=10.0, stall_s=4.0)
    service.clock_s = 0.0
    service.begin(1.0)
    sojourn_s = np.empty(4)
    service._serve(np.array([1.0, 5.5, 8.0, 12.0]), np.ones(4), sojourn_s)
    # 5.5: half a second before the stall from 6 to 10 and half after it; 8.0: behind it.
    assert sojourn_s == pytest.approx([1.0, 5.0, 3.5, 1.0])


def test_wrong_share_follows_what_arrivals_find() -> None:
    weights = np.cumprod(np.concatenate(([1.0], 2.0 / np.minimum(np.arange(1, 201), 4))))
    present = np.arange(201)
    true = float(weights / weights.sum() @ (0.1 + 0.1 * np.minimum(present / 4.0, 2.0) ** 2))
    service = FadingServers(4, exponential(1.0), np.random.default_rng(1), base=0.1, slope=0.1)
    service.begin(2.0)
    wrong = service.more(500_000).wrong
    assert wrong is not None
    assert np.mean(wrong) == pytest.approx(true, rel=0.02)


def test_batching_is_processor_sharing_with_a_cost_for_each() -> None:
    """One slot: M/M/1 with a token every 30 ms, whose mean sojourn is 1 / (μ − λ)."""
    service = Batching(1, np.random.default_rng(1), fixed_s=0.02, each_s=0.01, tokens=100.0 / 3.0)
    service.begin(0.5)
    assert service.more(400_000).latency_s.mean() == pytest.approx(2.0, rel=0.05)


def test_batching_with_state_dependent_rate() -> None:
    """Exponential work: a birth–death chain with death rate n / (tokens · (fixed + n · each)); Little's law."""
    n = np.arange(1, 400)
    active = np.minimum(n, 8)
    death = active / (50.0 * (0.01 + active * 0.005))
    weights = np.cumprod(np.concatenate(([1.0], 1.5 / death)))
    mean = float(weights @ np.arange(400)) / float(weights.sum())
    service = Batching(8, np.random.default_rng(2), fixed_s=0.01, each_s=0.005, tokens=50.0)
    service.begin(1.5)
    service.more(5_000)
    service.begin(1.5)
    assert service.more(400_000).latency_s.mean() == pytest.approx(mean / 1.5, rel=0.03)
