"""`backtest --shadow`: what a recorder wrote is read back, scored and shown."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ebbtide.adapters.documents.fleet import read_fleet
from ebbtide.control.actions import Decision
from ebbtide.control.loop import Tick
from ebbtide.control.memory import Memory
from ebbtide.control.state import Node, PoolSeen, Replicas, Sight, State, Tenure
from ebbtide.fleet.schedule import PoolColumn, WorkloadColumn
from ebbtide.workflows.run_documents import Documents
from ebbtide.workflows.run_record import Recorder

START_S = 1_789_000_000.0


def look(at_s, window="all-0000", live=12.0):
    nodes = tuple(
        Node(name=f"n{k}", tenure=Tenure.EPHEMERAL, provider_id=f"p{k}", gpus=8, ready=k < 9) for k in range(10)
    )
    production = Sight(
        seen_at_s=at_s,
        pools={"h100": PoolSeen(nodes=nodes)},
        replicas={name: Replicas(workload=name, wanted=5, ready=5) for name in ("chat", "agents")},
    )
    state = State(
        production=production, research=Sight(seen_at_s=at_s), memory=Memory(), live_rps={"chat": live}, live_at_s=at_s
    )
    decision = Decision(actions=(), withheld=(), next_look_s=at_s, window=window, phase="Holding")
    return Tick(decision=decision, results=()), state


@pytest.fixture
def record(fleet_file, schedule, tmp_path):
    """Two hours of ticks, five seconds apart, of a schedule that asks for 6 of the 9 Ready nodes."""
    fleet = read_fleet(fleet_file).fleet
    count = len(schedule.windows)
    planned = replace(
        schedule,
        workloads=tuple(
            WorkloadColumn(name=name, replicas=(3,) * count, holds_rps=(10.0,) * count) for name in ("chat", "agents")
        ),
        pools=(
            PoolColumn(
                name="h100",
                production_nodes=(6,) * count,
                ephemeral_nodes=(4,) * count,
                ephemeral_quota_gpus=(32,) * count,
                lead_s=(0.0,) * count,
            ),
        ),
    )
    window = planned.windows[0].name
    path = tmp_path / "record.jsonl"
    recorder = Recorder(path)
    for k in range(1441):
        at_s = START_S + 5.0 * k
        recorder.write(*look(at_s, window), Documents(fleet=fleet, schedule=planned), at_s)
    recorder.close()
    return path


def test_a_quiet_hour_is_sixty_lines_and_its_score_is_the_plans(ebbtide, fleet_file, record):
    assert len(record.read_text().splitlines()) == 121
    told = ebbtide("backtest", fleet_file, "--shadow", record, "--json")
    assert told.code == 0, told.err
    found = json.loads(told.out)
    assert (found["hours"], found["missing_h"]) == pytest.approx((2.0, 0.0))
    assert found["to_research_gpu_h"] == pytest.approx(3 * 8 * 2.0)
    (window,) = found["windows"]
    chat = next(one for one in window["workloads"] if one["name"] == "chat")
    assert chat == {"name": "chat", "planned": 3, "ready": 5, "mean_rps": 12, "most_rps": 12, "above_share": 1}
    assert next(one for one in window["workloads"] if one["name"] == "agents")["mean_rps"] is None


def test_it_is_shown_in_eighty_columns(ebbtide, fleet_file, record):
    told = ebbtide("backtest", fleet_file, "--shadow", record)
    assert told.code == 0
    assert "GPU-hours the schedule would have given: to research 48, to production 0" in told.out
    assert max(len(line) for line in told.out.splitlines()) <= 80
    assert "100%" in told.out


def test_a_line_that_a_kill_cut_off_is_left_out_and_another_that_is_none_is_named(ebbtide, fleet_file, record):
    text = record.read_text()
    record.write_text(text + '{"at": "2026-09-1')
    assert ebbtide("backtest", fleet_file, "--shadow", record).code == 0
    record.write_text('{"at": 3}\n' + text)
    told = ebbtide("backtest", fleet_file, "--shadow", record)
    assert told.code == 2
    assert "record.jsonl:1: is no line of a record" in told.err


def test_a_record_of_another_fleet_says_nothing_of_this_one(ebbtide, fleet_file, record):
    fleet_file.write_text(fleet_file.read_text().replace("nodes: 12", "nodes: 13"))
    told = ebbtide("backtest", fleet_file, "--shadow", record)
    assert told.code == 2
    assert "holds 0 looks, and two are needed; 121 lines were recorded with another Fleet" in told.err


def test_a_record_that_is_not_there_is_the_users_to_mend(ebbtide, fleet_file, tmp_path):
    told = ebbtide("backtest", fleet_file, "--shadow", tmp_path / "nowhere")
    assert (told.code, "cannot be read" in told.err) == (2, True)
