"""From planned demand to a Schedule with its Explanation: the whole of §5 in one call.

What belongs here: the order of the steps and the assembly of the documents' columns. What doesn't: any of the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from whenever import OffsetDateTime

from ebbtide.allocate.backlog import Backlog
from ebbtide.allocate.choose import Chosen, DemandOf, chosen_patterns
from ebbtide.allocate.dated import DatedTimeline, border_steps, dated_timelines
from ebbtide.allocate.explain import (
    backlog_warnings,
    bound_of,
    gpu_hours_per_day,
    lead_warnings,
    plan_backlogs,
)
from ebbtide.allocate.held import held_rates_rps
from ebbtide.allocate.missed import shortages_of
from ebbtide.allocate.moves import Holding, Timeline, Transition, leads_s, timeline_of
from ebbtide.allocate.pool_plan import PoolPlan, plan_pool
from ebbtide.allocate.reasons import Parts, Reasons
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import Window, windows_of
from ebbtide.fleet.pool import Pool
from ebbtide.fleet.schedule import Explanation, PoolColumn, Provenance, Schedule, WorkloadColumn

# Name of the stage, steps done, steps in all.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class FleetPlan:
    """The pools' plans over the cycle and over every dated timeline, pools in the Fleet's order."""

    fleet: Fleet
    timeline: Timeline
    cycle: tuple[PoolPlan, ...]
    dated: tuple[tuple[DatedTimeline, tuple[PoolPlan, ...]], ...]
    chosen: Chosen | None

    @property
    def windows(self) -> tuple[Window, ...]:
        """All windows, the cycle's first."""
        return self.timeline.windows + tuple(window for one, _ in self.dated for window in one.timeline.windows)

    def of_pool(self, pool: int) -> list[PoolPlan]:
        """One pool's plans, in the order of ``windows``."""
        return [self.cycle[pool], *(plans[pool] for _, plans in self.dated)]

    def steps(self) -> list[Transition]:
        """Every step between windows that may happen, dated ones included."""
        steps = list(self.timeline.transitions)
        offset = len(self.timeline.windows)
        for one, _ in self.dated:
            steps += [(offset + before, offset + after) for before, after in one.timeline.transitions]
            steps += border_steps(self.timeline, one.timeline, one.exception, offset=offset)
            offset += len(one.timeline.windows)
        return steps


def silent(stage: str, done: int, total: int) -> None:
    """The progress callback of a caller that does not want to be told."""


def plan(
    fleet: Fleet,
    demand_of: DemandOf,
    *,
    at: OffsetDateTime,
    valid_until: OffsetDateTime,
    provenance: Provenance,
    progress: Progress = silent,
) -> tuple[Schedule, Explanation]:
    """The schedule of a fleet from ``at`` on, and its explanation. The same input gives the same output.

    ``demand_of`` answers for every workload and window that is asked for; where boundaries are chosen, for many
    candidate windows. Dated exceptions that end after ``at`` and begin before ``valid_until`` get windows of their
    own. Targets that cannot be met are answers (``Explanation.shortages``). Raises ``InputError`` where windows do not
    cover the cycle or the workloads' minima do not fit.
    """
    whole = plan_fleet(fleet, demand_of, at=at, valid_until=valid_until, progress=progress)
    return schedule_of(whole, valid_until=valid_until), explanation_of(whole, provenance)


def plan_fleet(
    fleet: Fleet, demand_of: DemandOf, *, at: OffsetDateTime, valid_until: OffsetDateTime, progress: Progress = silent
) -> FleetPlan:
    """The plans of all pools; boundaries that are ebbtide's to choose are chosen first."""
    chosen = chosen_patterns(fleet, demand_of, progress)
    patterns = fleet.patterns if chosen is None else chosen.patterns
    fleet = replace(fleet, patterns=patterns)
    timeline = timeline_of([window for pattern in patterns for window in windows_of(pattern)])
    zone = fleet.time_zone
    dated = dated_timelines(
        patterns, fleet.exceptions, after=at.to_tz(zone).date(), before=valid_until.to_tz(zone).date()
    )
    total = (1 + len(dated)) * len(fleet.pools)
    done = 0

    def pool_plan(pool: Pool, timeline: Timeline, dated: DatedTimeline | None = None) -> PoolPlan:
        nonlocal done
        workloads = fleet.workloads_of(pool.name)
        demand = [
            [
                demand_of(one.name, window, None)
                if dated is None
                else demand_of(one.name, dated.past_window(k, one.name), dated.exception)
                for k, window in enumerate(timeline.windows)
            ]
            for one in workloads
        ]
        made = plan_pool(
            pool,
            workloads,
            demand,
            timeline=timeline,
            research=fleet.research,
            confidence=fleet.confidence,
        )
        done += 1
        progress("allocate", done, total)
        return made

    return FleetPlan(
        fleet=fleet,
        timeline=timeline,
        cycle=tuple(pool_plan(pool, timeline) for pool in fleet.pools),
        dated=tuple((one, tuple(pool_plan(pool, one.timeline, one) for pool in fleet.pools)) for one in dated),
        chosen=chosen,
    )


def schedule_of(whole: FleetPlan, *, valid_until: OffsetDateTime) -> Schedule:
    """The Schedule's columns."""
    fleet = whole.fleet
    columns = {
        column.name: column for number in range(len(fleet.pools)) for column in _workload_columns(whole.of_pool(number))
    }
    return Schedule(
        name=fleet.name,
        fleet_name=fleet.name,
        fleet_digest=fleet.digest,
        time_zone=fleet.time_zone,
        valid_until=valid_until,
        windows=whole.windows,
        workloads=tuple(columns[workload.name] for workload in fleet.workloads),
        pools=tuple(_pool_column(whole, number) for number in range(len(fleet.pools))),
    )


def _workload_columns(plans: Sequence[PoolPlan]) -> list[WorkloadColumn]:
    held = [held_rates_rps(plan) for plan in plans]
    return [
        WorkloadColumn(
            name=workload.name,
            replicas=tuple(replicas[w] for plan in plans for replicas in plan.replicas),
            holds_rps=tuple(float(rate) for rates in held for rate in rates[w]),
        )
        for w, workload in enumerate(plans[0].workloads)
    ]


def _pool_column(whole: FleetPlan, number: int) -> PoolColumn:
    pool = whole.fleet.pools[number]
    plans = whole.of_pool(number)
    holdings = [
        Holding(nodes=nodes, replicas=replicas)
        for plan in plans
        for nodes, replicas in zip(plan.nodes, plan.replicas, strict=True)
    ]
    startup_s = [workload.startup_time_s for workload in plans[0].workloads]
    ephemeral = tuple(pool.max_production_nodes - holding.nodes for holding in holdings)
    return PoolColumn(
        name=pool.name,
        production_nodes=tuple(holding.nodes for holding in holdings),
        ephemeral_nodes=ephemeral,
        ephemeral_quota_gpus=tuple(nodes * pool.gpus_per_node for nodes in ephemeral),
        lead_s=leads_s(pool, startup_s, holdings, whole.steps()),
    )


def explanation_of(whole: FleetPlan, provenance: Provenance) -> Explanation:
    """Hours, bound, shortages, reasons and warnings. Hours and bound are of the cycle, without dated windows."""
    fleet = whole.fleet
    parts: dict[str, Parts] = {}
    warnings: set[str] = set()
    for number, pool in enumerate(fleet.pools):
        plans = whole.of_pool(number)
        backlogs = [plan_backlogs(plan) for plan in plans]
        for w, workload in enumerate(plans[0].workloads):
            mine: list[tuple[PoolPlan, int, Backlog]] = [
                (plan, w, each[w]) for plan, each in zip(plans, backlogs, strict=True)
            ]
            parts[workload.name] = tuple(mine)
            for plan, _, backlog in mine:
                warnings.update(backlog_warnings(workload.name, plan, backlog))
        warnings.update(lead_warnings(pool, whole.windows, _pool_column(whole, number).lead_s, whole.timeline))
    order = {workload.name: n for n, workload in enumerate(fleet.workloads)}
    shortages = [
        shortage
        for number in range(len(fleet.pools))
        for plan in whole.of_pool(number)
        for shortage in shortages_of(plan)
    ]
    return Explanation(
        provenance=provenance,
        gpu_hours_per_day=gpu_hours_per_day(whole.cycle),
        bound=bound_of(whole.cycle, fleet.research, whole.chosen),
        shortages=tuple(sorted(shortages, key=lambda one: order[one.workload])),
        reasons=Reasons({workload.name: parts[workload.name] for workload in fleet.workloads}),
        warnings=tuple(sorted(warnings)),
    )
