"""Aggregating 50 million request rows from Parquet against the same query written by hand for DuckDB.

``uv run python -m benchmarks.aggregate [ROWS]``: CPU time of all threads, each side in turn, the least of two runs; the
file (0.7 GB) stays in the system's folder for temporary files. The peer asks for all that the Fleet's planning needs
of a log: requests, ends, and the moments of gaps and service times of every workload and 10 minutes.
"""

from __future__ import annotations

import sys
import tempfile
import time
import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np

from ebbtide.adapters.demand.read import read_trace
from ebbtide.adapters.demand.source import DemandSource

ROWS = 50_000_000
RUNS = 2
START_US = 1_788_192_000_000_000
SPAN_US = 14 * 86_400 * 1_000_000

BARE = """
select model, bucket, count(*) as requests, min(ts), max(ts), avg(gap_us), var_pop(gap_us),
       avg(duration_s), var_pop(duration_s), min(duration_s)
from (
  select *, date_diff('microsecond', lag(ts) over (partition by model, bucket order by ts), ts)::double as gap_us
  from (select model, ts, duration_s, time_bucket(interval 600 second, ts, timestamp 'epoch') as bucket
        from read_parquet($path))
)
group by model, bucket
"""
WITHOUT_GAPS = """
select model, time_bucket(interval 600 second, ts, timestamp 'epoch') as bucket, count(*) as requests, min(ts), max(ts),
       avg(duration_s), var_pop(duration_s), min(duration_s)
from read_parquet($path) group by model, bucket
"""


def log_of(rows: int) -> Path:
    """A log of eight models over two weeks, times not quite in order, exponential service times of 8 s on average."""
    path = Path(tempfile.gettempdir()) / f"ebbtide-aggregate-{rows}.parquet"
    if not path.exists():
        unfinished = path.with_suffix(".part")
        con = duckdb.connect()
        con.execute(
            "copy (select 'model-' || (hash(i) % 8)::varchar as model, "
            "make_timestamp($start + (i * ($span / $rows))::bigint + (hash(i + 7) % 1000000)::bigint) as ts, "
            "-ln(((hash(i + 3) % 1000000) + 1) / 1000001.0) * 8 as duration_s "
            f"from range($rows) t(i)) to '{unfinished}' (format parquet)",
            {"start": START_US, "span": float(SPAN_US), "rows": rows},
        )
        unfinished.replace(path)
    return path


def bare(query: str, path: Path) -> int:
    """Requests that the hand-written query counts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # DuckDB's advice on how to fetch is not what is measured
        counts = duckdb.connect().execute(query, {"path": str(path)}).to_arrow_table()["requests"].to_pylist()
    return sum(counts)


def ours(path: Path) -> int:
    """Requests that ebbtide reads: the same query through Ibis, with files' digests, zones, outages and sums."""
    trace = read_trace(DemandSource(name="log", file=path.name, folder=path.parent, time_zone="UTC"))
    return round(sum(np.nansum(series.rate_rps) * series.interval_s for series in trace.series.values()))


def cpu_s(work: Callable[[], int]) -> tuple[float, int]:
    """CPU seconds of all threads of this process, and what the work found."""
    before = time.process_time()
    found = work()
    return time.process_time() - before, found


def main(rows: int = ROWS) -> int:
    """1 where the limit does not hold."""
    limit = tomllib.loads(Path(__file__).with_name("limits.toml").read_text())["aggregate"]["times_duckdb"]
    path = log_of(rows)
    ours(log_of(1000))  # imports are paid once a process, whatever the log
    mine, theirs = [], []
    for _ in range(RUNS):
        theirs.append(cpu_s(lambda: bare(BARE, path)))
        mine.append(cpu_s(lambda: ours(path)))
    # The log's cut ends are no whole intervals: ebbtide leaves them out.
    assert abs(mine[0][1] - theirs[0][1]) <= 0.002 * rows, "the two sides counted different requests"
    plain_s, _ = cpu_s(lambda: bare(WITHOUT_GAPS, path))
    ratio = min(mine)[0] / min(theirs)[0]
    print(
        f"{rows:,} requests: {min(mine)[0]:.1f} CPU-s; DuckDB by hand {min(theirs)[0]:.1f} (without gaps {plain_s:.1f})"
    )
    print(f"{ratio:.2f} times DuckDB, at most {limit}")
    return 0 if ratio <= limit else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
