"""What fits onto whole nodes, and how (§5.8): by volume and first-fit decreasing; exactly where these two differ."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ebbtide.allocate.packing import NodeShape, Packing, by_width, first_fit, free_units
from ebbtide.allocate.packing_program import Least, PackingProgram, UnsolvedError, fixed_class
from ebbtide.allocate.packing_table import PackingTable, packing_table
from ebbtide.fleet.planned import Ints

# A table of this size is filled in the time that one integer program takes.
TABLE_BYTES = 2_000_000


def pack(shape: NodeShape, replicas: Ints) -> Packing:
    """A packing of so many replicas of every workload onto the fewest nodes.

    Volume and first-fit decreasing where they agree; a table of counts per width, or an integer program, where not. A
    program that is given up leaves first-fit decreasing.

    >>> from ebbtide.allocate.packing import node_shape
    >>> pack(node_shape(8, [3, 5]), np.array([3, 2])).nodes
    3
    """
    units = int((replicas * shape.width_units).sum())
    if shape.perfect:
        nodes = shape.nodes_for(units)
        free = free_units(shape.node_units, nodes * shape.node_units - units)
        free[0] = nodes - free[1:].sum()
        return Packing(nodes=nodes, free=free)
    widths, counts = by_width(shape, replicas)
    quick = first_fit(shape.node_units, widths, counts)
    if quick.nodes == shape.nodes_for(units):
        return quick
    table = packing_table(shape, replicas, quick.nodes, in_bytes=TABLE_BYTES)
    if table is not None:
        return _by_table(shape, replicas, table)
    classes = tuple(fixed_class(width, count) for width, count in zip(widths, counts, strict=True))
    try:
        found = PackingProgram(node=shape.node_units, classes=classes).solve(Least.NODES, nodes_at_most=quick.nodes)
    except UnsolvedError:
        table = packing_table(shape, replicas, quick.nodes)
        return quick if table is None else _by_table(shape, replicas, table)
    return quick if found is None else Packing(nodes=found.nodes, free=found.free)


def _by_table(shape: NodeShape, replicas: Ints, table: PackingTable) -> Packing:
    """The table's nodes, the fullest filled up with what is one unit wide; that and whole nodes take further ones."""
    units = int(replicas[shape.width_units == 1].sum())
    nodes = table.fewest_with(shape, replicas)
    free = np.zeros(shape.node_units + 1, dtype=np.int64)
    for room in sorted(table.rooms(shape, replicas)):
        taken = min(room, units)
        units -= taken
        free[room - taken] += 1
    if units % shape.node_units:
        free[-units % shape.node_units] += 1
    free[0] += nodes - free.sum()
    return Packing(nodes=nodes, free=free)


def do_not_fit(shape: NodeShape, replicas: Ints, nodes: int) -> NDArray[np.bool_]:
    """bool[windows] for int64[workloads, windows] replicas: True where they do not pack into the pool together.

    >>> from ebbtide.allocate.packing import node_shape
    >>> do_not_fit(node_shape(8, [3, 5]), np.array([[3, 3, 0], [1, 3, 4]]), 3).tolist()
    [False, False, True]
    """
    over: NDArray[np.bool_] = (replicas * shape.width_units[:, None]).sum(axis=0) > nodes * shape.node_units
    if shape.perfect:
        return over
    unsettled = [k for k in np.flatnonzero(~over).tolist() if _first_fit_nodes(shape, replicas[:, k]) > nodes]
    if unsettled:
        table = packing_table(shape, replicas[:, unsettled].max(axis=1), nodes)
        for k in unsettled:
            one = replicas[:, k]
            over[k] = (pack(shape, one).nodes if table is None else table.fewest_with(shape, one)) > nodes
    return over


def _first_fit_nodes(shape: NodeShape, replicas: Ints) -> int:
    return first_fit(shape.node_units, *by_width(shape, replicas)).nodes
