"""One window's best counts per width for every count of nodes at once, where a ``PackingTable`` says what packs.

Every vector of counts that improves is looked at once and kept where it is best for its nodes (and, where a width of
one unit will fill what is left, for its units). The unit class then takes the free units, wide classes take whole
nodes: both are sums of two curves. Exact for any curves; pairs are (shortage, money), in that order (§5.7), and among
equal pairs the fewest units win.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebbtide.allocate.class_curves import ClassCounts, ClassCurves
from ebbtide.allocate.knapsack import UNREACHABLE, Choices, Stages, staged_pairs
from ebbtide.allocate.packing_table import PackingTable
from ebbtide.allocate.table_kernels import beside_whole, filled, placed
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Tried:
    """Counts of some classes that are worth trying, flat; those of class i are ``starts[i]:starts[i+1]``."""

    classes: Ints
    starts: Ints
    more: Ints
    counts: Ints
    deficit: Ints
    money: Floats

    def more_of(self, i: int, at: Ints) -> Ints:
        more: Ints = self.more[self.starts[i] + at]
        return more


def by_table(curves: ClassCurves, table: PackingTable) -> ClassCounts | None:
    """The least for every count of nodes; None where not even the lows pack."""
    node = curves.shape.node_units
    tabled = _tried(curves, np.flatnonzero((curves.widths > 1) & (curves.widths < node)), table.most)
    filler = _tried(curves, np.flatnonzero(curves.widths == 1), None)
    wide, wide_base = _whole_nodes(curves)
    if (np.diff(tabled.starts) == 0).any() or wide_base > curves.nodes:
        return None
    columns = curves.nodes * node + 1 if len(filler.classes) else 1
    narrow = filled(
        placed(
            table.nodes,
            table.stride,
            table.widths,
            tabled.starts,
            tabled.counts,
            tabled.deficit,
            tabled.money,
            curves.nodes,
            columns,
        ),
        node,
        filler.counts,
        filler.deficit,
        filler.money,
    )
    deficit, money, place, fill, whole = beside_whole(narrow, *wide.last, wide_base, node)
    least = int(deficit[-1])
    if least == UNREACHABLE:
        return None
    needed = int(np.argmax(deficit == least))
    more = np.zeros((curves.nodes + 1, len(curves.widths)), dtype=np.int64)
    for i, at in enumerate(np.unravel_index(np.maximum(place, 0), tuple(np.diff(tabled.starts).tolist()))):
        more[:, tabled.classes[i]] = tabled.more_of(i, at)
    if len(filler.classes):
        more[:, filler.classes[0]] = filler.more_of(0, fill)
    reached = range(needed, curves.nodes + 1)
    taken = {nodes: wide.back(nodes) for nodes in np.unique(whole[needed:]).tolist()}
    for nodes in reached:
        more[nodes, : len(wide.choices.width)] = taken[int(whole[nodes])]
    money[:needed] = np.inf
    return ClassCounts(needed_nodes=needed, deficit=least, money=money, more={nodes: more[nodes] for nodes in reached})


def _tried(curves: ClassCurves, classes: Ints, most: Ints | None) -> _Tried:
    more = [curves.improving(c) for c in classes.tolist()]
    if most is not None:
        # What a node cannot hold so often is not in the table.
        more = [one[curves.base[c] + one <= top] for one, c, top in zip(more, classes.tolist(), most, strict=True)]
    pairs = [curves.pairs[c] for c in classes.tolist()]
    empty = np.zeros(0, dtype=np.int64)
    return _Tried(
        classes=classes,
        starts=np.cumsum([0, *(len(one) for one in more)]),
        more=np.concatenate([empty, *more]),
        counts=np.concatenate([empty, *(curves.base[c] + one for c, one in zip(classes, more, strict=True))]),
        deficit=np.concatenate([empty, *(deficit[one] for (deficit, _), one in zip(pairs, more, strict=True))]),
        money=np.concatenate([np.zeros(0), *(money[one] for (_, money), one in zip(pairs, more, strict=True))]),
    )


def _whole_nodes(curves: ClassCurves) -> tuple[Stages, int]:
    """Least pairs of the classes of whole nodes by the nodes they take above their lows, and what the lows take."""
    wide = np.flatnonzero(curves.widths >= curves.shape.node_units)
    nodes_each = curves.widths[wide] // curves.shape.node_units
    base = int((curves.base[wide] * nodes_each).sum())
    pairs = [curves.pairs[c] for c in wide.tolist()]
    lengths = np.array([len(money) for _, money in pairs], dtype=np.int64)
    choices = Choices(
        width=nodes_each,
        start=np.cumsum(lengths) - lengths,
        length=lengths,
        deficit=np.concatenate([np.zeros(0, dtype=np.int64), *(deficit for deficit, _ in pairs)]),
        money=np.concatenate([np.zeros(0), *(money for _, money in pairs)]),
    )
    return staged_pairs(choices, max(curves.nodes - base, 0)), base
