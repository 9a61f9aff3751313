"""What n replicas do, for ragged batches of rate samples: what allocation reads, one call per workload.

A *group* g is the samples ``offsets[g]:offsets[g+1]`` of ``rates_rps`` and ``scv`` (the SCV of the arrivals' gaps),
with its own service time and SCV: a window, or a past day of one. What a sample does is ``station``'s answer for the
same numbers; a sample at or above capacity attains 0, and waits the whole horizon (§5.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints
from ebbtide.fleet.workload import Balancing, Target, TargetKind
from ebbtide.queueing import curve_kernels, mixtures
from ebbtide.queueing.replicas import LEAST_LOADED, POOLED, RANDOM, Terms

CODES = {Balancing.POOLED: POOLED, Balancing.LEAST_LOADED: LEAST_LOADED, Balancing.RANDOM: RANDOM}


@dataclass(frozen=True, slots=True, kw_only=True)
class StationShape:
    """What of a workload the curves need: a replica's slots, the balancing, the mean patience (inf: unlimited)."""

    slots: int
    balancing: Balancing
    patience_s: float

    def terms(self, *, is_latency: bool, bound_s: float, service_time_s: float, service_scv: float) -> Terms:
        """The kernels' form."""
        return Terms(
            CODES[self.balancing],
            int(self.slots),
            float(service_time_s),
            float(service_scv),
            float(self.patience_s),
            is_latency,
            float(bound_s),
        )


def required_replicas(
    shape: StationShape,
    target: Target,
    *,
    rates_rps: Floats,
    scv: Floats,
    service_time_s: Floats,
    service_scv: Floats,
    offsets: Ints,
    at_most: int,
) -> Ints:
    """Least n ≥ 1 per group with Σ rate·attained(rate, n) / Σ rate ≥ the target's percentile, int64[G].

    ``at_most + 1`` where no n ≤ ``at_most`` suffices; 0 where the group's total rate is 0. With patience, attained
    is served and within the bound (§5.7).

    >>> shape = StationShape(slots=1, balancing=Balancing.POOLED, patience_s=float("inf"))
    >>> target = Target(kind=TargetKind.WAIT, bound_s=5.0, percentile=0.95)
    >>> required_replicas(shape, target, rates_rps=np.array([6.0]), scv=np.ones(1), service_time_s=np.array([10.0]),
    ...                   service_scv=np.ones(1), offsets=np.array([0, 1]), at_most=100).tolist()
    [66]
    """
    rates, gaps, times, scvs, cuts = _arrays(rates_rps, scv, service_time_s, service_scv, offsets)
    out = np.zeros(len(times), dtype=np.int64)
    terms = _target_terms(shape, target)
    curve_kernels.fill_required(terms, target.percentile, rates, gaps, times, scvs, cuts, int(at_most), out)
    return out


def attainment_curves(
    shape: StationShape,
    target: Target,
    *,
    rates_rps: Floats,
    scv: Floats,
    service_time_s: Floats,
    service_scv: Floats,
    offsets: Ints,
    low: Ints,
    high: Ints,
) -> tuple[Floats, Ints]:
    """(values, starts): group g attains ``values[starts[g] + n − low[g]]`` with n replicas, low[g] ≤ n ≤ high[g].

    ``starts`` has G+1 entries; low ≥ 1. A group without requests attains 1.
    """
    rates, gaps, times, scvs, cuts = _arrays(rates_rps, scv, service_time_s, service_scv, offsets)
    least, most = _ints(low), _ints(high)
    starts = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(np.maximum(0, most - least + 1))))
    values = np.empty(starts[-1])
    terms = _target_terms(shape, target)
    curve_kernels.fill_attainment(terms, rates, gaps, times, scvs, cuts, least, most, starts, values)
    return values, starts


def waiting_curves(
    shape: StationShape,
    *,
    rates_rps: Floats,
    scv: Floats,
    service_time_s: Floats,
    service_scv: Floats,
    offsets: Ints,
    low: Ints,
    high: Ints,
    horizon_s: Floats,
    stop_saving: float,
) -> tuple[Floats, Ints]:
    """(values, starts): mean requests waiting, the mean over a group's samples of rate·E[min(W, horizon)].

    ``values[starts[g] + n − low[g]]`` for n = low[g] …; with patience W is the time in the queue, ended by service
    or by giving up. A sample at or above capacity counts W = horizon. A curve ends early, at the first n > low whose
    saving over n − 1 is below ``stop_saving`` (requests waiting) and stays so.
    """
    rates, gaps, times, scvs, cuts = _arrays(rates_rps, scv, service_time_s, service_scv, offsets)
    starts = np.zeros(len(times) + 1, dtype=np.int64)
    terms = shape.terms(is_latency=False, bound_s=1.0, service_time_s=1.0, service_scv=1.0)
    horizons = np.ascontiguousarray(horizon_s, dtype=np.float64)
    values = curve_kernels.fill_waiting(
        terms, rates, gaps, times, scvs, cuts, _ints(low), _ints(high), horizons, float(stop_saving), starts
    )
    return values, starts


def wait_percentile_s(
    shape: StationShape,
    target: Target,
    *,
    rates_rps: Floats,
    scv: Floats,
    service_time_s: float,
    service_scv: float,
    replicas: int,
) -> float:
    """Least t with Σ rate·P(wait or latency ≤ t) / Σ rate ≥ the target's percentile: rate-weighted over samples.

    The target says wait or latency, and the percentile; its bound is not used. inf where the samples below capacity
    (with patience: the served share) do not reach the percentile; 0 without requests.
    """
    terms = _target_terms(shape, target, service_time_s=service_time_s, service_scv=service_scv)
    rates, gaps = np.ascontiguousarray(rates_rps, np.float64), np.ascontiguousarray(scv, np.float64)
    return float(mixtures.mixture_percentile_s(terms, target.percentile, rates, gaps, int(replicas)))


def held_rate_rps(
    shape: StationShape,
    targets: Sequence[Target],
    *,
    service_time_s: float,
    service_scv: float,
    arrival_scv: float,
    replicas: Ints,
) -> Floats:
    """Greatest steady rate that n replicas hold at all targets, float64[N]; 0 where they hold none.

    Without targets: the capacity.
    """
    counts = _ints(replicas)
    held: Floats = counts.astype(np.float64) * (shape.slots / service_time_s)
    if targets and shape.patience_s < np.inf:
        # Served ≥ percentile of the arrivals cannot exceed capacity.
        held /= max(1e-3, min(target.percentile for target in targets))
    for target in targets:
        terms = _target_terms(shape, target, service_time_s=service_time_s, service_scv=service_scv)
        mixtures.lower_to_held(terms, target.percentile, float(arrival_scv), counts, held)
    return held


def _target_terms(
    shape: StationShape, target: Target, *, service_time_s: float = 1.0, service_scv: float = 1.0
) -> Terms:
    is_latency = target.kind is TargetKind.LATENCY
    return shape.terms(
        is_latency=is_latency, bound_s=target.bound_s, service_time_s=service_time_s, service_scv=service_scv
    )


def _ints(values: ArrayLike) -> Ints:
    return np.ascontiguousarray(values, dtype=np.int64)


def _arrays(
    rates_rps: ArrayLike, scv: ArrayLike, service_time_s: ArrayLike, service_scv: ArrayLike, offsets: ArrayLike
) -> tuple[Floats, Floats, Floats, Floats, NDArray[np.int64]]:
    floats = [np.ascontiguousarray(v, dtype=np.float64) for v in (rates_rps, scv, service_time_s, service_scv)]
    return floats[0], floats[1], floats[2], floats[3], _ints(offsets)
