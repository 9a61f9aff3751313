"""One window of a large pool: hulls, one greedy walk, and a proven bound beside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebbtide.allocate.greedy import Walk, walk
from ebbtide.allocate.hull import hull_steps, least_by_width
from ebbtide.allocate.knapsack import Choices
from ebbtide.allocate.packing import NodeShape, Packing
from ebbtide.allocate.packing_bound import packing_prices
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LargeWindow:
    """A good answer for every count of nodes 0 … M, and its bounds.

    ``low`` is what every count of nodes gives, ``walk`` what more nodes than ``needed_nodes`` add. ``deficit`` is the
    shortage in units, ``deficit_bound`` a proven lower bound of the least. ``bound[m] ≤ money[m]``.
    """

    low: Ints
    needed_nodes: int
    deficit: int
    deficit_bound: float
    money: Floats
    bound: Floats
    walk: Walk

    def replicas(self, nodes: int) -> Ints:
        """Replicas per workload with so many nodes."""
        return self.low + self.walk.more(nodes - self.needed_nodes, len(self.low))


def solve_large(
    shape: NodeShape, choices: Choices, low: Ints, nodes: int, *, packed: Packing, deficit_bound: float
) -> LargeWindow:
    """The window for up to ``nodes`` nodes; ``packed`` is how the ``low`` replicas lie, on no more nodes than that."""
    walked = walk(
        hull_steps(choices.money, choices.start, choices.length, choices.width),
        values=choices.money,
        start=choices.start,
        width=choices.width,
        free=packed.free,
        nodes=nodes - packed.nodes,
        shared=shape.perfect,
    )
    deficit, base = choices.total(np.zeros(len(low), dtype=np.int64))
    money = np.full(nodes + 1, np.inf)
    money[packed.nodes :] = base - walked.saved
    return LargeWindow(
        low=low,
        needed_nodes=packed.nodes,
        deficit=deficit,
        deficit_bound=min(deficit_bound, float(deficit)),
        money=money,
        # Both are sums of the same numbers in another order: a bound a rounding above the cost is that cost.
        bound=np.minimum(hull_bound(shape, choices, choices.money, low, np.arange(nodes + 1.0)), money),
        walk=walked,
    )


def hull_bound(shape: NodeShape, choices: Choices, values: Floats, low: Ints, nodes: Floats) -> Floats:
    """Lower bound of Σ ``values`` for each number of ``nodes``; inf where not even ``low`` fits, at any price."""
    base = float(values[choices.start].sum())
    bounds = [base - _saving(values, choices, low, price, nodes) for price in _prices(shape, choices, low)]
    best: Floats = np.max(bounds, axis=0)
    return best


def _saving(values: Floats, choices: Choices, low: Ints, price: Floats, nodes: Floats) -> Floats:
    """Greatest saving on the hulls with so many nodes at a dual feasible price; −inf where ``low`` does not fit."""
    room = nodes - float(low @ price)
    steps = hull_steps(values, choices.start, choices.length, price)
    # Prices are quotients: a billionth of a node keeps the bound below what is whole in truth.
    saving = least_by_width(steps, price, np.maximum(room, 0.0) + 1e-9)
    return np.where(room < -1e-9, -np.inf, saving)


def _prices(shape: NodeShape, choices: Choices, low: Ints) -> list[Floats]:
    """Prices per workload's replica, in nodes."""
    width = shape.width_units
    if shape.perfect:
        return [width / shape.node_units]
    widths = sorted(set(width.tolist()), reverse=True)
    full = low + choices.length - 1
    mixes = [np.array([replicas[width == one].sum() for one in widths]) for replicas in (low, full)]
    place = np.searchsorted(-np.array(widths), -width)
    return [price[place] for price in packing_prices(shape.node_units, widths, mixes)]
