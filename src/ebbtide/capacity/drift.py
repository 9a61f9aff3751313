"""Whether a service still holds what its claim says: live attainment below target at live rates that it should hold.

§M.9: below target, with effective samples, on at least three days. An interval speaks where a replica's rate is at most
the claim's, as it was in the interval before (else a backlog would be judged), with the same replicas (else their
start-up would be). Neighbouring intervals share their disturbances, so a day's requests count as effective ones, by
batch means of its late requests (§M.2) around what their rates explain: that more are late at noon than at night is no
disturbance, and would hide any drift behind a day of few effective requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv

from ebbtide.capacity.limits import Floats
from ebbtide.capacity.verdict import LEAST_EFFECTIVE

LEAST_DAYS = 3
# The chance that a service which just holds its target is said to have drifted, over all days looked at.
DRIFT_ERROR = 0.05
# Batch means of a day's intervals are trusted from this many on: 144 intervals of 10 minutes see 3 hours.
LEAST_BATCHES = 8
# With fewer than 40 effective requests the memory is known to a factor of three at best. As a growing backlog may end a
# step as failed (§M.2), such a day may be below target, never hold: where a third of them says so too.
UNSURE = 3.0
# Late shares are told apart by rate in so many classes of equal count; a tenth of the rate is a class or less.
RATE_CLASSES = 12
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Intervals:
    """What was seen of a service, interval by interval without a gap; NaN is not observed.

    ``rate_rps`` is the whole service's, ``replicas`` how many served, ``within`` the share of requests within target,
    ``day`` the number of the interval's day.
    """

    step_s: float
    rate_rps: Floats
    replicas: Floats
    within: Floats
    day: Ints

    def speaking(self, low_rps: float) -> NDArray[np.bool_]:
        """Which intervals speak of the claim."""
        with np.errstate(divide="ignore", invalid="ignore"):
            calm = (self.replicas >= 1.0) & (self.rate_rps / self.replicas <= low_rps)
        before, same = np.roll(calm, 1), self.replicas == np.roll(self.replicas, 1)
        before[:1], same[:1] = False, False
        speaks: NDArray[np.bool_] = calm & before & same & (self.rate_rps > 0.0) & np.isfinite(self.within)
        return speaks


class DayVerdict(StrEnum):
    """What a day said: ``few``: under 40 effective requests at rates that the claim holds, and not far below target."""

    BELOW = "below"
    HOLDS = "holds"
    FEW = "few"


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One day: its requests in the intervals that speak, how many were late, how many effective requests they are."""

    day: int
    requests: float
    late_share: float
    effective: float
    verdict: DayVerdict


class DriftVerdict(StrEnum):
    """What all days say: ``unknown``: fewer than three days said anything."""

    DRIFTED = "drifted"
    HOLDS = "holds"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """The days, and what they say together. ``late_share`` is that of all requests that spoke, NaN without any."""

    days: tuple[Day, ...]
    allowed: float
    verdict: DriftVerdict

    @property
    def below(self) -> int:
        """Days below target."""
        return sum(one.verdict is DayVerdict.BELOW for one in self.days)

    @property
    def judged(self) -> int:
        """Days that said anything."""
        return sum(one.verdict is not DayVerdict.FEW for one in self.days)

    @property
    def late_share(self) -> float:
        """The share of late requests over all days."""
        requests = sum(one.requests for one in self.days)
        return sum(one.requests * one.late_share for one in self.days) / requests if requests else float("nan")


def drift(seen: Intervals, *, low_rps: float, allowed: float) -> Drift:
    """Whether live requests are late more often than the ``allowed`` share, at rates of at most ``low_rps`` a replica.

    >>> days = 4 * 144
    >>> seen = Intervals(step_s=600.0, rate_rps=np.full(days, 5.0), replicas=np.ones(days),
    ...     within=np.full(days, 0.90), day=np.repeat(np.arange(4), 144))
    >>> drift(seen, low_rps=5.0, allowed=0.05).verdict, drift(seen, low_rps=5.0, allowed=0.2).verdict
    (<DriftVerdict.DRIFTED: 'drifted'>, <DriftVerdict.HOLDS: 'holds'>)
    """
    speaks = seen.speaking(low_rps)
    requests = np.where(speaks, seen.rate_rps * seen.step_s, 0.0)
    late = np.where(speaks, requests * (1.0 - np.clip(seen.within, 0.0, 1.0)), 0.0)
    usual = _usual_shares(seen, speaks, requests, late)
    sums = []
    for day in np.unique(seen.day[speaks]).tolist():
        here = speaks & (seen.day == day)
        total = float(requests[here].sum())
        effective = _effective(requests[here], late[here], usual[here])
        sums.append((day, total, float(late[here].sum()) / total, effective))
    level = day_level(len(sums))
    days = tuple(
        Day(
            day=day,
            requests=total,
            late_share=share,
            effective=effective,
            verdict=_of_day(share, effective, allowed, level),
        )
        for day, total, share, effective in sums
    )
    return Drift(days=days, allowed=allowed, verdict=_together(days))


def day_level(days: int) -> float:
    """The chance of a wrong "below" that each of so many days may have, so that three of them together have 5 %.

    P(Bin(days, level) ≥ 3) is the regularised incomplete beta function of level with 3 and days − 2; at most 5 % each.

    >>> day_level(3), round(day_level(28), 4)
    (0.05, 0.0298)
    """
    if days < LEAST_DAYS:
        return DRIFT_ERROR
    return min(DRIFT_ERROR, float(betaincinv(LEAST_DAYS, days - LEAST_DAYS + 1, DRIFT_ERROR)))


def _of_day(share: float, effective: float, allowed: float, level: float) -> DayVerdict:
    counted = effective if effective >= LEAST_EFFECTIVE else effective / UNSURE
    bad = counted * share
    if bad > 0.0 and float(betainc(bad, max(counted - bad, 0.0) + 1.0, allowed)) <= level:
        return DayVerdict.BELOW
    return DayVerdict.HOLDS if effective >= LEAST_EFFECTIVE else DayVerdict.FEW


def _together(days: Sequence[Day]) -> DriftVerdict:
    if sum(one.verdict is DayVerdict.BELOW for one in days) >= LEAST_DAYS:
        return DriftVerdict.DRIFTED
    judged = sum(one.verdict is not DayVerdict.FEW for one in days)
    return DriftVerdict.HOLDS if judged >= LEAST_DAYS else DriftVerdict.UNKNOWN


def _usual_shares(seen: Intervals, speaks: NDArray[np.bool_], requests: Floats, late: Floats) -> Floats:
    """The late share that is usual at each interval's rate a replica: of its class of rates, over all days."""
    usual = np.zeros(len(requests))
    if not speaks.any():
        return usual
    rates = seen.rate_rps[speaks] / seen.replicas[speaks]
    edges = np.unique(np.quantile(rates, np.linspace(0.0, 1.0, RATE_CLASSES + 1)[1:-1]))
    place = np.searchsorted(edges, rates)
    sent = np.maximum(np.bincount(place, weights=requests[speaks]), 1e-12)
    of_class = np.bincount(place, weights=late[speaks]) / sent
    usual[speaks] = of_class[place]
    return usual


def _effective(requests: Floats, late: Floats, usual: Floats) -> float:
    """The day's requests over the largest inflation of its late ones' variance, over all batch lengths (§M.2)."""
    total = float(requests.sum())
    if len(requests) < LEAST_BATCHES:
        return 0.0
    single = requests * usual * (1.0 - usual)
    # Around what the rates explain, and around the day itself: a bad day is not its own disturbance.
    residuals = late - usual * requests
    residuals -= requests * (float(residuals.sum()) / total)
    worst, length = 1.0, 1
    while len(residuals) // length >= LEAST_BATCHES:
        runs = len(residuals) // length
        sums = residuals[: runs * length].reshape(runs, length).sum(axis=1)
        expected = float(single[: runs * length].sum()) / runs
        if expected > 0.0:
            worst = max(worst, float(sums.var(ddof=1)) / expected)
        length *= 2
    return total / worst
