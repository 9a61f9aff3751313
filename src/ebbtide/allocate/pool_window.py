"""What m production nodes of a pool give in one window, for every m at once: the joint of curves and plan.

``pool_windows`` answers for all windows of a pool; ``plan`` reads node counts, money and bound, and asks for the
allocation of the count it settles on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ebbtide.allocate.curves import SHORTAGE_UNITS, PoolCurves, horizon_s, pool_curves
from ebbtide.allocate.exact_window import exact_work, solve_exactly
from ebbtide.allocate.fit import pack
from ebbtide.allocate.knapsack import Choices
from ebbtide.allocate.large_window import Base, solve_large
from ebbtide.allocate.needs import minima_do_not_fit
from ebbtide.allocate.packing import Packing
from ebbtide.allocate.packing_program import UnsolvedError
from ebbtide.allocate.packing_table import PackingTable, packing_table
from ebbtide.allocate.reason import Cases
from ebbtide.allocate.shortage import least_shortage
from ebbtide.allocate.unserved import shortage_units, unserved_load
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints, WindowDemand
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.schedule import WorkloadReason
from ebbtide.fleet.workload import Workload

# Below this many nodes every answer is exact; the hulls' gap, a part of one replica, shows most in small pools.
EXACT_BELOW_NODES = 50
# Additions for all windows of a pool that are worth making for an exact answer of a larger one: about two seconds.
EXACT_ADDITIONS = 1e9


class Answer(Protocol):
    """A solved window: ``exact_window`` or ``large_window``."""

    @property
    def needed_nodes(self) -> int: ...
    @property
    def deficit(self) -> int: ...
    @property
    def deficit_bound(self) -> float: ...
    @property
    def money(self) -> Floats: ...
    @property
    def bound(self) -> Floats: ...
    def replicas(self, nodes: int) -> Ints: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PoolContext:
    """What all windows of one pool share. ``table``: what packs, where windows are solved exactly and widths ask it."""

    pool: Pool
    workloads: tuple[Workload, ...]
    hours: Floats
    research: Research
    confidence: float
    curves: PoolCurves
    table: PackingTable | None

    @property
    def node_value(self) -> float:
        """What research pays for a node, USD/h."""
        return self.pool.gpus_per_node * self.research.value_usd_per_gpu_h

    def cases(self, workload: int, windows: Ints) -> Cases:
        """One workload in some of the windows, for their reasons (§5.12)."""
        needs, one = self.curves.needs, self.workloads[workload]
        return Cases(
            workload=one,
            samples=needs.samples[workload].pick(windows),
            target_need=needs.target[workload, windows],
            is_known=needs.is_known[workload, windows],
            required=needs.required[workload, windows],
            floor=needs.floor[workload, windows],
            day=needs.day[workload, windows],
            horizon_s=horizon_s(one, self.hours[windows]),
            confidence=self.confidence,
            width_gpus=int(needs.shape.width_gpus[workload]),
            value_usd_per_gpu_h=self.research.value_usd_per_gpu_h,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PoolWindow:
    """One window of one pool: what 0 … M nodes in production give (M = ``pool.max_production_nodes``).

    ``needed_nodes`` is the fewest with the least ``shortage`` (Σ weight · rate · missing share · hours, 0 where all
    targets can be met) and, at that, the least load ``unserved`` (Σ weight · rate · targets · hours · share that nobody
    serves); ``shortage_bound`` is a proven lower bound of the shortage. ``cost_usd_per_h[m]`` is the least waiting cost
    with m nodes at both, inf below ``needed_nodes``; ``bound_usd_per_h[m]`` a proven lower bound of it.
    """

    needed_nodes: int
    shortage: float
    shortage_bound: float
    unserved: float
    cost_usd_per_h: Floats
    bound_usd_per_h: Floats
    index: int
    context: PoolContext
    answer: Answer

    def allocation(self, nodes: int) -> tuple[int, ...]:
        """Replicas per workload, in the Fleet's order, with so many nodes; ``ValueError`` below ``needed_nodes``."""
        if not self.needed_nodes <= nodes < len(self.cost_usd_per_h):
            raise ValueError(f"{nodes} nodes: this window needs {self.needed_nodes} to {len(self.cost_usd_per_h) - 1}")
        return tuple(self.answer.replicas(nodes).tolist())

    @property
    def required(self) -> Ints:
        """Replicas that targets and minima ask for, int64[workloads]; may be more than the maxima or the pool allow."""
        return self.context.curves.needs.required[:, self.index]

    @property
    def floor(self) -> Ints:
        """Least stable replicas on the deciding day, int64[workloads] (§5.5)."""
        return self.context.curves.needs.floor[:, self.index]

    @property
    def short(self) -> bool:
        """True where some workload cannot get what it requires."""
        needs = self.context.curves.needs
        return bool(self.context.curves.short[self.index] or (needs.held < needs.required)[:, self.index].any())

    def reason(self, workload: int, given: int) -> WorkloadReason:
        """Why the workload of that index has ``given`` replicas here (§5.12)."""
        return self.context.cases(workload, np.array([self.index])).reasons(np.array([given]))[0]


def pool_windows(
    pool: Pool,
    workloads: Sequence[Workload],
    demand: Iterable[Sequence[WindowDemand]],
    *,
    hours: Floats,
    research: Research,
    confidence: float,
) -> tuple[PoolWindow, ...]:
    """All windows of one pool. ``demand[w][k]`` is workload w's in window k; ``hours[k]`` that window's length.

    ``InputError`` (kind ``minima_do_not_fit``) where the workloads' minima do not pack into the pool.
    """
    curves = pool_curves(pool, workloads, demand, hours=hours, research=research, confidence=confidence)
    context = PoolContext(
        pool=pool,
        workloads=tuple(workloads),
        hours=hours,
        research=research,
        confidence=confidence,
        curves=curves,
        table=_table(pool, curves),
    )
    return tuple(_window(context, k) for k in range(len(hours)))


def _table(pool: Pool, curves: PoolCurves) -> PackingTable | None:
    needs = curves.needs
    if needs.shape.perfect or not (pool.nodes < EXACT_BELOW_NODES or curves.short.any()):
        return None
    return packing_table(needs.shape, (curves.low + curves.length - 1).max(axis=1), needs.nodes)


def _window(context: PoolContext, k: int) -> PoolWindow:
    curves = context.curves
    answer = _answer(context, k)
    if answer is None:
        raise minima_do_not_fit(context.pool, curves.needs.shape, curves.needs.minimum)
    return PoolWindow(
        needed_nodes=answer.needed_nodes,
        shortage=shortage_units(answer.deficit) * float(curves.deficit_unit[k]),
        shortage_bound=shortage_units(answer.deficit_bound) * float(curves.deficit_unit[k]),
        unserved=unserved_load(answer.deficit, SHORTAGE_UNITS * float(curves.deficit_unit[k])),
        cost_usd_per_h=answer.money,
        bound_usd_per_h=answer.bound,
        index=k,
        context=context,
        answer=answer,
    )


def _answer(context: PoolContext, k: int) -> Answer | None:
    curves = context.curves
    needs = curves.needs
    choices = Choices(
        width=needs.shape.width_units,
        start=curves.start[:, k],
        length=curves.length[:, k],
        deficit=curves.deficit,
        money=curves.money,
    )
    low, nodes = curves.low[:, k], needs.nodes
    if context.pool.nodes < EXACT_BELOW_NODES or _cheap(context, k, choices, low):
        # Where the solver gives up the walks below have a proven bound too.
        with contextlib.suppress(UnsolvedError):
            return solve_exactly(needs.shape, choices, low, nodes, context.table)
    packed = pack(needs.shape, low)
    if packed.nodes > nodes:
        return None
    if not curves.short[k]:
        return solve_large(needs.shape, choices, Base(low=low, packed=packed), nodes, node_value=context.node_value)
    return _short_answer(context, k, choices, low, packed)


def _short_answer(context: PoolContext, k: int, choices: Choices, low: Ints, packed: Packing) -> Answer | None:
    """Shortage first; then money in the little room that is left, exactly where that is cheap."""
    shape, nodes = context.curves.needs.shape, context.curves.needs.nodes
    split = least_shortage(shape, choices, low, nodes, packed)
    low, choices = low + split.more, choices.beyond(split.more)
    if _cheap(context, k, choices, low):
        with contextlib.suppress(UnsolvedError):
            exact = solve_exactly(shape, choices, low, nodes, context.table)
            return None if exact is None else replace(exact, deficit_bound=min(split.deficit_bound, exact.deficit))
    base = Base(low=low, packed=split.packed, deficit_bound=split.deficit_bound)
    return solve_large(shape, choices, base, nodes, node_value=context.node_value)


def _cheap(context: PoolContext, k: int, choices: Choices, low: Ints) -> bool:
    """True where even a large pool's window is solved exactly in little time.

    With widths that do not divide the node every count of nodes is an integer program: a short window has few of them.
    """
    needs = context.curves.needs
    spare = needs.capacity_units - int((low * needs.shape.width_units).sum())
    easy = needs.shape.perfect or bool(context.curves.short[k])
    return easy and exact_work(choices, spare) * len(context.hours) <= EXACT_ADDITIONS
