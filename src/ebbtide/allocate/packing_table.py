"""The fewest whole nodes for every vector of counts of a few widths: exact bin packing by counts, one table for a pool.

Replicas of one width are alike, so what packs depends on counts only, and a pool's windows ask for the same counts
again and again. The table is filled once, by the node that holds one of the widest: N(n) = 1 + least N(n − p) over the
fullest patterns p of a node (P. Gilmore and R. Gomory, Operations Research 9, 1961, by counts, not by columns).

Two kinds of width need no place in it. One unit fits wherever a unit is free: with it nodes = max(N, ⌈units / node⌉).
Widths of whole nodes take their own.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ebbtide.allocate.packing import NodeShape
from ebbtide.fleet.planned import Ints

# A tenth of what a plan of thousands of nodes takes. A window looks at the vectors above its lows, a nanosecond or two
# each: the whole of the largest table takes as long as ten of the integer programs that it spares, of which a window
# may need one for every count of nodes.
BYTES = 100_000_000
# Vectors times patterns of a node: some seconds at worst, where no pattern reaches the volume's bound early.
FILLING = 2_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PackingTable:
    """``nodes[Σ counts[i] · stride[i]]`` is the fewest nodes for so many replicas of ``widths[i]`` (widest first).

    ``most[i]`` is the largest count in the table; ``limit + 1`` nodes stand for more than ``limit``. ``patterns[p]`` is
    what a full node holds of every width.
    """

    widths: Ints
    most: Ints
    stride: Ints
    patterns: Ints
    limit: int
    nodes: NDArray[np.int8] | NDArray[np.int16]

    def fewest(self, counts: Ints) -> int:
        """Nodes for one vector of counts inside the table."""
        return int(self.nodes[int(counts @ self.stride)])

    def fewest_with(self, shape: NodeShape, replicas: Ints) -> int:
        """Nodes for so many replicas of every workload, the two kinds of width that are not in the table included.

        More than ``limit`` stands for all that is more.
        """
        narrow = shape.width_units < shape.node_units
        units = int((replicas * shape.width_units)[narrow].sum())
        whole = int((replicas * (shape.width_units // shape.node_units))[~narrow].sum())
        counts = self._counts(shape, replicas)
        packed = self.fewest(counts) if (counts <= self.most).all() else self.limit + 1
        return whole + max(packed, shape.nodes_for(units))

    def rooms(self, shape: NodeShape, replicas: Ints) -> list[int]:
        """Units that are free on each of the fewest nodes, with the table's widths on them; at most ``limit`` nodes."""
        counts, rooms = self._counts(shape, replicas), []
        while counts.any():
            beside = next(
                left
                for left in (np.maximum(counts - pattern, 0) for pattern in self.patterns)
                if self.fewest(left) < self.fewest(counts)
            )
            rooms.append(shape.node_units - int((counts - beside) @ self.widths))
            counts = beside
        return rooms

    def _counts(self, shape: NodeShape, replicas: Ints) -> Ints:
        return np.array([replicas[shape.width_units == width].sum() for width in self.widths.tolist()])


def tabled_widths(shape: NodeShape) -> list[int]:
    """Widths whose packing is a matter of counts: wider than a unit, narrower than a node; widest first."""
    return sorted({width for width in shape.width_units.tolist() if 1 < width < shape.node_units}, reverse=True)


def packing_table(shape: NodeShape, most: Ints, limit: int, *, in_bytes: int = BYTES) -> PackingTable | None:
    """The table for at most ``limit`` nodes and ``most[w]`` replicas of workload w; None where it would be too large.

    >>> from ebbtide.allocate.packing import node_shape
    >>> table = packing_table(node_shape(8, [3, 5]), np.array([9, 9]), 4)
    >>> table.widths.tolist(), table.fewest(np.array([2, 3])), table.fewest(np.array([4, 5]))
    ([5, 3], 3, 5)
    """
    node, widths = shape.node_units, tabled_widths(shape)
    asked = [int(most[shape.width_units == width].sum()) for width in widths]
    largest = [min(count, limit * (node // width)) for count, width in zip(asked, widths, strict=True)]
    sizes = [count + 1 for count in largest]
    states = math.prod(sizes)
    ways = math.prod(min(count, node // width) + 1 for count, width in zip(largest[:-1], widths[:-1], strict=True))
    cell = np.dtype(np.int8 if limit < np.iinfo(np.int8).max else np.int16)
    if states * cell.itemsize > in_bytes or states * ways > FILLING or limit >= np.iinfo(np.int16).max:
        return None
    patterns = np.array(full_patterns(node, widths, largest), dtype=np.int64)
    stride = np.array([math.prod(sizes[i + 1 :]) for i in range(len(sizes))], dtype=np.int64)
    units, counts = np.array(widths, dtype=np.int64), np.array(largest, dtype=np.int64)
    nodes = np.empty(states, dtype=cell)
    _fill(nodes, node, units, counts, stride, patterns, limit)
    return PackingTable(widths=units, most=counts, stride=stride, patterns=patterns, limit=limit, nodes=nodes)


def full_patterns(node: int, widths: list[int], most: list[int]) -> list[tuple[int, ...]]:
    """What a node holds where none of the narrowest fits beside it, the fullest first; ``widths`` are widest first.

    >>> full_patterns(8, [5, 3], [9, 9])
    [(1, 1), (0, 2)]
    """
    *wider, last = widths
    found = []
    for counts in itertools.product(
        *(range(min(count, node // width) + 1) for count, width in zip(most, wider, strict=False))
    ):
        room = node - sum(count * width for count, width in zip(counts, wider, strict=True))
        if room >= 0:
            found.append((*counts, min(room // last, most[-1])))
    return sorted(found, key=lambda one: -sum(count * width for count, width in zip(one, widths, strict=True)))


@njit(cache=True)
def _fill(nodes, node, widths, most, stride, patterns, limit):  # type: ignore[no-untyped-def]  # numba infers types
    """Vectors in the order of their place: what is left beside a pattern comes earlier."""
    classes = len(widths)
    nodes[0] = 0
    counts = np.zeros(classes, dtype=np.int64)
    units = 0
    for at in range(1, len(nodes)):
        i = classes - 1
        while counts[i] == most[i]:
            units -= counts[i] * widths[i]
            counts[i] = 0
            i -= 1
        counts[i] += 1
        units += widths[i]
        least = -(-units // node)
        best = limit + 1
        if least <= limit:
            widest = 0
            while counts[widest] == 0:
                widest += 1
            for p in range(len(patterns)):
                if patterns[p, widest] > 0:
                    before = at
                    for c in range(classes):
                        before -= min(patterns[p, c], counts[c]) * stride[c]
                    best = min(best, nodes[before] + 1)
                    if best == least:
                        break
        nodes[at] = best
