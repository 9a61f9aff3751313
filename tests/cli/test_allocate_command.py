"""`ebbtide allocate`, as its users run it: what is printed, what is written, how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ebbtide.adapters.documents.schedule import read_schedule


@pytest.fixture
def planned(ebbtide, fleet_file: Path) -> Path:
    told = ebbtide("allocate", fleet_file, "-o", fleet_file.parent)
    assert told.code == 0, told.err
    return fleet_file


def edit(path: Path, old: str, new: str) -> Path:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def test_data_goes_to_stdout_and_talk_to_stderr(ebbtide, fleet_file: Path) -> None:
    told = ebbtide("allocate", fleet_file, "-o", fleet_file.parent)
    assert told.code == 0
    assert told.out.startswith("WINDOW ")
    assert "08:00-20:00" in told.out
    assert "GPU-hours a day" in told.out
    assert "wrote " in told.err
    assert max(len(line) for line in told.out.splitlines()) <= 80


def test_what_is_written_reads_back_as_what_was_printed(ebbtide, planned: Path) -> None:
    schedule, explanation = read_schedule(planned.parent / "schedule.yaml")
    assert [window.span for window in schedule.windows] == ["00:00-08:00", "08:00-20:00", "20:00-00:00"]
    chat = next(column for column in schedule.workloads if column.name == "chat")
    assert chat.replicas[1] > chat.replicas[0]
    pool = schedule.pools[0]
    assert [made + lent for made, lent in zip(pool.production_nodes, pool.ephemeral_nodes, strict=True)] == [10, 10, 10]
    assert explanation is not None
    assert explanation.bound.gap <= 1e-9
    hours = explanation.gpu_hours_per_day
    assert hours.production + hours.moving + hours.research == pytest.approx(12 * 8 * 24, rel=1e-3)
    page = (planned.parent / "report.html").read_text(encoding="utf-8")
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page


def test_planning_again_replaces_both_files_and_says_the_same(ebbtide, planned: Path) -> None:
    before = read_schedule(planned.parent / "schedule.yaml")[0]
    assert ebbtide("allocate", planned, "-o", planned.parent).code == 0
    assert read_schedule(planned.parent / "schedule.yaml")[0] == before
    assert sorted(path.name for path in planned.parent.iterdir()) == [
        "fleet.yaml",
        "rates.csv",
        "report.html",
        "schedule.yaml",
    ]


@pytest.mark.parametrize("name", ["schedule.yaml", "report.html"])
def test_a_file_that_ebbtide_did_not_write_stays_and_nothing_is_written(ebbtide, fleet_file: Path, name: str) -> None:
    theirs = fleet_file.parent / name
    theirs.write_text("mine\n", encoding="utf-8")
    told = ebbtide("allocate", fleet_file, "-o", fleet_file.parent)
    assert told.code == 2
    assert name in told.err
    assert theirs.read_text(encoding="utf-8") == "mine\n"
    assert {path.name for path in fleet_file.parent.iterdir()} == {"fleet.yaml", "rates.csv", name}


def test_a_fleet_too_small_is_an_answer_with_its_shortages(ebbtide, fleet_file: Path) -> None:
    edit(fleet_file, "nodes: 12, reservedNodes: 2", "nodes: 2")
    told = ebbtide("allocate", fleet_file, "-o", fleet_file.parent)
    assert told.code == 3
    assert "short: " in told.out
    assert (fleet_file.parent / "schedule.yaml").exists()
    as_json = json.loads(ebbtide("allocate", fleet_file, "-o", fleet_file.parent, "--json").out)
    assert as_json["shortages"][0]["missing_gpus"] > 0


def test_json_is_one_object_of_the_documented_keys(ebbtide, fleet_file: Path) -> None:
    told = ebbtide("allocate", fleet_file, "-o", fleet_file.parent, "--json")
    answer = json.loads(told.out)
    assert list(answer) == ["schedule", "totals", "bound", "shortages", "warnings", "claims", "written"]
    assert answer["schedule"]["spec"]["pools"][0]["productionNodes"]
    assert answer["totals"]["production_gpu_h_per_day"] > 0


def test_least_gpus_names_a_fleet_that_is_enough_and_one_node_less_is_not(ebbtide, fleet_file: Path) -> None:
    least = json.loads(ebbtide("allocate", fleet_file, "--least-gpus", "--json").out)["pools"][0]["nodes"]
    assert not (fleet_file.parent / "schedule.yaml").exists()
    edit(fleet_file, "nodes: 12,", f"nodes: {least},")
    assert ebbtide("allocate", fleet_file, "-o", fleet_file.parent).code == 0
    edit(fleet_file, f"nodes: {least},", f"nodes: {least - 1},")
    assert ebbtide("allocate", fleet_file, "-o", fleet_file.parent).code == 3


def test_least_gpus_of_a_target_out_of_reach_is_infeasible(ebbtide, fleet_file: Path) -> None:
    edit(fleet_file, "targets: [{wait: 2s}]", "targets: [{latency: 6s}]")
    told = ebbtide("allocate", fleet_file, "--least-gpus", "--json")
    (pool,) = json.loads(told.out)["pools"]
    assert (told.code, pool["unreachable"]) == (3, ["chat"])
    assert pool["nodes"] <= 12


def test_explain_and_diff_speak_of_what_was_planned(ebbtide, planned: Path) -> None:
    schedule = planned.parent / "schedule.yaml"
    told = ebbtide("explain", schedule, "--window", "09:00", "--workload", "chat")
    assert told.code == 0
    assert "last given" in told.out
    old = schedule.rename(planned.parent / "old.yaml")
    edit(planned, "wait: 2s", "wait: 2s, percentile: 0.5")
    assert ebbtide("allocate", planned, "-o", planned.parent).code == 0
    told = ebbtide("diff", old, schedule, "--exit-code")
    assert told.code == 1
    assert "chat" in told.out
    assert ebbtide("diff", old, old, "--exit-code").code == 0


def test_a_latency_that_service_alone_exceeds_is_told_as_out_of_reach(ebbtide, fleet_file: Path) -> None:
    edit(fleet_file, "latency: 40s", "latency: 16s")  # P95 of exponential service of 8 s is 24 s
    told = ebbtide("allocate", fleet_file, "-o", fleet_file.parent)
    assert told.code == 3
    assert "no number of replicas meets its latency target of 16s" in " ".join((told.out + told.err).split())


def test_the_folder_is_made_where_there_is_none(ebbtide, fleet_file: Path) -> None:
    assert ebbtide("allocate", fleet_file, "-o", fleet_file.parent / "a" / "b").code == 0
    assert (fleet_file.parent / "a" / "b" / "report.html").is_file()


def test_a_confidence_that_past_days_cannot_support_names_the_window_with_the_fewest(ebbtide, fleet_file: Path) -> None:
    weekend = '{days: [Sat, Sun], starts: ["00:00", "09:00"]}]'
    edit(
        fleet_file,
        'starts: ["00:00", "08:00", "20:00"]}]',
        f'days: [Mon, Tue, Wed, Thu, Fri], starts: ["00:00"]}}, {weekend}',
    )
    told = ebbtide("allocate", fleet_file, "-o", fleet_file.parent)
    assert told.code == 0, told.err
    assert "chat Sat+Sun 00:00-09:00 has 2 past days, which support 66.7 %" in " ".join(told.err.split())
