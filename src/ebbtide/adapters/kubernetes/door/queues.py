"""The queues at the door: which LocalQueue is held for which live one, which flavors that leads to, and what is wrong.

A held LocalQueue has ``stopPolicy: Hold`` and names its live one in the annotation ``ebbtide.dev/live-queue``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ebbtide.adapters.kubernetes import marks
from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.door.objects import (
    AdmissionCheck,
    ClusterQueue,
    LocalQueue,
    ResourceFlavor,
    TemplateSpec,
    Toleration,
)
from ebbtide.adapters.kubernetes.objects import Condition, Taint, is_true

CONTROLLER = "ebbtide.dev/tide"  # of AdmissionChecks that are ours to answer
LIVE_QUEUE = "ebbtide.dev/live-queue"

Key = tuple[str, str]  # namespace, name


@dataclass(frozen=True, slots=True, kw_only=True)
class Queues:
    """``live_of`` and ``held_of`` by namespace and name; ``defaults``: a LocalQueue's annotations.

    ``flavors``: of a LocalQueue's ClusterQueue, in its order. ``checks``: the AdmissionChecks that are ours, by name;
    ``inactive`` of them are not Active yet. ``problems``: what a person has to mend.
    """

    live_of: Mapping[Key, str]
    held_of: Mapping[Key, str]
    defaults: Mapping[Key, Mapping[str, str]]
    flavors: Mapping[Key, tuple[str, ...]]
    known_flavors: Mapping[str, ResourceFlavor]
    checks: tuple[str, ...] = ()
    inactive: tuple[AdmissionCheck, ...] = ()
    problems: tuple[str, ...] = ()

    def leads_to(self, queue: Key, ours: Collection[str]) -> bool:
        """Whether a LocalQueue, or the live one that it is held for, leads to any flavor of ours."""
        live = (queue[0], self.live_of.get(queue, queue[1]))
        return any(name in ours for name in self.flavors.get(live, ()))

    def flavors_for(self, queue: Key, pods: Iterable[TemplateSpec], ours: Iterable[str]) -> tuple[str, ...]:
        """Of our flavors those on which Kueue could admit such pods: by node labels, taints and tolerations."""
        pods, wanted = list(pods), frozenset(ours)
        return tuple(
            name
            for name in self.flavors.get(queue, ())
            if name in wanted
            and (flavor := self.known_flavors.get(name)) is not None
            and all(_takes(flavor, one) for one in pods)
        )


def read_queues(cluster: Cluster, root: str) -> Queues:
    """All queues, flavors and checks; ``root`` is the path of Kueue's group."""
    local = cluster.list(f"{root}/localqueues", LocalQueue)
    of_cluster = {one.metadata.name: one for one in cluster.list(f"{root}/clusterqueues", ClusterQueue)}
    flavors = {one.metadata.name: one for one in cluster.list(f"{root}/resourceflavors", ResourceFlavor)}
    checks = [one for one in cluster.list(f"{root}/admissionchecks", AdmissionCheck) if _is_ours(one)]
    by_key = {(one.metadata.namespace, one.metadata.name): one for one in local}
    live_of = {key: one.metadata.annotations[LIVE_QUEUE] for key, one in by_key.items() if _holds(one)}
    problems = list(_problems(by_key))
    live_of = {key: live for key, live in live_of.items() if _works(by_key, key, live)}
    return Queues(
        live_of=live_of,
        held_of={(space, live): held for (space, held), live in sorted(live_of.items(), reverse=True)},
        defaults={key: one.metadata.annotations for key, one in by_key.items()},
        flavors={key: _flavors(of_cluster.get(one.spec.cluster_queue)) for key, one in by_key.items()},
        known_flavors=flavors,
        checks=tuple(sorted(one.metadata.name for one in checks)),
        inactive=tuple(one for one in checks if not is_true(_conditions(one), "Active")),
        problems=tuple(problems),
    )


def _is_ours(one: AdmissionCheck) -> bool:
    return one.spec.controller_name == CONTROLLER


def _conditions(one: AdmissionCheck) -> Sequence[Condition] | None:
    return one.status.conditions if one.status is not None else None


def _holds(one: LocalQueue) -> bool:
    meta = one.metadata
    return LIVE_QUEUE in meta.annotations and marks.is_managed(meta.labels, meta.annotations)


def _works(by_key: Mapping[Key, LocalQueue], key: Key, live: str) -> bool:
    return by_key[key].spec.stop_policy == "Hold" and (key[0], live) in by_key


def _problems(by_key: Mapping[Key, LocalQueue]) -> Iterator[str]:
    for (space, name), one in sorted(by_key.items()):
        if not _holds(one):
            continue
        live = one.metadata.annotations[LIVE_QUEUE]
        if one.spec.stop_policy != "Hold":
            yield f"LocalQueue {space}/{name} names a live queue but does not hold: set stopPolicy: Hold"
        if (space, live) not in by_key:
            yield f"LocalQueue {space}/{name}: its live queue {live} is not there; its jobs wait"
        elif by_key[space, live].spec.stop_policy != "None":
            yield f"LocalQueue {space}/{live} is live for {name} and stopped ({by_key[space, live].spec.stop_policy})"


def _flavors(queue: ClusterQueue | None) -> tuple[str, ...]:
    if queue is None:
        return ()
    return tuple(dict.fromkeys(flavor.name for group in queue.spec.resource_groups for flavor in group.flavors))


def _takes(flavor: ResourceFlavor, pod: TemplateSpec) -> bool:
    """As Kueue decides: a selector on a label that the flavor has must agree; its taints must be tolerated."""
    labels = flavor.spec.node_labels
    if any(labels.get(key, value) != value for key, value in pod.node_selector.items()):
        return False
    tolerations = [*pod.tolerations, *flavor.spec.tolerations]
    hard = [taint for taint in flavor.spec.node_taints if taint.effect in ("NoSchedule", "NoExecute")]
    return all(any(_tolerates(one, taint) for one in tolerations) for taint in hard)


def _tolerates(one: Toleration, taint: Taint) -> bool:
    """As the scheduler decides.

    >>> tide = Taint(key="ebbtide.dev/tenure", value="ephemeral", effect="NoSchedule")
    >>> _tolerates(Toleration(key="ebbtide.dev/tenure", operator="Exists"), tide), _tolerates(Toleration(), tide)
    (True, False)
    """
    if one.effect not in ("", taint.effect):
        return False
    if one.key == "":
        return one.operator == "Exists"
    return one.key == taint.key and (one.operator == "Exists" or one.value == taint.value)
