"""What actions do to Node objects: cordons in our name, marks for other autoscalers, admission under a tenure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ebbtide.adapters.kubernetes import marks
from ebbtide.adapters.kubernetes.clients import MERGE_PATCH, Cluster
from ebbtide.adapters.kubernetes.node_sight import is_ours
from ebbtide.adapters.kubernetes.objects import NodeObject, Taint
from ebbtide.control.state import Side, Tenure

GONE: dict[str, None] = dict.fromkeys(marks.LEAVE_ALONE)  # null in a merge patch takes a key away


def node_path(name: str) -> str:
    """Where a Node object is."""
    return f"/api/v1/nodes/{name}"


def cordon(cluster: Cluster, name: str, *, quarantine: bool = False) -> None:
    """Make it unschedulable in our name; a person's cordon stays the person's, and is only marked."""
    node = cluster.get(node_path(name), NodeObject)
    annotations: dict[str, str] = dict(marks.LEAVE_ALONE)
    metadata: dict[str, Any] = {"annotations": annotations, "resourceVersion": node.metadata.resource_version}
    body: dict[str, Any] = {"metadata": metadata}
    if not node.spec.unschedulable:
        annotations[marks.CORDONED] = marks.US
        body["spec"] = {"unschedulable": True}
    if quarantine:
        metadata["labels"] = {marks.QUARANTINED: "true"}
    if not _is_so(node, body):
        cluster.patch(node_path(name), body, MERGE_PATCH)


def uncordon(cluster: Cluster, name: str) -> None:
    """Take our cordon and marks away; a node that is gone has none, and a person's cordon stays."""
    node = cluster.find(node_path(name), NodeObject)
    if node is None:
        return
    body: dict[str, Any] = {
        "metadata": {
            "annotations": {**GONE, marks.CORDONED: None},
            "labels": {marks.QUARANTINED: None},
            "resourceVersion": node.metadata.resource_version,
        }
    }
    if node.spec.unschedulable and is_ours(node):
        body["spec"] = {"unschedulable": None}
    if not _is_so(node, body):
        cluster.patch(node_path(name), body, MERGE_PATCH)


def _is_so(node: NodeObject, body: dict[str, Any]) -> bool:
    """Whether a merge patch would change nothing."""
    wanted = body["metadata"]
    for have, want in (
        (node.metadata.annotations, wanted.get("annotations", {})),
        (node.metadata.labels, wanted.get("labels", {})),
    ):
        if any(have.get(key) != value for key, value in want.items()):
            return False
    spec = body.get("spec", {})
    return "taints" not in spec and node.spec.unschedulable is bool(spec.get("unschedulable", node.spec.unschedulable))


def admit(cluster: Cluster, side: Side, name: str, tenure: Tenure) -> None:
    """Strip the joining taint and give it its tenure; on research's side ephemeral nodes are tainted with it (§7.2)."""
    node = cluster.get(node_path(name), NodeObject)
    opted = side is Side.RESEARCH and tenure is Tenure.EPHEMERAL
    add = (tenure_taint(tenure),) if opted else ()
    body: dict[str, Any] = {
        "metadata": {
            "labels": {marks.TENURE: str(tenure)},
            "annotations": GONE,
            "resourceVersion": node.metadata.resource_version,
        },
    }
    taints = with_taints(node, add=add, drop=(marks.JOINING, marks.TENURE))
    if taints != as_sent(node.spec.taints):
        body["spec"] = {"taints": taints}
    if not _is_so(node, body):
        cluster.patch(node_path(name), body, MERGE_PATCH)


def with_taints(node: NodeObject, *, add: Iterable[Taint] = (), drop: Iterable[str] = ()) -> list[dict[str, str]]:
    """A node's taints, some taken away and some put on: the list is one field, written whole with what it was."""
    new = list(add)
    gone = {*drop, *(one.key for one in new)}
    return as_sent([*(one for one in node.spec.taints if one.key not in gone), *new])


def as_sent(taints: Iterable[Taint]) -> list[dict[str, str]]:
    """Taints as the server takes them."""
    wire = ({"key": one.key, "value": one.value, "effect": one.effect, "timeAdded": one.time_added} for one in taints)
    return [{name: text for name, text in one.items() if text} for one in wire]


def tenure_taint(tenure: Tenure) -> Taint:
    """What keeps work off that has not opted in."""
    return Taint(key=marks.TENURE, value=str(tenure), effect=marks.NO_SCHEDULE)


def joining_taint() -> Taint:
    """What a node carries until it is admitted."""
    return Taint(key=marks.JOINING, value="true", effect=marks.NO_SCHEDULE)
