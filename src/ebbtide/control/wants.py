"""What is wanted now: production nodes by pool and replicas by workload, from the windows in force and ahead (§5.9).

Yields begin when their window starts; reclaims begin a lead before it; growth that needs no move begins a start-up
time before it. Live demand above what the plan holds asks for more at once (§6.7). A pinned window stays in force
until its end; a released workload is left alone. The Fleet's minima and maxima hold whatever an edited schedule says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ebbtide.control.limits import Limits
from ebbtide.control.memory import Direction, Guard
from ebbtide.control.move_times import learned_p90_s
from ebbtide.control.plan import Plan
from ebbtide.control.replica_wants import ReplicaWant, replica_wants
from ebbtide.control.state import Override, OverrideKind, State
from ebbtide.control.timetable import Segment
from ebbtide.fleet.pool import Pool
from ebbtide.fleet.schedule import PoolColumn, WorkloadColumn
from ebbtide.fleet.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolWant:
    """Production nodes of one pool: ``nodes`` now, ``settled`` in the window in force, ``due_s`` when they count.

    ``soon``: how many will be wanted before a node that left now could have come back. ``guard_nodes`` of ``nodes``
    are asked for by live demand above the plan. ``quota_gpus``: what the window lets research have of the ephemeral
    nodes.
    """

    nodes: int
    settled: int
    due_s: float
    quota_gpus: int
    soon: int = 0
    guard_nodes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wants:
    """What is wanted now, and when that changes next if nothing else does.

    ``guards``: the live guards that are on. ``void``: overrides that name no window or workload of ours.
    """

    window: int
    pools: Mapping[str, PoolWant]
    replicas: Mapping[str, ReplicaWant]
    held_by: str = ""
    next_change_s: float = math.inf
    released: frozenset[str] = field(default_factory=frozenset)
    guards: Mapping[str, Guard] = field(default_factory=dict)
    void: tuple[Override, ...] = ()

    @property
    def unobserved(self) -> list[str]:
        """Workloads whose live demand is not observed: their guard is off."""
        return [name for name, one in self.replicas.items() if one.live_rps is None]


def wants(state: State, plan: Plan, at_s: float, limits: Limits) -> Wants:
    """What the schedule, live demand and overrides ask for at ``at_s``."""
    live = [one for one in state.overrides if one.until_s > at_s]
    ahead = plan.ahead(at_s)
    pinned = _pinned(plan, live)
    window = ahead[0].window if pinned is None else pinned[0]
    # A pinned window stays until its end; what comes after begins as if that were its start.
    coming = ahead[1:] if pinned is None else _after(ahead, pinned[1])
    released = frozenset(one.what for one in live if one.kind is OverrideKind.RELEASE)
    replicas, guards, early_s = replica_wants(state, plan, window, coming, at_s, limits, released)
    pools: dict[str, PoolWant] = {}
    changes = [ahead[0].end_s, *(one.until_s for one in live), early_s]
    # A lead of what lies beyond is not known yet: look again before it can begin.
    changes.append(ahead[-1].end_s - 2 * plan.longest_lead_s)
    changes += [one + limits.guard_holds_s for guard in guards.values() for one in (guard.above_s, guard.peak_s)]
    for pool, column in plan.pools:
        pools[pool.name], next_s = _pool_want(state, plan, pool, column, window, coming, at_s)
        extra = _guard_nodes(pool, plan.workloads[pool.name], replicas)
        if extra:
            pools[pool.name] = _with_guard(pools[pool.name], pool, extra, at_s)
        changes.append(next_s)
    holds = [one.name for one in live if one.kind is OverrideKind.HOLD]
    return Wants(
        window=window,
        pools=pools,
        replicas=replicas,
        held_by=holds[0] if holds else "",
        next_change_s=min((one for one in changes if one > at_s), default=math.inf),
        released=released,
        guards=guards,
        void=tuple(one for one in live if _is_void(plan, one)),
    )


def _is_void(plan: Plan, one: Override) -> bool:
    if one.kind is OverrideKind.WINDOW:
        return all(window.name != one.what for window in plan.schedule.windows)
    return one.kind is OverrideKind.RELEASE and all(column.name != one.what for column in plan.schedule.workloads)


def _pinned(plan: Plan, live: list[Override]) -> tuple[int, float] | None:
    names = {window.name: index for index, window in enumerate(plan.schedule.windows)}
    for one in live:
        if one.kind is OverrideKind.WINDOW and one.what in names:
            return names[one.what], one.until_s
    return None


def _after(ahead: list[Segment], until_s: float) -> list[Segment]:
    return [
        one if one.start_s >= until_s else Segment(start_s=until_s, end_s=one.end_s, window=one.window)
        for one in ahead
        if one.end_s > until_s
    ]


def _pool_want(
    state: State, plan: Plan, pool: Pool, column: PoolColumn, window: int, coming: list[Segment], at_s: float
) -> tuple[PoolWant, float]:
    """The want of one pool, and when a lead ahead begins."""
    settled = nodes = soon = _held_nodes(pool, column.production_nodes[window])
    away_s = _yield_s(state, pool, at_s)
    due_s, next_s = at_s, math.inf
    for segment in coming:
        wanted = _held_nodes(pool, column.production_nodes[segment.window])
        if wanted <= nodes:
            continue
        lead_s = plan.lead_s(pool, column.lead_s[segment.window], wanted - nodes, state.memory.finished, at_s)
        if segment.start_s - lead_s <= at_s + away_s:
            soon = max(soon, wanted)
        if segment.start_s - lead_s <= at_s:
            if nodes == settled:
                due_s = segment.start_s
            nodes = wanted
        else:
            next_s = min(next_s, segment.start_s - lead_s)
    quota_gpus = column.ephemeral_quota_gpus[window]
    return PoolWant(nodes=nodes, settled=settled, due_s=due_s, quota_gpus=quota_gpus, soon=soon), next_s


def _held_nodes(pool: Pool, planned: int) -> int:
    return min(max(planned, pool.min_production_nodes), pool.max_production_nodes)


def _yield_s(state: State, pool: Pool, at_s: float) -> float:
    """What a node that leaves now is away for at least, on its way out: the longer of told and measured."""
    measured_s = learned_p90_s(state.memory.finished, pool=pool.name, direction=Direction.YIELD, batch=1, at_s=at_s)
    return max(pool.yield_time_s, measured_s or 0.0)


def _guard_nodes(
    pool: Pool, workloads: tuple[tuple[Workload, WorkloadColumn], ...], replicas: Mapping[str, ReplicaWant]
) -> int:
    """Whole nodes for the replicas that live demand asks for above the plan."""
    gpus = sum(
        (want.replicas - want.planned) * workload.gpus_per_replica
        for workload, _ in workloads
        if (want := replicas.get(workload.name)) is not None and want.above_plan
    )
    return math.ceil(gpus / pool.gpus_per_node)


def _with_guard(want: PoolWant, pool: Pool, extra: int, at_s: float) -> PoolWant:
    nodes = min(max(want.nodes, want.settled + extra), pool.max_production_nodes)
    due_s = at_s if nodes > want.nodes else want.due_s
    return replace(want, nodes=nodes, due_s=due_s, soon=max(want.soon, nodes), guard_nodes=nodes - want.settled)
