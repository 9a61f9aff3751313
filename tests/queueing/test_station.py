"""Stations against closed forms, birth–death sums in mpmath and numerical integrals."""

from __future__ import annotations

import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

from ebbtide.errors import InputError
from ebbtide.fleet.workload import Balancing, TargetKind
from ebbtide.queueing.erlang import log_erlang_c
from ebbtide.queueing.station import Station

mpmath.mp.dps = 50
WAIT, LATENCY = TargetKind.WAIT, TargetKind.LATENCY


def birth_death(servers: int, load: float, patience: float) -> list[mpmath.mpf]:
    """Stationary probabilities of M/M/c+M, service rate 1."""
    weights = [mpmath.mpf(1)]
    n = 0
    while n < servers + 20 or weights[-1] > max(weights) * mpmath.mpf(10) ** -40:
        n += 1
        leaving = min(n, servers) + mpmath.mpf(max(0, n - servers)) / mpmath.mpf(patience)
        weights.append(weights[-1] * mpmath.mpf(load) / leaving)
    total = mpmath.fsum(weights)
    return [weight / total for weight in weights]


@pytest.mark.parametrize("servers", [1, 5, 40])
@pytest.mark.parametrize("ratio", [0.05, 0.5, 0.95, 1.0, 1.3, 3.0])
@pytest.mark.parametrize("patience", [0.05, 1.0, 20.0])
def test_erlang_a_against_its_birth_death_chain(servers: int, ratio: float, patience: float) -> None:
    load = servers * ratio
    chain = birth_death(servers, load, patience)
    station = Station(replicas=servers, arrival_rate_rps=load, service_time_s=1.0, patience_s=patience)
    waiting = float(mpmath.fsum(chain[servers:]))
    in_queue = float(mpmath.fsum((n - servers) * p for n, p in enumerate(chain) if n > servers))
    assert float(station.probability_of_waiting) == pytest.approx(waiting, rel=1e-10)
    assert float(station.mean_wait_s) == pytest.approx(in_queue / load, rel=1e-8)
    assert float(station.abandonment) == pytest.approx(in_queue / patience / load, rel=1e-8)
    busy = float(mpmath.fsum(min(n, servers) * p for n, p in enumerate(chain)))
    assert float(station.utilisation) == pytest.approx(busy / servers, rel=1e-10)


def offered_density(servers: int, load: float, patience: float, x: float) -> float:
    """Density of the offered wait of M/M/c+M at x > 0, service time 1, by mpmath (Zeltyn and Mandelbaum 2005)."""
    chain = birth_death(servers, load, patience)
    drift = load * patience * -math.expm1(-x / patience) - servers * x
    return load * float(chain[servers - 1]) * math.exp(drift)


@pytest.mark.parametrize(
    ("servers", "ratio", "patience"), [(1, 0.5, 2.0), (5, 0.9, 0.5), (5, 1.4, 3.0), (30, 1.1, 10.0)]
)
@pytest.mark.parametrize("t", [0.0, 0.02, 0.3, 2.0])
def test_erlang_a_distribution(servers: int, ratio: float, patience: float, t: float) -> None:
    load = servers * ratio
    density = np.vectorize(lambda x: offered_density(servers, load, patience, x))
    chain = birth_death(servers, load, patience)
    scale = load * float(chain[servers - 1])

    def integral(weight, low, high):
        def inside(x):
            return scale * math.exp(load * patience * -math.expm1(-x / patience) - servers * x) * weight(x)

        cuts = np.linspace(low, high, 40)
        return sum(integrate.quad(inside, a, b, epsabs=1e-14)[0] for a, b in pairwise(cuts))

    assert density(0.0) == pytest.approx(scale)
    far = 60.0 * max(1.0, patience)
    station = Station(replicas=servers, arrival_rate_rps=load, service_time_s=1.0, patience_s=patience)
    tail = integral(lambda x: 1.0, t, far) * math.exp(-t / patience)
    assert float(station.wait_tail(t)) == pytest.approx(tail, rel=1e-8)
    at_once = float(mpmath.fsum(chain[:servers]))
    served = at_once + integral(lambda x: math.exp(-x / patience), 0.0, t)
    assert float(station.attainment(WAIT, t)) == pytest.approx(served, abs=1e-10)
    for scv in (0.3, 1.0, 2.5):
        bound = 1.0 + t
        gamma = stats.gamma(1.0 / scv, scale=scv)
        late = at_once * gamma.cdf(bound) + integral(
            lambda x, g=gamma, b=bound: math.exp(-x / patience) * g.cdf(b - x), 0.0, bound
        )
        mixed = Station(
            replicas=servers, arrival_rate_rps=load, service_time_s=1.0, patience_s=patience, service_scv=scv
        )
        if scv == 1.0:
            assert float(mixed.attainment(LATENCY, bound)) == pytest.approx(late, abs=1e-9)
        assert 0.0 <= float(mixed.attainment(LATENCY, bound)) <= 1.0


@given(
    st.integers(1, 3000),
    st.floats(0.02, 3.0),
    st.floats(1e-2, 1e4),
    st.sampled_from([0.0, 0.25, 1.0, 4.0]),
    st.sampled_from([0.0, 0.5, 1.0, 9.0]),
    st.sampled_from(list(Balancing)),
)
@settings(max_examples=150)
def test_with_patience_everything_is_a_share(
    servers: int, ratio: float, patience: float, arrival: float, service: float, balancing: Balancing
) -> None:
    station = Station(
        replicas=servers,
        slots=4,
        arrival_rate_rps=4 * servers * ratio,
        service_time_s=1.0,
        arrival_scv=arrival,
        service_scv=service,
        patience_s=patience,
        balancing=balancing,
    )
    t = np.array([0.0, 1e-3, 0.1, 1.0, 30.0])
    waits, lates = station.attainment(WAIT, t), station.attainment(LATENCY, t)
    for values in (waits, lates, station.wait_tail(t)):
        assert np.all((values >= 0.0) & (values <= 1.0))
    assert np.all(np.diff(waits) >= -1e-12)
    assert np.all(lates <= waits + 1e-9)
    assert np.all(waits <= 1.0 - station.abandonment + 1e-12)
    assert 0.0 <= float(station.mean_wait_s) <= patience * (1.0 + 1e-12)
    assert float(station.utilisation) <= 1.0 + 1e-9


def test_endless_patience_is_the_limit_of_long_patience() -> None:
    fields = {"replicas": [8, 20], "arrival_rate_rps": 7.2, "service_time_s": 1.0, "arrival_scv": 2.0}
    long, endless = Station(**fields, patience_s=1e7), Station(**fields)
    assert np.allclose(long.wait_tail(0.3), endless.wait_tail(0.3), rtol=1e-4)
    assert np.allclose(long.mean_wait_s, endless.mean_wait_s, rtol=1e-4)


def test_one_server_closed_forms() -> None:
    load = np.linspace(0.05, 0.99, 20)
    station = Station(replicas=1, arrival_rate_rps=load / 3.0, service_time_s=3.0)
    assert np.allclose(station.mean_wait_s, 3.0 * load / (1 - load), rtol=1e-12)
    assert np.allclose(station.wait_tail(2.0), load * np.exp(-(1 - load) * 2.0 / 3.0), rtol=1e-12)
    assert np.allclose(station.attainment(LATENCY, 4.0), -np.expm1(-(1 - load) * 4.0 / 3.0), rtol=1e-12)


@pytest.mark.parametrize("scv", [0.0, 0.4, 1.0, 7.0])
def test_pollaczek_khinchine(scv: float) -> None:
    load = np.linspace(0.05, 0.99, 20)
    station = Station(replicas=1, arrival_rate_rps=load, service_time_s=1.0, service_scv=scv)
    assert np.allclose(station.mean_wait_s, (1 + scv) / 2 * load / (1 - load), rtol=1e-12)


@given(
    st.integers(1, 5000),
    st.floats(0.05, 0.9999),
    st.floats(0.02, 6.0),
    st.sampled_from([1e-3, 0.04, 0.3, 1.0, 2.0, 20.0]),
)
@settings(max_examples=12)
def test_latency_is_wait_plus_gamma_service(servers: int, ratio: float, bound: float, scv: float) -> None:
    station = Station(replicas=servers, arrival_rate_rps=servers * ratio, service_time_s=1.0, service_scv=scv)
    waiting = float(station.probability_of_waiting)
    decay = waiting / float(station.mean_wait_s) if waiting > 1e-290 else math.inf
    gamma = stats.gamma(1.0 / scv, scale=scv)
    # By the service's quantiles: smooth for every shape, and exact where the service is past the bound.
    level = gamma.cdf(bound)
    nodes, weights = special.roots_legendre(1500)
    shares = 0.5 * level * (nodes + 1.0)
    inside = np.exp(-decay * (bound - gamma.ppf(shares))) if decay < math.inf else np.zeros(1500)
    exact = level - waiting * 0.5 * level * float(weights @ inside)
    assert float(station.attainment(LATENCY, bound)) == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize("decay", [1e-6, 0.9, 1.0, 1.0001, 3.0, 500.0])
@pytest.mark.parametrize("scv", [0.01, 0.25, 1.0, 3.0])
def test_latency_against_mpmath(decay: float, scv: float) -> None:
    from ebbtide.queueing import elementwise

    shape, bound = 1 / mpmath.mpf(scv), mpmath.mpf("1.7")

    def density(x):
        return shape**shape * x ** (shape - 1) * mpmath.exp(-shape * x) / mpmath.gamma(shape)

    cuts = [0, 0.2, 0.6, 0.9, 1.0, 1.1, 1.3, 1.6, 1.69, bound]
    waited = mpmath.quad(lambda x: density(x) * mpmath.exp(-decay * (bound - x)), cuts)
    late = mpmath.gammainc(shape, shape * bound, regularized=True) + mpmath.mpf("0.3") * waited
    out = np.empty(1)
    columns = [np.array([v]) for v in (math.log(0.3), decay, 1.7, 1.0, scv)]
    elementwise.fill_log_late(*columns, out)
    assert out[0] == pytest.approx(float(mpmath.log(late)), abs=1e-11)


@pytest.mark.parametrize("servers", [1, 10, 1000, 100_000])
@pytest.mark.parametrize("ratio", [0.3, 0.9, 0.999, 1 - 1e-7])
def test_wait_percentiles_hold_nine_digits_of_the_decay(servers: int, ratio: float) -> None:
    load = servers * ratio
    station = Station(replicas=servers, arrival_rate_rps=load, service_time_s=1.0)
    a, c = mpmath.mpf(load), servers
    term = total = mpmath.mpf(1)
    for i in range(servers):
        term *= (c - i) / a
        total += term
        if term < total * mpmath.mpf(10) ** -40 and i > servers - load:
            break
    waiting = 1 / (total * (1 - a / c) + a / c)
    for share in (0.5, 0.95, 0.999999):
        exact = max(mpmath.mpf(0), mpmath.log(waiting / (1 - mpmath.mpf(share))) / (c - a))
        assert abs(float(station.wait_percentile_s(share)) - float(exact)) <= 1e-9 / (c - load)


def test_patient_percentiles_invert_the_tail() -> None:
    station = Station(replicas=[3, 5], arrival_rate_rps=4.0, service_time_s=1.0, patience_s=2.0)
    for share in (0.5, 0.9, 0.99):
        t = station.wait_percentile_s(share)
        assert np.allclose(station.wait_tail(t), np.minimum(1 - share, station.wait_tail(0.0)), rtol=1e-9)


def test_unstable_is_a_state() -> None:
    station = Station(replicas=[4, 5, 6], arrival_rate_rps=10.0, service_time_s=0.5)
    assert station.is_stable.tolist() == [False, False, True]
    assert station.mean_wait_s[:2].tolist() == [math.inf, math.inf]
    assert station.log_probability_of_waiting[:2].tolist() == [0.0, 0.0]
    assert station.wait_percentile_s(0.5)[:2].tolist() == [math.inf, math.inf]
    for kind in TargetKind:
        assert station.attainment(kind, 5.0)[:2].tolist() == [0.0, 0.0]
    assert station.wait_tail(1e9)[:2].tolist() == [1.0, 1.0]
    assert station.utilisation[:2].tolist() == [1.0, 1.0]
    assert station.throughput_rps[:2].tolist() == [8.0, 10.0]


@pytest.mark.parametrize("balancing", list(Balancing))
def test_nobody_comes_nobody_waits(balancing: Balancing) -> None:
    for patience in (math.inf, 3.0):
        station = Station(
            replicas=3, slots=2, arrival_rate_rps=0.0, service_time_s=1.0, balancing=balancing, patience_s=patience
        )
        assert float(station.mean_wait_s) == 0.0
        assert float(station.attainment(WAIT, 0.0)) == 1.0
        assert float(station.attainment(LATENCY, 1.0)) == pytest.approx(-math.expm1(-1.0))


def test_balancings_are_ordered() -> None:
    def tail(balancing: Balancing, **fields: float) -> float:
        station = Station(replicas=6, slots=3, arrival_rate_rps=14.0, service_time_s=1.0, balancing=balancing, **fields)
        return float(station.wait_tail(1.0))

    for fields in ({}, {"patience_s": 3.0}, {"arrival_scv": 2.5}):
        pooled, least, random = (
            tail(b, **fields) for b in (Balancing.POOLED, Balancing.LEAST_LOADED, Balancing.RANDOM)
        )
        assert pooled < least < random


@given(st.integers(1, 1_000_000), st.floats(0.01, 0.999999), st.floats(0.0, 9.0), st.floats(0.0, 9.0))
@settings(max_examples=200)
def test_one_more_server_never_hurts(servers: int, ratio: float, arrival: float, service: float) -> None:
    station = Station(
        replicas=[servers, servers + 1],
        arrival_rate_rps=servers * ratio,
        service_time_s=1.0,
        arrival_scv=arrival,
        service_scv=service,
    )
    waiting = station.log_probability_of_waiting
    assert np.all(np.isfinite(waiting) | (arrival + service == 0.0))
    assert waiting[1] <= waiting[0]
    assert station.log_wait_tail(0.1)[1] <= station.log_wait_tail(0.1)[0]
    assert station.mean_wait_s[1] <= station.mean_wait_s[0]


def exact_gi_m_c(servers: int, load: float, scv: float) -> tuple[float, float]:
    """(P(W > 0), decay) of GI/M/c with gamma gaps, service time 1 (Takács 1962, ch. 2, theorem 4), in mpmath."""
    shape = 1 / mpmath.mpf(scv)

    def gaps(s):
        return (shape * load / (shape * load + s)) ** shape

    low, high = mpmath.mpf(0), 1 - mpmath.mpf(10) ** -12
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if gaps(servers * (1 - middle)) > middle else (low, middle)
    total, product = 1 / (1 - low), mpmath.mpf(1)
    for j in range(1, servers + 1):
        gap = gaps(j)
        product *= gap / (1 - gap)
        factor = (servers * (1 - gap) - j) / (servers * (1 - low) - j)
        total += mpmath.binomial(servers, j) / product / (1 - gap) * factor
    return float(1 / total / (1 - low)), float(servers * (1 - low))


@pytest.mark.parametrize("servers", [1, 4, 20, 100])
@pytest.mark.parametrize("scv", [0.25, 2.0, 4.0, 9.0])
def test_general_arrivals_within_the_stated_range(servers: int, scv: float) -> None:
    for ratio in (0.8, 0.9, 0.95):
        waiting, decay = exact_gi_m_c(servers, servers * ratio, scv)
        station = Station(replicas=servers, arrival_rate_rps=servers * ratio, service_time_s=1.0, arrival_scv=scv)
        assert float(station.mean_wait_s) == pytest.approx(waiting / decay, rel=0.1)
        assert float(station.probability_of_waiting) == pytest.approx(waiting, rel=0.2)


@pytest.mark.parametrize(
    "field", [{"replicas": 0}, {"arrival_rate_rps": -1.0}, {"service_time_s": 0.0}, {"arrival_scv": math.nan},
              {"patience_s": 0.0}, {"patience_s": math.nan}]
)  # fmt: skip
def test_bad_fields_are_refused(field: dict[str, float]) -> None:
    with pytest.raises(InputError) as caught:
        Station(**({"replicas": 2, "arrival_rate_rps": 1.0, "service_time_s": 1.0} | field))
    assert caught.value.kind == f"bad_{next(iter(field))}"


def test_one_element_beside_scalars_is_an_array_like_any_other() -> None:
    # numba types an array by another path when it first meets its kind: a warning there is an error here.
    station = Station(replicas=[3.0], arrival_rate_rps=[1.0], service_time_s=2.0, service_scv=[1.0])
    assert station.attainment(TargetKind.LATENCY, 5.0).shape == station.mean_wait_s.shape == (1,)
    assert np.exp(log_erlang_c([3.0], 2.0)) == pytest.approx(station.probability_of_waiting)


@pytest.mark.parametrize("patience_s", [1e-9, 1e-3, 5.0, 1e3])
@pytest.mark.parametrize("balancing", list(Balancing))
def test_deep_overload_keeps_every_server_busy(patience_s: float, balancing: Balancing) -> None:
    station = Station(
        replicas=10, arrival_rate_rps=[1e4, 1e9, 1e14], service_time_s=1.0, patience_s=patience_s, balancing=balancing
    )
    busy = station.utilisation
    # Patience far shorter than a service: servers idle for a gap between arrivals, 1e-4 of a service at 1e4 a second.
    assert np.all((busy > 1.0 - 2e-3) & (busy <= 1.0))
    assert busy[1:].tolist() == pytest.approx([1.0, 1.0], abs=1e-7 if patience_s < 1e-6 else 1e-12)


def test_patience_that_no_double_carries_is_refused() -> None:
    with pytest.raises(InputError, match="patience") as refused:
        Station(replicas=1, arrival_rate_rps=1e9, service_time_s=1.0, patience_s=1e300)
    assert refused.value.kind == "bad_patience_s"
    long = Station(replicas=1, arrival_rate_rps=0.5, service_time_s=1.0, patience_s=1e99)
    assert float(long.mean_wait_s) == pytest.approx(1.0)


def test_long_patience_keeps_the_mean_wait() -> None:
    patience_s = np.array([1e6, 1e8, 1e12, 1e50])
    mean_s = Station(replicas=2, arrival_rate_rps=1.5, service_time_s=1.0, patience_s=patience_s).mean_wait_s
    unlimited_s = Station(replicas=2, arrival_rate_rps=1.5, service_time_s=1.0).mean_wait_s
    assert mean_s == pytest.approx(np.full(4, float(unlimited_s)), rel=1e-4)
    assert mean_s[2:] == pytest.approx(np.full(2, float(unlimited_s)), rel=1e-10)
