"""What one look at a cluster read, before it is put in the controller's words; each list once for both sides."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ebbtide.adapters.kubernetes.bindings import PoolBinding
from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.objects import NodeObject, Pod, Selector, is_true

LIVING = "status.phase!=Succeeded,status.phase!=Failed"  # what is over holds no node; a day of jobs leaves thousands


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Nodes by pool, and all pods that are not over; ``by_node`` where they stand."""

    nodes: dict[str, list[NodeObject]]
    pods: list[Pod]
    by_node: dict[str, list[Pod]] = field(default_factory=dict)


def read_nodes_and_pods(cluster: Cluster, pools: Iterable[PoolBinding]) -> Reading:
    """Nodes before pods: a pod on a node that came between is not counted, rather than one on a node that went."""
    nodes = {pool.name: cluster.list("/api/v1/nodes", NodeObject, labels=pool.selector) for pool in pools}
    pods = cluster.list("/api/v1/pods", Pod, fields=LIVING)
    by_node: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.spec.node_name:
            by_node[pod.spec.node_name].append(pod)
    return Reading(nodes=nodes, pods=pods, by_node=dict(by_node))


def is_ready(node: NodeObject) -> bool:
    """Whether its kubelet says that it is Ready; silence is not."""
    return is_true(node.status.conditions, "Ready")


def is_daemon(pod: Pod) -> bool:
    """Whether a drain leaves it alone: a DaemonSet's pod comes back at once, a mirror pod is the kubelet's own."""
    owners = pod.metadata.owner_references
    return "kubernetes.io/config.mirror" in pod.metadata.annotations or any(one.kind == "DaemonSet" for one in owners)


def is_deleted(pod: Pod) -> bool:
    """Whether it is Terminating."""
    return bool(pod.metadata.deletion_timestamp)


Labels = dict[str, str]


def matches(selector: Selector | None, labels: Labels) -> bool:
    """Whether labels satisfy a selector; none selects nothing, an empty one everything.

    >>> matches(Selector(match_labels={"app": "chat"}), {"app": "chat", "x": "y"}), matches(None, {})
    (True, False)
    """
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    return all(_OPERATORS.get(one.operator, _never)(labels, one.key, one.values) for one in selector.match_expressions)


def _never(_labels: Labels, _key: str, _values: list[str]) -> bool:
    return False


_OPERATORS: dict[str, Callable[[Labels, str, list[str]], bool]] = {
    "In": lambda labels, key, values: labels.get(key) in values,
    "NotIn": lambda labels, key, values: labels.get(key) not in values,
    "Exists": lambda labels, key, _values: key in labels,
    "DoesNotExist": lambda labels, key, _values: key not in labels,
}
