"""Whatever is wrong with a file, the answer is one error that says what, where and what to do."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from ebbtide.adapters.demand.read import read_trace
from ebbtide.adapters.demand.source import DemandSource
from ebbtide.errors import DemandError

GOOD = "time,rate\n2026-09-01T00:00Z,1\n2026-09-01T00:10Z,2\n"


def refused(folder: Path, content: str | bytes, name: str = "log.csv", **source: object) -> DemandError:
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return refusal(DemandSource(name="log", file=name, folder=folder, **source))


def refusal(source: DemandSource, keys: frozenset[str] | None = None) -> DemandError:
    with pytest.raises(DemandError) as caught:
        read_trace(source, keys=keys)
    assert len(str(caught.value)) < 1000
    return caught.value


# content, kind, line (None: there is none), what the message says
TEXTS = {
    "no such column": ("when,rate\n1,2\n", "no_time_column", None, "its columns are 'when', 'rate'"),
    "two times": ("time,ts,rate\n1,2,3\n", "two_candidate_columns", None, "'time' and 'ts'"),
    "two rates": ("time,rate,rps\n1,2,3\n", "two_candidate_columns", None, "'rate' and 'rps'"),
    "two counts": ("time,requests,count_5min\n1,2,3\n", "two_candidate_columns", None, "'requests' and 'count_5min'"),
    "two workloads": ("time,model,client,rate\n1,a,b,3\n", "two_candidate_columns", None, "'model' and 'client'"),
    "rate and count": ("time,rate,count\n1,2,3\n", "rate_and_count", None, "'rate' is a rate and 'count' is a count"),
    "below zero": (GOOD + "2026-09-01T00:20Z,-1\n", "negative", 4, "rate '-1' is below zero"),
    "nan": (GOOD + "2026-09-01T00:20Z,NaN\n", "bad_number", 4, "rate 'NaN' is no finite number"),
    "inf": (GOOD + "2026-09-01T00:20Z,inf\n", "bad_number", 4, "rate 'inf'"),
    "too large": (GOOD + "2026-09-01T00:20Z,1e999\n", "bad_number", 4, "1e999"),
    "junk number": (GOOD + "2026-09-01T00:20Z,many\n", "bad_number", 4, "rate 'many' is no finite number"),
    "junk after a cell with a line end": (
        'time,note,rate\n2026-09-01T00:00Z,"a\nb",1\n2026-09-01T00:10Z,c,x\n', "bad_number", 4, "rate 'x'",
    ),
    "junk time": (GOOD + "yesterday,3\n", "not_a_time", 4, "'yesterday' cannot be read as a time"),
    "a zone's name in a time": (GOOD + "2026-09-01T00:20 Europe/Berlin,3\n", "not_a_time", 4, "Europe/Berlin"),
    "a day that is not": (GOOD + "2026-02-30T00:20Z,3\n", "not_a_time", 4, "2026-02-30"),
    "nan time": ("t_s,rate\n0,1\nnan,2\n", "not_a_time", 3, "'nan'"),
    "empty time": (GOOD + ",3\n", "not_a_time", 4, "an empty cell"),
    "mixed times": (GOOD + "2026-09-01 00:20,3\n", "mixed_times", 4, "some have none"),
    "year 9999": (GOOD + "9999-12-31T00:00Z,3\n", "time_out_of_range", 4, "outside the years 1971 to 2199"),
    "infinity": (GOOD + "infinity,3\n", "not_a_time", 4, "infinity"),
    "a stray year": (GOOD + "2199-12-31T00:00Z,3\n", "span_too_long", 4, "span"),
    "zero bytes": ("", "no_rows", None, "the file is empty"),
    "blank lines": ("\n\n\n", "no_rows", None, "the file is empty"),
    "header only": ("time,rate\n", "no_rows", None, "holds no rows"),
    "no zone": ("time,rate\n2026-09-01 00:00,1\n", "zone_missing", None, "set demand[log].timeZone"),
    "no origin": ("t_s,rate\n0,1\n600,2\n", "origin_missing", None, "set demand[log].origin"),
    "small numbers as times": ("time,rate\n0,1\n600,2\n", "origin_missing", None, "seconds from a start"),
    "no workload": ("time,model,rate\n2026-09-01T00:00Z,a,1\n2026-09-01T00:10Z,,1\n", "no_workload", 3, "no workload"),
    "too few cells": (GOOD + "2026-09-01T00:20Z\n", "not_csv", 4, "this line has 1 cells, the header 2"),
    "too many cells": (GOOD + "2026-09-01T00:20Z,3,4\n", "not_csv", 4, "this line has 3 cells, the header 2"),
    "prose": ("It was a dark and stormy night.\nThe rain fell.\n", "no_time_column", None, "dark and stormy"),
    "other value at one time": (GOOD + "2026-09-01T00:10Z,3\n", "duplicate_rows", 4, "a second row for 'log'"),
    "one row": ("time,rate\n2026-09-01T00:00Z,1\n", "interval_unknown", None, "set demand[log].interval"),
    "closer rows": (
        GOOD + "2026-09-01T00:20Z,3\n2026-09-01T00:21Z,3\n", "mixed_intervals", None, "one interval",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TEXTS)
def test_a_text_that_cannot_be_demand(tmp_path: Path, case: str) -> None:
    content, kind, line, says = TEXTS[case]
    error = refused(tmp_path, content)
    assert error.kind == kind
    assert says in str(error)
    if line is not None:
        assert (error.place.line, error.place.file) == (line, str(tmp_path / "log.csv"))


# The same columns as a log of requests, where the engine aggregates before anything is looked at.
LOG = "time,model,duration_s\n2026-09-01T00:00Z,a,1\n2026-09-01T00:01Z,a,2\n"
LOGS = {
    "negative": (LOG + "2026-09-01T00:20Z,a,-1\n", "negative", 4),
    "nan": (LOG + "2026-09-01T00:20Z,a,nan\n", "bad_number", 4),
    "inf": (LOG + "2026-09-01T00:20Z,a,inf\n", "bad_number", 4),
    "junk": (LOG + "2026-09-01T00:20Z,a,long\n", "bad_number", 4),
    "junk time": (LOG + "soon,a,1\n", "not_a_time", 4),
    "mixed times": (LOG + "2026-09-01 00:20,a,1\n", "mixed_times", 4),
    "year 9999": (LOG + "9999-12-31T00:00Z,a,1\n", "time_out_of_range", 4),
    "no workload": (LOG + "2026-09-01T00:20Z,,1\n", "no_workload", 4),
    "header only": ("time,model\n", "no_rows", None),
    "no zone": ("time,model\n2026-09-01 00:20,a\n", "zone_missing", None),
    "no origin": ("t_s,model\n5,a\n", "origin_missing", None),
    "an empty time among numbers": ("t_s,model\n5,a\n,a\n", "not_a_time", 3),
    "a far time": ("t_s,model\n5,a\n1e15,a\n", "time_out_of_range", 3),
    "the hour that never was": ("time\n2026-03-08 01:59\n2026-03-08 02:30\n", "hour_does_not_exist", None),
}


@pytest.mark.parametrize("case", LOGS)
def test_a_log_of_requests_that_cannot_be_demand(tmp_path: Path, case: str) -> None:
    content, kind, line = LOGS[case]
    more = {"time_zone": "America/New_York"} if case == "the hour that never was" else {}
    more |= {"origin": "2026-09-01T00:00Z"} if "a" in case and content.startswith("t_s") and case != "no origin" else {}
    error = refused(tmp_path, content, **more)
    assert (error.kind, error.place.line) == (kind, line)


def test_an_hour_that_never_was_names_the_line(tmp_path: Path) -> None:
    text = "time,rate\n2026-03-08 01:00,1\n2026-03-08 02:00,2\n2026-03-08 03:00,3\n"
    error = refused(tmp_path, text, time_zone="America/New_York")
    assert (error.kind, error.place.line) == ("hour_does_not_exist", 3)


@pytest.mark.parametrize(
    ("source", "kind", "says"),
    [
        (
            {"columns": {"rate": "speed"}},
            "column_not_found",
            "there is no column 'speed'; the columns are 'time', 'rate'",
        ),
        ({"columns": {"rat": "rate"}}, "unknown_role", "nearest: rate"),
        ({"time_zone": "Europe/Berln"}, "unknown_time_zone", "nearest: Europe/Berlin"),
        ({"time_zone": "../../etc/passwd"}, "unknown_time_zone", "there is no time zone"),
        ({"interval_s": 900}, "interval_mismatch", "15m is no multiple"),
    ],
)
def test_a_fleet_that_does_not_fit_the_file(tmp_path: Path, source: dict[str, object], kind: str, says: str) -> None:
    error = refused(tmp_path, GOOD + "2026-09-01T00:20Z,3\n", **source)
    assert error.kind == kind
    assert says in str(error)


@pytest.mark.parametrize("origin", ["soon", "2026-13-01", "2026-03-08T02:30", "2026-11-01T01:30"])
def test_an_origin_that_is_no_instant(tmp_path: Path, origin: str) -> None:
    error = refused(tmp_path, "t_s,rate\n0,1\n600,2\n", origin=origin, time_zone="America/New_York")
    assert error.kind == "bad_origin"


def test_two_columns_of_the_name_that_the_fleet_gives(tmp_path: Path) -> None:
    error = refused(tmp_path, "time,x,x\n0,1,2\n", columns={"rate": "x"})
    assert error.kind == "two_candidate_columns"


@pytest.mark.parametrize(
    ("content", "name", "kind"),
    [
        (GOOD.encode("utf-16"), "log.csv", "not_utf8"),
        ("time,rate,note\n2026-09-01T00:00Z,1,café\n".encode("latin-1"), "log.csv", "not_utf8"),
        (GOOD.encode() + b"2026-09-01T00:20Z,\xe9\n", "log.csv", "not_utf8"),
        (b"\0\1\2\3" * 999, "log.csv", "not_csv"),
        (b"PK\x03\x04" + b"\0" * 50, "log.csv", "not_csv"),
        (bytes(range(128, 256)) * 50, "log.csv", "not_utf8"),
        (b"x" * 10_000_000, "log.csv", "not_csv"),
        (GOOD.encode() + b"x" * 10_000_000 + b"\n", "log.csv", "not_csv"),
        (GOOD.encode() + b"y" * 10_000_000, "log.csv", "not_csv"),
        (b"PAR1", "log.parquet", "damaged_file"),
        (b"PAR1" + b"\0" * 1000 + b"PAR1", "log.parquet", "damaged_file"),
        (GOOD.encode(), "log.parquet", "damaged_file"),
        (b"", "log.parquet", "no_rows"),
        (b"", "log.csv.gz", "no_rows"),
        (gzip.compress(b"", mtime=0), "log.csv.gz", "no_rows"),
        (gzip.compress(GOOD.encode(), mtime=0)[:-9], "log.csv.gz", "damaged_file"),
        (b"\x1f\x8b" + b"\0" * 99, "log.csv.gz", "damaged_file"),
    ],
)
def test_bytes_that_are_no_table(tmp_path: Path, content: bytes, name: str, kind: str) -> None:
    error = refused(tmp_path, content, name=name)
    assert error.kind == kind
    assert error.place.file == str(tmp_path / name)


def test_line_of_the_first_letter_that_is_not_utf8(tmp_path: Path) -> None:
    error = refused(tmp_path, GOOD.encode() + b"2026-09-01T00:20Z,\xe9\n")
    assert error.place.line == 4


@pytest.mark.parametrize("share", [0.3, 0.999])
def test_a_truncated_file_of_some_size(tmp_path: Path, share: float) -> None:
    rows = "".join(f"{600 * n},{n * 7919 % 1000}\n" for n in range(100_000))
    packed = gzip.compress(b"t_s,rate\n" + rows.encode())
    error = refused(tmp_path, packed[: int(len(packed) * share)], name="log.csv.gz", origin="2026-09-01T00:00Z")
    assert error.kind == "damaged_file"
    whole = tmp_path / "whole.parquet"
    duckdb.connect().sql("select i as t_s, i % 97 as rate from range(100000) t(i)").write_parquet(str(whole))
    cut = whole.read_bytes()[: int(whole.stat().st_size * share)]
    error = refused(tmp_path, cut, name="log.parquet", origin="2026-09-01T00:00Z")
    assert error.kind == "damaged_file"


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    kinds = {
        name: refusal(DemandSource(name="log", file=name, folder=tmp_path)).kind
        for name in ("folder.csv", "nothing.csv", "*.parquet", "", "a\0b.csv", "x" * 5000)
    }
    assert kinds == {
        "folder.csv": "is_a_directory",
        "nothing.csv": "no_such_file",
        "*.parquet": "no_file_matches",
        "": "is_a_directory",
        "a\0b.csv": "no_such_file",
        "x" * 5000: "no_such_file",
    }


def test_a_hostile_file_name_cannot_forge_lines_of_a_message(tmp_path: Path) -> None:
    error = refused(tmp_path, "time,rate\n", name="a\nfleet.yaml:1: all is well\x1b[2J.csv")
    assert "\n" not in str(error)
    assert "\x1b" not in str(error)


def test_files_of_one_source_that_differ(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(GOOD)
    error = refused(tmp_path, "time,requests\n2026-09-01T00:00Z,1\n", name="b.csv")
    assert error.kind == "interval_unknown"
    both = refusal(DemandSource(name="log", file="*.csv", folder=tmp_path))
    assert (both.kind, both.place.file) == ("files_differ", str(tmp_path / "b.csv"))


def test_the_damaged_one_of_several_files_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(GOOD)
    (tmp_path / "b.csv").write_text(GOOD + "2026-09-01T00:20Z,3,4\n")
    (tmp_path / "c.csv").write_text(GOOD + "2026-09-01T00:20Z,x\n")
    place = refusal(DemandSource(name="log", file="[ab].csv", folder=tmp_path)).place
    assert (place.file, place.line) == (str(tmp_path / "b.csv"), 4)
    place = refusal(DemandSource(name="log", file="[ac].csv", folder=tmp_path)).place
    assert (place.file, place.line) == (str(tmp_path / "c.csv"), 4)


def test_two_files_of_one_stem(tmp_path: Path) -> None:
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "chat.csv").write_text(GOOD)
    assert refusal(DemandSource(name="log", file="*/chat.csv", folder=tmp_path)).kind == "same_key"


def test_a_gzip_bomb_costs_no_memory(tmp_path: Path) -> None:
    """160 MB of one line in 1 MB of gzip (which DuckDB alone would drop without a word): refused, in little memory."""
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as stream:
        stream.write(GOOD.encode())
        block = b"7" * (1 << 24)
        for _ in range(10):
            stream.write(block)
    script = (
        "import resource, sys, pathlib\n"
        "from ebbtide.adapters.demand.read import read_trace\n"
        "from ebbtide.adapters.demand.source import DemandSource\n"
        "from ebbtide.errors import DemandError\n"
        "import ibis, duckdb\n"
        "ibis.duckdb.connect()\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try:\n"
        "    read_trace(DemandSource(name='log', file='bomb.csv.gz', folder=pathlib.Path(sys.argv[1])))\n"
        "except DemandError as error:\n"
        "    print(error.kind, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    kind, grown_kb = done.stdout.split()
    assert kind == "not_csv"
    assert int(grown_kb) < 100_000
