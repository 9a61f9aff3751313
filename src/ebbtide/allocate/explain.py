"""What a plan says of itself: GPU-hours, bound, rates held, backlog, warnings (§5.10 to §5.12)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ebbtide.allocate.backlog import NO_BACKLOG, Backlog, fluid_backlog
from ebbtide.allocate.choose import Chosen
from ebbtide.allocate.moves import Timeline
from ebbtide.allocate.pool_plan import PoolPlan
from ebbtide.allocate.requirement import day_peak
from ebbtide.fleet.horizon import Window
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.schedule import Bound, GpuHours
from ebbtide.units import SECONDS_PER_HOUR, format_duration

HOURS_PER_DAY = 24.0


def gpu_hours_per_day(plans: Sequence[PoolPlan]) -> GpuHours:
    """Where the fleet's GPU-hours go on a mean day of the cycle; ``freed`` is what static peak would hold beyond it."""
    production = moving = fleet = static = 0.0
    for plan in plans:
        gpus, days, pool = plan.pool.gpus_per_node, plan.timeline.days, plan.pool
        held = zip(plan.nodes, plan.timeline.hours_per_cycle, strict=True)
        production += gpus * sum(nodes * hours for nodes, hours in held) / days
        turn_h = (pool.yield_time_s + pool.reclaim_time_s) / SECONDS_PER_HOUR
        moving += gpus * plan.timeline.moved(plan.nodes) * turn_h / days
        fleet += gpus * pool.nodes * HOURS_PER_DAY
        static += gpus * plan.static_nodes * HOURS_PER_DAY
    return GpuHours(
        production=production,
        moving=moving,
        research=fleet - production - moving,
        freed=static - production - moving,
        static_nodes=sum(plan.static_nodes for plan in plans),
        static_missing_nodes=sum(plan.static_needed_nodes - plan.static_nodes for plan in plans),
    )


def bound_of(plans: Sequence[PoolPlan], research: Research, chosen: Chosen | None) -> Bound:
    """The distance to the proven bound, all pools together; a plan that costs nothing has no gap."""
    objective = sum(plan.objective_usd for plan in plans)
    lower = sum(plan.lower_bound_usd for plan in plans)
    # Two plans that are short by different amounts are not told apart by money.
    is_short = any(window.shortage > 0.0 for plan in plans for window in plan.windows)
    return Bound(
        unit="USD per cycle" if research.value_given else "GPU-h per cycle",
        objective=objective,
        lower_bound=lower,
        gap=(objective - lower) / objective if objective > 0.0 else 0.0,
        few_windows=None if chosen is None or is_short else chosen.few_windows(objective),
    )


def plan_backlogs(plan: PoolPlan) -> list[Backlog]:
    """Per workload the backlog over the planned day (§5.10); none by a claim, which says what is held, not served."""
    if not plan.workloads:
        return []
    needs = plan.windows[0].context.curves.needs
    hours = [window.nominal_hours for window in plan.timeline.windows]
    replicas = np.array(plan.replicas, dtype=np.int64).T
    backlogs = []
    for w, workload in enumerate(plan.workloads):
        samples = needs.samples[w]
        rates = day_peak(samples, samples.scenario_mean_rps, needs.day[w])
        capacity = replicas[w] * workload.service.concurrency / samples.service_time_s
        backlogs.append(
            NO_BACKLOG
            if workload.service.claim is not None or (rates <= capacity).all()
            else fluid_backlog(
                rates.tolist(),
                capacity.tolist(),
                hours=hours,
                track=plan.timeline.track,
                patience_s=workload.patience_s,
            )
        )
    return backlogs


def backlog_warnings(workload: str, plan: PoolPlan, backlog: Backlog) -> Iterator[str]:
    """Where requests wait over into a window, in words."""
    if not backlog.clears:
        yield f"{workload}: the cycle brings more than its replicas serve; its backlog grows without end"
    for window, waiting, wait_s in zip(plan.timeline.windows, backlog.waiting, backlog.wait_s, strict=False):
        if waiting >= 1.0:
            wait = f"{wait_s:,.0f} s" if wait_s < float("inf") else "without end"
            yield f"{workload} {window.name}: {waiting:,.0f} requests wait over from the window before, {wait} of work"


def lead_warnings(pool: Pool, windows: Sequence[Window], leads: Sequence[float], cycle: Timeline) -> Iterator[str]:
    """Leads that do not fit into the cycle: the moves of one turn would overtake those of the next."""
    for window, lead in zip(windows, leads, strict=True):
        if lead > cycle.days * HOURS_PER_DAY * SECONDS_PER_HOUR:
            yield (
                f"{pool.name} {window.name}: its moves take {format_duration(round(lead))}, longer than the cycle; "
                f"raise movesAtOnce or minProductionNodes"
            )
