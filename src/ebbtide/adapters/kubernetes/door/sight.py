"""One look at the door: Kueue's Workloads as ``batch.door``'s, with the objects behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ebbtide.adapters.kubernetes import marks
from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.door.objects import Container, Queued
from ebbtide.adapters.kubernetes.door.queues import Key, Queues, read_queues
from ebbtide.adapters.kubernetes.door.told import SENT_BACK, told_of
from ebbtide.adapters.kubernetes.objects import Condition, condition, instant_s, is_true, whole
from ebbtide.batch.door.wishes import PREFIX, BadWishError, Wishes, read_wishes
from ebbtide.batch.door.work import Stage, Work
from ebbtide.units import DAY_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavors:
    """The Fleet's flavors, and the resource that counts GPUs on each; ``checkpoint_interval_s``: the Fleet's."""

    resources: Mapping[str, str]
    checkpoint_interval_s: float = DAY_S / 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What was seen. ``objects`` by the name of the work; ``ended``: Workloads that are over."""

    works: tuple[Work, ...]
    objects: Mapping[str, Queued]
    queues: Queues
    ended: tuple[Queued, ...] = ()


Owners = Callable[[Queued], Mapping[str, str]]


def look(cluster: Cluster, root: str, flavors: Flavors, owners: Owners) -> Sight:
    """All Workloads that are ours to look at; ``owners`` gives an owner's annotations, where rights allow."""
    queues = read_queues(cluster, root)
    works: list[Work] = []
    objects: dict[str, Queued] = {}
    ended: list[Queued] = []
    for one in cluster.list(f"{root}/workloads", Queued):
        meta = one.metadata
        if meta.deletion_timestamp or not marks.is_managed(meta.labels, meta.annotations):
            continue
        if is_true(_conditions(one), "Finished"):
            ended.append(one)
            continue
        if not queues.leads_to((meta.namespace, one.spec.queue_name), flavors.resources):
            continue
        found = _work(one, queues, flavors, owners)
        if found is not None:
            works.append(found)
            objects[found.name] = one
    return Sight(works=tuple(works), objects=objects, queues=queues, ended=tuple(ended))


def _conditions(one: Queued) -> Sequence[Condition] | None:
    return one.status.conditions if one.status is not None else None


def _work(one: Queued, queues: Queues, flavors: Flavors, owners: Owners) -> Work | None:
    """A Workload; None where it is none of our business: inactive, or without quota in a queue without a held one."""
    meta = one.metadata
    if not one.spec.active and SENT_BACK not in meta.annotations:
        return None
    queue: Key = (meta.namespace, one.spec.queue_name)
    stage, since_s = _stage(one, queue, queues)
    live = (meta.namespace, queues.live_of.get(queue, one.spec.queue_name))
    flavor, resource = _holds(one, flavors)
    if stage is Stage.RUNNING and not flavor:
        return None
    created_s = instant_s(meta.creation_timestamp) or 0.0
    pods, gpus = _gang(one, set(flavors.resources.values()) if not resource else {resource})
    wishes, problem = _wishes(one, queues, (queue, live), flavors, owners, created_s)
    return Work(
        name=f"{meta.namespace}/{meta.name}",
        team=f"{live[0]}/{live[1]}",
        stage=stage,
        created_s=created_s,
        pods=pods,
        gpus_per_pod=gpus,
        flavors=queues.flavors_for(live, (each.template.spec for each in one.spec.pod_sets), flavors.resources),
        wishes=wishes,
        problem=problem,
        flavor=flavor,
        since_s=since_s,
        ran_s=float(one.status.accumulated_past_execution_time_seconds) if one.status is not None else 0.0,
        told=told_of(meta.annotations),
        can_be_held=live in queues.held_of,
    )


def _stage(one: Queued, queue: Key, queues: Queues) -> tuple[Stage, float]:
    """How far it has come, and since when it runs (0: it does not)."""
    conditions = _conditions(one)
    if is_true(conditions, "QuotaReserved"):
        checks = {each.name: each.state for each in ((one.status.admission_checks if one.status else None) or ())}
        asked = any(checks.get(name) in ("Pending", "Retry") for name in queues.checks)
        if asked and not is_true(conditions, "Admitted"):
            return Stage.CHECKING, 0.0
        found = condition(conditions, "Admitted") or condition(conditions, "QuotaReserved")
        return Stage.RUNNING, instant_s(found.last_transition_time if found else None) or 0.0
    sent_back = not one.spec.active and queue in queues.held_of
    return (Stage.HELD if queue in queues.live_of or sent_back else Stage.WAITING), 0.0


def _holds(one: Queued, flavors: Flavors) -> tuple[str, str]:
    """The flavor of the Fleet's on which it holds GPUs, and their resource; empty where there is none."""
    if one.status is None or one.status.admission is None:
        return "", ""
    for each in one.status.admission.pod_set_assignments:
        for resource, name in each.flavors.items():
            if flavors.resources.get(name) == resource:
                return name, resource
    return "", ""


def _gang(one: Queued, resources: Iterable[str]) -> tuple[int, int]:
    """Pods with GPUs, and GPUs of the widest; (0, 0) where none has any."""
    wanted = frozenset(resources)
    pods = [(each.count, _gpus(each.template.spec.containers, wanted)) for each in one.spec.pod_sets]
    with_gpus = [(count, gpus) for count, gpus in pods if gpus and count]
    return sum(count for count, _ in with_gpus), max((gpus for _, gpus in with_gpus), default=0)


def _gpus(containers: Iterable[Container], resources: frozenset[str]) -> int:
    found = 0
    for one in containers:
        for name in resources:
            found += whole(one.resources.requests.get(name, one.resources.limits.get(name)))
    return found


def _wishes(
    one: Queued, queues: Queues, keys: tuple[Key, Key], flavors: Flavors, owners: Owners, created_s: float
) -> tuple[Wishes | None, str]:
    """The wishes, or why they cannot be read: the queues' defaults, then the owner's, then the pod template's."""
    said: dict[str, str] = {}
    for key in reversed(keys):
        said.update(queues.defaults.get(key, {}))
    own: dict[str, str] = {}
    for each in one.spec.pod_sets:
        own.update(each.template.metadata.annotations)
    if not any(key.startswith(PREFIX) for key in own):
        said.update(owners(one))
    said.update(own)
    try:
        wishes = read_wishes(said, created_s=created_s, checkpoint_interval_s=flavors.checkpoint_interval_s)
    except BadWishError as bad:
        return None, str(bad)
    return wishes, ""
