"""``init`` writes a Fleet that is one fill-in away from a plan, and never over somebody's work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ebbtide.adapters.demand.read import read_trace
from ebbtide.adapters.documents.fleet import read_fleet
from ebbtide.errors import DemandError, DocumentError, InputError
from ebbtide.workflows.init import init

EXAMPLE = Path(__file__).parents[2] / "examples" / "day-and-night" / "servegen_msmall_services_10min.csv.gz"
GOOD = "time,model,rate\n2026-09-01T00:00Z,a,1\n2026-09-01T00:10Z,a,2\n"


def filled(text: str) -> str:
    """What a user writes on the TODO lines."""
    text = text.replace("timeZone: #", "timeZone: Asia/Shanghai #")
    text = text.replace("origin: }", 'origin: "2026-09-01T00:00"}').replace(
        "gpusPerNode: , nodes: ", "gpusPerNode: 8, nodes: 9"
    )
    return (
        re.sub("gpusPerReplica: ,", "gpusPerReplica: 1,", text)
        .replace("time: ,", "time: 2s,")
        .replace("concurrency: }", "concurrency: 8}")
        .replace("wait: }", "wait: 1s}")
    )


def test_servegen_in_two_lines_and_a_fleet_to_fill_in(tmp_path: Path) -> None:
    output = tmp_path / "fleet.yaml"
    written = init([EXAMPLE], output)
    assert written.text() == (
        "8 services, 2 sums left out; 14 days every 10 min; no zone, no service times\n"
        f"wrote {output}: fill in the 11 lines marked TODO"
    )
    text = output.read_text()
    assert sum("# TODO" in line for line in text.splitlines()) == written.todo_lines == 11
    assert "{name: m-small-c5, demand: {key: m-small/c5}, " in text
    with pytest.raises(DocumentError):  # nothing is planned on a guess
        read_fleet(output)
    output.write_text(filled(text))
    document = read_fleet(output)
    assert len(document.fleet.workloads) == 8
    trace = read_trace(document.sources[0])
    assert {workload.demand.key for workload in document.fleet.workloads} == set(trace.series)


def test_several_files_are_several_sources(tmp_path: Path) -> None:
    for name in ("east", "west"):
        (tmp_path / f"{name}.csv").write_text(GOOD)
    output = tmp_path / "deploy" / "fleet.yaml"
    output.parent.mkdir()
    written = init([tmp_path / "east.csv", tmp_path / "west.csv"], output)
    assert written.services == 2
    output.write_text(filled(output.read_text()))
    document = read_fleet(output)
    assert [(workload.name, workload.demand.source) for workload in document.fleet.workloads] == [
        ("a", "east"),
        ("a-2", "west"),
    ]
    assert read_trace(document.source("west")).series["a"].rate_rps.tolist() == [1, 2]


def test_service_times_in_a_log_are_observed(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("ts,model,duration_s\n2026-09-01T00:00Z,a,1\n2026-09-01T00:09Z,a,2\n")
    written = init([log], tmp_path / "fleet.yaml")
    assert "service times observed" in written.text()
    assert "service: {observed: {}, " in (tmp_path / "fleet.yaml").read_text()


def test_hostile_keys_stay_keys(tmp_path: Path) -> None:
    keys = ["*evil", "a: b", "no", "12", '"}]', "# TODO", "Ω\u0085x", "x" * 200]
    log = tmp_path / "log.csv"
    rows = [
        f'{time},"{key.replace(chr(34), chr(34) * 2)}",1'
        for key in keys
        for time in ("2026-09-01T00:00Z", "2026-09-01T00:10Z")
    ]
    log.write_text("time,model,rate\n" + "\n".join(rows) + "\n", encoding="utf-8")
    output = tmp_path / "fleet.yaml"
    init([log], output)
    output.write_text(filled(output.read_text(encoding="utf-8")), encoding="utf-8")
    workloads = read_fleet(output).fleet.workloads
    assert sorted(workload.demand.key for workload in workloads) == sorted(keys)
    assert len({workload.name for workload in workloads}) == len(keys)


def test_a_file_of_somebody_elses_is_not_touched(tmp_path: Path) -> None:
    log, output = tmp_path / "log.csv", tmp_path / "fleet.yaml"
    log.write_text(GOOD)
    output.write_text("precious")
    with pytest.raises(InputError) as caught:
        init([log], output)
    assert (caught.value.kind, output.read_text()) == ("foreign_output", "precious")


def test_an_untouched_skeleton_is_replaced_and_a_filled_one_is_kept(tmp_path: Path) -> None:
    log, output = tmp_path / "log.csv", tmp_path / "fleet.yaml"
    log.write_text(GOOD)
    init([log], output)
    init([log], output)
    edited = filled(output.read_text())
    output.write_text(edited)
    with pytest.raises(InputError) as caught:
        init([log], output)
    assert (caught.value.kind, output.read_text()) == ("edited_output", edited)


def test_bad_demand_leaves_nothing_behind(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("time,rate\n")
    with pytest.raises(DemandError):
        init([log], tmp_path / "fleet.yaml")
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]
