"""One pool over one cycle: production nodes and replicas in every window, and the proven bound (§5.9, §5.11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ebbtide.allocate.cycle import CycleAnswer, CycleProblem, solve_cycle
from ebbtide.allocate.fit import pack
from ebbtide.allocate.moves import Timeline, move_cost_usd
from ebbtide.allocate.pool_window import PoolWindow, pool_windows
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import WindowDemand
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.workload import Workload


@dataclass(frozen=True, kw_only=True, eq=False)
class PoolPlan:
    """What one pool holds in every window of a timeline.

    ``objective_usd`` (per cycle) counts production's node-hours at research's value, waiting and moves;
    ``lower_bound_usd`` is proven for every plan with these windows and the least shortage.
    """

    pool: Pool
    workloads: tuple[Workload, ...]
    timeline: Timeline
    windows: tuple[PoolWindow, ...]
    nodes: tuple[int, ...]
    objective_usd: float
    lower_bound_usd: float

    @cached_property
    def replicas(self) -> tuple[tuple[int, ...], ...]:
        """Per window the replicas of every workload, in the Fleet's order."""
        if not self.workloads:
            return ((),) * len(self.nodes)
        return tuple(window.allocation(nodes) for window, nodes in zip(self.windows, self.nodes, strict=True))

    @cached_property
    def replicas_alone(self) -> tuple[tuple[int, ...], ...]:
        """What every window would hold by itself, were moves free: its own cheapest number of nodes."""
        if not self.workloads:
            return self.replicas
        return tuple(map(self._alone, self.windows, self.nodes, self.replicas))

    def _alone(self, window: PoolWindow, nodes: int, replicas: tuple[int, ...]) -> tuple[int, ...]:
        counts = np.arange(len(window.cost_usd_per_h))
        costs = window.cost_usd_per_h + window.context.node_value * counts
        costs[: self.pool.min_production_nodes] = np.inf
        # Sums in another order: a part in a thousand million is no reason to hold other nodes.
        if costs[nodes] <= costs.min() * (1.0 + 1e-9):
            return replicas
        return window.allocation(int(costs.argmin()))

    @cached_property
    def static_needed_nodes(self) -> int:
        """Nodes that static peak needs: every workload holds all day the replicas of its own worst window, packed.

        Peaks come at different hours, so this may be more than the nodes that there are.
        """
        if not self.workloads:
            return self.pool.min_production_nodes
        peak = np.array(self.replicas, dtype=np.int64).max(axis=0)
        packed = pack(self.windows[0].context.curves.needs.shape, peak).nodes
        return max(packed, self.pool.min_production_nodes)

    @property
    def static_nodes(self) -> int:
        """Nodes of static peak that may stand in production: nothing is freed of nodes that are not there."""
        return min(self.static_needed_nodes, self.pool.max_production_nodes)


def plan_pool(
    pool: Pool,
    workloads: Sequence[Workload],
    demand: Sequence[Sequence[WindowDemand]],
    *,
    timeline: Timeline,
    research: Research,
    confidence: float,
) -> PoolPlan:
    """The best plan of one pool for given windows. ``demand[w][k]`` is workload w's in window k.

    A pool without workloads keeps its least production nodes, and ``windows`` is empty.
    """
    if not workloads:
        return _idle(pool, timeline, research)
    hours = np.array([window.nominal_hours for window in timeline.windows])
    windows = pool_windows(pool, workloads, demand, hours=hours, research=research, confidence=confidence)
    return joined(pool, workloads, windows, timeline=timeline, research=research)


def _idle(pool: Pool, timeline: Timeline, research: Research) -> PoolPlan:
    count = pool.min_production_nodes
    usd = count * pool.gpus_per_node * research.value_usd_per_gpu_h * sum(timeline.hours_per_cycle)
    return PoolPlan(
        pool=pool,
        workloads=(),
        timeline=timeline,
        windows=(),
        nodes=(count,) * len(timeline.windows),
        objective_usd=usd,
        lower_bound_usd=usd,
    )


def joined(
    pool: Pool,
    workloads: Sequence[Workload],
    windows: Sequence[PoolWindow],
    *,
    timeline: Timeline,
    research: Research,
) -> PoolPlan:
    """Windows joined by the cost of moves: first the answer, then the same program on what bounds it from below."""
    costs = cycle_costs_usd(pool, research, timeline, np.array([window.cost_usd_per_h for window in windows]))
    bounds = cycle_costs_usd(pool, research, timeline, np.array([window.bound_usd_per_h for window in windows]))
    move_usd = move_cost_usd(pool, research)
    answer = solve_cycle(CycleProblem(timeline=timeline, costs_usd=costs, move_usd=move_usd))
    lower_bound_usd = _lower_bound_usd(
        answer, costs, CycleProblem(timeline=timeline, costs_usd=bounds, move_usd=move_usd)
    )
    return PoolPlan(
        pool=pool,
        workloads=tuple(workloads),
        timeline=timeline,
        windows=tuple(windows),
        nodes=answer.nodes,
        objective_usd=answer.objective_usd,
        lower_bound_usd=lower_bound_usd,
    )


def _lower_bound_usd(answer: CycleAnswer, costs: Floats, bounds: CycleProblem) -> float:
    if np.array_equal(costs, bounds.costs_usd):
        return answer.lower_bound_usd
    return min(answer.objective_usd, solve_cycle(bounds).lower_bound_usd)


def cycle_costs_usd(pool: Pool, research: Research, timeline: Timeline, waiting_usd_per_h: Floats) -> Floats:
    """What each window costs in a cycle with 0 … M nodes in production, USD[windows, M + 1].

    Research would pay for the nodes; users wait. inf where a count is not allowed: below what the targets need, or
    below ``min_production_nodes``.
    """
    nodes = np.arange(pool.max_production_nodes + 1)
    node_usd_per_h = pool.gpus_per_node * research.value_usd_per_gpu_h
    hours = np.array(timeline.hours_per_cycle)[:, None]
    costs: Floats = hours * (waiting_usd_per_h + nodes * node_usd_per_h)
    costs[:, : pool.min_production_nodes] = np.inf
    return costs
