"""How many replicas every workload needs in every window, and the least that is stable: §5.3 to §5.5."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ebbtide.allocate.packing import NodeShape, node_shape
from ebbtide.allocate.requirement import day_peak, window_needs
from ebbtide.allocate.samples import WorkloadSamples, samples_of, stretches
from ebbtide.errors import InputError, Place
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints, WindowDemand
from ebbtide.fleet.pool import Pool
from ebbtide.fleet.workload import Target, TargetKind, Workload
from ebbtide.queueing.curves import StationShape, required_replicas
from ebbtide.queueing.latency import service_share

# Needs are looked for up to this many times what the pool could hold: enough to say how much is missing.
NEED_RANGE = 8

# Of the share that service alone leaves to a target out of reach, waiting may take a thousandth: more replicas would be
# given for nothing that a user could see.
NEAR = 0.999


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Needs:
    """Counts of replicas of W workloads in K windows of one pool (int64[W, K] unless said otherwise).

    ``target``: what the targets ask for, as far as they can be met (``planned_shares``). ``out_of_reach`` (bool[W, K]):
    there is load, and a target that no number of replicas meets. ``sought``: the most that was looked for, int64[W]; a
    ``target`` above it says no more than that. ``required``: with the user's minimum. ``held``: not above the user's
    maximum. ``floor``: the least that is stable at the deciding day's mean rate. ``day``: the past day that decides.
    ``minimum`` and ``maximum`` (int64[W]) are the user's; without a maximum it is what the pool could hold of that
    workload alone. ``capacity_units`` is what all nodes that may stand in production hold.
    """

    shape: NodeShape
    nodes: int
    capacity_units: int
    samples: tuple[WorkloadSamples, ...]
    target: Ints
    out_of_reach: NDArray[np.bool_]
    sought: Ints
    required: Ints
    held: Ints
    floor: Ints
    day: Ints
    minimum: Ints
    maximum: Ints

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Where ``target`` replicas meet all targets and fewer do not, bool[W, K]."""
        return (self.target <= self.sought[:, None]) & ~self.out_of_reach


def pool_needs(
    pool: Pool, workloads: Sequence[Workload], demand: Iterable[Sequence[WindowDemand]], *, confidence: float
) -> Needs:
    """The needs of one pool's workloads; ``InputError`` where not even their minima fit into it."""
    shape = node_shape(pool.gpus_per_node, [workload.gpus_per_replica for workload in workloads])
    nodes = pool.max_production_nodes
    capacity = nodes * shape.node_units
    fits = capacity // shape.width_units
    minimum = np.array([workload.min_replicas for workload in workloads], dtype=np.int64)
    if int((minimum * shape.width_units).sum()) > capacity:
        raise minima_do_not_fit(pool, shape, minimum)
    samples = tuple(samples_of(windows) for windows in demand)
    sought = np.maximum(fits, 1) * NEED_RANGE
    found = [
        required_of(workload, one, at_most, confidence)
        for workload, one, at_most in zip(workloads, samples, sought.tolist(), strict=True)
    ]
    target = np.array([need for need, _ in found])
    day = np.array([deciding for _, deciding in found])
    required = np.maximum(target, minimum[:, None])
    limit = np.array([_limit(workload) for workload in workloads], dtype=np.int64)
    return Needs(
        shape=shape,
        nodes=nodes,
        capacity_units=capacity,
        samples=samples,
        target=target,
        out_of_reach=(target > 0)
        & np.array([_is_out_of_reach(*parts) for parts in zip(workloads, samples, strict=True)]),
        sought=sought,
        required=required,
        held=np.minimum(required, limit[:, None]),
        floor=np.array([_floors(*parts) for parts in zip(workloads, samples, day, strict=True)]),
        day=day,
        minimum=minimum,
        maximum=np.minimum(limit, fits),
    )


def minima_do_not_fit(pool: Pool, shape: NodeShape, minimum: Ints) -> InputError:
    """The error for minima that are more than the pool."""
    gpus = int((minimum * shape.width_units).sum()) * shape.unit_gpus
    return InputError(
        f"the workloads' minReplicas take {gpus} GPUs on nodes of {pool.gpus_per_node}; "
        f"{pool.max_production_nodes} nodes may stand in production",
        kind="minima_do_not_fit",
        place=Place(field=f"pools[{pool.name}]"),
        hint="lower minReplicas or reservedNodes",
    )


def station_shape(workload: Workload) -> StationShape:
    """What the queueing curves must know of a workload."""
    return StationShape.of(workload)


def stable_replicas(rate_rps: Floats, service_time_s: Floats, slots: int) -> Ints:
    """Least replicas that are stable at a rate: ⌊a / slots⌋ + 1 with offered load a (§5.5); 0 where there is no load.

    >>> stable_replicas(np.array([0.0, 1.9, 2.0]), np.array([2.0, 2.0, 2.0]), 2).tolist()
    [0, 2, 3]
    """
    load = rate_rps * service_time_s
    return np.where(load > 0.0, np.floor(load / slots).astype(np.int64) + 1, 0)


def required_of(workload: Workload, samples: WorkloadSamples, at_most: int, confidence: float) -> tuple[Ints, Ints]:
    """Per window the replicas that all targets need (``at_most``+1: more than that), and the deciding day.

    A target out of reach counts as far as it can be met, and never with less than what is stable (§5.4).
    """
    needs = np.zeros(len(samples.day), dtype=np.int64)
    for target in workload.targets:
        shares = workload_shares(workload, target, samples.service_time_s, samples.service_scv)
        for share in np.unique(shares).tolist():
            windows = np.flatnonzero(shares == share)
            held = _held_needs(workload, replace(target, percentile=share), samples.pick(windows), at_most)
            if share < target.percentile:
                held = np.maximum(held, _stable_needs(workload, samples.pick(windows), at_most))
            scenarios, _ = stretches(samples.windows, windows)
            needs[scenarios] = np.maximum(needs[scenarios], held)
    return window_needs(samples, needs, confidence)


def planned_shares(target: Target, service_time_s: Floats, service_scv: Floats) -> Floats:
    """The share within target that is planned for: its percentile, or just below what service alone leaves of it.

    Both service arrays and the answer are float64[n]. The least is a part in a million: a share of 0 asks for nothing.

    >>> target = Target(kind=TargetKind.LATENCY, bound_s=2.0)
    >>> planned_shares(target, np.array([0.5, 1.0]), np.array([1.0, 1.0])).round(4).tolist()
    [0.95, 0.8638]
    """
    asked = np.full(len(service_time_s), target.percentile)
    if target.kind is not TargetKind.LATENCY:
        return asked
    services, which = np.unique(np.column_stack([service_time_s, service_scv]), axis=0, return_inverse=True)
    alone = np.array([service_share(target.bound_s, time_s, scv) for time_s, scv in services.tolist()])[which.ravel()]
    return np.where(alone < asked, np.maximum(1e-6, NEAR * alone), asked)


def workload_shares(workload: Workload, target: Target, service_time_s: Floats, service_scv: Floats) -> Floats:
    """The same of a workload: a claim holds its targets whole, whatever its service takes."""
    if workload.service.claim is not None:
        return np.full(len(service_time_s), target.percentile)
    return planned_shares(target, service_time_s, service_scv)


def _is_out_of_reach(workload: Workload, samples: WorkloadSamples) -> NDArray[np.bool_]:
    found = np.zeros(len(samples.days), dtype=bool)
    for target in workload.targets:
        shares = workload_shares(workload, target, samples.service_time_s, samples.service_scv)
        found |= shares < target.percentile
    return found


def _held_needs(workload: Workload, target: Target, samples: WorkloadSamples, at_most: int) -> Ints:
    return required_replicas(
        station_shape(workload),
        target,
        rates_rps=samples.rates_rps,
        scv=samples.scv,
        service_time_s=samples.per_scenario(samples.service_time_s),
        service_scv=samples.per_scenario(samples.service_scv),
        offsets=samples.offsets,
        at_most=at_most,
    )


def _stable_needs(workload: Workload, samples: WorkloadSamples, at_most: int) -> Ints:
    """What is stable at each scenario's mean rate: all that helps where nobody's service is short enough."""
    times_s = samples.per_scenario(samples.service_time_s)
    stable = stable_replicas(samples.scenario_mean_rps, times_s, workload.service.concurrency)
    return np.minimum(stable, at_most + 1)


def _floors(workload: Workload, samples: WorkloadSamples, day: Ints) -> Ints:
    peak_rps = day_peak(samples, samples.scenario_mean_rps, day)
    return stable_replicas(peak_rps, samples.service_time_s, workload.service.concurrency)


def _limit(workload: Workload) -> int:
    return np.iinfo(np.int64).max if workload.max_replicas is None else workload.max_replicas
