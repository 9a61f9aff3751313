"""The research capacity that jobs are planned into: a schedule's hollows over dated time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ebbtide.adapters.documents.fleet import read_fleet
from ebbtide.adapters.documents.schedule import read_schedule
from ebbtide.batch.hollows import Hollow, hollows_of
from ebbtide.control.timetable import Timetable
from ebbtide.errors import InputError, Place
from ebbtide.fleet.pool import Pool
from ebbtide.fleet.schedule import PoolColumn, Schedule
from ebbtide.units import DAY_S

FLEET_BESIDE = "fleet.yaml"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResearchCapacity:
    """A schedule, the pools it moves, and remarks on what is not known of them."""

    schedule: Schedule
    pools: tuple[Pool, ...]
    remarks: tuple[str, ...]

    def hollows(self, *, from_s: float, until_s: float) -> tuple[Hollow, ...]:
        """The hollows in a span of time."""
        leads = (lead for column in self.schedule.pools for lead in column.lead_s)
        table = Timetable(self.schedule.windows, self.schedule.time_zone)
        # A day back, so that nodes on their way are seen; ahead by the longest lead and the window it belongs to.
        stretches = table.from_s(from_s - DAY_S, until_s=until_s + max(leads, default=0.0) + DAY_S)
        return hollows_of(self.schedule, self.pools, stretches, from_s=from_s, until_s=until_s)


def research_capacity(schedule_file: Path, fleet_file: Path | None) -> ResearchCapacity:
    """The research capacity of a schedule.

    The Fleet is the one given, or ``fleet.yaml`` beside the schedule where the schedule was made for it. Without one
    the pools are read off the schedule's columns: their reserved nodes are then not known. ``InputError`` (kind
    ``other_fleet``) where the given Fleet is not the one that the schedule was made for.
    """
    schedule, _ = read_schedule(schedule_file, explained=False)
    beside = schedule_file.with_name(FLEET_BESIDE)
    given = fleet_file if fleet_file is not None else (beside if beside.is_file() else None)
    if given is not None:
        fleet = read_fleet(given).fleet
        if fleet.digest == schedule.fleet_digest:
            return ResearchCapacity(schedule=schedule, pools=fleet.pools, remarks=tuple(_remarks(schedule)))
        if fleet_file is not None:
            raise InputError(
                f"is not the Fleet that {schedule_file} was made for: the digests differ",
                kind="other_fleet",
                place=Place(file=str(fleet_file)),
                hint="make the schedule anew with `ebbtide allocate`",
            )
    remark = "no Fleet at hand: reserved nodes are not known and not planned with; name it with --fleet"
    pools = tuple(_pool_of(column) for column in schedule.pools)
    return ResearchCapacity(schedule=schedule, pools=pools, remarks=(remark, *_remarks(schedule)))


def _pool_of(column: PoolColumn) -> Pool:
    """What a schedule says of a pool: GPUs of a node are its quota over its nodes."""
    pairs = zip(column.ephemeral_quota_gpus, column.ephemeral_nodes, strict=True)
    gpus = max((quota // nodes for quota, nodes in pairs if nodes), default=1)
    most = max(one + other for one, other in zip(column.production_nodes, column.ephemeral_nodes, strict=True))
    return Pool(name=column.name, gpus_per_node=max(gpus, 1), nodes=max(most, 1))


def _remarks(schedule: Schedule) -> list[str]:
    if schedule.pause is not None:
        return ["the schedule is paused: nothing is yielded until it is resumed, and this plan assumes that it is"]
    if schedule.overrides:
        names = ", ".join(one.name for one in schedule.overrides)
        return [f"the schedule has overrides ({names}); this plan follows its windows without them"]
    return []
