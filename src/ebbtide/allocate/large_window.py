"""One window of a large pool: hulls, greedy walks over the counts of nodes, and a proven bound beside them.

Widths that pack perfectly need one walk. For other widths a walk strays from the mix that fills nodes best, so further
walks start from the relaxed pattern program's counts at some node counts, and its prices make the bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebbtide.allocate.fit import pack
from ebbtide.allocate.greedy import Walk, walk
from ebbtide.allocate.hull import Steps, hull_steps, least_by_width
from ebbtide.allocate.knapsack import Choices
from ebbtide.allocate.packing import NodeShape, Packing
from ebbtide.allocate.packing_bound import packing_prices
from ebbtide.allocate.packing_relaxation import Relaxed, WidthGains, mixes_of, relax, whole_steps
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints

# Node counts, evenly from the fewest to all, at which the pattern program is relaxed; one more is the count that pays
# best against research, which is where most windows of a plan end up.
ANCHORS = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Leg:
    """A walk that starts with ``low`` replicas on ``nodes`` nodes; ``money[i]`` is left with i nodes more."""

    low: Ints
    nodes: int
    money: Floats
    walk: Walk


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LargeWindow:
    """A good answer for every count of nodes 0 … M, and its bounds.

    ``deficit`` is the shortage and unserved load (``unserved.joint``), ``deficit_bound`` a proven lower bound of the
    least. ``bound[m] ≤ money[m]``; the best leg for m nodes is ``legs[leg[m]]``.
    """

    needed_nodes: int
    deficit: int
    deficit_bound: float
    money: Floats
    bound: Floats
    legs: tuple[Leg, ...]
    leg: Ints

    def replicas(self, nodes: int) -> Ints:
        """Replicas per workload with so many nodes."""
        leg = self.legs[int(self.leg[nodes])]
        return leg.low + leg.walk.more(nodes - leg.nodes, len(leg.low))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Base:
    """Where a window's money begins: its ``low`` replicas, how they lie, and how much shortage is known to remain."""

    low: Ints
    packed: Packing
    deficit_bound: float = 0.0


def solve_large(shape: NodeShape, choices: Choices, base: Base, nodes: int, *, node_value: float) -> LargeWindow:
    """The window for up to ``nodes`` nodes, each worth ``node_value`` to research (USD/h)."""
    anchors = [] if shape.perfect else _anchors(shape, choices, base, nodes, node_value)
    prices = [
        *width_prices(shape, choices, base.low),
        *(price for price in map(_workload_price, anchors) if price is not None),
    ]
    legs = [_leg(shape, choices, base.low, base.packed, nodes, prices[0])]
    legs += _further_legs(shape, choices, base, nodes, anchors)
    money = np.full((len(legs), nodes + 1), np.inf)
    for i, leg in enumerate(legs):
        money[i, leg.nodes :] = leg.money
    best = money.min(axis=0)
    deficit, _ = choices.total(np.zeros(len(base.low), dtype=np.int64))
    bound = hull_bound(choices, choices.money, base.low, np.arange(nodes + 1.0), prices)
    return LargeWindow(
        # A leg that holds more may still lie on fewer nodes than the base does, where that was packed step by step.
        needed_nodes=min(leg.nodes for leg in legs),
        deficit=deficit,
        deficit_bound=min(base.deficit_bound, float(deficit)),
        money=best,
        # Both are sums of the same numbers in another order: a bound a rounding above the cost is that cost.
        bound=np.minimum(bound, best),
        legs=tuple(legs),
        leg=money.argmin(axis=0),
    )


def hull_bound(choices: Choices, values: Floats, low: Ints, nodes: Floats, prices: list[Floats]) -> Floats:
    """Lower bound of Σ ``values`` for each number of ``nodes``; inf where ``low`` does not fit at some price."""
    base = float(values[choices.start].sum())
    bounds = [base - _saving(values, choices, low, price, nodes) for price in prices]
    best: Floats = np.max(bounds, axis=0)
    return best


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Anchor:
    """The relaxed program at one count of nodes; ``steps`` are the hull steps of every width, steepest first."""

    relaxed: Relaxed
    steps: list[Steps]
    gains: list[WidthGains]
    place: Ints

    @property
    def more(self) -> Ints:
        """Whole steps inside the relaxed counts, as replicas per workload."""
        more = np.zeros(len(self.place), dtype=np.int64)
        for steps, gains, replicas in zip(self.steps, self.gains, self.relaxed.replicas.tolist(), strict=True):
            count = whole_steps(gains, replicas)
            np.add.at(more, steps.workload[:count], steps.replicas[:count])
        return more


def _workload_price(anchor: _Anchor) -> Floats | None:
    return None if anchor.relaxed.price is None else anchor.relaxed.price[anchor.place]


def _anchors(shape: NodeShape, choices: Choices, base: Base, nodes: int, node_value: float) -> list[_Anchor]:
    widths = _widths(shape)
    steps = hull_steps(choices.money, choices.start, choices.length, np.ones(len(base.low), dtype=np.int64))
    if len(steps.saving) == 0:
        return []
    width = shape.width_units
    by_width = [steps.pick(np.flatnonzero(width[steps.workload] == one)) for one in widths]
    gains = [
        WidthGains(width=one, base=int(count), replicas=mine.replicas.astype(np.float64), saving=mine.saving)
        for one, count, mine in zip(widths, mixes_of(width, base.low, widths).tolist(), by_width, strict=True)
    ]
    counts = sorted({int(count) for count in np.linspace(base.packed.nodes, nodes, ANCHORS)})
    found = [relax(shape.node_units, gains, nodes_at_most=float(nodes), node_value=node_value)]
    found += [relax(shape.node_units, gains, nodes_at_most=float(count)) for count in counts]
    place = np.searchsorted(-np.array(widths), -width)
    return [_Anchor(relaxed=one, steps=by_width, gains=gains, place=place) for one in found if one is not None]


def _further_legs(shape: NodeShape, choices: Choices, base: Base, nodes: int, anchors: list[_Anchor]) -> list[Leg]:
    legs = []
    for anchor in anchors:
        more = anchor.more
        price = _workload_price(anchor)
        packed = pack(shape, base.low + more)
        if price is not None and packed.nodes <= nodes:
            legs.append(_leg(shape, choices.beyond(more), base.low + more, packed, nodes, price))
    return legs


def _leg(shape: NodeShape, choices: Choices, low: Ints, packed: Packing, nodes: int, price: Floats) -> Leg:
    walked = walk(
        hull_steps(choices.money, choices.start, choices.length, price),
        values=choices.money,
        start=choices.start,
        width=choices.width,
        free=packed.free,
        nodes=nodes - packed.nodes,
        shared=shape.perfect,
    )
    money = float(choices.money[choices.start].sum()) - walked.saved
    return Leg(low=low, nodes=packed.nodes, money=money, walk=walked)


def _saving(values: Floats, choices: Choices, low: Ints, price: Floats, nodes: Floats) -> Floats:
    """Greatest saving on the hulls with so many nodes at a dual feasible price; −inf where ``low`` does not fit."""
    room = nodes - float(low @ price)
    steps = hull_steps(values, choices.start, choices.length, price)
    # Prices are quotients: a billionth of a node keeps the bound below what is whole in truth.
    saving = least_by_width(steps, price, np.maximum(room, 0.0) + 1e-9)
    return np.where(room < -1e-9, -np.inf, saving)


def _widths(shape: NodeShape) -> list[int]:
    return sorted(set(shape.width_units.tolist()), reverse=True)


def width_prices(shape: NodeShape, choices: Choices, low: Ints) -> list[Floats]:
    """Dual feasible prices per workload's replica, in nodes; volume first."""
    width = shape.width_units
    if shape.perfect:
        return [width / shape.node_units]
    widths = _widths(shape)
    mixes = [mixes_of(width, replicas, widths) for replicas in (low, low + choices.length - 1)]
    place = np.searchsorted(-np.array(widths), -width)
    return [price[place] for price in packing_prices(shape.node_units, widths, mixes)]
