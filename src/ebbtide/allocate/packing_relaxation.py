"""The pattern program of one window, relaxed: how many replicas of every width, and the prices of widths that prove it.

Fractions of nodes along the arc-flow graph of ``packing_program``, fractions of hull steps per width. Its optimum is
the bound of Gilmore and Gomory (1961) with a choice of counts on top, its dual a price of every width in nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebbtide.allocate.packing_bound import dearest_node
from ebbtide.allocate.packing_program import node_arcs
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints

# Segments that a width's curve is cut into. Prices need not be exact to be proven, only near the best.
SEGMENTS = 48


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WidthGains:
    """A width, its replicas so far, and the sizes and savings of further steps, steepest first."""

    width: int
    base: int
    replicas: Floats
    saving: Floats

    def coarse(self) -> WidthGains:
        """At most ``SEGMENTS`` steps, neighbours joined."""
        groups = np.minimum(np.arange(len(self.replicas)) * SEGMENTS // max(len(self.replicas), 1), SEGMENTS - 1)
        kept = min(len(self.replicas), SEGMENTS)
        return WidthGains(
            width=self.width,
            base=self.base,
            replicas=np.bincount(groups, weights=self.replicas, minlength=kept).astype(np.float64),
            saving=np.bincount(groups, weights=self.saving, minlength=kept).astype(np.float64),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Relaxed:
    """Replicas per width (fractions), the nodes they use, a dual feasible price per width in nodes (if nodes pay)."""

    replicas: Floats
    nodes: float
    price: Floats | None


def relax(node: int, gains: list[WidthGains], *, nodes_at_most: float, node_value: float = 0.0) -> Relaxed | None:
    """The relaxed optimum for so many nodes, each worth ``node_value`` elsewhere; None where the bases do not fit."""
    # Most of a second to import, and fleets whose widths divide the node never need it.
    from scipy.optimize import linprog

    coarse = [one.coarse() for one in gains]
    arcs = node_arcs(node, [(c, one.width) for c, one in enumerate(gains) if one.width < node])
    steps = [
        (c, float(r), float(s)) for c, one in enumerate(coarse) for r, s in zip(one.replicas, one.saving, strict=True)
    ]
    first_arc, columns = len(steps), len(steps) + len(arcs) + 1
    supply = np.zeros((len(gains) + 1, columns))
    need = np.zeros(len(gains) + 1)
    for j, (c, replicas, _) in enumerate(steps):
        if gains[c].width < node:
            supply[c, j] = replicas
        else:
            supply[-1, j] = replicas * (gains[c].width // node)
    for a, (_, _, owner) in enumerate(arcs):
        if owner >= 0:
            supply[owner, first_arc + a] = -1.0
    whole = 0
    for c, one in enumerate(gains):
        need[c] = -one.base if one.width < node else 0.0
        whole += one.base * (one.width // node)
    supply[-1, -1] = 1.0
    need[-1] = nodes_at_most - whole
    cost = np.zeros(columns)
    cost[:first_arc] = [-saving for _, _, saving in steps]
    cost += node_value * supply[-1]
    found = linprog(
        cost,
        A_ub=supply,
        b_ub=need,
        A_eq=_conservation(node, arcs, first_arc, columns),
        b_eq=np.zeros(node + 1),
        bounds=[(0.0, 1.0)] * first_arc + [(0.0, None)] * (len(arcs) + 1),
    )
    if found.x is None:
        return None
    counts = np.array([float(one.base) for one in gains])
    for j, (c, replicas, _) in enumerate(steps):
        counts[c] += replicas * found.x[j]
    node_price = node_value - float(found.ineqlin.marginals[-1])
    used = whole + float(supply[-1] @ found.x)
    return Relaxed(replicas=counts, nodes=used, price=_price(node, gains, -found.ineqlin.marginals[:-1], node_price))


def _conservation(node: int, arcs: list[tuple[int, int, int]], first_arc: int, columns: int) -> Floats:
    """What flows into a point flows out of it; the last column is the count of nodes."""
    rows = np.zeros((node + 1, columns))
    for a, (start, end, _) in enumerate(arcs):
        rows[end, first_arc + a] += 1.0
        rows[start, first_arc + a] -= 1.0
    rows[0, -1], rows[node, -1] = 1.0, -1.0
    return rows


def _price(node: int, gains: list[WidthGains], worth: Floats, node_price: float) -> Floats | None:
    """Money per replica over money per node, made feasible beyond rounding; None where nodes are worth nothing."""
    if node_price <= 1e-12:
        return None
    price = np.array([one.width // node for one in gains], dtype=np.float64)
    narrow = [c for c, one in enumerate(gains) if one.width < node]
    price[narrow] = np.maximum(worth[narrow], 0.0) / node_price
    dearest = dearest_node(node, [gains[c].width for c in narrow], price[narrow])
    price[narrow] /= max(1.0, dearest) * (1.0 + 1e-12)
    return price


def whole_steps(gains: WidthGains, replicas: float) -> int:
    """How many of the steps, in order, lie inside so many replicas."""
    within = np.cumsum(gains.replicas) + gains.base <= replicas + 1e-6
    return int(within.sum())


def mixes_of(width: Ints, replicas: Ints, widths: list[int]) -> Ints:
    """Replicas per width."""
    return np.array([replicas[width == one].sum() for one in widths], dtype=np.int64)
