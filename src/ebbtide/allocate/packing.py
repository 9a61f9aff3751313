"""Whole nodes (§5.8): what widths of replicas do to the nodes of a pool.

A replica wider than a node takes whole nodes. Narrower widths that divide each other and the node pack perfectly:
nodes = ⌈Σ GPUs / node⌉. For other widths first-fit decreasing is an upper bound, and ``fit`` finds the fewest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ebbtide.fleet.planned import Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeShape:
    """How the widths of one pool's workloads lie on its nodes, in *units* (the greatest common divisor of all widths).

    ``node_units`` is what replicas can fill of a node at most: the largest sum of widths that is no more than a node
    (replicas of 3 GPUs never use more than 6 of 8). ``width_units[w]`` is a workload's width, whole nodes where it is
    wider than a node. ``perfect``: any set of replicas packs into ⌈Σ units / node_units⌉ nodes.
    """

    gpus_per_node: int
    unit_gpus: int
    node_units: int
    width_units: Ints
    perfect: bool

    @property
    def width_gpus(self) -> Ints:
        """GPUs that a replica of every workload takes: its own, or its whole nodes'."""
        nodes = -(-self.width_units // self.node_units)
        return np.where(
            self.width_units < self.node_units, self.width_units * self.unit_gpus, nodes * self.gpus_per_node
        )

    def nodes_for(self, units: int) -> int:
        """Nodes that so many units need at least; exactly as many where ``perfect``."""
        return -(-units // self.node_units)


def node_shape(gpus_per_node: int, gpus_per_replica: Sequence[int]) -> NodeShape:
    """The shape for widths in GPUs, one per workload.

    >>> shape = node_shape(8, [3, 6, 12])
    >>> shape.node_units, shape.width_units.tolist(), shape.perfect
    (2, [1, 2, 4], True)
    >>> node_shape(8, [1, 2, 8]).perfect, node_shape(8, [1, 3]).perfect
    (True, False)
    """
    narrow = sorted({width for width in gpus_per_replica if width < gpus_per_node})
    fillable = largest_fill(gpus_per_node, narrow)
    in_gpus = [width if width < gpus_per_node else -(-width // gpus_per_node) * fillable for width in gpus_per_replica]
    unit = math.gcd(fillable, *in_gpus)
    ladder = [*narrow, fillable]
    return NodeShape(
        gpus_per_node=gpus_per_node,
        unit_gpus=unit,
        node_units=fillable // unit,
        width_units=np.array(in_gpus, dtype=np.int64) // unit,
        perfect=all(upper % lower == 0 for lower, upper in pairwise(ladder)),
    )


def largest_fill(node: int, widths: Sequence[int]) -> int:
    """The largest sum of widths, each any number of times, that is at most a node; a whole node without widths.

    >>> largest_fill(8, [3]), largest_fill(8, [3, 5]), largest_fill(8, [])
    (6, 8, 8)
    """
    reachable = {0}
    for width in widths:
        for total in range(width, node + 1):
            if total - width in reachable:
                reachable.add(total)
    return max(reachable) if widths else node


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Packing:
    """Replicas on ``nodes`` nodes, of which ``free[r]`` have r units free (int64[node + 1])."""

    nodes: int
    free: Ints


def first_fit(node: int, widths: Sequence[int], counts: Sequence[int]) -> Packing:
    """First-fit decreasing for ``counts[i]`` replicas of ``widths[i]`` (widest first).

    Filling node by node with the widest that still fits is the same packing; equal nodes are filled together.

    >>> packed = first_fit(8, [5, 3, 2], [3, 2, 4])
    >>> packed.nodes, packed.free.tolist()
    (4, [2, 1, 1, 0, 0, 0, 0, 0, 0])
    """
    free = np.zeros(node + 1, dtype=np.int64)
    free[0] = sum(width // node * count for width, count in zip(widths, counts, strict=True) if width >= node)
    left = [0 if width >= node else count for width, count in zip(widths, counts, strict=True)]
    while any(left):
        pattern = _widest_first(node, widths, left)
        times = min(have // take for have, take in zip(left, pattern, strict=True) if take)
        left = [have - times * take for have, take in zip(left, pattern, strict=True)]
        free[node - sum(take * width for take, width in zip(pattern, widths, strict=True))] += times
    return Packing(nodes=int(free.sum()), free=free)


def _widest_first(node: int, widths: Sequence[int], left: Sequence[int]) -> list[int]:
    room = node
    pattern = []
    for width, count in zip(widths, left, strict=True):
        take = min(count, room // width)
        room -= take * width
        pattern.append(take)
    return pattern


def by_width(shape: NodeShape, replicas: Ints) -> tuple[list[int], list[int]]:
    """Widths, widest first, and replicas of each."""
    widths = sorted(set(shape.width_units.tolist()), reverse=True)
    return widths, [int(replicas[shape.width_units == width].sum()) for width in widths]


def free_units(node: int, units: int) -> Ints:
    """So many free units as empty nodes and one rest: enough to know where widths pack perfectly.

    >>> free_units(4, 9).tolist()
    [0, 1, 0, 0, 2]
    """
    free = np.zeros(node + 1, dtype=np.int64)
    free[node] = units // node
    free[units % node] += units % node > 0
    return free
