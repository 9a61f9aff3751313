"""The table of a plan: the documentation's own day to the letter, and plans that do not fit it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

import pytest
from whenever import Date, OffsetDateTime, Time, hours

from ebbtide.cli.render_allocate import render_allocate
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import WEEK, DayPattern, windows_of
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.schedule import (
    Bound,
    Explanation,
    GpuHours,
    PoolColumn,
    Provenance,
    Schedule,
    Shortage,
    Standing,
    WorkloadColumn,
    WorkloadReason,
)
from ebbtide.fleet.workload import DemandRef, Service, Target, TargetKind, Workload

DAY = (DayPattern(days=WEEK, starts=tuple(Time(hour) for hour in (0, 2, 6, 9, 13, 19))),)
WEEKLY = (DayPattern(days=WEEK[:5], starts=(Time(0), Time(8))), DayPattern(days=WEEK[5:], starts=(Time(0),)))
H100 = Pool(name="h100", gpus_per_node=8, nodes=40, reserved_nodes=8)
A_DAY = """\
WINDOW       LEAD  chat assist search agents reason report  PROD EPH  WORST
00:00-02:00     -    37      7      2      3     13      1    14  18  chat 48%
02:00-06:00     -    16      1      1      6      7      1     8  24  assist 16%
06:00-09:00   50m    25     13      2      9      6      1    11  21  reason 69%
09:00-13:00   95m    36     12      3     27     12     10    25   7  chat 83%
13:00-19:00     -    42     12      3     27     13      4    24   8  agents 67%
19:00-00:00     -    81     15      2     11     14      3    24   8  agents 43%
WORST: P95 wait as a share of its target. PROD, EPH: nodes of h100; reserved 8
GPU-hours a day: production 3,656, moving 147, research 3,877
freed against static peak (32 nodes): 2,341; gap to bound 0.3 %
"""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The three arguments of the table."""

    schedule: Schedule
    explanation: Explanation
    fleet: Fleet

    def text(self, *, colour: bool = False) -> str:
        return render_allocate(self.schedule, self.explanation, self.fleet, colour=colour)


def standing(replicas: int) -> Standing:
    return Standing(replicas=replicas, wait_s=1.0, waiting=1.0, attainment=1.0, gain_usd_per_h=1.0)


def reason(replicas: int, share: float) -> WorkloadReason:
    return WorkloadReason(
        rate_rps=1.0,
        peak_rps=1.0,
        target_share=share,
        floor=standing(1),
        given=standing(replicas),
        refused=None,
        bound="target",
        cost_usd_per_h=1.0,
    )


def plan(
    replicas: dict[str, tuple[int, ...]],
    production: dict[str, tuple[int, ...]],
    *,
    patterns: tuple[DayPattern, ...] = DAY,
    worst: dict[tuple[str, int], float] | None = None,
    lead_s: tuple[float, ...] = (),
    shortages: tuple[Shortage, ...] = (),
    target: Target | None = None,
) -> Plan:
    """A plan of workloads (all in the first pool) and pools with 32 movable nodes."""
    windows = tuple(window for pattern in patterns for window in windows_of(pattern))
    target = target or Target(kind=TargetKind.WAIT, bound_s=5.0)
    fleet = Fleet(
        name="f",
        digest="sha256:0",
        time_zone="UTC",
        confidence=0.95,
        patterns=patterns,
        pools=tuple(replace(H100, name=name) for name in production),
        workloads=tuple(
            Workload(
                name=name,
                demand=DemandRef(source="s", key=name),
                pool=next(iter(production)),
                gpus_per_replica=1,
                service=Service(time_s=1.0),
                targets=(target,),
            )
            for name in replicas
        ),
        research=Research(),
    )
    instant = OffsetDateTime(2026, 9, 1, offset=hours(0))
    schedule = Schedule(
        name="s",
        fleet_name="f",
        fleet_digest="sha256:0",
        time_zone="UTC",
        valid_until=instant,
        windows=windows,
        workloads=tuple(
            WorkloadColumn(name=name, replicas=row, holds_rps=(1.0,) * len(windows)) for name, row in replicas.items()
        ),
        pools=tuple(
            PoolColumn(
                name=name,
                production_nodes=nodes,
                ephemeral_nodes=tuple(32 - n for n in nodes),
                ephemeral_quota_gpus=tuple(8 * (32 - n) for n in nodes),
                lead_s=lead_s or (0.0,) * len(windows),
            )
            for name, nodes in production.items()
        ),
    )
    shares = worst or {}
    explanation = Explanation(
        provenance=Provenance(
            version="0", at=instant, forecaster="", confidence=0.95, supported_confidence=0.93, margin="", demand=()
        ),
        gpu_hours_per_day=GpuHours(production=3656.0, moving=147.33, research=3876.7, freed=2341.0, static_nodes=32),
        bound=Bound(unit="USD per cycle", objective=1000.0, lower_bound=997.0, gap=0.003),
        shortages=shortages,
        reasons={
            name: tuple(reason(n, shares.get((name, i), 0.05)) for i, n in enumerate(row))
            for name, row in replicas.items()
        },
    )
    return Plan(schedule=schedule, explanation=explanation, fleet=fleet)


SIX = {
    "chat": (37, 16, 25, 36, 42, 81),
    "assist": (7, 1, 13, 12, 12, 15),
    "search": (2, 1, 2, 3, 3, 2),
    "agents": (3, 6, 9, 27, 27, 11),
    "reason": (13, 7, 6, 12, 13, 14),
    "report": (1, 1, 1, 10, 4, 3),
}
WORST = {
    ("chat", 0): 0.48,
    ("assist", 1): 0.16,
    ("reason", 2): 0.69,
    ("chat", 3): 0.83,
    ("agents", 4): 0.67,
    ("agents", 5): 0.43,
}
LEADS = (0.0, 0.0, 3000.0, 5700.0, 0.0, 0.0)
NODES = {"h100": (14, 8, 11, 25, 24, 24)}


def fits(text: str) -> bool:
    """At most 80 columns, no space at a line's end, one newline at the end."""
    lines = text.split("\n")
    return all(len(line) <= 80 and line == line.rstrip() for line in lines) and lines[-1] == "" != lines[-2]


def test_the_documented_day_to_the_letter() -> None:
    assert plan(SIX, NODES, worst=WORST, lead_s=LEADS).text() == A_DAY


def test_static_peak_says_what_nodes_it_lacks() -> None:
    day = plan(SIX, NODES, worst=WORST, lead_s=LEADS)
    hours = replace(day.explanation.gpu_hours_per_day, static_missing_nodes=9)
    lacking = replace(day, explanation=replace(day.explanation, gpu_hours_per_day=hours))
    assert lacking.text() == A_DAY.replace("static peak (32 nodes)", "static peak (32 nodes; it needs 41)")
    hours = replace(hours, static_nodes=2500, static_missing_nodes=600, freed=234_100.0)
    wide = replace(day, explanation=replace(day.explanation, gpu_hours_per_day=hours)).text()
    assert "(2,500 nodes; it needs 3,100): 234,100; gap to bound\n  0.3 %\n" in wide


def test_shortages_say_who_when_and_by_how_much() -> None:
    shortages = (
        Shortage(workload="reason", window="all-0900", missing_gpus=4, attainment=0.71, required=0.95, wait_s=9.0),
        Shortage(workload="chat", window="all-1900", missing_gpus=1, attainment=0.9497, required=0.95, wait_s=math.inf),
    )
    text = plan(SIX, NODES, worst=WORST, lead_s=LEADS, shortages=shortages).text()
    assert text.splitlines()[-2:] == [
        "short: reason 09:00-13:00 needs 4 GPUs more; 71 % within target, asked 95 %",
        "short: chat 19:00-00:00 needs 1 GPU more; 94.97 % within target, asked 95.00 %",
    ]


def test_a_shortage_that_no_gpus_end_asks_for_none() -> None:
    short = Shortage(
        workload="reason", window="all-0900", missing_gpus=None, attainment=0.92, required=0.95, wait_s=9.0
    )
    text = " ".join(plan(SIX, NODES, worst=WORST, lead_s=LEADS, shortages=(short,)).text().split())
    said = "short: reason 09:00-13:00: no number of GPUs is enough; 92 % within target, asked 95 %"
    assert text.endswith(said)


def test_a_miss_reads_above_100_percent() -> None:
    two = {name: SIX[name] for name in ("chat", "agents")}
    text = plan(two, NODES, worst={("chat", 3): 1.0004, ("agents", 5): math.inf}).text()
    assert "chat 101%\n" in text
    assert "agents unstable\n" in text


def test_too_wide_a_table_gets_workloads_as_rows() -> None:
    many = {f"svc-{i:02}": tuple(i + n for n in range(6)) for i in range(30)}
    text = plan(many, NODES, lead_s=LEADS).text()
    lines = text.splitlines()
    assert fits(text)
    assert lines[0].split() == ["FROM", "00:00", "02:00", "06:00", "09:00", "13:00", "19:00"]
    assert lines[8].split() == ["svc-07", "7", "8", "9", "10", "11", "12"]
    assert [line.split()[0] for line in lines[31:35]] == ["LEAD", "PROD", "EPH", "WORST"]


def test_still_too_wide_comes_in_blocks_that_hold_every_window_once() -> None:
    patterns = (DayPattern(days=WEEK, starts=tuple(Time(hour) for hour in range(24))),)
    long = {f"a-service-with-quite-a-long-name-in-region-{i}": tuple(range(24)) for i in range(3)}
    text = plan(long, {"h100": tuple(range(24))}, patterns=patterns).text()
    assert fits(text)
    heads = [line.split()[1:] for line in text.splitlines() if line.startswith("FROM")]
    assert [hour for head in heads for hour in head] == [f"{hour:02}:00" for hour in range(24)]
    rows = [line.split()[1:] for line in text.splitlines() if line.startswith("a-serv") and "-2 " in line]
    assert [int(n) for row in rows for n in row] == list(range(24))


def test_a_week_says_its_days() -> None:
    text = plan({"chat": (3, 9, 4)}, {"h100": (1, 2, 1)}, patterns=WEEKLY).text()
    assert fits(text)
    assert [line.split("  ")[0] for line in text.splitlines()[1:4]] == [
        "Mon-Fri 00:00-08:00",
        "Mon-Fri 08:00-00:00",
        "Sat+Sun 00:00-00:00",
    ]


def test_a_week_too_wide_splits_where_the_days_change() -> None:
    many = {f"svc-{i:02}": (3, 9, 4) for i in range(30)}
    text = plan(many, {"h100": (1, 2, 1)}, patterns=WEEKLY).text()
    heads = [line for line in text.splitlines() if re.search(r"\d\d:\d\d", line)]
    assert [head.split() for head in heads] == [["Mon-Fri", "00:00", "08:00"], ["Sat+Sun", "00:00"]]


def test_dated_windows_say_their_dates() -> None:
    base = plan({f"svc-{i:02}": (3, 9, 4) for i in range(30)}, {"h100": (1, 2, 1)}, patterns=WEEKLY)
    *first, last = base.schedule.windows
    dated = replace(last, days=WEEK, valid_from=Date(2026, 10, 1), valid_until=Date(2026, 10, 8))
    text = replace(base, schedule=replace(base.schedule, windows=(*first, dated))).text()
    assert "2026-10-01 to 2026-10-07  00:00" in text


def test_several_pools_each_have_their_columns() -> None:
    pools = {"h100": (5, 3, 4, 6, 7, 12), "a100-pcie-80gb": (14, 8, 11, 25, 24, 24)}
    text = plan({"chat": SIX["chat"]}, pools, lead_s=LEADS).text()
    lines = text.splitlines()
    assert fits(text)
    assert lines[0].split() == ["h100", "a100-p…e-80gb"]
    assert lines[0].index("h100") == lines[1].index("LEAD")
    assert lines[5].split() == ["09:00-13:00", "36", "95m", "6", "26", "95m", "25", "7", "chat", "5%"]
    assert "nodes; reserved 8 of h100, 8 of a100-pcie-80gb" in " ".join(text.split())


@pytest.mark.parametrize("count", [1, 6, 40])
def test_colour_changes_no_letter(count: int) -> None:
    names = {f"svc-{i:02}": SIX["chat"] for i in range(count)}
    coloured = plan(names, NODES, worst={("svc-00", 2): 1.5})
    assert "\x1b[1;31m" in coloured.text(colour=True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured.text(colour=True)) == coloured.text()
    assert "\x1b" not in coloured.text()


def test_mixed_targets_are_named_as_such() -> None:
    assert (
        "P99 latency as a share"
        in plan(
            {"chat": SIX["chat"]}, NODES, target=Target(kind=TargetKind.LATENCY, bound_s=9.0, percentile=0.99)
        ).text()
    )


def test_chosen_windows_say_what_few_of_them_cost() -> None:
    base = plan(SIX, NODES)
    few = replace(base.explanation, bound=replace(base.explanation.bound, few_windows=0.0123))
    assert "few windows cost 1.2 % more" in replace(base, explanation=few).text()
    less = replace(base.explanation, bound=replace(base.explanation.bound, few_windows=-0.00083))
    assert "few windows cost 0.083 % less" in replace(base, explanation=less).text()


def test_huge_numbers_keep_their_separators() -> None:
    text = plan({"chat": (1_234_567,) * 6}, {"h100": (12_500,) * 6}).text()
    assert fits(text)
    assert "1,234,567  " in text
    assert "12,500" in text
