"""Curves, requirements, percentiles and held rates against stations one by one and brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.fleet.workload import Balancing, Target, TargetKind
from ebbtide.queueing.curves import (
    StationShape,
    attainment_curves,
    required_replicas,
    wait_percentile_s,
    wait_percentiles_s,
    waiting_curves,
)
from ebbtide.queueing.station import Station

RATES = np.array([6.0, 3.0, 11.0, 2.0, 0.0, 1.0, 0.0, 0.3, 0.3])
SCV = np.array([1.0, 2.0, 1.0, 1.0, 3.0, 0.5, 1.0, 7.0, 1.0])
OFFSETS = np.array([0, 3, 6, 7, 9])
TIMES = np.array([10.0, 4.0, 1.0, 20.0])
SHAPES = [
    StationShape(slots=slots, balancing=balancing, patience_s=patience)
    for slots in (2, 48)
    for balancing in Balancing
    for patience in (math.inf, 15.0)
]
TARGETS = [Target(kind=TargetKind.WAIT, bound_s=5.0, percentile=0.95), Target(kind=TargetKind.LATENCY, bound_s=70.0)]
CASES = [(shape, target, scv) for shape in SHAPES for target in TARGETS for scv in (None, 4.0)]


def batch(scv: float | None) -> dict[str, np.ndarray]:
    """Mixed arrival SCVs; with ``scv`` None everything is Markov, which takes the recursion where there is one."""
    gaps = np.ones_like(SCV) if scv is None else SCV
    service = np.full(TIMES.size, 1.0 if scv is None else scv)
    return {"rates_rps": RATES, "scv": gaps, "service_time_s": TIMES, "service_scv": service, "offsets": OFFSETS}


def station(shape: StationShape, given: dict[str, np.ndarray], g: int, replicas: int) -> Station:
    part = slice(OFFSETS[g], OFFSETS[g + 1])
    return Station(
        replicas=replicas,
        arrival_rate_rps=given["rates_rps"][part],
        service_time_s=given["service_time_s"][g],
        slots=shape.slots,
        balancing=shape.balancing,
        arrival_scv=given["scv"][part],
        service_scv=given["service_scv"][g],
        patience_s=shape.patience_s,
    )


def attained(shape: StationShape, target: Target, given: dict[str, np.ndarray], g: int, replicas: int) -> float:
    one = station(shape, given, g, replicas)
    rates = np.asarray(one.arrival_rate_rps)
    if not rates.sum():
        return 1.0
    return float(rates @ one.attainment(target.kind, target.bound_s) / rates.sum())


@pytest.mark.parametrize(("shape", "target", "scv"), CASES)
def test_curves_are_stations(shape: StationShape, target: Target, scv: float | None) -> None:
    given_batch = batch(scv)
    low, high = np.array([1, 2, 1, 1]), np.array([40, 20, 3, 12])
    values, starts = attainment_curves(shape, target, **given_batch, low=low, high=high)
    assert starts.tolist() == [0, 40, 59, 62, 74]
    for g in range(4):
        for n in range(low[g], high[g] + 1):
            exact = attained(shape, target, given_batch, g, n)
            assert values[starts[g] + n - low[g]] == pytest.approx(exact, abs=1e-12), (g, n)


@pytest.mark.parametrize(("shape", "target", "scv"), CASES)
def test_required_is_the_first_that_suffices(shape: StationShape, target: Target, scv: float | None) -> None:
    given_batch = batch(scv)
    at_most = 150
    required = required_replicas(shape, target, **given_batch, at_most=at_most)
    assert required[2] == 0
    for g in (0, 1, 3):
        n = int(required[g])
        if n <= at_most:
            assert attained(shape, target, given_batch, g, n) >= target.percentile
        if n > 1:
            assert attained(shape, target, given_batch, g, n - 1) < target.percentile


@pytest.mark.parametrize("shape", SHAPES)
def test_too_few_is_told(shape: StationShape) -> None:
    target = TARGETS[0]
    assert required_replicas(shape, target, **batch(None), at_most=0).tolist() == [1, 1, 0, 1]
    impossible = Target(kind=TargetKind.LATENCY, bound_s=1.0, percentile=0.99)
    assert required_replicas(shape, impossible, **batch(None), at_most=40)[0] == 41


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scv", [None, 4.0])
def test_waiting_curves_are_stations_and_end_where_nothing_is_saved(shape: StationShape, scv: float | None) -> None:
    given_batch = batch(scv)
    low, high = np.array([1, 2, 1, 1]), np.array([300, 200, 3, 12])
    stop = 1e-3
    horizons = np.array([7200.0, 3600.0, 600.0, 60.0])
    values, starts = waiting_curves(shape, **given_batch, low=low, high=high, horizon_s=horizons, stop_saving=stop)
    assert len(values) == starts[-1]
    for g in range(4):
        curve = values[starts[g] : starts[g + 1]]
        assert len(curve) <= high[g] - low[g] + 1
        assert len(curve) >= min(2, high[g] - low[g] + 1)
        exact = [mean_waiting(shape, given_batch, g, n, horizons[g]) for n in range(low[g], high[g] + 1)]
        assert np.allclose(curve, exact[: len(curve)], rtol=1e-10, atol=1e-9 * stop)
        savings = -np.diff(exact)
        # What was cut off would have saved too little, at every later step.
        assert np.all(savings[len(curve) - 1 :] < stop)


def mean_waiting(shape: StationShape, given: dict[str, np.ndarray], g: int, replicas: int, horizon_s: float) -> float:
    """Σ rate·∫₀ᴴ P(W > t) dt over the group's samples, by Gauss–Legendre on pieces that double."""
    one = station(shape, given, g, replicas)
    rates = np.asarray(one.arrival_rate_rps)
    if not rates.any():
        return 0.0
    edges = np.concatenate(([0.0], np.geomspace(1e-4, horizon_s, 80)))
    nodes, weights = np.polynomial.legendre.leggauss(24)
    middles, halves = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    t = (middles[:, None] + halves[:, None] * nodes).ravel()
    weight = (halves[:, None] * weights).ravel()
    waiting = 0.0
    for i, rate in enumerate(rates):
        if rate > 0.0:
            alone = Station(
                replicas=replicas,
                arrival_rate_rps=rate,
                service_time_s=one.service_time_s,
                slots=one.slots,
                balancing=one.balancing,
                arrival_scv=np.asarray(one.arrival_scv)[i],
                service_scv=one.service_scv,
            )
            if shape.patience_s < math.inf:
                return patient_waiting(shape, given, g, replicas, horizon_s)
            waiting += rate * float(weight @ alone.wait_tail(t))
    return waiting / len(rates)


def patient_waiting(
    shape: StationShape, given: dict[str, np.ndarray], g: int, replicas: int, horizon_s: float
) -> float:
    """With patience the measure itself (its integral is checked in test_station for one queue)."""
    from ebbtide.queueing.replicas import MEAN_WAIT

    one = station(shape, given, g, replicas)
    rates = np.asarray(one.arrival_rate_rps)
    return float(rates @ np.exp(one._log_patient(MEAN_WAIT, horizon_s)) / len(rates))


@pytest.mark.parametrize(("shape", "target", "scv"), CASES[::2])
def test_percentile_inverts_the_mixture(shape: StationShape, target: Target, scv: float | None) -> None:
    given_batch = batch(scv)
    replicas = required_replicas(shape, target, **given_batch, at_most=1000) + 1
    found = wait_percentiles_s(shape, target, **given_batch, replicas=replicas)
    for g in (0, 1, 3):
        exact = Target(kind=target.kind, bound_s=float(found[g]), percentile=target.percentile)
        at = attained(shape, exact, given_batch, g, int(replicas[g]))
        assert at >= target.percentile - 1e-9
        assert found[g] == 0.0 or at == pytest.approx(target.percentile, abs=1e-9)
    assert found[2] == 0.0
    single = wait_percentile_s(
        shape, target, rates_rps=RATES[:3], scv=given_batch["scv"][:3], service_time_s=10.0,
        service_scv=float(given_batch["service_scv"][0]), replicas=int(replicas[0]),
    )  # fmt: skip
    assert single == pytest.approx(found[0], rel=1e-9)


def test_percentile_is_infinite_where_too_much_is_unstable() -> None:
    shape = StationShape(slots=1, balancing=Balancing.POOLED, patience_s=math.inf)
    arguments = {"rates_rps": np.array([1.0, 9.0]), "scv": np.ones(2), "service_time_s": 1.0, "service_scv": 1.0}
    share = {kind: Target(kind=kind, bound_s=1.0, percentile=0.05) for kind in TargetKind}
    for kind in TargetKind:
        assert wait_percentile_s(shape, TARGETS[0], **arguments, replicas=5) == math.inf
        assert wait_percentile_s(shape, share[kind], **arguments, replicas=5) < math.inf


@given(
    st.lists(st.floats(0.0, 300.0), min_size=1, max_size=12),
    st.sampled_from([1, 3, 48]),
    st.sampled_from(list(Balancing)),
    st.floats(0.0, 20.0),
    st.floats(0.05, 0.999),
)
@settings(max_examples=120)
def test_attainment_grows_with_replicas(
    rates: list[float], slots: int, balancing: Balancing, bound_s: float, percentile: float
) -> None:
    shape = StationShape(slots=slots, balancing=balancing, patience_s=math.inf)
    target = Target(kind=TargetKind.WAIT, bound_s=bound_s, percentile=percentile)
    one = {
        "rates_rps": np.array(rates),
        "scv": np.ones(len(rates)),
        "service_time_s": np.array([2.0]),
        "service_scv": np.ones(1),
        "offsets": np.array([0, len(rates)]),
    }
    values, _ = attainment_curves(shape, target, **one, low=np.array([1]), high=np.array([700]))
    assert np.all(np.diff(values) >= -1e-13)
    required = int(required_replicas(shape, target, **one, at_most=700)[0])
    if not sum(rates):
        assert required == 0
        return
    first = int(np.argmax(values >= percentile)) + 1 if np.any(values >= percentile) else 701
    # A value within rounding of the percentile may fall on either side.
    assert required == first or abs(values[min(required, first) - 1] - percentile) < 1e-12


@pytest.mark.parametrize("balancing", list(Balancing))
@pytest.mark.parametrize(
    ("slots", "load", "scv"), [(1, 900.0, 1.0), (1, 2.0, 1.0), (300, 2000.0, 1.0), (7, 160.0, 2.5)]
)
def test_a_long_walk_stays_with_the_formula(balancing: Balancing, slots: int, load: float, scv: float) -> None:
    """Hundreds of steps of the recursions, and more slots than they are used for."""
    shape = StationShape(slots=slots, balancing=balancing, patience_s=math.inf)
    given = {"rates_rps": np.array([load]), "scv": np.array([scv]), "offsets": np.array([0, 1])}
    service = {"service_time_s": np.ones(1), "service_scv": np.array([0.5])}
    n = np.arange(1, 1001)
    alone = Station(
        replicas=n, arrival_rate_rps=load, service_time_s=1.0, slots=slots, balancing=balancing,
        arrival_scv=scv, service_scv=0.5,
    )  # fmt: skip
    target = Target(kind=TargetKind.WAIT, bound_s=0.02, percentile=0.95)
    shares, _ = attainment_curves(shape, target, **given, **service, low=n[:1], high=n[-1:])
    assert np.allclose(shares, alone.attainment(target.kind, target.bound_s), atol=1e-13, rtol=0.0)
    waiting, _ = waiting_curves(
        shape, **given, **service, low=n[:1], high=n[-1:], horizon_s=np.array([math.inf]), stop_saving=1e-30
    )
    assert np.allclose(waiting, load * alone.mean_wait_s[: len(waiting)], rtol=1e-10, atol=1e-38)
    assert len(waiting) == len(n) or waiting[-1] < 1e-28


def test_a_group_ends_where_it_would_alone() -> None:
    """Samples of one group that join and leave the walk at different n; a group without requests between them."""
    rates = np.array([90.0, 0.0, 3.0, 61.0, 0.0, 2.0, 89.0])
    offsets = np.array([0, 4, 5, 7])
    shape = StationShape(slots=2, balancing=Balancing.LEAST_LOADED, patience_s=math.inf)
    given = {"rates_rps": rates, "scv": np.ones(7), "service_time_s": np.ones(3), "service_scv": np.ones(3)}
    low, high = np.array([1, 1, 20]), np.array([200, 200, 200])
    values, starts = waiting_curves(
        shape, **given, offsets=offsets, low=low, high=high, horizon_s=np.full(3, 60.0), stop_saving=1e-4
    )
    for g in range(3):
        n = np.arange(low[g], low[g] + starts[g + 1] - starts[g])
        each = [_bounded_waiting(rate, n) for rate in rates[offsets[g] : offsets[g + 1]]]
        curve = values[starts[g] : starts[g + 1]]
        assert np.allclose(curve, np.mean(each, axis=0), rtol=1e-10, atol=1e-13)
        savings = -np.diff(curve)
        assert len(savings) == 1 or savings[-1] < 1e-4 <= savings[-2]
    assert np.diff(starts)[1] == 2


def _bounded_waiting(rate_rps: float, n: np.ndarray) -> np.ndarray:
    if rate_rps == 0.0:
        return np.zeros(len(n))
    station = Station(
        replicas=n, arrival_rate_rps=rate_rps, service_time_s=1.0, slots=2, balancing=Balancing.LEAST_LOADED
    )
    wait, mean = station.wait_tail(60.0), station.mean_wait_s
    with np.errstate(invalid="ignore"):
        # E[min(W, H)] of an exponential tail: the mean less its part beyond H.
        within = mean - wait * mean / station.probability_of_waiting
    return rate_rps * np.where(np.isinf(mean), 60.0, within)
