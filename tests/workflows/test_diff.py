"""``diff`` tells what changed in what the controller obeys, in the documentation's form."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from whenever import OffsetDateTime, Time, hours

from ebbtide.adapters.documents.schedule import write_schedule
from ebbtide.cli.render_diff import diff_text
from ebbtide.fleet.schedule import Explanation, Schedule
from ebbtide.workflows.changes import Step
from ebbtide.workflows.diff import diff, diff_schedules


@pytest.fixture
def old(schedule: Schedule) -> Schedule:
    """The session's older schedule: fewer agents at 09:00."""
    chat, agents = schedule.workloads
    (pool,) = schedule.pools
    return replace(
        schedule,
        workloads=(chat, replace(agents, replicas=(3, 6, 9, 25, 27, 11), holds_rps=(30, 60, 90, 250, 270, 110))),
        pools=(
            replace(
                pool,
                production_nodes=(14, 8, 11, 24, 24, 24),
                ephemeral_nodes=(18, 24, 21, 8, 8, 8),
                ephemeral_quota_gpus=(144, 192, 168, 64, 64, 64),
            ),
        ),
    )


def test_the_documented_session(tmp_path: Path, old: Schedule, schedule: Schedule, explanation: Explanation) -> None:
    write_schedule(tmp_path / "old.yaml", old, None)
    write_schedule(tmp_path / "new.yaml", schedule, explanation)
    changes = diff(tmp_path / "old.yaml", tmp_path / "new.yaml")
    assert changes.differ
    assert diff_text(changes) == (
        "~ 09:00-13:00  agents 25 -> 27; h100 production 24 -> 25, ephemeral 8 -> 7\n"
        "1 of 6 windows, 1 of 2 workloads changed; research -32 GPU-hours a day\n"
    )


def test_its_json(old: Schedule, schedule: Schedule) -> None:
    answer = diff_schedules(old, schedule).as_json()
    assert list(answer) == ["changes", "totals"]
    (change,) = answer["changes"]  # type: ignore[misc, has-type]
    assert (change["change"], change["window"]) == ("changed", "all-0900")
    assert change["workloads"][0]["replicas"] == {"before": 25, "after": 27}
    assert change["pools"][0]["ephemeral_nodes"] == {"before": 8, "after": 7}
    assert answer["totals"]["ephemeral_gpu_h_per_day"]["change"] == pytest.approx(-32.0)
    json.dumps(answer, allow_nan=False)


def test_nothing_changed(schedule: Schedule) -> None:
    changes = diff_schedules(schedule, schedule)
    assert not changes.differ
    assert diff_text(changes) == "no change\n"
    # names of windows are only names
    renamed = tuple(replace(window, name=f"w-{n}") for n, window in enumerate(schedule.windows))
    assert not diff_schedules(schedule, replace(schedule, windows=renamed)).differ


def test_what_concerns_the_whole_schedule(schedule: Schedule) -> None:
    new = replace(
        schedule, fleet_digest="sha256:" + "77" * 32, valid_until=OffsetDateTime(2026, 10, 6, offset=hours(8))
    )
    changes = diff_schedules(schedule, new)
    assert changes.differ
    assert diff_text(changes).splitlines() == [
        "~ fleet.digest sha256:4b4b4b4b4b4b… -> sha256:777777777777…",
        "~ validUntil 2026-09-29T00:00:00+08:00 -> 2026-10-06T00:00:00+08:00",
        "0 of 6 windows, 0 of 2 workloads changed; research GPU-hours unchanged",
    ]


def test_a_moved_boundary_is_one_window_gone_and_one_come(schedule: Schedule) -> None:
    third, fourth = schedule.windows[2], schedule.windows[3]
    windows = list(schedule.windows)
    windows[2], windows[3] = replace(third, end=Time(8)), replace(fourth, start=Time(8), name="all-0800")
    changes = diff_schedules(schedule, replace(schedule, windows=tuple(windows)))
    text = diff_text(changes)
    assert "+ 06:00-08:00  chat 25, agents 9; h100 production 11, ephemeral 21\n" in text
    assert "- 09:00-13:00  chat 36, agents 27; h100 production 25, ephemeral 7\n" in text
    # from 08:00 to 09:00 both workloads' replicas differ, and research has 14 nodes fewer for an hour
    assert text.endswith(
        "0 of 6 windows, 2 of 2 workloads changed; windows: 2 added, 2 removed; research\n  -112 GPU-hours a day\n"
    )


def test_a_boundary_that_moves_no_replica_changes_no_workload(schedule: Schedule) -> None:
    flat = replace(
        schedule,
        workloads=tuple(replace(column, replicas=(5,) * 6, holds_rps=(50.0,) * 6) for column in schedule.workloads),
    )
    windows = list(flat.windows)
    windows[2], windows[3] = replace(windows[2], end=Time(8)), replace(windows[3], start=Time(8))
    assert diff_schedules(flat, replace(flat, windows=tuple(windows))).totals.workloads_changed == 0


def test_a_workload_that_came(schedule: Schedule) -> None:
    chat, _ = schedule.workloads
    changes = diff_schedules(replace(schedule, workloads=(chat,)), schedule)
    assert changes.windows[0].workloads[0].replicas == Step(before=None, after=3)
    text = diff_text(changes)
    assert text.startswith("~ 00:00-02:00  agents none -> 3\n")
    assert text.endswith("6 of 6 windows, 1 of 2 workloads changed; research GPU-hours unchanged\n")
    gone = diff_text(diff_schedules(schedule, replace(schedule, workloads=(chat,))))
    assert gone.startswith("~ 00:00-02:00  agents 3 -> none\n")


def test_rates_leads_and_quotas_alone(schedule: Schedule) -> None:
    chat, agents = schedule.workloads
    (pool,) = schedule.pools
    new = replace(
        schedule,
        workloads=(replace(chat, holds_rps=(370.0, 150.0, 250.0, 360.0, 420.0, 810.0)), agents),
        pools=(
            replace(
                pool, lead_s=(0.0, 0.0, 3600.0, 5700.0, 0.0, 0.0), ephemeral_quota_gpus=(144, 192, 168, 48, 64, 64)
            ),
        ),
    )
    assert diff_text(diff_schedules(schedule, new)).splitlines()[:3] == [
        "~ 02:00-06:00  chat holds 160 -> 150 rps",
        "~ 06:00-09:00  h100 lead 50m -> 1h",
        "~ 09:00-13:00  h100 quota GPUs 56 -> 48",
    ]


def test_a_dated_window(schedule: Schedule, dated_schedule: Schedule) -> None:
    text = diff_text(diff_schedules(schedule, dated_schedule))
    assert text.startswith(
        "+ 00:00-00:00 (2026-10-01 to 2026-10-07)  chat 5, agents 5; h100 production 8,\n    ephemeral 24\n"
    )
    assert "0 of 7 windows, 2 of 2 workloads changed; windows: 1 added; research GPU-hours\n  unchanged\n" in text


def test_no_line_is_wider_than_80(schedule: Schedule) -> None:
    chat, _ = schedule.workloads
    many = tuple(replace(chat, name=f"workload-{n}") for n in range(40))
    more = tuple(replace(column, replicas=tuple(n + 1 for n in column.replicas)) for column in many)
    text = diff_text(diff_schedules(replace(schedule, workloads=many), replace(schedule, workloads=more)))
    assert max(len(line) for line in text.splitlines()) <= 80
    assert text.endswith("6 of 6 windows, 40 of 40 workloads changed; research GPU-hours unchanged\n")
