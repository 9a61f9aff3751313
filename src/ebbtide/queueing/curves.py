"""What n replicas do, for ragged batches of rate samples: what allocation reads, one call per workload.

A *group* g is the samples ``offsets[g]:offsets[g+1]`` of ``rates_rps`` and ``scv`` (the SCV of the arrivals' gaps),
with its own service time and SCV: a window, or a past day of one. What a sample does is ``station``'s answer for the
same numbers; a sample at or above capacity attains 0, and waits the whole horizon (§5.3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints
from ebbtide.fleet.workload import Balancing, Target, TargetKind, Workload
from ebbtide.queueing import claimed
from ebbtide.queueing.groups import Groups
from ebbtide.queueing.percentiles import searched_percentiles_s, steady_percentiles_s
from ebbtide.queueing.searches import least_replicas
from ebbtide.queueing.waiting import mean_waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class StationShape:
    """What of a workload the curves need: a replica's slots, the balancing, the mean patience (inf: unlimited).

    ``holds_rps``: what a replica holds by a claim; then that is all that is known (``claimed``), and nothing of waits.
    """

    slots: int
    balancing: Balancing
    patience_s: float
    holds_rps: float | None = None

    @classmethod
    def of(cls, workload: Workload) -> StationShape:
        """The shape of a workload. ``ValueError`` where its claim was not read."""
        service = workload.service
        return cls(
            slots=service.concurrency,
            balancing=workload.balancing,
            patience_s=workload.patience_s,
            holds_rps=service.holds_rps,
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
    [65]
    """
    if shape.holds_rps is not None:
        return claimed.required(rates_rps, _ints(offsets), shape.holds_rps, int(at_most))
    groups = _groups(shape, rates_rps, scv, service_time_s, service_scv, offsets)
    return least_replicas(groups, target.kind, target.bound_s, target.percentile, int(at_most))


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
    if shape.holds_rps is not None:
        share = target.percentile
        return claimed.attainment(rates_rps, _ints(offsets), shape.holds_rps, share, _ints(low), _ints(high))
    groups = _groups(shape, rates_rps, scv, service_time_s, service_scv, offsets)
    return groups.sharing(np.zeros(groups.size)).attainment(target.kind, target.bound_s, _ints(low), _ints(high))


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
    saving over n − 1 is below ``stop_saving`` (requests waiting) and stays so; a sample's waiting below a thousand
    millionth of that counts as 0.
    """
    groups = _groups(shape, rates_rps, scv, service_time_s, service_scv, offsets)
    horizons = np.ascontiguousarray(horizon_s, dtype=np.float64)
    return mean_waiting(groups, horizons, _ints(low), _ints(high), float(stop_saving))


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
    count = len(rates_rps)
    return float(
        wait_percentiles_s(
            shape,
            target,
            rates_rps=rates_rps,
            scv=scv,
            service_time_s=np.array([service_time_s]),
            service_scv=np.array([service_scv]),
            offsets=np.array([0, count]),
            replicas=np.array([replicas]),
        )[0]
    )


def wait_percentiles_s(
    shape: StationShape,
    target: Target,
    *,
    rates_rps: Floats,
    scv: Floats,
    service_time_s: Floats,
    service_scv: Floats,
    offsets: Ints,
    replicas: Ints,
) -> Floats:
    """``wait_percentile_s`` of many groups at once, float64[G]: much faster than one by one."""
    groups = _groups(shape, rates_rps, scv, service_time_s, service_scv, offsets)
    counts = _ints(replicas)
    if target.kind is TargetKind.WAIT and shape.patience_s == np.inf:
        return steady_percentiles_s(groups, counts, target.percentile)
    return searched_percentiles_s(groups, counts, target.kind, target.percentile)


def _groups(
    shape: StationShape,
    rates_rps: ArrayLike,
    scv: ArrayLike,
    service_time_s: ArrayLike,
    service_scv: ArrayLike,
    offsets: ArrayLike,
) -> Groups:
    if shape.holds_rps is not None:
        raise ValueError("a claim says nothing of waits")
    floats = [np.ascontiguousarray(v, dtype=np.float64) for v in (rates_rps, scv, service_time_s, service_scv)]
    return Groups(
        slots=int(shape.slots),
        balancing=shape.balancing,
        patience_s=float(shape.patience_s),
        rates_rps=floats[0],
        scv=floats[1],
        service_time_s=floats[2],
        service_scv=floats[3],
        offsets=_ints(offsets),
    )


def _ints(values: ArrayLike) -> Ints:
    return np.ascontiguousarray(values, dtype=np.int64)
