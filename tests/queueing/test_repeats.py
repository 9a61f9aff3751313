"""Samples that repeat are worked out once: the answers are those of every group on its own."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ebbtide.fleet.workload import Balancing, Target, TargetKind
from ebbtide.queueing.curves import StationShape, attainment_curves, required_replicas, waiting_curves
from ebbtide.queueing.groups import Groups
from ebbtide.queueing.repeats import LEAST_SAMPLES, find_repeats

GROUPS, SIZE = 60, 80


@pytest.fixture(
    params=[(Balancing.LEAST_LOADED, 4, math.inf), (Balancing.RANDOM, 2, math.inf), (Balancing.POOLED, 1, 30.0)]
)
def shape(request: pytest.FixtureRequest) -> StationShape:
    balancing, slots, patience_s = request.param
    return StationShape(slots=slots, balancing=balancing, patience_s=patience_s)


@pytest.fixture
def batch() -> dict[str, np.ndarray]:
    """Overlapping windows over the same intervals, as boundaries to choose from make them; two service times."""
    rng = np.random.default_rng(5)
    rates, scv = rng.uniform(0.5, 6.0, 200), rng.choice([1.0, 1.7], 200)
    begin = rng.integers(0, 200 - SIZE, GROUPS)
    sample = (begin[:, None] + np.arange(SIZE)).ravel()
    return {
        "rates_rps": rates[sample],
        "scv": scv[sample],
        "service_time_s": np.where(np.arange(GROUPS) % 2, 4.0, 5.0),
        "service_scv": np.ones(GROUPS),
        "offsets": np.arange(GROUPS + 1) * SIZE,
    }


def alone(batch: dict[str, np.ndarray], g: int) -> dict[str, np.ndarray]:
    part = slice(g * SIZE, (g + 1) * SIZE)
    return {
        "rates_rps": batch["rates_rps"][part],
        "scv": batch["scv"][part],
        "service_time_s": batch["service_time_s"][g : g + 1],
        "service_scv": batch["service_scv"][g : g + 1],
        "offsets": np.array([0, SIZE]),
    }


def test_the_batch_is_shared_and_a_group_on_its_own_is_not(shape: StationShape, batch: dict[str, np.ndarray]) -> None:
    def groups(part: dict[str, np.ndarray]) -> Groups:
        return Groups(slots=shape.slots, balancing=shape.balancing, patience_s=shape.patience_s, **part)

    assert GROUPS * SIZE >= LEAST_SAMPLES > SIZE
    whole = groups(batch).sharing(np.zeros(GROUPS)).repeats
    assert whole is not None
    assert len(whole.rates_rps) <= 400
    assert groups(alone(batch, 0)).sharing(np.zeros(1)).repeats is None


@pytest.mark.parametrize("kind", [TargetKind.WAIT, TargetKind.LATENCY])
def test_required_and_attained_are_those_of_each_group_alone(
    shape: StationShape, batch: dict[str, np.ndarray], kind: TargetKind
) -> None:
    target = Target(kind=kind, bound_s=20.0, percentile=0.9)
    needed = required_replicas(shape, target, **batch, at_most=500)
    each = [int(required_replicas(shape, target, **alone(batch, g), at_most=500)[0]) for g in range(GROUPS)]
    assert needed.tolist() == each
    low, high = np.maximum(needed - 3, 1), needed + 5
    values, starts = attainment_curves(shape, target, **batch, low=low, high=high)
    for g in range(GROUPS):
        own, _ = attainment_curves(shape, target, **alone(batch, g), low=low[g : g + 1], high=high[g : g + 1])
        np.testing.assert_allclose(values[starts[g] : starts[g + 1]], own, rtol=1e-12)


def test_waiting_is_that_of_each_group_alone(shape: StationShape, batch: dict[str, np.ndarray]) -> None:
    low, high = np.full(GROUPS, 2), np.full(GROUPS, 60)
    horizon_s = np.where(np.arange(GROUPS) % 3, 3600.0, 7200.0)
    values, starts = waiting_curves(shape, **batch, low=low, high=high, horizon_s=horizon_s, stop_saving=1e-3)
    for g in range(GROUPS):
        own, _ = waiting_curves(
            shape,
            **alone(batch, g),
            low=low[g : g + 1],
            high=high[g : g + 1],
            horizon_s=horizon_s[g : g + 1],
            stop_saving=1e-3,
        )
        np.testing.assert_allclose(values[starts[g] : starts[g + 1]], own, rtol=1e-9, atol=1e-12)


def test_samples_are_alike_only_if_all_of_them_is() -> None:
    rates, scv = np.tile([1.0, 1.0, 2.0], 1000), np.tile([1.0, 2.0, 1.0], 1000)
    two = np.array([1.0, 2.0])
    group = np.repeat([0, 1], 1500)
    found = find_repeats(rates, scv, two, np.ones(2), np.zeros(2), group)
    assert found is not None
    kinds = set(zip(found.rates_rps, found.scv, found.service_time_s, strict=True))
    assert len(found.rates_rps) == len(kinds) == 6
    np.testing.assert_array_equal(found.rates_rps[found.number], rates)
    np.testing.assert_array_equal(found.scv[found.number], scv)
    np.testing.assert_array_equal(found.service_time_s[found.number], two[group])


def test_few_repeats_are_not_worth_sharing() -> None:
    rates = np.random.default_rng(1).uniform(1.0, 2.0, 5000)
    assert find_repeats(rates, np.ones(5000), np.ones(1), np.ones(1), np.zeros(1), np.zeros(5000, np.int64)) is None
