"""Real files and small ones: what is read is what stands there."""

from __future__ import annotations

import gzip
from pathlib import Path

import duckdb
import numpy as np
import pytest
from whenever import PlainDateTime

from ebbtide.adapters.demand.read import read_trace
from ebbtide.adapters.demand.source import DemandSource
from ebbtide.errors import DemandError, InputError, PermanentError
from ebbtide.fleet.demand import Seen, Trace

REPOSITORY = Path(__file__).parents[3]
DATA = REPOSITORY / "tests" / "data"
EXAMPLE = REPOSITORY / "examples" / "day-and-night"
UTC_DAY_S = 1_788_220_800  # 2026-09-01T00:00Z


def at_s(text: str, zone: str = "UTC") -> int:
    return int(PlainDateTime.parse_iso(text).assume_tz(zone, disambiguation="raise").timestamp())


def read(folder: Path, text: str, name: str = "log.csv", **source: object) -> Trace:
    (folder / name).write_text(text, encoding="utf-8")
    return read_trace(DemandSource(name="log", file=name, folder=folder, **source))


def only(trace: Trace) -> np.ndarray:
    (series,) = trace.series.values()
    return series.rate_rps


def small(**source: object) -> DemandSource:
    return DemandSource(
        name="small",
        file="servegen_msmall_services_10min.csv.gz",
        folder=EXAMPLE,
        origin="2026-09-01T00:00",
        time_zone="Asia/Shanghai",
        **source,
    )


def test_servegen_small_has_eight_services_twelve_outages_and_two_sums_beside_their_parts() -> None:
    trace = read_trace(small())
    assert sorted(trace.series) == [f"m-small/c{n}" for n in (26, 31, 35, 36, 39, 41, 5, 8)]
    assert set(trace.sums) == {"m-small/daily_sum", "m-small/total"}
    assert trace.interval_s == 600
    assert trace.start_s == at_s("2026-09-01T00:00", "Asia/Shanghai")
    # The list published with the data (ends excluded), found over all 43 clients; the 8 services show the same.
    published = [
        (619200, 619800), (799200, 801600), (810000, 810600), (874800, 875400), (885600, 889800), (896400, 898200),
        (961200, 963000), (975600, 976800), (1054800, 1057200), (1069200, 1071000), (1130400, 1132200),
        (1141200, 1144200),
    ]  # fmt: skip
    assert [(out.start_s - trace.start_s, out.end_s - trace.start_s) for out in trace.outages] == published
    for series in trace.series.values():
        assert (series.seen == Seen.OUTAGE).sum() == 37
        assert np.isnan(series.rate_rps[series.seen != Seen.OBSERVED]).all()
        assert np.isfinite(series.rate_rps[series.observed]).all()
    # c35 reads 0 in 18 more intervals, while others have requests: those are zeros, not outages.
    c35 = trace.series["m-small/c35"]
    assert (c35.rate_rps[c35.observed] == 0).sum() == 18
    assert trace.sha256 == "e43af0d197c43921e0a6b11176dd520f225467b065b250e539a05c6e76cbe2fd"


def test_only_the_keys_asked_for_come_back_and_a_sum_asked_for_is_one_of_them() -> None:
    trace = read_trace(small(), keys=frozenset({"m-small/c5", "m-small/total"}))
    assert set(trace.series) == {"m-small/c5", "m-small/total"}
    assert trace.sums == ("m-small/daily_sum",)
    assert len(trace.outages) == 12
    everything = read_trace(small())
    others = [series for key, series in everything.series.items() if key != "m-small/c5"]
    assert trace.rest_rps == pytest.approx(sum(series.rate_rps[series.observed].mean() for series in others))


def test_a_key_that_is_not_there_is_answered_with_the_nearest() -> None:
    with pytest.raises(DemandError, match=r"no demand for 'm-small/c55'.*nearest: m-small/c5,") as caught:
        read_trace(small(), keys=frozenset({"m-small/c55"}))
    assert caught.value.kind == "no_demand"


def test_an_interval_that_is_a_multiple_averages_what_was_observed() -> None:
    fine, hours = read_trace(small()), read_trace(small(interval_s=3600))
    assert hours.interval_s == 3600
    first = fine.series["m-small/c5"].rate_rps[:6]
    assert hours.series["m-small/c5"].rate_rps[0] == pytest.approx(first.mean())
    # 885600-889800 is an hour and 10 minutes of outage: an hour wholly dark, and one with 50 good minutes.
    dark = 885600 // 3600
    assert hours.series["m-small/c5"].seen[dark] == Seen.OUTAGE
    assert hours.series["m-small/c5"].seen[dark + 1] == Seen.OBSERVED
    rest = fine.series["m-small/c5"].rate_rps[(dark + 1) * 6 + 1 : (dark + 2) * 6]
    assert hours.series["m-small/c5"].rate_rps[dark + 1] == pytest.approx(rest.mean())


def test_new_yorks_repeated_hour_is_two_hours_with_half_of_the_requests_each() -> None:
    name = "nyc_taxi_30min_2014-07-01_2014-11-09.csv"
    trace = read_trace(DemandSource(name="taxi", file=name, folder=DATA, time_zone="America/New_York"))
    (series,) = trace.series.values()
    assert trace.interval_s == 1800
    # 25 hours of 2014-11-02: no interval is missing, and the day's requests are all there.
    assert (series.seen == Seen.OBSERVED).all()
    midnight = (at_s("2014-11-02T00:00", "America/New_York") - series.start_s) // 1800
    counts = series.rate_rps[midnight : midnight + 8] * 1800
    assert counts == pytest.approx([25110, 23109, 39197 / 2, 35212 / 2, 39197 / 2, 35212 / 2, 13259, 12250])


def test_the_spring_hour_that_never_was_is_no_gap(tmp_path: Path) -> None:
    text = "local_time_new_york,count_1h\n2014-03-09 00:00:00,60\n2014-03-09 01:00:00,120\n2014-03-09 03:00:00,180\n"
    trace = read(tmp_path, text + "2014-03-09 04:00:00,240\n", time_zone="America/New_York")
    assert only(trace) * 3600 == pytest.approx([60, 120, 180, 240])


@pytest.mark.parametrize("filler", ["0", ""])
def test_a_tools_filler_in_the_hour_that_never_was_is_dropped(tmp_path: Path, filler: str) -> None:
    text = f"time,count\n2014-03-09 00:00,60\n2014-03-09 01:00,120\n2014-03-09 02:00,{filler}\n2014-03-09 03:00,180\n"
    assert only(read(tmp_path, text, time_zone="America/New_York")) * 3600 == pytest.approx([60, 120, 180])


def test_two_rows_in_the_repeated_hour_are_the_two_hours_in_order(tmp_path: Path) -> None:
    rows = ["00:00,1", "00:30,2", "01:00,3", "01:30,4", "01:00,5", "01:30,4", "02:00,7"]
    text = "time,count\n" + "".join(f"2014-11-02 {row}\n" for row in rows)
    trace = read(tmp_path, text, time_zone="America/New_York")
    assert only(trace) * 1800 == pytest.approx([1, 2, 3, 4, 5, 4, 7])
    assert (trace.duplicate_rows, trace.unordered_rows) == (0, 0)


def test_a_rate_in_the_repeated_hour_holds_for_both(tmp_path: Path) -> None:
    text = "time,rps\n2014-11-02 00:00,1\n2014-11-02 01:00,2\n2014-11-02 02:00,3\n"
    assert only(read(tmp_path, text, time_zone="America/New_York")) == pytest.approx([1, 2, 2, 3])


def test_times_beside_the_grid_are_snapped_and_gaps_are_missing() -> None:
    name = "aws_elb_request_count_5min_2014-04.csv"
    trace = read_trace(DemandSource(name="elb", file=name, folder=DATA, time_zone="UTC"))
    (series,) = trace.series.values()
    assert series.start_s == at_s("2014-04-10T00:05")  # the first row says 00:04
    assert series.rate_rps[:3] * 300 == pytest.approx([94, 56, 187])
    assert (series.seen == Seen.OBSERVED).sum() == 4032
    assert (series.seen == Seen.MISSING).sum() == len(series.seen) - 4032 > 0


@pytest.mark.parametrize(
    "times",
    [
        ["2026-09-01T00:00:00Z", "2026-09-01T00:10:00Z", "2026-09-01T00:20:00Z"],
        ["2026-09-01T08:00+08:00", "2026-09-01 08:10:00+0800", "2026-09-01T08:20:00.000+08"],
        ["1788220800", "1788221400", "1788222000"],
        ["1788220800000", "1788221400000", "1788222000000"],
        ["1788220800000000", "1788221400000000", "1788222000000000"],
    ],
)
def test_instants_are_read_in_every_form(tmp_path: Path, times: list[str]) -> None:
    text = "time,rate\n" + "".join(f"{time},{number}\n" for number, time in enumerate(times))
    trace = read(tmp_path, text)
    assert trace.start_s == UTC_DAY_S
    assert only(trace) == pytest.approx([0, 1, 2])


def test_wall_clock_times_are_read_in_the_sources_zone(tmp_path: Path) -> None:
    text = "timestamp,rate\n2026-09-01 08:00,1\n2026-09-01 08:10,2\n"
    assert read(tmp_path, text, time_zone="Asia/Shanghai").start_s == UTC_DAY_S


def test_a_real_time_column_wins_over_seconds_from_a_start(tmp_path: Path) -> None:
    text = "t_s,time,rate\n0,2026-09-01T00:00Z,1\n600,2026-09-01T00:10Z,2\n"
    assert read(tmp_path, text).start_s == UTC_DAY_S


def test_hours_of_kolkata_begin_at_half_past(tmp_path: Path) -> None:
    text = "time,rate\n2026-09-01 00:00,1\n2026-09-01 01:00,2\n"
    trace = read(tmp_path, text, time_zone="Asia/Kolkata")
    assert trace.start_s == at_s("2026-08-31T18:30")


def test_columns_that_the_fleet_names_win(tmp_path: Path) -> None:
    text = "when,who,rate,rps\n0,a,1,5\n600,a,2,6\n"
    columns = {"time": "when", "workload": "who", "rate": "rps"}
    trace = read(tmp_path, text, origin="2026-09-01T00:00Z", columns=columns)
    assert trace.series["a"].rate_rps == pytest.approx([5, 6])


def test_an_empty_cell_is_missing_never_zero(tmp_path: Path) -> None:
    text = "time,rate\n2026-09-01T00:00Z,1\n2026-09-01T00:10Z,\n2026-09-01T00:20Z,0\n"
    (series,) = read(tmp_path, text).series.values()
    assert series.seen.tolist() == [Seen.OBSERVED, Seen.MISSING, Seen.OBSERVED]
    assert series.rate_rps[2] == 0


def test_cv_becomes_the_arrivals_scv_where_there_were_requests(tmp_path: Path) -> None:
    text = "time,rate,cv\n2026-09-01T00:00Z,1,1.5\n2026-09-01T00:10Z,0,0\n"
    (series,) = read(tmp_path, text).series.values()
    assert series.arrival_scv is not None
    assert series.arrival_scv[0] == 2.25
    assert np.isnan(series.arrival_scv[1])


def test_doubled_rows_and_rows_out_of_order_are_put_right_and_counted(tmp_path: Path) -> None:
    rows = ["2026-09-01T00:10Z,2", "2026-09-01T00:00Z,1", "2026-09-01T00:20Z,3", "2026-09-01T00:20Z,3"]
    trace = read(tmp_path, "time,rate\n" + "\n".join(rows) + "\n")
    assert only(trace) == pytest.approx([1, 2, 3])
    assert (trace.duplicate_rows, trace.unordered_rows) == (1, 1)


def test_files_without_a_workload_column_are_a_workload_each(tmp_path: Path) -> None:
    for name, rate in (("chat", 1), ("agents", 2)):
        text = f"time,rate\n2026-09-01T00:00Z,{rate}\n2026-09-01T00:10Z,{rate}\n"
        (tmp_path / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    trace = read_trace(DemandSource(name="logs", file="*.csv.gz", folder=tmp_path))
    assert {key: series.rate_rps[0] for key, series in trace.series.items()} == {"chat": 1, "agents": 2}
    assert len(trace.files) == 2


def test_names_full_of_traps_are_only_names(tmp_path: Path) -> None:
    name = "a[1]*'\"\n;drop table x; --.csv"
    trap = "\"'); drop table x; --"
    (tmp_path / "a1.csv").write_text("time,rate\n2026-09-01T00:00Z,9\n2026-09-01T00:10Z,9\n")
    header = 'time,"' + trap.replace('"', '""') + '",rate\n'
    trace = read(tmp_path, header + "2026-09-01T00:00Z,'x';--,1\n2026-09-01T00:10Z,'x';--,2\n", name=name)
    assert only(trace) == pytest.approx([1, 2])
    by_trap = read(
        tmp_path, header + "2026-09-01T00:00Z,3,1\n2026-09-01T00:10Z,4,2\n", name=name, columns={"rate": trap}
    )
    assert only(by_trap) == pytest.approx([3, 4])


def test_parquet_with_trapped_names_reads_too(tmp_path: Path) -> None:
    path = tmp_path / "b[0]';.parquet"
    con = duckdb.connect()
    con.sql(
        "select timestamptz '2026-09-01 00:00Z' + interval (i * 10) minute as ts, "
        'i::double as "ra""te\';--" from range(3) t(i)'
    ).write_parquet(str(path))
    source = DemandSource(name="p", file=path.name, folder=tmp_path, columns={"rate": "ra\"te';--"})
    assert only(read_trace(source)) == pytest.approx([0, 1, 2])


def test_a_table_of_an_sql_engine(tmp_path: Path) -> None:
    path = tmp_path / "w.ddb"
    with duckdb.connect(str(path)) as con:
        con.execute(
            "create table demand as select 'chat' as workload, "
            "timestamp '2026-09-01 00:00' + interval (i * 10) minute as ts, i as requests from range(3) t(i)"
        )
    source = DemandSource(name="sql", table="demand", time_zone="UTC")
    trace = read_trace(source, sql_url=f"duckdb://{path}")
    assert only(trace) * 600 == pytest.approx([0, 1, 2])
    assert trace.sha256 == ""
    with pytest.raises(InputError, match="EBBTIDE_SQL_URL"):
        read_trace(source)
    with pytest.raises(DemandError, match="there is no table 'demnd'; nearest: demand"):
        read_trace(DemandSource(name="sql", table="demnd"), sql_url=f"duckdb://{path}")
    with pytest.raises(PermanentError, match="cannot be reached") as caught:
        read_trace(source, sql_url="nosuch://user:secret@host/db")
    assert "secret" not in str(caught.value)


def test_finer_rows_of_one_key_join_coarser_ones_at_the_named_interval(tmp_path: Path) -> None:
    rows = [f"a,{UTC_DAY_S + 300 * n},{n}" for n in range(8)] + [f"b,{UTC_DAY_S + 600 * n},{n}" for n in range(4)]
    text = "model,time,rate\n" + "\n".join(rows) + "\n"
    with pytest.raises(DemandError) as caught:
        read(tmp_path, text)
    assert caught.value.kind == "mixed_intervals"
    trace = read(tmp_path, text, interval_s=600)
    assert trace.series["a"].rate_rps == pytest.approx([0.5, 2.5, 4.5, 6.5])
    assert trace.series["b"].rate_rps == pytest.approx([0, 1, 2, 3])
