"""Bad input: one clear line with file, line and field, exit code 2, and nothing written."""

from __future__ import annotations

import gzip
import json
import math
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.cli.render_size import size_json, size_text
from ebbtide.errors import InputError
from ebbtide.queueing.calculator import size

# What is replaced in the small fleet, by what, the kind of error and a word that its message must hold.
WRONG_FLEETS = [
    ("reservedNodes: 2", "reservedNode: 2", "unknown_field", "reservedNodes"),
    ("reservedNodes: 2", "reservedNodes: 13", "out_of_range", "13"),
    ("gpusPerNode: 8, nodes: 12,", "gpusPerNode: 1024, nodes: 1000000,", "pool_too_large", "2,000,000"),
    ("name: chat,", "name: chat, demand: {key: chatt},", "no_demand", "chat"),
    ("name: chat,", "name: chat, pool: a100,", "unknown_pool", "h100"),
    ("name: chat,", "name: chat, minReplicas: 5, maxReplicas: 4,", "above", "maxReplicas"),
    ("gpusPerReplica: 1", "gpusPerReplica: 81", "replica_wider_than_pool", "81"),
    ("wait: 2s", "wait: 2s, percentile: 1.0", "out_of_range", "percentile"),
    ("latency: 40s", "latency: 7s", "latency_below_service", "8s"),
    ("America/New_York", "America/NewYork", "unknown_time_zone", "America/New_York"),
    ("windows: [{starts", "windows: [{days: [Mon], starts", "weekday_in_no_pattern", "Tue"),
    ('starts: ["00:00", "08:00", "20:00"]', 'starts: ["00:00"]}, {days: [Sun], starts: ["00:00"]', "weekday", "Sun"),
    ("file: rates.csv", "file: rates.csv, columns: {rate: speed}", "column", "rate_rps"),
    ("kind: Fleet", "kind: Fleet\nkind: Fleet", "duplicate_key", "kind"),
    ("name: two-models", "name: &a [*a]", "", ""),
    ("gpusPerReplica: 1", "gpusPerReplica: .nan", "", "gpusPerReplica"),
]


@pytest.mark.parametrize(("old", "new", "kind", "word"), WRONG_FLEETS)
def test_a_wrong_fleet_is_refused_at_its_line(
    ebbtide, fleet_file: Path, old: str, new: str, kind: str, word: str
) -> None:
    text = fleet_file.read_text(encoding="utf-8")
    assert old in text
    fleet_file.write_text(text.replace(old, new, 1), encoding="utf-8")
    before = {path.name for path in fleet_file.parent.iterdir()}
    told = ebbtide("allocate", fleet_file, "-o", fleet_file.parent)
    assert (told.code, told.out) == (2, ""), told.err
    assert "Traceback" not in told.err
    assert told.err.splitlines()[-1].startswith(str(fleet_file.parent))
    assert word in told.err
    assert {path.name for path in fleet_file.parent.iterdir()} == before
    error = json.loads(ebbtide("allocate", fleet_file, "-o", fleet_file.parent, "--json").out)["error"]
    assert kind in error["kind"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("America/New_York", '"a\\nfleet.yaml: all is well\\e[2J"'),
        ("reservedNodes: 2", '"x\\ny\\e[2J": 2'),
        ("name: chat,", 'name: chat, pool: "x\\ny\\e[2J",'),
    ],
)
def test_what_a_document_holds_forges_no_line_of_a_message(ebbtide, fleet_file: Path, old: str, new: str) -> None:
    text = fleet_file.read_text(encoding="utf-8")
    fleet_file.write_text(text.replace(old, new, 1), encoding="utf-8")
    told = ebbtide("validate", fleet_file)
    assert told.code == 2
    assert all(line.startswith(str(fleet_file)) for line in told.err.splitlines())
    assert "\x1b" not in told.err


ROWS = "time,service,rate_rps\n2026-09-01T00:00,chat,1\n2026-09-01T01:00,chat,2\n"
WRONG_DEMAND = [
    (b"", "empty"),
    (b"time,service,rate_rps\n", "rows"),
    (ROWS.replace("chat,2", "chat,-2").encode(), "-2"),
    (ROWS.replace("chat,2", "chat,nan").encode(), "nan"),
    (ROWS.replace("chat,2", "chat,a lot").encode(), "a lot"),
    (ROWS.replace("rate_rps", "rate_rps,rate").replace("chat,1", "chat,1,1").encode(), "rate"),
    (b"x" * 10_000_000, ""),
    (b"\x1f\x8b" + b"\0" * 50, ""),
]


@pytest.mark.parametrize(("content", "word"), WRONG_DEMAND, ids=range(len(WRONG_DEMAND)))
def test_demand_that_is_none_is_refused_by_file(ebbtide, fleet_file: Path, content: bytes, word: str) -> None:
    (fleet_file.parent / "rates.csv").write_bytes(content)
    told = ebbtide("allocate", fleet_file, "-o", fleet_file.parent)
    assert (told.code, told.out) == (2, ""), told.err
    assert "Traceback" not in told.err
    assert "rates.csv" in told.err
    assert len(told.err) < 1_000
    assert word in told.err
    assert not (fleet_file.parent / "schedule.yaml").exists()


def test_a_truncated_gzip_file_is_refused(ebbtide, fleet_file: Path) -> None:
    rows = (fleet_file.parent / "rates.csv").read_bytes()
    (fleet_file.parent / "rates.csv.gz").write_bytes(gzip.compress(rows)[:-50])
    fleet_file.write_text(fleet_file.read_text(encoding="utf-8").replace("rates.csv", "rates.csv.gz"), encoding="utf-8")
    told = ebbtide("allocate", fleet_file, "-o", fleet_file.parent)
    assert told.code == 2
    assert "rates.csv.gz" in told.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("--arrival-rate-rps", "-1", "--service-time-s", "1", "--servers", "3"),
        ("--arrival-rate-rps", "nan", "--service-time-s", "1", "--servers", "3"),
        ("--arrival-rate-rps", "1", "--service-time-s", "0", "--servers", "3"),
        ("--arrival-rate-rps", "1", "--service-time-s", "1", "--servers", "0"),
        ("--arrival-rate-rps", "1", "--service-time-s", "1"),
        ("--arrival-rate-rps", "1", "--service-time-s", "1", "--target-wait-s", "1", "--target-percentile", "1.0"),
        ("--arrival-rate-rps", "1", "--service-time-s", "1", "--target-wait-s", "1"),
        ("--arrival-rate-rps", "1e300", "--service-time-s", "1e300", "--servers", "3"),
        ("--arrival-rate-rps", "1", "--service-time-s", "1e-300", "--servers", "3"),
        ("--arrival-rate-rps", "1e9", "--service-time-s", "1e9", "--servers", "3"),
        ("--arrival-rate-rps", "1", "--service-time-s", "1", "--servers", "3", "--patience-s", "5e-324"),
        ("--arrival-rate-rps", "1", "--service-time-s", "1", "--servers", "3", "--scv-arrival", "1e300"),
        ("--arrival-rate-rps", "1", "--service-time-s", "1", "--servers", "3", "--scv-service", "1e300"),
        ("--arrival-rate-rps", "1", "--service-time-s", "1", "--target-wait-s", "1e300", "--target-percentile", "0.5"),
        ("--arrival-rate-rps", "1", "--service-time-s", "1", "--servers", "9223372036854775808"),
        ("--arrival-rate-rps", "many", "--service-time-s", "1", "--servers", "3"),
    ],
)
def test_the_calculator_names_the_argument_that_is_wrong(ebbtide, arguments: tuple[str, ...]) -> None:
    told = ebbtide("size", *arguments)
    assert (told.code, told.out) == (2, ""), told.err
    assert "Traceback" not in told.err
    assert "error" in json.loads(ebbtide("size", *arguments, "--json").out)


def test_a_missing_file_is_named(ebbtide, fleet_file: Path) -> None:
    told = ebbtide("allocate", fleet_file.parent / "nowhere.yaml")
    assert told.code == 2
    assert "nowhere.yaml" in told.err


def test_a_folder_that_is_a_file_is_named(ebbtide, fleet_file: Path) -> None:
    told = ebbtide("allocate", fleet_file, "-o", fleet_file)
    assert told.code == 2
    assert str(fleet_file) in told.err


def test_a_folder_with_an_impossible_name_is_no_bug(ebbtide, fleet_file: Path) -> None:
    told = ebbtide("allocate", fleet_file, "-o", fleet_file.parent / ("n" * 300))
    assert told.code == 4
    assert "too long" in told.err
    assert "Traceback" not in told.err


LOG_ROWS = "time,service,duration_s\n" + "".join(
    f"2026-09-0{day}T{hour:02}:{minute:02}:00,chat,{seconds}\n"
    for day in (1, 2, 3)
    for hour in range(24)
    for minute, seconds in ((0, 6), (20, 9), (40, 12))
)


def test_a_latency_below_the_observed_service_is_refused_at_its_line(ebbtide, fleet_file: Path) -> None:
    lines = fleet_file.read_text(encoding="utf-8").splitlines()[:-2]
    chat = "  - {name: chat, gpusPerReplica: 1, service: {observed: {}, concurrency: 4}, targets: [{latency: 8s}]}"
    text = "\n".join([*lines, chat, ""]).replace("file: rates.csv", "file: requests.csv")
    fleet_file.write_text(text, encoding="utf-8")
    (fleet_file.parent / "requests.csv").write_text(LOG_ROWS, encoding="utf-8")
    told = ebbtide("allocate", fleet_file, "-o", fleet_file.parent, "--json")
    error = json.loads(told.out)["error"]
    assert (told.code, error["kind"]) == (2, "latency_below_service"), told
    assert f"{fleet_file}:{len(lines) + 1}" in ebbtide("allocate", fleet_file, "-o", fleet_file.parent).err
    assert "is 8s, but the service alone takes 9s on average" in error["message"]
    assert not (fleet_file.parent / "schedule.yaml").exists()
    fleet_file.write_text(text.replace("latency: 8s", "latency: 60s"), encoding="utf-8")
    assert ebbtide("allocate", fleet_file, "-o", fleet_file.parent).code == 0


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (os.mkfifo, "a pipe"),
        (lambda path: path.symlink_to("/dev/zero"), "a device"),
        (lambda path: path.mkdir(), "a directory"),
        (lambda path: path.symlink_to(path), ""),
    ],
)
def test_a_demand_file_that_is_no_file_is_called_what_it_is(
    ebbtide, fleet_file: Path, make: Callable[[Path], None], says: str
) -> None:
    demand = fleet_file.parent / "rates.csv"
    demand.unlink()
    make(demand)
    for told in (
        ebbtide("allocate", fleet_file, "-o", fleet_file.parent),
        ebbtide("init", demand, "-o", fleet_file.parent / "new.yaml"),
        ebbtide("validate", demand),
        ebbtide("diff", demand, demand),
    ):
        assert (told.code, told.out) in {(2, ""), (4 if says == "" else 2, "")}, told.err
        assert "Traceback" not in told.err
        assert "rates.csv" in told.err
        assert f"is {says}" in told.err or says == ""
        assert "no such file" not in told.err


@pytest.mark.parametrize("rate", ["5e-324", "1e-310", "1e-200"])
def test_rates_at_the_end_of_the_doubles_are_nothing_and_warn_of_nothing(ebbtide, fleet_file: Path, rate: str) -> None:
    demand = fleet_file.parent / "rates.csv"
    rows = demand.read_text(encoding="utf-8").splitlines()
    none = [rows[0], *(",".join([*row.split(",")[:2], rate]) for row in rows[1:])]
    demand.write_text("\n".join(none), encoding="utf-8")
    told = ebbtide("allocate", fleet_file, "-o", fleet_file.parent, "--json")  # a warning is an error in these tests
    assert told.code == 0, told.err
    for workload in json.loads(told.out)["schedule"]["spec"]["workloads"]:
        assert set(workload["replicas"]) == {1}


EXTREMES = [0.0, 5e-324, 1e-310, 1e-15, 1e-9, 1.0, 1e6, 1e15, 1e300, math.inf]
EXTREME = st.sampled_from(EXTREMES)


@settings(max_examples=300)
@given(
    rates=st.tuples(EXTREME, EXTREME),
    scvs=st.tuples(st.sampled_from(EXTREMES[:8]), st.sampled_from(EXTREMES[:8])),
    patience_s=EXTREME | st.just(math.inf),
    asked=st.sampled_from([1, 10, 10**6, 10**15]) | st.tuples(EXTREME, st.sampled_from([5e-324, 0.5, 1 - 1e-16])),
)
def test_the_calculator_answers_or_refuses_any_numbers(rates, scvs, patience_s, asked) -> None:
    wish = {"servers": asked} if isinstance(asked, int) else dict(zip(TARGET, asked, strict=True))
    names = ("arrival_rate_rps", "service_time_s", "scv_arrival", "scv_service", "patience_s")
    try:
        answer = size(**dict(zip(names, (*rates, *scvs, patience_s), strict=True)), **wish)
    except InputError:
        return
    size_text(answer)
    json.dumps(size_json(answer), allow_nan=False)


TARGET = ("target_wait_s", "target_percentile")


OPTIONS = {"arrival_rate_rps", "service_time_s", "target_wait_s", "target_percentile", "scv_arrival", "patience_s"}


@pytest.mark.parametrize(
    ("changed", "option", "says"),
    [
        ({"arrival-rate-rps": "-1"}, "--arrival-rate-rps", "must be at least 0, not -1"),
        ({"arrival-rate-rps": "1e9", "service-time-s": "1e9"}, "--arrival-rate-rps", "the offered load must lie"),
        ({"service-time-s": "0"}, "--service-time-s", "must be above 0"),
        ({"target-wait-s": "-1"}, "--target-wait-s", "must be at least 0"),
        ({"target-wait-s": None}, "--target-wait-s", "a target is --target-wait-s and --target-percentile"),
        ({"target-percentile": "2"}, "--target-percentile", "must be above 0 and below 1"),
        ({"scv-arrival": "-1"}, "--scv-arrival", "must be at least 0"),
        ({"scv-service": "nan"}, "--scv-service", "must be a number"),
        ({"patience-s": "0"}, "--patience-s", "must be above 0"),
        ({"servers": "3"}, "--servers", "exclude each other"),
        ({"servers": "x"}, "--servers", "whole"),
    ],
)
def test_the_calculator_speaks_of_options_and_to_scripts_of_arguments(
    ebbtide, changed: dict[str, str | None], option: str, says: str
) -> None:
    right = {"arrival-rate-rps": "1", "service-time-s": "1", "target-wait-s": "1", "target-percentile": "0.9"}
    given = {name: value for name, value in {**right, **changed}.items() if value is not None}
    words = [word for name, value in given.items() for word in (f"--{name}", value)]
    told = ebbtide("size", *words)
    assert told.code == 2
    if says != "whole":  # typer's own words
        assert told.err.startswith(f"{option}: ")
        assert says in told.err
    assert option in told.err
    assert not any(name in told.err for name in OPTIONS)
    error = json.loads(ebbtide("size", *words, "--json").out)["error"]
    assert error["field"] == option[2:].replace("-", "_")


def test_an_output_that_is_a_link_to_itself_stays(ebbtide, fleet_file: Path) -> None:
    loop = fleet_file.parent / "loop.yaml"
    loop.symlink_to(loop)
    told = ebbtide("init", fleet_file.parent / "rates.csv", "-o", loop)
    assert (told.code, told.out) == (4, "")
    assert "symbolic links" in told.err
    assert loop.is_symlink()


def test_a_name_of_the_users_commands_no_terminal(ebbtide, fleet_file: Path) -> None:
    folder = fleet_file.parent / "a\x1b[2J"
    folder.mkdir()
    copy = folder / "fleet.yaml"
    copy.write_bytes(fleet_file.read_bytes())
    (folder / "rates.csv").write_bytes((fleet_file.parent / "rates.csv").read_bytes())
    for words in (
        ("validate", copy),
        ("allocate", copy, "-o", folder),
        ("init", folder / "rates.csv", "-o", folder / "new.yaml"),
    ):
        told = ebbtide(*words)
        assert told.code == 0, told.err
        assert "\x1b" not in told.out + told.err


HOSTILE = [b"", b"\0" * 100, b"\xff\xfea\0", b"[" * 100_000, b"kind: Schedule\n" * 2, b"a: &a [*a]", b"x" * 5_000_000]


@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
def test_no_command_falls_over_what_is_no_document(ebbtide, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(content)
    for words in (("validate", path), ("explain", path), ("diff", path, path), ("allocate", path, "-o", tmp_path)):
        told = ebbtide(*words)
        assert (told.code, told.out) == (2, ""), told.err
        assert "Traceback" not in told.err
    assert list(tmp_path.iterdir()) == [path]
