"""The arrival rate that a plan's replicas hold, for all workloads and windows at once: the live guard's limits.

One bisection over every distinct case of a pool, to a part in a million: documents show three digits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ebbtide.allocate.needs import planned_shares
from ebbtide.allocate.pool_plan import PoolPlan
from ebbtide.allocate.samples import WorkloadSamples, ragged_means
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints
from ebbtide.fleet.workload import Workload
from ebbtide.queueing.station import Station

CLOSE = 1e-6


def held_rates_rps(plan: PoolPlan) -> list[Floats]:
    """Per workload the greatest steady rate that its replicas hold at all targets in every window, [windows].

    Targets out of reach are held as far as they can be met: ``needs.planned_shares``. By a claim n replicas hold n
    times what one does.
    """
    if not plan.workloads:
        return []
    samples = plan.windows[0].context.curves.needs.samples
    replicas = np.array(plan.replicas, dtype=np.int64).T
    cases = [
        np.column_stack([counts, one.service_time_s, one.service_scv, _mean_scv(one)])
        for counts, one in zip(replicas, samples, strict=True)
    ]
    held: list[Floats] = [np.zeros(0)] * len(cases)
    for w, one in enumerate(plan.workloads):
        if (holds_rps := one.service.holds_rps) is not None:
            held[w] = replicas[w] * holds_rps
    for members in _alike(plan.workloads):
        distinct = [np.unique(cases[w], axis=0, return_inverse=True) for w in members]
        lengths = [len(rows) for rows, _ in distinct]
        ours = [plan.workloads[w] for w in members]
        rates = _held(ours, np.array(lengths), np.concatenate([rows for rows, _ in distinct]))
        for w, (_, which), part in zip(members, distinct, np.split(rates, np.cumsum(lengths)[:-1]), strict=True):
            held[w] = part[which.ravel()]
    return held


def _alike(workloads: Sequence[Workload]) -> list[list[int]]:
    """Workloads that one Station can hold: the same balancing, the same kinds of targets, patience or none.

    Those with a claim are none of them.
    """
    kinds: dict[tuple[object, ...], list[int]] = {}
    for w, one in enumerate(workloads):
        if one.service.claim is not None:
            continue
        targets = tuple(target.kind for target in one.targets)
        kinds.setdefault((one.balancing, one.patience_s < np.inf, targets), []).append(w)
    return list(kinds.values())


def _mean_scv(samples: WorkloadSamples) -> Floats:
    """Mean SCV of a workload's arrivals per window, 3 digits; 1 (Poisson) where no interval speaks."""
    counts = np.diff(samples.value_offsets)
    return np.where(counts > 0, np.round(ragged_means(samples.value_scv, samples.value_offsets), 3), 1.0)


def _held(workloads: Sequence[Workload], lengths: Ints, rows: Floats) -> Floats:
    """Rates of ``rows`` (replicas, service time, service SCV, arrival SCV), ``lengths[i]`` of them of workload i."""

    def each(values: Sequence[float]) -> Floats:
        return np.repeat(np.array(values, dtype=np.float64), lengths)

    replicas, times_s, service_scv, arrival_scv = rows.T
    slots = each([one.service.concurrency for one in workloads])
    patience_s = each([one.patience_s for one in workloads])
    targets = range(len(workloads[0].targets))
    bounds_s = [each([one.targets[t].bound_s for one in workloads]) for t in targets]
    cases = np.cumsum(lengths)[:-1]
    services = list(zip(np.split(times_s, cases), np.split(service_scv, cases), strict=True))
    shares = [
        np.concatenate(
            [planned_shares(one.targets[t], *service) for one, service in zip(workloads, services, strict=True)]
        )
        for t in targets
    ]

    def is_held(rates_rps: Floats) -> NDArray[np.bool_]:
        station = Station(
            replicas=np.maximum(1, replicas),
            arrival_rate_rps=rates_rps,
            service_time_s=times_s,
            slots=slots,
            balancing=workloads[0].balancing,
            arrival_scv=arrival_scv,
            service_scv=service_scv,
            patience_s=patience_s,
        )
        checks = [station.attainment(workloads[0].targets[t].kind, bounds_s[t]) >= shares[t] for t in targets]
        return np.asarray(np.logical_and.reduce(checks), dtype=np.bool_)

    # With patience at least the percentile is to be served, so the rate is at most capacity over it.
    above = np.where(patience_s < np.inf, 1.0 / np.maximum(1e-3, np.min(shares, axis=0)), 1.0)
    high = replicas * slots / times_s * above
    ceiling, low = high.copy(), np.zeros(len(high))
    while (high - low > CLOSE * high).any() and (high > CLOSE * ceiling).any():
        middle = 0.5 * (low + high)
        held = is_held(middle)
        low, high = np.where(held, middle, low), np.where(held, high, middle)
    return np.where(is_held(np.zeros(len(low))), low, 0.0)
