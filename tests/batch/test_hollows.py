"""Research capacity over dated time: leads, nodes on their way, days of 23 and 25 hours, the schedule's end."""

from __future__ import annotations

import pytest
from whenever import OffsetDateTime, Time, ZonedDateTime

from ebbtide.batch.hollows import Hollow, Tenure, hollows_of
from ebbtide.control.timetable import Timetable
from ebbtide.fleet.horizon import WEEK, DayPattern, windows_of
from ebbtide.fleet.pool import Pool
from ebbtide.fleet.schedule import PoolColumn, Schedule

H = 3600.0
ZONE = "America/New_York"


def schedule(ephemeral: tuple[int, ...], lead_h: tuple[float, ...], starts: tuple[int, ...], until: str) -> Schedule:
    column = PoolColumn(
        name="h100",
        production_nodes=tuple(10 - count for count in ephemeral),
        ephemeral_nodes=ephemeral,
        ephemeral_quota_gpus=tuple(8 * count for count in ephemeral),
        lead_s=tuple(lead * H for lead in lead_h),
    )
    return Schedule(
        name="s",
        fleet_name="f",
        fleet_digest="sha256:0",
        time_zone=ZONE,
        valid_until=OffsetDateTime.parse_iso(until),
        windows=windows_of(DayPattern(days=WEEK, starts=tuple(Time(hour) for hour in starts))),
        workloads=(),
        pools=(column,),
    )


def pool(**rest: object) -> Pool:
    return Pool(**({"name": "h100", "gpus_per_node": 8, "nodes": 12, "reserved_nodes": 2, "yield_time_s": H} | rest))


def at(day: int, hour: int, month: int = 9) -> float:
    return float(ZonedDateTime(2026, month, day, hour, tz=ZONE).timestamp())


def steps(made: Schedule, of: Pool, from_s: float, until_s: float) -> list[tuple[float, int]]:
    table = Timetable(made.windows, made.time_zone)
    stretches = table.from_s(from_s - 24 * H, until_s=until_s + 48 * H)
    found = list(hollows_of(made, [of], stretches, from_s=from_s, until_s=until_s))
    (tide,) = [one for one in found if one.tenure is Tenure.EPHEMERAL]
    assert [one.nodes for one in found if one.tenure is Tenure.RESERVED] == ([(2,)] if of.reserved_nodes else [])
    return [((edge - from_s) / H, count) for edge, count in zip(tide.edges_s, tide.nodes, strict=False)]


FAR = "2027-01-01T00:00:00-05:00"


def test_nodes_leave_when_the_lead_begins_and_come_in_batches() -> None:
    made = schedule((6, 1), (0, 2), (20, 8), FAR)  # 20:00 six nodes, from 08:00 one, whose lead is two hours
    found = steps(made, pool(moves_at_once=3), at(7, 12), at(8, 12))
    assert found == [(0, 1), (9, 4), (10, 6), (18, 1)]  # 21:00, 22:00, 06:00


def test_a_lead_may_begin_before_the_window_before() -> None:
    made = schedule((6, 4, 1), (0, 0, 3), (0, 8, 10), FAR)
    assert steps(made, pool(), at(7, 4), at(7, 12)) == [(0, 6), (3, 1)]  # at 07:00 the ten o'clock window begins


def test_nodes_on_their_way_are_called_back() -> None:
    made = schedule((6, 1), (0, 0.5), (8, 10), FAR)
    assert steps(made, pool(yield_time_s=2 * H), at(7, 6), at(7, 12)) == [(0, 1)]


@pytest.mark.parametrize(("month", "day", "hours"), [(11, 1, 13.0), (3, 14, 11.0)])
def test_days_of_25_and_23_hours(month: int, day: int, hours: float) -> None:
    # From 20:00 on the eve to 08:00: an hour more in autumn, an hour less in spring.
    year = 2026 if month == 11 else 2027
    eve = float(ZonedDateTime(year, month, day, 20, tz=ZONE).subtract(hours=0).subtract(days=1).timestamp())
    made = schedule((6, 1), (0, 0), (20, 8), "2028-01-01T00:00:00-05:00")
    found = steps(made, pool(yield_time_s=0.0), eve, eve + 20 * H)
    assert found == [(0, 6), (hours, 1)]


def test_after_the_schedules_end_nothing_comes() -> None:
    made = schedule((6, 1), (0, 0), (20, 8), "2026-09-08T12:00:00-04:00")
    assert steps(made, pool(), at(8, 6), at(9, 6)) == [(0, 6), (2, 1)]


def test_a_pool_without_research_has_no_hollow() -> None:
    made = schedule((0, 0), (0, 0), (20, 8), FAR)
    table = Timetable(made.windows, ZONE).from_s(at(7, 0), until_s=at(8, 0))
    assert hollows_of(made, [pool(reserved_nodes=0)], table, from_s=at(7, 0), until_s=at(8, 0)) == ()


def test_falls_below() -> None:
    one = Hollow(pool="p", tenure=Tenure.EPHEMERAL, gpus_per_node=8, edges_s=(0, 10, 20, 30), nodes=(4, 2, 3))
    assert [one.falls_below(count, 5) for count in (2, 3, 5)] == [30, 10, 5]
    assert one.gpu_hours == pytest.approx(90 * 8 / 3600)
