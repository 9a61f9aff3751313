"""Percentiles of a mixture: the wait (or latency) of all requests of a group of rate samples together."""

from __future__ import annotations

import math

import numpy as np

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints
from ebbtide.fleet.workload import TargetKind
from ebbtide.queueing.groups import Groups
from ebbtide.queueing.station import Station

_MOST_STEPS = 100


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


def bisected_percentile_s(stations: Station, kind: TargetKind, weights: Floats, share: float) -> float:
    """Least t with Σ weight·attained(t) ≥ share (weights sum to 1) by bisection; inf where no t attains it."""

    def attained(bound_s: float) -> float:
        return float(weights @ np.ravel(stations.attainment(kind, bound_s)))

    scale_s = float(np.max(stations.service_time_s))
    if attained(0.0) >= share:
        return 0.0
    high_s = scale_s
    while attained(high_s) < share:
        high_s *= 2.0
        if high_s > 1e12 * scale_s:
            return math.inf
    low_s = 0.5 * high_s if high_s > scale_s else 0.0
    while high_s - low_s > 1e-12 * high_s:
        middle_s = 0.5 * (low_s + high_s)
        low_s, high_s = (low_s, middle_s) if attained(middle_s) >= share else (middle_s, high_s)
    return high_s
