"""Research's quota: the nominal quota of the ephemeral flavors in one ClusterQueue or Cohort (facts 1 and 15)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from ebbtide.adapters.kubernetes import marks
from ebbtide.adapters.kubernetes.bindings import PoolBinding, QuotaBinding
from ebbtide.adapters.kubernetes.clients import JSON_PATCH, Cluster
from ebbtide.adapters.kubernetes.kinds import Kinds
from ebbtide.adapters.kubernetes.objects import QuotaObject, last_writer, whole

_PLURALS = {"ClusterQueue": "clusterqueues", "Cohort": "cohorts"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavorQuota:
    """One flavor's quota as it was seen: where in the object, and its limits (None: none is set)."""

    pointer: str
    flavor: str
    resource: str
    nominal: str | int
    borrowing: str | int | None
    lending: str | int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """The object's path, whether it may borrow at all, and the flavors of our pools."""

    path: str
    in_cohort: bool
    flavors: dict[str, FlavorQuota]
    set_by: str
    uid: str = ""
    annotations: dict[str, str] = field(default_factory=dict)

    @property
    def gpus(self) -> dict[str, int]:
        """Nominal quota by pool."""
        return {pool: whole(one.nominal) for pool, one in self.flavors.items()}


def read_quota(cluster: Cluster, kinds: Kinds, binding: QuotaBinding, pools: Iterable[PoolBinding]) -> Quota | None:
    """The quota as it reads now; None where the object or Kueue is not there."""
    if kinds.kueue is None:
        return None
    path = f"{kinds.kueue}/{_PLURALS[binding.kind]}/{binding.name}"
    found = cluster.find(path, QuotaObject)
    if found is None:
        return None
    flavors = {pool.name: one for pool in pools if (one := _find(found, pool)) is not None}
    spec = found.spec
    return Quota(
        path=path,
        in_cohort=bool(spec.cohort or spec.cohort_name or spec.parent_name),
        flavors=flavors,
        set_by=last_writer(found.metadata.managed_fields, "spec", "resourceGroups"),
        uid=found.metadata.uid,
        annotations=found.metadata.annotations,
    )


def _find(found: QuotaObject, pool: PoolBinding) -> FlavorQuota | None:
    for i, group in enumerate(found.spec.resource_groups):
        for j, flavor in enumerate(group.flavors):
            for k, one in enumerate(flavor.resources):
                if flavor.name == pool.ephemeral and one.name == pool.gpu_resource:
                    return FlavorQuota(
                        pointer=f"/spec/resourceGroups/{i}/flavors/{j}/resources/{k}",
                        flavor=flavor.name,
                        resource=one.name,
                        nominal=one.nominal_quota,
                        borrowing=one.borrowing_limit,
                        lending=one.lending_limit,
                    )
    return None


def write_quota(cluster: Cluster, quota: Quota, pool: str, gpus: int) -> Quota:
    """Set the nominal quota, where flavor, resource and quota are still as they were seen; the quota as it is then.

    In a cohort the flavor borrows nothing: with a nominal quota of 0 it would borrow all that others leave (fact 1).
    What it lends is never more than what it has.
    """
    one = quota.flavors[pool]
    flavor_pointer = one.pointer.rsplit("/", 2)[0]
    patch: list[dict[str, Any]] = [
        {"op": "test", "path": f"{flavor_pointer}/name", "value": one.flavor},
        {"op": "test", "path": f"{one.pointer}/name", "value": one.resource},
        {"op": "test", "path": f"{one.pointer}/nominalQuota", "value": one.nominal},
        {"op": "replace", "path": f"{one.pointer}/nominalQuota", "value": str(gpus)},
    ]
    if quota.in_cohort and (one.borrowing is None or whole(one.borrowing) != 0):
        patch.append({"op": "add", "path": f"{one.pointer}/borrowingLimit", "value": "0"})
    if one.lending is not None and whole(one.lending) != gpus:
        patch.append({"op": "replace", "path": f"{one.pointer}/lendingLimit", "value": str(gpus)})
    annotations = _remembering(quota, one)
    if not quota.annotations:
        patch.append({"op": "add", "path": "/metadata/annotations", "value": annotations})
    elif annotations != quota.annotations:
        patch.append({"op": "add", "path": _BEFORE, "value": annotations[marks.BEFORE]})
    cluster.patch(quota.path, patch, JSON_PATCH)
    written = replace(one, nominal=str(gpus))
    return replace(quota, flavors={**quota.flavors, pool: written}, annotations=annotations)


def _remembering(quota: Quota, one: FlavorQuota) -> dict[str, str]:
    """With our first write: what the flavor had before, on the object itself, so that it can be given back (§6.9)."""
    before = known_before(quota)
    if one.flavor in before:
        return quota.annotations
    before[one.flavor] = {"nominalQuota": one.nominal, "borrowingLimit": one.borrowing, "lendingLimit": one.lending}
    return {**quota.annotations, marks.BEFORE: json.dumps(before, separators=(",", ":"))}


_BEFORE = "/metadata/annotations/" + marks.BEFORE.replace("/", "~1")


def known_before(quota: Quota) -> dict[str, dict[str, Any]]:
    """What the flavors had before us, as it was remembered; empty where nothing was, or it cannot be read."""
    try:
        found = json.loads(quota.annotations.get(marks.BEFORE, "{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def give_back(cluster: Cluster, quota: Quota) -> list[str]:
    """Every flavor's quota and limits as they were before us, in one write, and the memory of them gone.

    The names of the flavors that were given back; a quota that changed since it was read is a conflict.
    """
    before = known_before(quota)
    ours = [one for one in quota.flavors.values() if one.flavor in before]
    patch: list[dict[str, Any]] = []
    for one in ours:
        patch.append({"op": "test", "path": f"{one.pointer}/nominalQuota", "value": one.nominal})
        for name, now in (
            ("nominalQuota", one.nominal),
            ("borrowingLimit", one.borrowing),
            ("lendingLimit", one.lending),
        ):
            was = before[one.flavor].get(name)
            if was is None and now is not None:
                patch.append({"op": "remove", "path": f"{one.pointer}/{name}"})
            elif was is not None:
                patch.append({"op": "add", "path": f"{one.pointer}/{name}", "value": was})
    if marks.BEFORE in quota.annotations:
        cluster.patch(quota.path, [*patch, {"op": "remove", "path": _BEFORE}], JSON_PATCH)
    return sorted(one.flavor for one in ours)
