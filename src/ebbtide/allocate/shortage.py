"""Who goes short in a window of a large pool (§5.7): the least Σ weight · rate · missing share · hours.

Attainment is S-shaped in the replicas, so the shortage is taken on its hulls: a workload's way from its minimum to
where its attainment bends is one block. The steepest blocks per GPU go first; the workloads around the last block are
then chosen exactly, shortage first and money second, in the room that all of them share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebbtide.allocate.fit import pack
from ebbtide.allocate.greedy import Walk, walk
from ebbtide.allocate.hull import Steps, hull_steps
from ebbtide.allocate.knapsack import Choices, best_within, staged_pairs
from ebbtide.allocate.large_window import hull_bound, width_prices
from ebbtide.allocate.packing import NodeShape, Packing, free_units
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints

# Hull steps on each side of the last one taken whose workloads are chosen again exactly. What lies further away differs
# from the price of a GPU by more than a rounding of one block is worth.
CORE_STEPS = 12
# Times that replicas of widths that do not divide the node are packed anew; each frees a part of what the one before it
# did, and the third is seldom reached.
REPACKINGS = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Split:
    """Replicas above the minima that leave little shortage, how they lie, and a lower bound of the least (in units)."""

    more: Ints
    packed: Packing
    deficit_bound: float


def least_shortage(shape: NodeShape, choices: Choices, low: Ints, nodes: int, packed: Packing) -> Split:
    """The split with all ``nodes`` nodes; ``packed`` is how the ``low`` replicas lie."""
    values = choices.deficit.astype(np.float64)
    prices = width_prices(shape, choices, low)
    bound = float(hull_bound(choices, values, low, np.array([float(nodes)]), prices)[0])
    if shape.perfect:
        more, left = _shared_room(shape, choices, values, _with_empty(packed, nodes))
        return Split(more=more, packed=_without_empty(left, nodes), deficit_bound=bound)
    more = np.zeros(len(low), dtype=np.int64)
    # Replicas put down step by step lie worse than the same replicas packed anew: the room that frees is used again.
    for _ in range(REPACKINGS):
        walked = _walked(choices.beyond(more), values, _with_empty(packed, nodes), shared=False)
        taken = walked.more(0, len(low))
        more, stood = more + taken, _without_empty(walked.free, nodes)
        packed = min(pack(shape, low + more), stood, key=lambda one: one.nodes)
        if packed.nodes >= stood.nodes or not taken.any():
            break
    return Split(more=more, packed=packed, deficit_bound=bound)


def _walked(choices: Choices, values: Floats, free: Ints, *, shared: bool) -> Walk:
    steps = hull_steps(values, choices.start, choices.length, choices.width)
    return walk(
        steps,
        values=values,
        start=choices.start,
        width=choices.width,
        free=free,
        nodes=0,
        shared=shared,
        look_ahead=len(steps.saving),
    )


def _shared_room(shape: NodeShape, choices: Choices, values: Floats, free: Ints) -> tuple[Ints, Ints]:
    """Replicas above the lows, and the free units that they leave, where widths pack perfectly."""
    greedy = _walked(choices, values, free, shared=True).more(0, len(choices.width))
    steps = hull_steps(values, choices.start, choices.length, choices.width)
    room = int(free @ np.arange(len(free)))
    more = min(greedy, _core(choices, steps, room), key=choices.total)
    return more, free_units(shape.node_units, room - int(more @ choices.width))


def _with_empty(packed: Packing, nodes: int) -> Ints:
    free = packed.free.copy()
    free[-1] += nodes - packed.nodes
    return free


def _without_empty(free: Ints, nodes: int) -> Packing:
    used = free.copy()
    used[-1] = 0
    return Packing(nodes=nodes - int(free[-1]), free=used)


def _core(choices: Choices, steps: Steps, room: int) -> Ints:
    """Whole steps while they fit in order; the workloads around the first that does not, exactly."""
    used = np.cumsum(steps.width(choices.width))
    last = int(np.searchsorted(used, room, side="right"))
    taken = np.bincount(steps.workload[:last], weights=steps.replicas[:last], minlength=len(choices.width))
    more: Ints = taken.astype(np.int64)
    core = np.unique(steps.workload[max(last - CORE_STEPS, 0) : last + CORE_STEPS])
    more[core] = 0
    chosen = choices.pick(core)
    budget = min(room - int(more @ choices.width), int(((chosen.length - 1) * chosen.width).sum()))
    stages = staged_pairs(chosen, budget)
    more[core] = stages.back(int(best_within(*stages.last)[budget]))
    return more
