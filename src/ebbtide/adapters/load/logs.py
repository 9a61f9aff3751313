"""Columns of a request log (CSV, .csv.gz, Parquet): arrival times and token lengths."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ebbtide.errors import InputError, Place

Floats = NDArray[np.float64]
TIMES = ("t_s", "timestamp", "time", "ts", "TIMESTAMP")
INPUTS = ("input_tokens", "ContextTokens", "prompt_tokens", "num_prefill_tokens")
OUTPUTS = ("output_tokens", "GeneratedTokens", "completion_tokens", "num_decode_tokens")


def token_lengths(path: Path, rows: int) -> tuple[Floats, Floats]:
    """Input and output tokens of the first ``rows`` requests. ``InputError`` where the file has no such columns."""
    found = _columns(path, {"input_tokens": INPUTS, "output_tokens": OUTPUTS}, rows)
    lengths = found["input_tokens"], found["output_tokens"]
    if any(not np.all(one >= 0.0) for one in lengths):
        raise InputError("a token count is below 0 or missing", kind="bad_tokens", place=Place(file=str(path)))
    return lengths


def arrival_gaps(path: Path) -> Floats:
    """Seconds between the requests of a log, in the order of their times. ``InputError`` where there are too few."""
    times_s = np.sort(_columns(path, {"time": TIMES}, None)["time"])
    gaps_s = np.diff(times_s)
    if len(gaps_s) < 100 or not np.all(np.isfinite(gaps_s)) or not gaps_s.mean() > 0.0:
        message = f"holds {len(times_s):,} arrival times; a replay needs 101 or more, and not all at once"
        raise InputError(message, kind="too_few_arrivals", place=Place(file=str(path)))
    return gaps_s


def _columns(path: Path, wanted: Mapping[str, tuple[str, ...]], rows: int | None) -> dict[str, Floats]:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    place = Place(file=str(path))
    try:
        table = pa.parquet.read_table(path) if path.suffix == ".parquet" else pa.csv.read_csv(path)
    except FileNotFoundError:
        raise InputError("no such file", kind="no_file", place=place) from None
    except (OSError, pa.ArrowException) as problem:
        raise InputError(f"can't be read as a log: {problem}", kind="bad_log", place=place) from problem
    found = {}
    for role, names in wanted.items():
        name = next((one for one in names if one in table.column_names), None)
        if name is None:
            have = ", ".join(table.column_names[:12])
            message = f"has no column for {role} ({' or '.join(names)}); it has {have}"
            raise InputError(message, kind="missing_column", place=place)
        found[role] = _numbers(table[name] if rows is None else table[name][:rows], place, name)
    if not all(len(one) for one in found.values()):
        raise InputError("holds no rows", kind="no_rows", place=place)
    return found


def _numbers(column: object, place: Place, name: str) -> Floats:
    import pyarrow as pa
    import pyarrow.compute

    try:
        if pa.types.is_string(column.type):  # type: ignore[attr-defined] # pyarrow has no types
            column = pa.compute.cast(column, pa.timestamp("us"))
        if pa.types.is_timestamp(column.type):  # type: ignore[attr-defined] # pyarrow has no types
            whole = pa.compute.cast(pa.compute.cast(column, pa.timestamp("us")), pa.int64())
            return np.asarray(whole.to_numpy(zero_copy_only=False), dtype=np.float64) / 1e6
        return np.asarray(column.to_numpy(), dtype=np.float64)  # type: ignore[attr-defined] # pyarrow has no types
    except (pa.ArrowException, TypeError, ValueError) as problem:
        raise InputError(f"column {name} holds no numbers or times: {problem}", kind="bad_log", place=place) from None
