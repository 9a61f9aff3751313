"""A Schedule and its Explanation → the plain values of their document.

Columns have three significant digits, sums have six. ``holdsRps`` is rounded down, since the live guard trusts it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ebbtide.adapters.documents.emit import number_text, rounded_down, significant
from ebbtide.adapters.documents.model import API_VERSION
from ebbtide.adapters.documents.quantities import UNSTABLE, duration_text
from ebbtide.fleet.horizon import Window, clock
from ebbtide.fleet.schedule import (
    Bound,
    ClaimRecord,
    Explanation,
    GpuHours,
    PoolColumn,
    Provenance,
    Schedule,
    Shortage,
    SourceRecord,
    Standing,
    WorkloadFacts,
    WorkloadReason,
)
from ebbtide.fleet.workload import Target

COLUMN_DIGITS = 3
SUM_DIGITS = 6
_SHORTEST_WAIT_S = 1e-4  # a wait below is 0s: nobody notices it, and it keeps the texts short


def schedule_plain(schedule: Schedule) -> dict[str, Any]:
    """The document without its explanation."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Schedule",
        "metadata": {"name": schedule.name},
        "spec": {
            "fleet": {"name": schedule.fleet_name, "digest": schedule.fleet_digest},
            "timeZone": schedule.time_zone,
            "validUntil": str(schedule.valid_until),
            "windows": [_window(window) for window in schedule.windows],
            "workloads": [
                {
                    "name": column.name,
                    "replicas": list(column.replicas),
                    "holdsRps": [rounded_down(rate, COLUMN_DIGITS) for rate in column.holds_rps],
                }
                for column in schedule.workloads
            ],
            "pools": [_pool(column) for column in schedule.pools],
        },
    }


def explanation_plain(explanation: Explanation) -> dict[str, Any]:
    """The explanation without its columns; empty lists are left out."""
    plain: dict[str, Any] = {
        "provenance": _provenance(explanation.provenance),
        "gpuHoursPerDay": _gpu_hours(explanation.gpu_hours_per_day),
        "bound": _bound(explanation.bound),
    }
    if explanation.shortages:
        plain["shortages"] = [_shortage(shortage) for shortage in explanation.shortages]
    if explanation.warnings:
        plain["warnings"] = list(explanation.warnings)
    return plain


def reasons_plain(explanation: Explanation) -> list[dict[str, Any]]:
    """The explanation's columns, a map per workload."""
    return [
        {"name": name, **_facts(explanation.facts.get(name)), **_reasons(reasons)}
        for name, reasons in explanation.reasons.items()
    ]


def _window(window: Window) -> dict[str, Any]:
    dated: dict[str, Any] = {}
    if window.valid_from is not None and window.valid_until is not None:
        dated = {"from": str(window.valid_from), "until": str(window.valid_until)}
    return {
        "name": window.name,
        "days": [day.value for day in window.days],
        "start": clock(window.start),
        "end": clock(window.end),
        **dated,
    }


def _pool(column: PoolColumn) -> dict[str, Any]:
    return {
        "name": column.name,
        "productionNodes": list(column.production_nodes),
        "ephemeralNodes": list(column.ephemeral_nodes),
        "ephemeralQuotaGpus": list(column.ephemeral_quota_gpus),
        # Up to the next second: a lead that is too short is the one that hurts.
        "lead": [duration_text(math.ceil(seconds - 1e-6)) for seconds in column.lead_s],
    }


def _provenance(provenance: Provenance) -> dict[str, Any]:
    return {
        "version": provenance.version,
        "at": str(provenance.at),
        "forecaster": provenance.forecaster,
        "confidence": provenance.confidence,
        "supportedConfidence": _sum(provenance.supported_confidence),
        "margin": provenance.margin,
        "demand": [_source(record) for record in provenance.demand],
        **({"claims": [_claim(record) for record in provenance.claims]} if provenance.claims else {}),
    }


def _claim(record: ClaimRecord) -> dict[str, Any]:
    return {
        "workload": record.workload,
        "claim": record.claim,
        "sha256": record.sha256,
        "measuredAt": str(record.measured_at),
        "validUntil": str(record.valid_until),
        "lowRps": record.low_rps,
        **({"accepted": list(record.accepted)} if record.accepted else {}),
    }


def _source(record: SourceRecord) -> dict[str, Any]:
    return {
        "source": record.source,
        "sha256": record.sha256,
        "from": record.start,
        "until": record.end,
        "missing": record.missing_intervals,
        "outages": record.outages,
        "outageIntervals": record.outage_intervals,
        "outageShare": _sum(record.outage_share),
        "plannedShare": _sum(record.planned_share),
    }


def _gpu_hours(hours: GpuHours) -> dict[str, Any]:
    missing = {"staticMissingNodes": hours.static_missing_nodes} if hours.static_missing_nodes else {}
    return {
        "production": _sum(hours.production),
        "research": _sum(hours.research),
        "moving": _sum(hours.moving),
        "freed": _sum(hours.freed),
        "staticNodes": hours.static_nodes,
        **missing,
    }


def _bound(bound: Bound) -> dict[str, Any]:
    few = {} if bound.few_windows is None else {"fewWindows": _sum(bound.few_windows)}
    # Six digits of two sums that differ in the seventh would contradict the gap; ten are few enough for a line.
    return {
        "unit": bound.unit,
        "objective": _named(significant(bound.objective, 10)),
        "lowerBound": _named(significant(bound.lower_bound, 10)),
        "gap": _sum(bound.gap),
        **few,
    }


def _shortage(shortage: Shortage) -> dict[str, Any]:
    return {
        "workload": shortage.workload,
        "window": shortage.window,
        "missingGpus": shortage.missing_gpus,
        "wait": _wait(shortage.wait_s),
        "attainment": _figure(shortage.attainment),
        "required": shortage.required,
    }


def _facts(facts: WorkloadFacts | None) -> dict[str, Any]:
    if facts is None:
        return {}
    held = {} if facts.replica_holds_rps is None else {"replicaHoldsRps": facts.replica_holds_rps}
    return {"gpusPerReplica": facts.gpus_per_replica, "targets": [_target(one) for one in facts.targets], **held}


def _target(target: Target) -> dict[str, Any]:
    return {target.kind.value: duration_text(target.bound_s), "percentile": target.percentile}


def _reasons(reasons: Sequence[WorkloadReason]) -> dict[str, Any]:
    given = _standings(reason.given for reason in reasons)
    floor = _standings(reason.floor for reason in reasons)
    refused = _standings(reason.refused for reason in reasons)
    return {
        "rateRps": [_figure(reason.rate_rps) for reason in reasons],
        "peakRps": [_figure(reason.peak_rps) for reason in reasons],
        "targetShare": [_figure(reason.target_share) for reason in reasons],
        "bound": [reason.bound for reason in reasons],
        "leastReplicas": [reason.least_replicas for reason in reasons],
        "replicas": given["replicas"],
        "wait": given["wait"],
        "waiting": given["waiting"],
        "attainment": given["attainment"],
        "lastGiven": given["gain"],
        **{f"floor{name[:1].upper()}{name[1:]}": column for name, column in floor.items()},
        "refusedReplicas": refused["replicas"],
        "refusedWait": refused["wait"],
        "refusedWaiting": refused["waiting"],
        "refusedAttainment": refused["attainment"],
        "firstRefused": refused["gain"],
        "refusedCost": [_figure(reason.cost_usd_per_h) for reason in reasons],
    }


def _standings(standings: Iterable[Standing | None]) -> dict[str, list[Any]]:
    rows = [(None,) * 5 if one is None else _standing(one) for one in standings]
    names = ("replicas", "wait", "waiting", "attainment", "gain")
    return {name: [row[index] for row in rows] for index, name in enumerate(names)}


def _standing(one: Standing) -> tuple[Any, ...]:
    return (
        one.replicas,
        _wait(one.wait_s),
        _figure(one.waiting),
        _figure(one.attainment),
        _figure(one.gain_usd_per_h),
    )


def _wait(seconds: float) -> str | None:
    if not math.isfinite(seconds):
        return None if math.isnan(seconds) else UNSTABLE
    if seconds < _SHORTEST_WAIT_S:
        return "0s"
    return f"{number_text(significant(seconds, COLUMN_DIGITS))}s"


def _figure(value: float) -> float | str | None:
    near = float(f"{value:.{COLUMN_DIGITS - 1}e}")  # significant() without its check: this runs a million times
    return near if 1e-9 <= abs(near) < math.inf else _named(near)


def _sum(value: float) -> float | str | None:
    return _named(significant(value, SUM_DIGITS))


def _named(value: float) -> float | str | None:
    """Numbers that are none by their names: infinite is unstable, NaN is null. Below 1e-9 nothing is left to say."""
    if math.isnan(value):
        return None
    if math.isinf(value):
        return UNSTABLE
    return value if abs(value) >= 1e-9 else 0
