"""What replicas do for every workload in every window of one pool: needs, shortage and money, for every count at once.

Everything that the choice of replicas reads, and nothing that it decides. The curves are cut where a further replica
is worth less than a ten-millionth of what research pays for its GPUs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ebbtide.allocate.deficits import missing_shares
from ebbtide.allocate.fit import do_not_fit
from ebbtide.allocate.needs import Needs, pool_needs, station_shape, workload_shares
from ebbtide.allocate.samples import WorkloadSamples
from ebbtide.allocate.unserved import joint, unserved_units
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints, WindowDemand
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.workload import Workload
from ebbtide.queueing.curves import waiting_curves
from ebbtide.units import SECONDS_PER_HOUR

# A shortage is counted in billionths of the window's whole claim, Σ weight · rate · targets · hours: integers add up
# exactly, so that two ways to the same shortage are seen to be the same and money can decide between them.
SHORTAGE_UNITS = 1e9
# A replica saving less than this share of its GPUs' value to research changes no plan: Σ 1e-7 · GPUs · value over the
# workloads is 1e-7 of what production costs, inside the 1e-6 to which small plans are exact.
NEGLIGIBLE = 1e-7
# The same where research's GPUs are worth nothing: in requests waiting.
NEGLIGIBLE_WAITING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PoolCurves:
    """The curves of W workloads in K windows of one pool.

    The curve of workload w in window k runs from ``low[w, k]`` replicas for ``length[w, k]`` counts, flat from
    ``start[w, k]``: ``money`` in USD/h (waiting cost on the past rates, no margin) and ``deficit``, the shortage
    (weight · rate · missing share · hours) in units of ``deficit_unit[k]`` and the unserved load behind it
    (``unserved.joint``). ``low`` is what must be held; in a window
    that is ``short`` (not all of that fits) it is the user's minimum.
    """

    needs: Needs
    short: NDArray[np.bool_]
    low: Ints
    start: Ints
    length: Ints
    money: Floats
    deficit: Ints
    deficit_unit: Floats


def pool_curves(
    pool: Pool,
    workloads: Sequence[Workload],
    demand: Iterable[Sequence[WindowDemand]],
    *,
    hours: Floats,
    research: Research,
    confidence: float,
) -> PoolCurves:
    """All curves of one pool. ``demand[w][k]`` is workload w's in window k, ``hours[k]`` that window's length."""
    needs = pool_needs(pool, workloads, demand, confidence=confidence)
    width, room = needs.shape.width_units[:, None], needs.capacity_units
    short = do_not_fit(needs.shape, needs.held, needs.nodes)
    low = np.where(short, needs.minimum[:, None], needs.held)
    spare = np.maximum(room - (low * width).sum(axis=0), 0)
    high = np.minimum(low + spare // width, np.maximum(needs.maximum[:, None], low))
    claim = sum_claims(workloads, needs.samples, hours)
    unit = np.where(claim > 0.0, claim, 1.0) / SHORTAGE_UNITS
    parts = [
        _workload_curve(
            _Task(workload=workload, samples=needs.samples[w], hours=hours, research=research, confidence=confidence),
            day=needs.day[w],
            low=low[w],
            high=high[w],
            required=needs.required[w],
            unit=unit,
        )
        for w, workload in enumerate(workloads)
    ]
    firsts = np.concatenate([[0], np.cumsum([len(part.money) for part in parts])])
    return PoolCurves(
        needs=needs,
        short=short,
        low=low,
        start=np.array([part.starts[:-1] + first for part, first in zip(parts, firsts.tolist(), strict=False)]),
        length=np.array([np.diff(part.starts) for part in parts]),
        money=np.concatenate([part.money for part in parts]),
        deficit=np.concatenate([part.deficit for part in parts]),
        deficit_unit=unit,
    )


def sum_claims(workloads: Sequence[Workload], samples: Sequence[WorkloadSamples], hours: Floats) -> Floats:
    """Σ weight · planned mean rate · targets · hours of every window: what is short where nobody attains anything."""
    claim = np.zeros(len(hours))
    for workload, one in zip(workloads, samples, strict=True):
        claim += workload.weight * one.planned_mean_rps * len(workload.targets) * hours
    return claim


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Task:
    workload: Workload
    samples: WorkloadSamples
    hours: Floats
    research: Research
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Curve:
    starts: Ints
    money: Floats
    deficit: Ints


def _workload_curve(task: _Task, *, day: Ints, low: Ints, high: Ints, required: Ints, unit: Floats) -> _Curve:
    last_short = np.minimum(required - 1, high)
    below = np.flatnonzero(last_short >= low)
    deficit_lengths = np.zeros(len(low), dtype=np.int64)
    deficit_lengths[below] = (last_short - low + 1)[below]
    scale = task.workload.weight * task.samples.planned_mean_rps * task.hours / unit
    units = np.rint(_deficits(task, below, low[below], last_short[below]) * np.repeat(scale, deficit_lengths)).astype(
        np.int64
    )
    unserved = unserved_units(
        task.samples,
        day,
        replica_rps=task.workload.service.concurrency / task.samples.service_time_s,
        claim_share=scale / SHORTAGE_UNITS,
        low=low,
        lengths=deficit_lengths,
    )
    waiting, waiting_starts = _waiting(task, low, high)
    # Up to the first count without deficit, or as far as waiting still falls.
    lengths = np.maximum(np.diff(waiting_starts), np.minimum(deficit_lengths + 1, high - low + 1))
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    cost = task.workload.waiting_cost_usd_per_request_h
    money, deficit = _joined(starts, waiting, waiting_starts, cost, joint(units, unserved), deficit_lengths)
    return _Curve(starts=starts, money=money, deficit=deficit)


def horizon_s(workload: Workload, hours: Floats) -> Floats:
    """H of E[min(W, H)]: the window's length or the patience, seconds (§5.3)."""
    return np.minimum(hours * SECONDS_PER_HOUR, workload.patience_s)


def _waiting(task: _Task, low: Ints, high: Ints) -> tuple[Floats, Ints]:
    """Mean requests waiting from ``low`` on, as far as it matters; one 0 per window where waiting costs nothing."""
    workload, samples = task.workload, task.samples
    count = len(low)
    if workload.waiting_cost_usd_per_request_h == 0.0:
        return np.zeros(count), np.arange(count + 1, dtype=np.int64)
    worth = workload.gpus_per_replica * task.research.value_usd_per_gpu_h / workload.waiting_cost_usd_per_request_h
    first = np.maximum(low, 1)
    values, starts = waiting_curves(
        station_shape(workload),
        rates_rps=samples.value_rates_rps,
        scv=samples.value_scv,
        service_time_s=samples.service_time_s,
        service_scv=samples.service_scv,
        offsets=samples.value_offsets,
        low=first,
        high=np.maximum(high, first),
        horizon_s=horizon_s(workload, task.hours),
        stop_saving=max(worth * NEGLIGIBLE, NEGLIGIBLE_WAITING),
    )
    if (low == 0).any():
        idle = samples.value_mean_rps * horizon_s(workload, task.hours)
        return _with_zero_replicas(values, starts, low, high, idle)
    return values, starts


def _with_zero_replicas(values: Floats, starts: Ints, low: Ints, high: Ints, idle: Floats) -> tuple[Floats, Ints]:
    """Curves that begin at 0 replicas where ``low`` is 0: then every request waits as long as one can."""
    parts = []
    for k in range(len(low)):
        curve = values[starts[k] : starts[k + 1]]
        parts.append(np.concatenate([[idle[k]], curve])[: high[k] + 1] if low[k] == 0 else curve)
    lengths = np.array([len(part) for part in parts], dtype=np.int64)
    return np.concatenate(parts), np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])


def _deficits(task: _Task, windows: Ints, low: Ints, high: Ints) -> Floats:
    """Missing share (summed over targets) for the counts low … high of some windows, flat; empty where none.

    Missing of the share that is planned for: what no number of replicas gives earns no workload a GPU of another's.
    """
    workload, samples = task.workload, task.samples.pick(windows)
    shares = [
        workload_shares(workload, target, samples.service_time_s, samples.service_scv) for target in workload.targets
    ]
    return missing_shares(
        workload, workload.targets, np.array(shares), samples, low=low, high=high, confidence=task.confidence
    )


@njit(cache=True)
def _joined(starts, waiting, waiting_starts, cost, deficits, deficit_lengths):  # type: ignore[no-untyped-def]  # numba infers types
    """Money and deficit units on common lengths: waiting keeps its last value, deficits end in 0."""
    money = np.zeros(starts[-1])
    deficit = np.zeros(starts[-1], dtype=np.int64)
    before = 0
    for k in range(len(starts) - 1):
        known = waiting_starts[k + 1] - waiting_starts[k]
        for i in range(starts[k + 1] - starts[k]):
            money[starts[k] + i] = cost * waiting[waiting_starts[k] + min(i, known - 1)]
            if i < deficit_lengths[k]:
                deficit[starts[k] + i] = deficits[before + i]
        before += deficit_lengths[k]
    return money, deficit
