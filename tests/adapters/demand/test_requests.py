"""Logs of requests: what the engine aggregates is what a loop over the requests would find."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest

from ebbtide.adapters.demand.read import read_trace
from ebbtide.adapters.demand.source import DemandSource
from ebbtide.fleet.demand import Seen, Series

DATA = Path(__file__).parents[2] / "data"
START_S = 1_788_220_800  # 2026-09-01T00:00Z


def log(folder: Path, at_s: np.ndarray, *, model: list[str] | None = None, service_s: np.ndarray | None = None) -> Path:
    columns = (
        ["to_timestamp(second) as ts"]
        + ([] if model is None else ["model"])
        + ([] if service_s is None else ["duration_s"])
    )
    con = duckdb.connect()
    con.execute("create table log (second double, model varchar, duration_s double)")
    rows = [
        (float(at), "a" if model is None else model[row], None if service_s is None else float(service_s[row]))
        for row, at in enumerate(at_s)
    ]
    con.executemany("insert into log values (?, ?, ?)", rows)
    path = folder / "log.parquet"
    con.sql(f"select {', '.join(columns)} from log").write_parquet(str(path))
    return path


def series_of(path: Path, key: str = "log", **source: object) -> Series:
    read = DemandSource(name="log", file=path.name, folder=path.parent, **source)
    return read_trace(read).series[key]


def test_an_hour_of_azures_conversations(tmp_path: Path) -> None:
    name = "azure_llm_2023_conv_first_6000.csv.gz"
    trace = read_trace(DemandSource(name="azure", file=name, folder=DATA, time_zone="UTC"))
    (series,) = trace.series.values()
    assert trace.interval_s == 600
    times = duckdb.sql(f"select epoch(timestamp) from read_csv('{DATA / name}') order by 1").fetchnumpy()[
        'epoch("timestamp")'
    ]
    at = (times - series.start_s) // 600
    # The log begins at 18:15:46 and ends inside an interval: both ends are missing, not low.
    assert series.seen.tolist() == [Seen.MISSING] + [Seen.OBSERVED] * (len(series.seen) - 2) + [Seen.MISSING]
    for number in range(1, len(series.seen) - 1):
        inside = times[at == number]
        assert series.rate_rps[number] * 600 == pytest.approx(len(inside))
        gaps = np.diff(inside)
        assert series.arrival_scv is not None
        assert series.arrival_scv[number] == pytest.approx(gaps.var() / gaps.mean() ** 2, rel=1e-4)


def test_moments_are_those_of_the_requests_and_need_a_hundred(tmp_path: Path) -> None:
    rng = np.random.default_rng(11)
    at_s = START_S + np.sort(rng.uniform(0, 600, 150))
    few_s = START_S + 600 + np.sort(rng.uniform(0, 600, 99))
    service_s = rng.gamma(2.0, 3.0, 249)
    order = rng.permutation(249)
    path = log(tmp_path, np.concatenate([at_s, few_s])[order], service_s=service_s[order])
    series = series_of(path)
    assert series.rate_rps * 600 == pytest.approx([150, 99])
    assert series.arrival_scv is not None
    assert series.service_mean_s is not None
    assert series.service_scv is not None
    gaps = np.diff(at_s)
    assert series.arrival_scv[0] == pytest.approx(gaps.var() / gaps.mean() ** 2, rel=1e-5)
    assert series.service_mean_s == pytest.approx([service_s[:150].mean(), service_s[150:].mean()])
    assert series.service_scv[0] == pytest.approx(service_s[:150].var() / service_s[:150].mean() ** 2)
    assert np.isnan([series.arrival_scv[1], series.service_scv[1]]).all()


def test_an_empty_interval_inside_the_span_is_zero(tmp_path: Path) -> None:
    at_s = np.array([START_S + 1.0, START_S + 1802.0, START_S + 2399.0])
    path = log(tmp_path, at_s, model=["a", "b", "a"])
    a, b = series_of(path, "a"), series_of(path, "b")
    assert a.rate_rps * 600 == pytest.approx([1, 0, 0, 1])
    assert b.rate_rps * 600 == pytest.approx([0, 0, 0, 1])
    assert (a.seen == Seen.OBSERVED).all()


@pytest.mark.parametrize(("interval_s", "counts"), [(300, [2, 1, 0, 1]), (1200, [4]), (7200, [4])])
def test_the_interval_is_the_sources(tmp_path: Path, interval_s: int, counts: list[int]) -> None:
    path = log(tmp_path, START_S + np.array([0.0, 299.9999, 300.0, 1199.0]))
    series = series_of(path, interval_s=interval_s)
    assert series.interval_s == interval_s
    assert series.rate_rps[np.isfinite(series.rate_rps)] * interval_s == pytest.approx(
        counts if interval_s < 7200 else [8]  # one of its two hours was seen: the rate is that hour's
    )


@pytest.mark.parametrize("unit", [1, 1_000, 1_000_000])
def test_epochs_of_every_size(tmp_path: Path, unit: int) -> None:
    text = "ts\n" + "".join(f"{(START_S + at) * unit}\n" for at in (0, 1, 599, 600, 1199))
    (tmp_path / "log.csv").write_text(text)
    series = series_of(tmp_path / "log.csv")
    assert series.start_s == START_S
    assert series.rate_rps * 600 == pytest.approx([3, 2])


def test_seconds_from_an_origin(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("t_s,model\n0.5,a\n599.9999999,a\n600,a\n1199,a\n")
    series = series_of(tmp_path / "log.csv", "a", origin="2026-09-01T08:00", time_zone="Asia/Shanghai")
    assert series.start_s == START_S
    assert series.rate_rps * 600 == pytest.approx([1, 3])  # to the microsecond, 599.9999999 s is 600 s


def test_the_repeated_hour_of_a_log_is_shared_out(tmp_path: Path) -> None:
    rows = ["00:59:59", "01:00:00", "01:10:00", "01:59:59", "01:20:00", "02:00:00", "02:59:00"]
    (tmp_path / "log.csv").write_text("time\n" + "".join(f"2014-11-02 {row}\n" for row in rows))
    series = series_of(tmp_path / "log.csv", time_zone="America/New_York", interval_s=3600)
    assert series.rate_rps * 3600 == pytest.approx([1, 2, 2, 2])


def test_hours_of_kolkata_begin_at_half_past_in_a_log_too(tmp_path: Path) -> None:
    path = log(tmp_path, START_S + np.array([1800.0, 3600.0, 5399.0, 5400.0, 8999.0]))
    series = series_of(path, time_zone="Asia/Kolkata", interval_s=3600)
    assert series.start_s == START_S + 1800
    assert series.rate_rps * 3600 == pytest.approx([3, 2])
