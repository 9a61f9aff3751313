"""The JSON forms of ``allocate``'s answers: snake_case with units, the schedule itself as its document (camelCase)."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite, isnan

from ebbtide.adapters.documents.schedule_plain import schedule_plain
from ebbtide.fleet.schedule import ClaimRecord, Explanation, Shortage
from ebbtide.workflows.allocate import Allocated, Fewest


def allocated_json(done: Allocated) -> dict[str, object]:
    """``schedule, totals, bound, shortages, warnings, claims, written``."""
    return {
        "schedule": schedule_plain(done.schedule),
        "totals": _totals(done.explanation),
        "bound": asdict(done.explanation.bound),
        "shortages": [_shortage(one) for one in done.explanation.shortages],
        "warnings": list(done.explanation.warnings),
        "claims": [_claim(one) for one in done.explanation.provenance.claims],
        "written": [str(path) for path in done.written],
    }


def fewest_json(fewest: Fewest) -> dict[str, object]:
    """``pools`` with their nodes, and the windows that they were counted in."""
    return {
        "windows": [window.name for window in fewest.windows],
        "pools": [
            {
                "name": pool.name,
                "nodes": pool.nodes,
                "gpus": pool.gpus,
                "reserved_nodes": pool.reserved_nodes,
                "production_nodes": list(pool.production_nodes),
                "unreachable": list(pool.unreachable),
            }
            for pool in fewest.pools
        ],
    }


def _totals(explanation: Explanation) -> dict[str, object]:
    hours = explanation.gpu_hours_per_day
    return {
        "production_gpu_h_per_day": hours.production,
        "moving_gpu_h_per_day": hours.moving,
        "research_gpu_h_per_day": hours.research,
        "freed_gpu_h_per_day": hours.freed,
        "static_nodes": hours.static_nodes,
        "static_missing_nodes": hours.static_missing_nodes,
    }


def _claim(one: ClaimRecord) -> dict[str, object]:
    return {
        "workload": one.workload,
        "claim": one.claim,
        "sha256": one.sha256,
        "measured_at": str(one.measured_at),
        "valid_until": str(one.valid_until),
        "low_rps": one.low_rps,
        "accepted": list(one.accepted),
    }


def _shortage(one: Shortage) -> dict[str, object]:
    return {
        "workload": one.workload,
        "window": one.window,
        "missing_gpus": "unlimited" if one.missing_gpus is None else one.missing_gpus,
        "wait_s": None if isnan(one.wait_s) else one.wait_s if isfinite(one.wait_s) else "unstable",
        "attainment": one.attainment,
        "required": one.required,
    }
