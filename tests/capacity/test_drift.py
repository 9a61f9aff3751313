"""Drift against services whose sustained rate has a closed form: what holds is not accused, what fell behind is."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom

from ebbtide.capacity.drift import DayVerdict, DriftVerdict, Intervals, day_level, drift
from ebbtide.fleet.workload import TargetKind
from ebbtide.queueing.station import Station
from ebbtide.simulate.service_kernels import fcfs

SLOTS, BOUND_S, PERCENTILE, STEP_S = 8, 5.0, 0.95, 600.0
A_DAY = 144


@cache
def sustained_rps() -> float:
    """The rate at which exactly 95 % are within 5 s: M/M/8 with services of a second, at 0.9 of its capacity."""

    def attained(rate_rps: float) -> float:
        station = Station(replicas=1, slots=SLOTS, arrival_rate_rps=rate_rps, service_time_s=1.0)
        return float(station.attainment(TargetKind.LATENCY, BOUND_S)) - PERCENTILE

    return float(brentq(attained, 1.0, SLOTS - 1e-6))


def lived(rng: np.random.Generator, rates_rps: np.ndarray, *, service_s: float = 1.0) -> Intervals:
    """What Prometheus would see of one replica at those rates, request by request."""
    counts = rng.poisson(rates_rps * STEP_S)
    arrival_s = np.concatenate(
        [STEP_S * (number + np.sort(rng.random(count))) for number, count in enumerate(counts.tolist())]
    )
    sojourn_s = np.empty(len(arrival_s))
    fcfs(arrival_s, service_s * rng.standard_exponential(len(arrival_s)), np.zeros(SLOTS), sojourn_s)
    place = (arrival_s // STEP_S).astype(np.int64)
    within = np.bincount(place[sojourn_s <= BOUND_S], minlength=len(counts)) / np.maximum(counts, 1)
    days = np.arange(len(counts)) // A_DAY
    return Intervals(
        step_s=STEP_S,
        rate_rps=counts / STEP_S,
        replicas=np.ones(len(counts)),
        within=np.where(counts > 0, within, np.nan),
        day=days,
    )


def verdicts(runs: int, *, load: float, days: int, service_s: float = 1.0) -> list[DriftVerdict]:
    """A claim that is exactly true, and a service at that share of it all the time."""
    low_rps = sustained_rps()
    found = []
    for seed in range(runs):
        rng = np.random.default_rng([seed, days])
        seen = lived(rng, np.full(days * A_DAY, load * low_rps), service_s=service_s)
        found.append(drift(seen, low_rps=low_rps, allowed=1.0 - PERCENTILE).verdict)
    return found


def test_a_service_that_just_holds_its_target_is_seldom_accused() -> None:
    # The hardest case: the rate is the claim's own all the time, so that attainment is exactly at target. Intervals
    # whose count is above it by chance are left out, which only helps.
    accused = sum(one is DriftVerdict.DRIFTED for one in verdicts(12, load=1.0, days=5))
    assert accused <= binom.isf(1e-3, 12, 0.05)


def test_below_the_claim_a_service_that_holds_is_never_accused() -> None:
    assert set(verdicts(5, load=0.9, days=4)) == {DriftVerdict.HOLDS}


def test_a_service_a_tenth_slower_has_drifted() -> None:
    # At 0.97 of the claim's rate an M/M/8 whose services take a tenth longer is within 5 s for 68 % of its requests.
    found = verdicts(6, load=0.97, days=4, service_s=1.1)
    assert found.count(DriftVerdict.DRIFTED) >= 5


@pytest.mark.parametrize(("service_s", "said"), [(1.0, "holds"), (1.1, "drifted"), (1.25, "drifted")])
def test_a_daily_wave_hides_no_drift(service_s: float, said: str) -> None:
    """Late only around noon, or, a quarter slower, in a backlog that lasts half the day."""
    low_rps = sustained_rps()
    wave = 0.65 + 0.35 * np.sin(2.0 * np.pi * np.arange(4 * A_DAY) / A_DAY)
    for seed in range(3):
        seen = lived(np.random.default_rng([seed, 4]), wave * low_rps, service_s=service_s)
        assert drift(seen, low_rps=low_rps, allowed=0.05).verdict == said


def test_two_bad_days_are_none() -> None:
    rng = np.random.default_rng(3)
    low_rps = sustained_rps()
    good = lived(rng, np.full(4 * A_DAY, 0.8 * low_rps))
    within = good.within.copy()
    for bad_days, said in ((2, DriftVerdict.HOLDS), (3, DriftVerdict.DRIFTED)):
        within[good.day < bad_days] = 0.85
        seen = Intervals(
            step_s=STEP_S, rate_rps=good.rate_rps, replicas=good.replicas, within=within.copy(), day=good.day
        )
        found = drift(seen, low_rps=low_rps, allowed=0.05)
        assert (found.below, found.verdict) == (bad_days, said)


def made(**changes: np.ndarray) -> Intervals:
    """Three days of which all intervals speak, just above what is allowed to be late."""
    columns = {
        "rate_rps": np.full(3 * A_DAY, 9.0),
        "replicas": np.full(3 * A_DAY, 2.0),
        "within": np.full(3 * A_DAY, 0.90),
        "day": np.arange(3 * A_DAY) // A_DAY,
    }
    return Intervals(step_s=STEP_S, **(columns | changes))


def test_only_intervals_at_rates_that_the_claim_holds_speak() -> None:
    assert drift(made(), low_rps=5.0, allowed=0.05).verdict is DriftVerdict.DRIFTED
    assert drift(made(), low_rps=4.0, allowed=0.05).days == ()
    rates = np.where(np.arange(3 * A_DAY) % 2 == 0, 9.0, 11.0)  # every other interval overloads the next
    assert drift(made(rate_rps=rates), low_rps=5.0, allowed=0.05).verdict is DriftVerdict.UNKNOWN


def test_intervals_whose_replicas_change_or_are_unknown_do_not_speak() -> None:
    assert not made(replicas=np.arange(3 * A_DAY) + 2.0).speaking(5.0).any()
    assert not made(replicas=np.full(3 * A_DAY, np.nan)).speaking(5.0).any()
    assert not made(replicas=np.zeros(3 * A_DAY)).speaking(5.0).any()
    assert not made(within=np.full(3 * A_DAY, np.nan)).speaking(5.0).any()
    assert not made(rate_rps=np.full(3 * A_DAY, np.nan)).speaking(5.0).any()
    assert made().speaking(5.0).sum() == 3 * A_DAY - 1


def test_few_requests_say_nothing() -> None:
    found = drift(made(rate_rps=np.full(3 * A_DAY, 1e-4)), low_rps=5.0, allowed=0.05)
    assert {one.verdict for one in found.days} == {DayVerdict.FEW}
    assert found.verdict is DriftVerdict.UNKNOWN


def test_long_disturbances_make_few_effective_requests() -> None:
    number = np.arange(3 * A_DAY)
    one_of_ten, nine_of_ninety = number % 10 == 0, number % 90 < 9
    short, long = (
        drift(made(within=np.where(stalls, 0.3, 0.99)), low_rps=5.0, allowed=0.05).days
        for stalls in (one_of_ten, nine_of_ninety)
    )
    assert min(one.effective for one in short) > 4.0 * max(one.effective for one in long)


@pytest.mark.parametrize("days", [3, 7, 28, 90])
def test_three_of_many_days_together_are_wrong_once_in_twenty(days: int) -> None:
    level = day_level(days)
    assert binom.sf(2, days, level) <= 0.05 + 1e-9
    assert level == 0.05 or binom.sf(2, days, level) == pytest.approx(0.05)
