"""ln B and ln C against 50-digit mpmath, their closed forms, and their shape up to a million servers."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ebbtide.errors import InputError
from ebbtide.queueing.erlang import log_erlang_b, log_erlang_c

mpmath.mp.dps = 50


def exact_inverse_b(servers: int, load: float) -> mpmath.mpf:
    """1/B = Σ_j Π_{i<j} (c−i)/a, all terms positive, summed until they no longer count at 50 digits."""
    a = mpmath.mpf(load)
    if servers > 1.2 * load + 50:
        # Below capacity the terms grow first: B = pmf / (1 − upper tail), and the tail's series is short.
        term = total = a / (servers + 1)
        for j in range(servers + 2, servers + 20_000):
            term *= a / j
            total += term
            if term < total * mpmath.mpf(10) ** -55:
                break
        pmf = mpmath.exp(servers * mpmath.log(a) - a - mpmath.loggamma(servers + 1))
        return (1 - pmf * total) / pmf
    term = total = mpmath.mpf(1)
    for i in range(servers):
        term *= (servers - i) / a
        total += term
        if term < total * mpmath.mpf(10) ** -55:
            break
    return total


def exact_log_b(servers: int, load: float) -> mpmath.mpf:
    return -mpmath.log(exact_inverse_b(servers, load))


def exact_log_c(servers: int, load: float) -> mpmath.mpf:
    share = mpmath.mpf(load) / servers
    return -mpmath.log(exact_inverse_b(servers, load) * (1 - share) + share)


def is_close(found: float, exact: mpmath.mpf) -> bool:
    return bool(abs(mpmath.mpf(found) - exact) <= mpmath.mpf("1e-11") * max(1, abs(exact)))


RATIOS = [
    1e-6,
    0.01,
    0.29,
    0.3,
    0.31,
    0.5,
    0.8,
    0.95,
    0.99,
    0.999,
    1.0,
    1.001,
    1.01,
    1.05,
    1.3,
    2.34,
    2.36,
    10.0,
    100.0,
]


@pytest.mark.parametrize("servers", [1, 2, 3, 10, 11, 12, 13, 50, 333, 1000, 10_000, 100_000])
def test_ln_b_and_ln_c_hold_eleven_digits(servers: int) -> None:
    for ratio in RATIOS:
        load = servers * ratio
        assert is_close(float(log_erlang_b(servers, load)), exact_log_b(servers, load)), ratio
        if load < servers:
            assert is_close(float(log_erlang_c(servers, load)), exact_log_c(servers, load)), ratio


@given(st.integers(1, 2000), st.floats(-7.0, 2.5))
@example(1000, -1.0)
@example(10, math.log10(80.0))
@settings(max_examples=150)
def test_any_servers_and_load(servers: int, log_ratio: float) -> None:
    load = servers * 10.0**log_ratio
    assert is_close(float(log_erlang_b(servers, load)), exact_log_b(servers, load))
    if load < servers:
        assert is_close(float(log_erlang_c(servers, load)), exact_log_c(servers, load))


@given(st.integers(1, 100_000), st.floats(-12.0, -2.0))
@settings(max_examples=40)
def test_a_load_just_below_the_servers(servers: int, log_gap: float) -> None:
    load = servers * (1.0 - 10.0**log_gap)
    assert is_close(float(log_erlang_c(servers, load)), exact_log_c(servers, load))


@given(st.floats(0.01, 40.0), st.floats(0.01, 40.0))
@settings(max_examples=60)
def test_servers_need_not_be_whole(servers: float, load: float) -> None:
    c, a = mpmath.mpf(servers), mpmath.mpf(load)
    exact = -mpmath.log(a) - mpmath.log(mpmath.gammainc(c + 1, a)) - a + (c + 1) * mpmath.log(a)
    assert is_close(float(log_erlang_b(servers, load)), exact)


def test_closed_forms() -> None:
    load = np.linspace(0.01, 0.99, 50)
    assert np.allclose(np.exp(log_erlang_b(1, load)), load / (1 + load), rtol=1e-13)
    assert np.allclose(np.exp(log_erlang_c(1, load)), load, rtol=1e-13)
    assert np.allclose(np.exp(log_erlang_c(2, load)), load**2 / (2 + load), rtol=1e-13)


def test_ends_are_named_states() -> None:
    assert log_erlang_b([0, 5], [3.0, 0.0]).tolist() == [0.0, -math.inf]
    assert log_erlang_c([5, 5, 5], [5.0, 7.0, 0.0]).tolist() == [0.0, 0.0, -math.inf]


@pytest.mark.parametrize("ratio", [1e-3, 0.5, 0.9, 0.999, 1.0, 1.2, 50.0])
def test_finite_and_monotone_to_a_million_servers(ratio: float) -> None:
    servers = np.unique(np.geomspace(1, 1e6, 4000).astype(np.int64))
    losses = log_erlang_b(servers, servers * ratio)
    assert np.all(np.isfinite(losses))
    for load in (0.5, 37.0, 999.5, 1e5, 9.99e5):
        near = np.unique(np.concatenate((servers, np.arange(load - 300, load + 300).clip(1).astype(np.int64))))
        b, c = log_erlang_b(near, load), log_erlang_c(near, load)
        assert np.all(np.isfinite(b))
        assert np.all(np.isfinite(c))
        assert np.all(np.diff(b) < 0.0)
        assert np.all(np.diff(c[near > load]) < 0.0)


@pytest.mark.parametrize("servers", [1, 12, 1000, 1_000_000])
def test_monotone_in_the_load(servers: int) -> None:
    load = servers * np.geomspace(0.2, 5.0, 4001)
    assert np.all(np.diff(log_erlang_b(servers, load)) > 0.0)
    assert np.all(np.diff(log_erlang_c(servers, load[load < servers])) > 0.0)


@pytest.mark.parametrize(("servers", "load"), [(-1, 1.0), (1, -1.0), (math.nan, 1.0), (1, math.nan), (1, math.inf)])
def test_bad_arguments_are_refused(servers: float, load: float) -> None:
    with pytest.raises(InputError, match="at least 0"):
        log_erlang_b(servers, load)
