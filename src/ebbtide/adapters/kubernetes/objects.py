"""Objects as an API server sends them: only the fields that are read, everything else is skipped while decoding.

A field that may be absent has the server's default; one that may be ``null`` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec
from whenever import Instant

T = TypeVar("T")


class Read(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """The form of everything here: camelCase on the wire, unknown fields skipped."""


class Owner(Read, frozen=True):
    """Who an object belongs to."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool = False


class Manager(Read, frozen=True):
    """Who wrote which fields, and when; the fields stay undecoded until somebody asks."""

    manager: str = ""
    time: str = ""
    subresource: str = ""
    fields_v1: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"{}"), name="fieldsV1")


class Meta(Read, frozen=True):
    """Metadata without the managers."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    deletion_timestamp: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[Owner] = []


class ManagedMeta(Meta, frozen=True):
    """Metadata with the managers, where it matters who wrote last."""

    managed_fields: list[Manager] = []


class ListMeta(Read, frozen=True):
    """Where a list goes on."""

    continue_: str = msgspec.field(default="", name="continue")
    resource_version: str = msgspec.field(default="", name="resourceVersion")


class Page(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One page of a list."""

    metadata: ListMeta = ListMeta()
    items: list[T] | None = None


class Condition(Read, frozen=True):
    """One condition of anything."""

    type: str = ""
    status: str = ""
    reason: str = ""
    last_transition_time: str | None = None


class Taint(Read, frozen=True):
    """A node's taint."""

    key: str = ""
    effect: str = ""
    value: str = ""
    time_added: str | None = None


class NodeSpec(Read, frozen=True):
    provider_id: str = msgspec.field(default="", name="providerID")
    unschedulable: bool = False
    taints: list[Taint] = []


class NodeStatus(Read, frozen=True):
    allocatable: dict[str, str] = {}
    conditions: list[Condition] | None = None


class NodeObject(Read, frozen=True):
    metadata: ManagedMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Resources(Read, frozen=True):
    limits: dict[str, str] = {}
    requests: dict[str, str] = {}


class Container(Read, frozen=True):
    resources: Resources = Resources()


class PodSpec(Read, frozen=True):
    node_name: str = ""
    containers: list[Container] = []


class PodStatus(Read, frozen=True):
    phase: str = ""
    start_time: str | None = None
    conditions: list[Condition] | None = None


class Pod(Read, frozen=True):
    metadata: Meta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Requirement(Read, frozen=True):
    key: str = ""
    operator: str = ""
    values: list[str] = []


class Selector(Read, frozen=True):
    match_labels: dict[str, str] = {}
    match_expressions: list[Requirement] = []


class ScalableSpec(Read, frozen=True):
    replicas: int | None = None  # the server's default is 1
    paused: bool = False
    selector: Selector | None = None


class ScalableStatus(Read, frozen=True):
    replicas: int = 0
    updated_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""


class Scalable(Read, frozen=True):
    """A Deployment, StatefulSet, or anything else with a scale: what is common of it."""

    metadata: ManagedMeta
    spec: ScalableSpec = ScalableSpec()
    status: ScalableStatus | None = None


class ScaleSpec(Read, frozen=True):
    replicas: int = 0


class ScaleStatus(Read, frozen=True):
    replicas: int = 0
    selector: str = ""


class Scale(Read, frozen=True):
    metadata: Meta
    spec: ScaleSpec = ScaleSpec()
    status: ScaleStatus = ScaleStatus()


class TargetRef(Read, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""


class HpaSpec(Read, frozen=True):
    scale_target_ref: TargetRef
    min_replicas: int | None = None
    max_replicas: int = 0


class Hpa(Read, frozen=True):
    metadata: ManagedMeta
    spec: HpaSpec


class ScaledObjectSpec(Read, frozen=True):
    scale_target_ref: TargetRef
    min_replica_count: int | None = None
    max_replica_count: int | None = None


class ScaledObject(Read, frozen=True):
    metadata: ManagedMeta
    spec: ScaledObjectSpec


class BudgetSpec(Read, frozen=True):
    selector: Selector | None = None


class BudgetStatus(Read, frozen=True):
    disruptions_allowed: int = 0


class Budget(Read, frozen=True):
    """A PodDisruptionBudget."""

    metadata: Meta
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus | None = None


class PodTemplateSpec(Read, frozen=True):
    metadata: Meta = Meta()


class PodSet(Read, frozen=True):
    name: str = ""
    count: int = 0
    template: PodTemplateSpec = PodTemplateSpec()


class QueuedSpec(Read, frozen=True):
    active: bool = True
    queue_name: str = ""
    pod_sets: list[PodSet] = []


class Assignment(Read, frozen=True):
    flavors: dict[str, str] = {}
    resource_usage: dict[str, str | int] = {}


class Admission(Read, frozen=True):
    cluster_queue: str = ""
    pod_set_assignments: list[Assignment] = []


class QueuedStatus(Read, frozen=True):
    conditions: list[Condition] | None = None
    admission: Admission | None = None


class Queued(Read, frozen=True):
    """A Kueue Workload, v1beta1 or v1beta2: what both have."""

    metadata: ManagedMeta
    spec: QueuedSpec = QueuedSpec()
    status: QueuedStatus | None = None


class FlavorResource(Read, frozen=True):
    name: str = ""
    nominal_quota: str | int = 0
    borrowing_limit: str | int | None = None
    lending_limit: str | int | None = None


class Flavor(Read, frozen=True):
    name: str = ""
    resources: list[FlavorResource] = []


class ResourceGroup(Read, frozen=True):
    flavors: list[Flavor] = []


class QuotaSpec(Read, frozen=True):
    resource_groups: list[ResourceGroup] = []
    cohort: str = ""
    cohort_name: str = ""
    parent_name: str = ""


class QuotaObject(Read, frozen=True):
    """A ClusterQueue or a Cohort."""

    metadata: ManagedMeta
    spec: QuotaSpec = QuotaSpec()


class GroupVersion(Read, frozen=True):
    version: str = ""


class ApiGroup(Read, frozen=True):
    name: str = ""
    versions: list[GroupVersion] = []
    preferred_version: GroupVersion = GroupVersion()


class ApiGroups(Read, frozen=True):
    groups: list[ApiGroup] = []


class ApiResource(Read, frozen=True):
    name: str = ""
    kind: str = ""


class ApiResources(Read, frozen=True):
    resources: list[ApiResource] = []


def condition(conditions: Sequence[Condition] | None, kind: str) -> Condition | None:
    """The condition of that type, where there is one."""
    return next((one for one in conditions or () if one.type == kind), None)


def is_true(conditions: Sequence[Condition] | None, kind: str) -> bool:
    """Whether a condition holds; one that is absent does not."""
    found = condition(conditions, kind)
    return found is not None and found.status == "True"


def instant_s(text: str | None) -> float | None:
    """Seconds since 1970 of a server's time; None where there is none.

    >>> instant_s("1970-01-01T00:01:00Z"), instant_s("")
    (60.0, None)
    """
    if not text:
        return None
    try:
        return float(Instant.parse_iso(text).timestamp())
    except ValueError:
        return None


def whole(quantity: str | int | None) -> int:
    """A Kubernetes quantity of whole things, such as GPUs; what is no such quantity counts as none.

    >>> whole("8"), whole("2k"), whole("7500m"), whole(None)
    (8, 2000, 7, 0)
    """
    if quantity is None or isinstance(quantity, int):
        return quantity or 0
    number = quantity.rstrip("mkMGTPEi")
    try:
        return int(float(number) * _SUFFIX.get(quantity[len(number) :], 0.0))
    except ValueError:
        return 0


_SUFFIX = {"": 1.0, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30}


def last_writer(managers: list[Manager], *path: str) -> str:
    """Who wrote a field last, of those that own it: ``path`` as managed fields name it, without the ``f:``.

    >>> one, other = msgspec.Raw(b'{"f:spec":{"f:a":{}}}'), msgspec.Raw(b'{"f:spec":{"f:a":{}}}')
    >>> both = [Manager(manager="kubectl", time="2026-01-01T00:00:00Z", fields_v1=one),
    ...         Manager(manager="argocd", time="2026-01-02T00:00:00Z", fields_v1=other)]
    >>> last_writer(both, "spec", "a"), last_writer(both, "spec", "b")
    ('argocd', '')
    """
    found = [one for one in managers if _owns(one, path)]
    return max(found, key=lambda one: one.time).manager if found else ""


def _owns(one: Manager, path: tuple[str, ...]) -> bool:
    at = msgspec.json.decode(one.fields_v1)
    for step in path:
        if not isinstance(at, dict) or f"f:{step}" not in at:
            return False
        at = at[f"f:{step}"]
    return True
