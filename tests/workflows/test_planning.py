"""What a plan's confidence stands on: the past days of the windows that were taken."""

from __future__ import annotations

from whenever import Time

from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import WEEK, Window
from ebbtide.fleet.pool import Research
from ebbtide.forecast.margin import Tuning
from ebbtide.workflows.demand import Demand
from ebbtide.workflows.planning import DaysSeen, Planned

NIGHT = Window(name="all-0000", days=WEEK, start=Time(0), end=Time(9))
DAY = Window(name="all-0900", days=WEEK, start=Time(9), end=Time(0))
TRIED = Window(name="", days=WEEK, start=Time(5), end=Time(6))


def planned(*seen: DaysSeen) -> Planned:
    return Planned(
        fleet=Fleet(
            name="f",
            digest="",
            time_zone="UTC",
            confidence=0.95,
            patterns=(),
            pools=(),
            workloads=(),
            research=Research(),
        ),
        demand=Demand(traces={}, series={}, records=()),
        tuning=Tuning(
            margins={}, trials=0, wished_share=0.0, static_share=0.0, held_share=0.0, held_shares={}, assumed=True
        ),
        days_seen=list(seen),
    )


def test_the_fewest_days_are_named_and_windows_that_were_not_taken_do_not_count() -> None:
    one = planned(
        DaysSeen(workload="chat", window=DAY, days=14),
        DaysSeen(workload="chat", window=TRIED, days=2),
        DaysSeen(workload="reason", window=NIGHT, days=5),
    )
    assert str(one.fewest((NIGHT, DAY))) == "reason 00:00-09:00 has 5 past days"


def test_no_window_is_named_where_all_have_as_many_days() -> None:
    one = planned(*(DaysSeen(workload="chat", window=window, days=1) for window in (NIGHT, DAY)))
    assert str(one.fewest((NIGHT, DAY))) == "every window has 1 past day"
