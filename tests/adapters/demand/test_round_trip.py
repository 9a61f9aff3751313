"""Whatever series stand in a file, in whatever order and with whatever gaps, come back as they were."""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.adapters.demand.read import read_trace
from ebbtide.adapters.demand.source import DemandSource
from ebbtide.fleet.demand import Seen

START_S = 1_788_220_800

keys = st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=("Cs",)), min_size=1).filter(
    lambda key: key == key.strip() and len(key) < 40
)
rates = st.just(0.0) | st.floats(1e-15, 1e6)  # what lies between is read as 0


@st.composite
def tables(draw: st.DrawFn) -> dict[str, dict[int, float]]:
    length = draw(st.integers(4, 12))
    names = draw(st.lists(keys, min_size=1, max_size=2, unique=True))  # two: too few for outages
    series = {}
    for name in names:
        kept = draw(st.sets(st.integers(0, length - 1), min_size=0)) | {0, 1, 2, 3}
        series[name] = {at: draw(rates) for at in sorted(kept)}
    return series


@settings(max_examples=40)
@given(series=tables(), seed=st.integers(0, 2**32 - 1), form=st.sampled_from(["csv", "csv.gz", "parquet", "iso"]))
def test_round_trip(series: dict[str, dict[int, float]], seed: int, form: str) -> None:
    rows = [(key, START_S + 600 * at, rate) for key, cells in series.items() for at, rate in cells.items()]
    np.random.default_rng(seed).shuffle(rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"log.{'csv' if form == 'iso' else form}"
        write(path, rows, form)
        trace = read_trace(DemandSource(name="log", file=path.name, folder=Path(folder)))
    assert set(trace.series) == set(series)
    for key, cells in series.items():
        read = trace.series[key]
        assert read.interval_s == 600
        at = (read.starts_s - START_S) // 600
        observed = {
            int(number): float(rate) for number, rate in zip(at, read.rate_rps, strict=True) if np.isfinite(rate)
        }
        assert observed == cells
        assert (np.isfinite(read.rate_rps) == (read.seen == Seen.OBSERVED)).all()
        assert set(read.seen.tolist()) <= {Seen.OBSERVED, Seen.MISSING}


def write(path: Path, rows: list[tuple[str, int, float]], form: str) -> None:
    con = duckdb.connect()
    con.execute("create table log (workload varchar, second bigint, rate double)")
    con.executemany("insert into log values (?, ?, ?)", [(str(key), int(at), float(rate)) for key, at, rate in rows])
    if form == "parquet":
        con.sql("select workload, to_timestamp(second) as ts, rate from log").write_parquet(str(path))
    elif form == "iso":
        con.sql(
            "select workload, strftime(to_timestamp(second), '%Y-%m-%dT%H:%M:%SZ') as time, rate from log"
        ).write_csv(str(path))
    else:
        con.sql("select workload, second as ts, rate from log").write_csv(str(path))
