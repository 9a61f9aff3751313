"""Where the schedule stands ↔ the status of Schedule and Fleet, as the models of ``status_models`` have it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ebbtide.adapters.documents.exact_times import instant_text
from ebbtide.adapters.documents.quantities import duration_text
from ebbtide.control.standing import Condition, Motion, PoolStanding, Standing

Plain = dict[str, Any]


def schedule_status(found: Standing, *, generation: int, at_s: float, before: Mapping[str, Any]) -> Plain:
    """The Schedule's status but for its memory; a condition that did not change keeps its time from ``before``."""
    shortage = ", ".join(f"{one.workload} -{one.missing_replicas}" for one in found.shortages[:8])
    more = len(found.shortages) - 8
    return {
        "observedGeneration": generation,
        "phase": found.phase,
        "window": found.window,
        "nextChange": None if math.isinf(found.next_change_s) else instant_text(float(round(found.next_change_s))),
        "shortage": f"{shortage} and {more} more" if more > 0 else shortage or "none",
        "motion": [_motion(one) for one in found.motion],
        "shortages": [
            {
                "workload": one.workload,
                "missingReplicas": one.missing_replicas,
                "missingGpus": one.missing_gpus,
                "reason": one.reason,
            }
            for one in found.shortages
        ],
        "conditions": _conditions(found.conditions, generation, at_s, before.get("conditions") or ()),
    }


def fleet_status(found: Standing, *, generation: int, at_s: float, before: Mapping[str, Any]) -> Plain:
    """The Fleet's status: nodes by side, move times, and the conditions that are of the clusters."""
    ours = [one for one in found.conditions if one.type in ("ProductionSeen", "ResearchSeen", "NodesAddUp")]
    production = sum(pool.production_nodes for pool in found.pools)
    research = sum(pool.ephemeral_nodes + pool.reserved_nodes for pool in found.pools)
    moving = sum(pool.moving_nodes for pool in found.pools)
    return {
        "observedGeneration": generation,
        "mode": str(found.mode),
        "poolNames": ",".join(pool.name for pool in found.pools),
        "nodes": f"{production} production, {research} research, {moving} moving",
        "pools": [_pool(one) for one in found.pools],
        "conditions": _conditions(ours, generation, at_s, before.get("conditions") or ()),
    }


def _motion(one: Motion) -> Plain:
    return {
        "pool": one.pool,
        "direction": str(one.direction),
        "there": one.there,
        "wanted": one.wanted,
        "moving": one.moving,
        "late": one.late,
    }


def _pool(one: PoolStanding) -> Plain:
    plain: Plain = {
        "name": one.name,
        "productionNodes": one.production_nodes,
        "ephemeralNodes": one.ephemeral_nodes,
        "reservedNodes": one.reserved_nodes,
        "movingNodes": one.moving_nodes,
        "quarantinedNodes": one.quarantined_nodes,
    }
    if one.yield_time_s is not None:
        plain["yieldTime"] = duration_text(float(round(one.yield_time_s)))
    if one.reclaim_time_s is not None:
        plain["reclaimTime"] = duration_text(float(round(one.reclaim_time_s)))
    return plain


def _conditions(
    found: Sequence[Condition], generation: int, at_s: float, before: Sequence[Mapping[str, Any]]
) -> list[Plain]:
    had = {one["type"]: one for one in before}
    conditions = []
    for one in found:
        last = had.get(one.type, {})
        same = last.get("status") == str(one.holds)
        since = last["lastTransitionTime"] if same else instant_text(float(round(at_s)))
        conditions.append(
            {
                "type": one.type,
                "status": str(one.holds),
                "observedGeneration": generation,
                "lastTransitionTime": since,
                "reason": one.reason,
                "message": one.message[:1000],
            }
        )
    return conditions
