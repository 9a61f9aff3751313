"""The digest of a Fleet: what ties a Schedule to the Fleet it was made for.

SHA-256 of the spec in canonical JSON (keys sorted, no spaces, UTF-8). Fields equal to their defaults are left out, so
neither writing a default down nor a new optional field changes it; lists whose items have names are taken by name and
weekdays by their order, so neither does their order. Durations are in their canonical text.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from ebbtide.adapters.documents.fleet_models import ChooseSpec, FleetSpec, WindowsSpec
from ebbtide.fleet.horizon import WEEK
from ebbtide.fleet.pool import POOL_LABEL

# Fields (names in Python) that say how the controller acts and reaches the clusters, not what is planned.
_UNPLANNED: dict[str, Any] = {
    "mode": True,
    "clusters": True,
    "live_demand": True,
    "pools": {"__all__": {"provider"}},
}


def fleet_digest(spec: FleetSpec) -> str:
    """``sha256:`` and 64 hex digits."""
    canonical = json.dumps(canonical_spec(spec), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


def canonical_spec(spec: FleetSpec) -> dict[str, Any]:
    """The spec as plain values without anything that the reader would complete by itself."""
    plain = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=_UNPLANNED)
    plain["windows"] = sorted((_windows(item) for item in spec.windows), key=str)
    if plain["windows"] == [_windows(WindowsSpec())]:
        del plain["windows"]
    # What is read live is no part of the plan, as liveDemand is not.
    plain["demand"] = [source for source in plain["demand"] if "promql" not in source]
    _drop_completed(plain, spec)
    for name in ("demand", "pools", "workloads", "exceptions"):
        if name in plain:
            plain[name] = {item.pop("name"): item for item in plain[name]}
    return plain


def _windows(item: WindowsSpec) -> dict[str, Any]:
    days = [day.value for day in WEEK if day.value in item.days]
    if item.starts:
        return {"days": days, **item.model_dump(mode="json", include={"starts"})}
    choose = item.choose or ChooseSpec()
    return {"days": days, "choose": choose.model_dump(mode="json", by_alias=True)}


def _drop_completed(plain: dict[str, Any], spec: FleetSpec) -> None:
    """Drop what stands only where it would be completed to the same: the only pool, the only source, own name."""
    for source in plain["demand"]:
        if source.get("timeZone") == spec.time_zone:
            del source["timeZone"]
    for pool in plain["pools"]:
        if pool.get("nodeSelector") == {POOL_LABEL: pool["name"]}:
            del pool["nodeSelector"]
    for workload in plain["workloads"]:
        _drop_own_name(workload)
        _drop_only_ones(workload, plain)
    _drop_from_research(plain)


def _drop_only_ones(workload: dict[str, Any], plain: dict[str, Any]) -> None:
    if len(plain["pools"]) == 1:
        workload.pop("pool", None)
    demand = workload.get("demand", {})
    if len(plain["demand"]) == 1:
        demand.pop("source", None)
    if demand.get("key") == workload["name"]:
        del demand["key"]
    if not demand:
        workload.pop("demand", None)


def _drop_from_research(plain: dict[str, Any]) -> None:
    research = plain.get("research", {})
    if research.get("valueUsdPerGpuHour") == 1.0:
        del research["valueUsdPerGpuHour"]
    if "quota" in research:
        research["quota"]["flavors"] = {flavor.pop("pool"): flavor for flavor in research["quota"]["flavors"]}
    if not research:
        plain.pop("research", None)


def _drop_own_name(workload: dict[str, Any]) -> None:
    target = workload.get("scaleTargetRef", {})
    if target.get("name") == workload["name"]:
        del target["name"]
    if not target:
        workload.pop("scaleTargetRef", None)
