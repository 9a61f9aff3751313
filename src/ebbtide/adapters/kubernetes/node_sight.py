"""Node objects as the controller's ``Node``: usable fields, whose cordon it is, what stands there (§6.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ebbtide.adapters.kubernetes import marks
from ebbtide.adapters.kubernetes.bindings import PoolBinding
from ebbtide.adapters.kubernetes.objects import NodeObject, Pod, condition, instant_s, last_writer, whole
from ebbtide.adapters.kubernetes.readings import Reading, is_daemon, is_ready
from ebbtide.control.state import Node, Side, Tenure

STUCK_AFTER_S = 15.0  # beyond its grace: a kubelet that is well ends containers within seconds of it

# Taints that say "not yet": set by kubelets, clouds, network plug-ins and autoscalers until a node is up. Others (of
# the pool, of its GPUs, of people) may stay for good and make nothing unusable.
_STARTUP_ENDS = ("not-ready", "uninitialized", "unregistered", "network-unavailable", "unreachable")
_STARTUP_BEGINS = ("startup-taint.cluster-autoscaler.kubernetes.io/", "ignore-taint.cluster-autoscaler.kubernetes.io/")

Signature = tuple[str, bool, int, bool]


@dataclass(slots=True)
class Changes:
    """Since when each node is as it is: its own condition's time at first, then every change that we saw.

    A restart forgets changes of GPUs and taints: they count from when the node became Ready.
    """

    known: dict[tuple[Side, str], tuple[Signature, float]] = field(default_factory=dict)

    def since_s(self, side: Side, node: NodeObject, signature: Signature, at_s: float) -> float:
        """Since when, and remember it."""
        key = (side, node.metadata.name)
        kept = self.known.get(key)
        if kept is not None and kept[0] == signature:
            return kept[1]
        since_s = at_s
        if kept is None:
            ready = condition(node.status.conditions, "Ready")
            changed_s = instant_s(ready.last_transition_time) if ready is not None else None
            since_s = min(at_s if changed_s is None else changed_s, at_s)
        self.known[key] = (signature, since_s)
        return since_s

    def forget_others(self, side: Side, names: Iterable[str]) -> None:
        """Drop nodes that are gone."""
        there = set(names)
        for key in [key for key in self.known if key[0] is side and key[1] not in there]:
            del self.known[key]


def side_of(labels: Mapping[str, str], cluster_of: Side | None) -> Side | None:
    """Which side a node stands on: its label, else its cluster's (None: one cluster holds both); None: on neither.

    >>> side_of({"ebbtide.dev/side": "research"}, None), side_of({}, None), side_of({}, Side.PRODUCTION).value
    (<Side.RESEARCH: 'research'>, None, 'production')
    """
    label = labels.get(marks.SIDE)
    if label is None:
        return cluster_of
    return next((side for side in Side if side == label), None)


def nodes_of(
    reading: Reading,
    pool: PoolBinding,
    side: Side,
    *,
    cluster_of: Side | None,
    changes: Changes,
    leaving: frozenset[str],
    at_s: float,
) -> tuple[Node, ...]:
    """The pool's nodes on one side, by name."""
    return tuple(
        _node(node, reading.by_node.get(node.metadata.name, []), pool, side, changes, leaving, at_s)
        for node in sorted(reading.nodes[pool.name], key=lambda one: one.metadata.name)
        if side_of(node.metadata.labels, cluster_of) is side
    )


def _node(
    node: NodeObject,
    pods: list[Pod],
    pool: PoolBinding,
    side: Side,
    changes: Changes,
    leaving: frozenset[str],
    at_s: float,
) -> Node:
    meta, name = node.metadata, node.metadata.name
    gpus, ready = whole(node.status.allocatable.get(pool.gpu_resource)), is_ready(node)
    startup_taint = any(is_startup(one.key) for one in node.spec.taints)
    here = [pod for pod in pods if not is_daemon(pod)]
    return Node(
        name=name,
        tenure=next((one for one in Tenure if one == meta.labels.get(marks.TENURE)), None),
        provider_id=node.spec.provider_id,
        gpus=gpus,
        ready=ready,
        since_s=changes.since_s(side, node, (meta.uid, ready, gpus, startup_taint), at_s),
        startup_taint=startup_taint,
        joining=any(one.key == marks.JOINING for one in node.spec.taints),
        cordoned=node.spec.unschedulable,
        cordoned_by_us=node.spec.unschedulable and is_ours(node),
        marked=all(meta.annotations.get(key) == value for key, value in marks.LEAVE_ALONE.items()),
        leaving=name in leaving or bool(meta.deletion_timestamp),
        pods=len(here),
        stuck_pods=sum(_is_stuck(pod, at_s) for pod in here),
        managed=marks.is_managed(meta.labels, meta.annotations),
    )


def is_startup(taint: str) -> bool:
    """Whether a taint of that key will go by itself once the node is up.

    >>> is_startup("node.kubernetes.io/not-ready"), is_startup("nvidia.com/gpu"), is_startup("ebbtide.dev/tenure")
    (True, False, False)
    """
    return taint.endswith(_STARTUP_ENDS) or taint.startswith(_STARTUP_BEGINS)


def is_ours(node: NodeObject) -> bool:
    """Whether a cordon is ours: our annotation is there, and nobody cordoned it anew after somebody uncordoned it."""
    if node.metadata.annotations.get(marks.CORDONED) != marks.US:
        return False
    return last_writer(node.metadata.managed_fields, "spec", "unschedulable") in ("", marks.US)


def _is_stuck(pod: Pod, at_s: float) -> bool:
    ends_s = instant_s(pod.metadata.deletion_timestamp)  # when it was asked to go, and its grace
    return ends_s is not None and at_s > ends_s + STUCK_AFTER_S
