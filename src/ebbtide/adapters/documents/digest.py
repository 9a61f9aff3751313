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
    for workload in plain["workloads"]:
        if len(spec.pools) == 1:
            workload.pop("pool", None)
        demand = workload.get("demand", {})
        if len(spec.demand) == 1:
            demand.pop("source", None)
        if demand.get("key") == workload["name"]:
            del demand["key"]
        if not demand:
            workload.pop("demand", None)
    research = plain.get("research", {})
    if research.get("valueUsdPerGpuHour") == 1.0:
        del research["valueUsdPerGpuHour"]
    if not research:
        plain.pop("research", None)
