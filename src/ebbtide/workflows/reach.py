"""Targets that no number of replicas meets: the service alone takes longer than the target allows too often (§5.4)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ebbtide.adapters.documents.fleet import FleetDocument
from ebbtide.errors import InputError
from ebbtide.fleet.demand import Series
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.workload import Target, TargetKind, Workload
from ebbtide.forecast.measured import mean_service_time_s, measured_service_scv
from ebbtide.queueing.latency import service_share


def out_of_reach(fleet: Fleet, series: Mapping[str, Series]) -> tuple[str, ...]:
    """A sentence for every latency target that would be missed even if nobody ever waited, with the way out."""
    return tuple(
        _sentence(workload, target, share)
        for workload in fleet.workloads
        for target in workload.targets
        if target.kind is TargetKind.LATENCY
        and workload.service.claim is None
        and (share := _share_without_waiting(workload, target, series[workload.name])) < target.percentile
    )


def refuse_latency_below_service(document: FleetDocument, series: Mapping[str, Series]) -> None:
    """``InputError`` for the first latency target below the mean service time that was observed.

    Where the Fleet gives the time itself, reading it has refused that already.
    """
    for workload in document.fleet.workloads:
        if workload.service.time_s is None and workload.service.claim is None:
            one = series[workload.name]
            time_s = mean_service_time_s(one, np.flatnonzero(one.observed), workload.name)
            for index, target in enumerate(workload.targets):
                if target.kind is TargetKind.LATENCY and target.bound_s < time_s:
                    raise _below_service(
                        document, f"workloads[{workload.name}].targets[{index}].latency", target, time_s
                    )


def _below_service(document: FleetDocument, field: str, target: Target, time_s: float) -> InputError:
    return InputError(
        f"is {target.bound_s:g}s, but the service alone takes {time_s:.4g}s on average, as observed: "
        "no fleet can hold that",
        kind="latency_below_service",
        place=document.place(field),
        hint="raise the latency, or bound the wait instead",
    )


def _share_without_waiting(workload: Workload, target: Target, series: Series) -> float:
    seen = np.flatnonzero(series.observed)
    service = workload.service
    time_s = mean_service_time_s(series, seen, workload.name) if service.time_s is None else service.time_s
    scv = measured_service_scv(series, seen) if service.scv is None else service.scv
    return service_share(target.bound_s, time_s, scv)


def _sentence(workload: Workload, target: Target, share: float) -> str:
    return (
        f"{workload.name}: no number of replicas meets its latency target of {target.bound_s:g}s at "
        f"P{100 * target.percentile:g}, for service alone is longer for {1 - share:.1%} of requests: "
        "ask for a longer latency or a lower percentile, or give the service's own scv"
    )
