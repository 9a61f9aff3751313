"""Kueue's objects at the door, as ``adapters.kubernetes.objects`` does it: what v1beta1 and v1beta2 have in common."""

from __future__ import annotations

import msgspec

from ebbtide.adapters.kubernetes.objects import Condition, Flavor, Meta, Read, Taint


class BornMeta(Meta, frozen=True):
    """Metadata with its time of birth."""

    creation_timestamp: str = ""


class Toleration(Read, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class Resources(Read, frozen=True):
    limits: dict[str, str | int] = msgspec.field(default_factory=dict)
    requests: dict[str, str | int] = msgspec.field(default_factory=dict)


class Container(Read, frozen=True):
    resources: Resources = Resources()


class TemplateSpec(Read, frozen=True):
    containers: tuple[Container, ...] = ()
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()


class Template(Read, frozen=True):
    metadata: Meta = Meta()
    spec: TemplateSpec = TemplateSpec()


class PodSet(Read, frozen=True):
    name: str = ""
    count: int = 0
    template: Template = Template()


class QueuedSpec(Read, frozen=True):
    active: bool = True
    queue_name: str = ""
    pod_sets: tuple[PodSet, ...] = ()


class Assignment(Read, frozen=True):
    flavors: dict[str, str] = msgspec.field(default_factory=dict)


class Admission(Read, frozen=True):
    cluster_queue: str = ""
    pod_set_assignments: tuple[Assignment, ...] = ()


class CheckState(Read, frozen=True):
    name: str = ""
    state: str = ""


class ToldCondition(Condition, frozen=True):
    """A condition with what it says."""

    message: str = ""


class QueuedStatus(Read, frozen=True):
    conditions: tuple[ToldCondition, ...] | None = None
    admission: Admission | None = None
    admission_checks: tuple[CheckState, ...] | None = None
    accumulated_past_execution_time_seconds: int = 0


class Queued(Read, frozen=True):
    """A Kueue Workload."""

    metadata: BornMeta
    spec: QueuedSpec = QueuedSpec()
    status: QueuedStatus | None = None


class LocalQueueSpec(Read, frozen=True):
    cluster_queue: str = ""
    stop_policy: str = "None"


class LocalQueue(Read, frozen=True):
    metadata: Meta
    spec: LocalQueueSpec = LocalQueueSpec()


class FlavorGroup(Read, frozen=True):
    flavors: tuple[Flavor, ...] = ()


class ClusterQueueSpec(Read, frozen=True):
    resource_groups: tuple[FlavorGroup, ...] = ()


class ClusterQueue(Read, frozen=True):
    metadata: Meta
    spec: ClusterQueueSpec = ClusterQueueSpec()


class FlavorSpec(Read, frozen=True):
    node_labels: dict[str, str] = msgspec.field(default_factory=dict)
    node_taints: tuple[Taint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()


class ResourceFlavor(Read, frozen=True):
    metadata: Meta
    spec: FlavorSpec = FlavorSpec()


class CheckSpec(Read, frozen=True):
    controller_name: str = ""


class CheckStatus(Read, frozen=True):
    conditions: tuple[Condition, ...] | None = None


class AdmissionCheck(Read, frozen=True):
    metadata: Meta
    spec: CheckSpec = CheckSpec()
    status: CheckStatus | None = None


class OwnerObject(Read, frozen=True):
    """Whatever owns a Workload: its metadata alone."""

    metadata: Meta = msgspec.field(default_factory=Meta)
