"""Nodes that change sides without leaving their cluster: drained, they are relabelled.

For one cluster that is both sides, and for bare metal whose machines are known to both clusters: a Node object of the
same name in each. The label ``ebbtide.dev/side`` says where a node stands: a side, or ``none`` while it stands on
neither, cordoned. What belongs to a side selects it by that label (nodeSelector, a flavor's nodeLabels).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ebbtide.adapters.kubernetes import marks
from ebbtide.adapters.kubernetes.bindings import PoolBinding
from ebbtide.adapters.kubernetes.clients import MERGE_PATCH, Cluster
from ebbtide.adapters.kubernetes.node_acts import GONE, joining_taint, node_path, with_taints
from ebbtide.adapters.kubernetes.objects import NodeObject
from ebbtide.adapters.nodepools.protocol import Asked, Capabilities
from ebbtide.control.state import Side, Tenure

NEITHER = "none"


class Relabel:
    """``NodePool`` by labels. ``clusters``: one for each side; the same twice where one holds both."""

    capabilities = Capabilities(removes_named=True)

    def __init__(self, clusters: Mapping[Side, Cluster], pool: PoolBinding) -> None:
        self._clusters = clusters
        self._pool = pool

    def look(self, side: Side, nodes: Sequence[NodeObject], /) -> Asked:
        """The size is what stands there: what was asked for and has not come is asked for again."""
        return Asked(size=sum(one.metadata.labels.get(marks.SIDE) == side for one in nodes))

    def remove(self, side: Side, nodes: tuple[str, ...], size: int, /) -> None:
        """Each named node that stands on that side stands on neither from now on; it keeps its cordon.

        ``size`` follows from the names.
        """
        cluster = self._clusters[side]
        for name in nodes:
            node = cluster.find(node_path(name), NodeObject)
            if node is None or node.metadata.labels.get(marks.SIDE) != side:
                continue
            body: dict[str, Any] = {
                "metadata": {
                    "labels": {marks.SIDE: NEITHER},
                    "resourceVersion": node.metadata.resource_version,
                },
                "spec": {"unschedulable": True},
            }
            if not node.spec.unschedulable:
                body["metadata"]["annotations"] = {marks.CORDONED: marks.US}
            cluster.patch(node_path(name), body, MERGE_PATCH)

    def grow(self, side: Side, size: int, /) -> None:
        """Nodes that stand on neither side take this one's label, with the joining taint and without the cordon.

        By name, so that asked again the same ones come; where there are too few, those that are there come.
        """
        cluster = self._clusters[side]
        nodes = cluster.list("/api/v1/nodes", NodeObject, labels=self._pool.selector)
        there = sum(one.metadata.labels.get(marks.SIDE) == side for one in nodes)
        for node in sorted(self._free(side, nodes), key=lambda one: one.metadata.name)[: max(size - there, 0)]:
            self._join(cluster, side, node)

    def _free(self, side: Side, nodes: list[NodeObject]) -> list[NodeObject]:
        """Nodes on neither side; where each side has its own cluster, the other one must have let go."""
        free = [one for one in nodes if one.metadata.labels.get(marks.SIDE) == NEITHER]
        other = self._clusters[side.other]
        if other is not self._clusters[side]:
            held = other.list("/api/v1/nodes", NodeObject, labels=self._pool.selector)
            let_go = {one.metadata.name for one in held if one.metadata.labels.get(marks.SIDE) == NEITHER}
            free = [one for one in free if one.metadata.name in let_go]
        return [one for one in free if marks.is_managed(one.metadata.labels, one.metadata.annotations)]

    def _join(self, cluster: Cluster, side: Side, node: NodeObject) -> None:
        """On neither side a node is cordoned because it stands on neither: whoever did it, that is over."""
        body: dict[str, Any] = {
            "metadata": {
                "labels": {marks.SIDE: str(side), marks.TENURE: str(Tenure.EPHEMERAL)},
                "annotations": {**GONE, marks.CORDONED: None},
                "resourceVersion": node.metadata.resource_version,
            },
            "spec": {
                "unschedulable": None,
                "taints": with_taints(node, add=(joining_taint(),), drop=(marks.TENURE,)),
            },
        }
        cluster.patch(node_path(node.metadata.name), body, MERGE_PATCH)
