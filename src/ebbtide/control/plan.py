"""A fleet and its schedule, made ready to be asked: columns by name, windows on the clock, leads (§5.9)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain

from ebbtide.control.memory import Direction, FinishedMove
from ebbtide.control.move_times import learned_p90_s
from ebbtide.control.timetable import Segment, Timetable
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.pool import Pool
from ebbtide.fleet.schedule import PoolColumn, Schedule, WorkloadColumn
from ebbtide.fleet.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """What the schedule asks of the fleet; ``plan_of`` makes it."""

    fleet: Fleet
    schedule: Schedule
    timetable: Timetable
    pools: tuple[tuple[Pool, PoolColumn], ...]
    workloads: dict[str, tuple[tuple[Workload, WorkloadColumn], ...]]  # by pool
    valid_until_s: float
    longest_lead_s: float
    slowest_startup_s: dict[str, float] = field(default_factory=dict)  # by pool

    @property
    def columns(self) -> Iterable[tuple[Workload, WorkloadColumn]]:
        """Every workload with its column, pool by pool."""
        return chain.from_iterable(self.workloads[pool.name] for pool, _ in self.pools)

    @property
    def made_for_this_fleet(self) -> bool:
        """A schedule that was made for another Fleet, by digest, moves nothing (§3)."""
        return self.schedule.fleet_digest == self.fleet.digest

    def ahead(self, at_s: float) -> list[Segment]:
        """The window in force and every one that begins within twice the longest lead: leads may be learned longer."""
        return self.timetable.from_s(at_s, until_s=at_s + 2 * self.longest_lead_s)

    def lead_s(
        self, pool: Pool, planned_s: float, moves: int, finished: tuple[FinishedMove, ...], at_s: float
    ) -> float:
        """How long before its window a reclaim of ``moves`` nodes begins: the longer of planned and measured (§5.9)."""
        if moves <= 0:
            return 0.0
        batch = min(moves, pool.moves_at_once)
        learned = learned_p90_s(finished, pool=pool.name, direction=Direction.RECLAIM, batch=batch, at_s=at_s)
        if learned is None:
            return planned_s
        measured_s = math.ceil(moves / pool.moves_at_once) * learned + self.slowest_startup_s[pool.name]
        return min(max(planned_s, measured_s), 2 * self.longest_lead_s)


def plan_of(fleet: Fleet, schedule: Schedule) -> Plan:
    """The plan of a fleet and a schedule; the last one asked for is kept, since every tick asks for the same."""
    if not (_kept and _kept[0].fleet is fleet and _kept[0].schedule is schedule):
        _kept[:] = [_made(fleet, schedule)]
    return _kept[0]


_kept: list[Plan] = []


def _made(fleet: Fleet, schedule: Schedule) -> Plan:
    columns = {column.name: column for column in schedule.workloads}
    pools = {column.name: column for column in schedule.pools}
    startup_s = {
        pool.name: max((one.startup_time_s for one in fleet.workloads_of(pool.name)), default=0.0)
        for pool in fleet.pools
    }
    longest_s = [
        max((*pools[pool.name].lead_s, _whole_fleet_s(pool) + startup_s[pool.name]))
        for pool in fleet.pools
        if pool.name in pools
    ]
    return Plan(
        fleet=fleet,
        schedule=schedule,
        timetable=Timetable(schedule.windows, schedule.time_zone),
        pools=tuple((pool, pools[pool.name]) for pool in fleet.pools if pool.name in pools),
        workloads={
            pool.name: tuple((one, columns[one.name]) for one in fleet.workloads_of(pool.name) if one.name in columns)
            for pool in fleet.pools
        },
        valid_until_s=schedule.valid_until.timestamp(),
        longest_lead_s=max(longest_s, default=0.0),
        slowest_startup_s=startup_s,
    )


def _whole_fleet_s(pool: Pool) -> float:
    """The longest a reclaim can be planned to take: every movable node."""
    most = pool.max_production_nodes - pool.min_production_nodes
    return math.ceil(most / pool.moves_at_once) * pool.reclaim_time_s
