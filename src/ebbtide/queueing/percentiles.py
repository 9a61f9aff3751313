"""Percentiles of a mixture: the wait (or latency) of all requests of a group of rate samples together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints
from ebbtide.fleet.workload import TargetKind
from ebbtide.queueing.groups import Groups
from ebbtide.queueing.station import Station

_MOST_STEPS = 100
_MOST_SERVICE_TIMES = 1e12  # a share that is not attained by then never is
_LEAST_LATE = 1e-17  # below, a late share is the rounding of 1


def steady_percentiles_s(groups: Groups, replicas: Ints, percentile: float) -> Floats:
    """Without patience a mixture's tail is a sum of exponentials, and a constant for what is unstable."""
    is_used = (groups.rates_rps > 0.0) & (groups.total_rps > 0.0)[groups.group]
    log_p, decay = groups.laws(replicas)
    weight = groups.rates_rps / np.where(groups.total_rps > 0.0, groups.total_rps, 1.0)[groups.group]
    is_steady = is_used & (decay > 0.0)
    unstable = np.bincount(groups.group[is_used & ~is_steady], weight[is_used & ~is_steady], groups.size)
    found = np.where(unstable > 0.0, np.inf, 0.0)
    left = 1.0 - percentile - unstable
    here = np.flatnonzero((left > 0.0) & (np.bincount(groups.group[is_steady], minlength=groups.size) > 0))
    rank = np.full(groups.size, -1, dtype=np.int64)
    rank[here] = np.arange(here.size)
    kept = is_steady & (rank[groups.group] >= 0)
    if here.size:
        tails = np.log(weight[kept]) + log_p[kept]
        found[here] = _tail_percentiles_s(tails, decay[kept], rank[groups.group[kept]], np.log(left[here]))
    return found


def _tail_percentiles_s(log_weight: Floats, decay_per_s: Floats, group: Ints, log_late: Floats) -> Floats:
    """Per group the least t ≥ 0 with Σ exp(log_weight − decay·t) ≤ exp(log_late), all decays above 0.

    Newton on the logarithm of the sum, which is convex and falls: from t = 0 it never oversteps, and one exponential
    is solved in one step. ``group`` sorted, every group present.
    """
    count = log_late.size
    starts = np.searchsorted(group, np.arange(count))
    top = np.maximum.reduceat(log_weight, starts)
    t = np.zeros(count)
    for _ in range(_MOST_STEPS):
        exponent = log_weight - decay_per_s * t[group]
        top = np.maximum.reduceat(exponent, starts)
        with np.errstate(invalid="ignore"):
            terms = np.exp(exponent - np.where(np.isfinite(top), top, 0.0)[group])
        total = np.add.reduceat(terms, starts)
        slope = np.add.reduceat(terms * decay_per_s, starts)
        with np.errstate(divide="ignore", invalid="ignore"):
            over = top + np.log(total) - log_late
            step = np.where((over > 0.0) & (slope > 0.0), over * total / slope, 0.0)
        t += step
        if np.all(step <= 1e-15 * t):
            break
    return t


def searched_percentiles_s(groups: Groups, replicas: Ints, kind: TargetKind, share: float) -> Floats:
    """Per group the least t with Σ rate·attained(t) ≥ share·Σ rate; inf where no t attains it, 0 without requests.

    Bracketed by doubling, then interpolated inside the bracket (``_Search.narrowed``), all groups at once.
    """
    found = np.zeros(groups.size)
    is_open = groups.total_rps > 0.0
    search = _Search(groups, replicas, kind, share)
    is_open &= search.excess(np.zeros(groups.size), is_open) < 0.0
    high = np.where(is_open, groups.service_time_s, 0.0)
    is_below = is_open.copy()
    while np.any(is_below):
        is_below &= search.excess(high, is_below) < 0.0
        high = np.where(is_below, 2.0 * high, high)
        endless = is_below & (high > _MOST_SERVICE_TIMES * groups.service_time_s)
        found[endless] = np.inf
        is_below &= ~endless
        is_open &= ~endless
    low = np.where(high > groups.service_time_s, 0.5 * high, 0.0)
    found[is_open] = search.narrowed(low, high, is_open)[is_open]
    return found


class _Search:
    """What a batch attains at a time of each group's own, against a share."""

    def __init__(self, groups: Groups, replicas: Ints, kind: TargetKind, share: float) -> None:
        self.groups, self.replicas, self.kind, self.share = groups, replicas, kind, share

    def excess(self, t_s: Floats, is_asked: NDArray[np.bool_]) -> Floats:
        """ln((1 − share)/late) of the groups that are asked for, nearly a line in t; at least 0 where t suffices."""
        part = self.groups.only(is_asked)
        group, rates_rps = part.group, part.rates_rps
        stations = Station(
            replicas=self.replicas[is_asked][group],
            arrival_rate_rps=rates_rps,
            service_time_s=part.service_time_s[group],
            slots=part.slots,
            balancing=part.balancing,
            arrival_scv=part.scv,
            service_scv=part.service_scv[group],
            patience_s=part.patience_s,
        )
        weights = rates_rps / part.total_rps[group]
        attained = np.bincount(group, weights * stations.attainment(self.kind, t_s[is_asked][group]), part.size)
        out = np.zeros(self.groups.size)
        out[is_asked] = np.log((1.0 - self.share) / np.maximum(1.0 - attained, _LEAST_LATE))
        return out

    def narrowed(self, low: Floats, high: Floats, is_open: NDArray[np.bool_]) -> Floats:
        """The upper ends of brackets made as narrow as a part in 10¹².

        By ITP (Oliveira and Takahashi 2020, κ₁ = 0.2/width, κ₂ = 2, n₀ = 1): a false position, truncated and projected
        so that no function takes more than one step above bisection's; attainment may jump (constant service).
        """
        low, high, is_open = low.copy(), high.copy(), is_open.copy()
        least = 0.5 * np.maximum(1e-12 * low, 1e-15 * self.groups.service_time_s)
        width = np.where(is_open, high - low, 1.0)
        reach = np.exp2(np.ceil(np.log2(0.5 * width / least)) + 1.0) * least
        below, above = self.excess(low, is_open), self.excess(high, is_open)
        while True:
            is_open &= (high - low > 2.0 * least) & (high - low > 1e-12 * high)
            if not np.any(is_open):
                return high
            middle = 0.5 * (low + high)
            with np.errstate(divide="ignore", invalid="ignore"):
                chord = (above * low - below * high) / (above - below)
            chord = np.where(np.isfinite(chord), chord, middle)
            side = np.sign(middle - chord)
            push = np.minimum(0.2 / width * (high - low) ** 2, np.abs(middle - chord))
            radius = np.maximum(reach - 0.5 * (high - low), 0.0)
            at = middle - side * np.minimum(np.abs(middle - chord) - push, radius)
            found = self.excess(at, is_open)
            is_met = is_open & (found >= 0.0)
            is_missed = is_open & ~is_met
            high, above = np.where(is_met, at, high), np.where(is_met, found, above)
            low, below = np.where(is_missed, at, low), np.where(is_missed, found, below)
            reach = 0.5 * reach
