"""Columns as expressions and as arrays: keys, numbers, times; and what a cell reads, for a message."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ebbtide.adapters.demand.columns import Roles
from ebbtide.adapters.demand.files import printable
from ebbtide.adapters.demand.lines import locate_row
from ebbtide.adapters.demand.tables import FILE_COLUMN, OpenTable
from ebbtide.adapters.demand.times import RawTimes, TimeError, time_columns
from ebbtide.adapters.demand.zones import Ints
from ebbtide.errors import DemandError, Place
from ebbtide.fleet.demand import Floats

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow


# Beyond, a number is a mistake, and its square would leave the range of a float. (NaN compares as larger in SQL.)
LARGEST_NUMBER = 1e15
# Below, a number is nothing: one request in thirty million years. Its square or its inverse would leave the range too.
SMALLEST_NUMBER = 1e-15


def key_column(opened: OpenTable, roles: Roles) -> ir.Value:
    """The workload's key as text; without such a column the path of the row's file, or the table's name."""
    import ibis

    if roles.workload is not None:
        return opened.column(roles.workload).cast("string")
    if opened.files is None:
        return ibis.literal(str(opened.source.table).rsplit(".", 1)[-1])
    return ibis.literal(file_key(opened.files.paths[0])) if len(opened.files.paths) == 1 else opened.table[FILE_COLUMN]


def file_key(path: PurePath) -> str:
    """A file's stem, the key of a series that has a file to itself.

    >>> file_key(Path("logs/chat.csv.gz"))
    'chat'
    """
    name = path.name.removesuffix(".gz")
    stem = PurePath(name).stem
    return stem or name


def keys_of(opened: OpenTable, roles: Roles, fetched: pyarrow.Table) -> tuple[tuple[str, ...], Ints]:
    """Distinct keys in order of appearance, and each row's place among them."""
    import pyarrow.compute as pc

    encoded = fetched["key"].combine_chunks().dictionary_encode()
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    keys = [str(key) for key in encoded.dictionary.to_pylist()]
    empty = np.isin(codes, [number for number, key in enumerate(keys) if not key.strip()] + [-1])
    if empty.any():
        row = int(np.argmax(empty))
        raise DemandError("no workload is named", kind="no_workload", place=row_place(opened, row))
    if roles.workload is None and opened.files is not None and len(opened.files.paths) > 1:
        keys = _stems(opened, keys)
    return tuple(keys), codes


def _stems(opened: OpenTable, paths: list[str]) -> list[str]:
    stems: dict[str, str] = {}
    for path in paths:
        stem = file_key(Path(path))
        if stem in stems:
            message = f"{printable(stems[stem])} and {printable(path)} would both be the workload {printable(stem)!r}"
            hint = "without a workload column every file is one workload: give the files different names"
            raise DemandError(message, kind="same_key", place=opened.place, hint=hint)
        stems[stem] = path
    return list(stems)


def number_columns(opened: OpenTable, column: str, name: str) -> dict[str, ir.Value]:
    """``name`` as a float (0 below 1e-15), and ``name_given``: true where the cell holds anything at all."""
    cell = opened.column(column)
    kind = cell.type()
    if kind.is_string():
        text = cell.strip()
        return {name: _flushed(text.try_cast("float64")), f"{name}_given": (text != "").fill_null(False)}
    if kind.is_numeric() and not kind.is_boolean():
        return {name: _flushed(cell.cast("float64")), f"{name}_given": cell.notnull()}
    message = f"column {column[:60]!r} of type {kind} holds no numbers"
    raise DemandError(message, kind="bad_number", place=opened.place)


def _flushed(number: ir.Value) -> ir.Value:
    return (number.abs() < SMALLEST_NUMBER).ifelse(0.0, number)


def row_place(opened: OpenTable, row: int) -> Place:
    """File and line of a row of the source; the source where the engine keeps no order."""
    if opened.files is None or opened.files.form is None:
        return Place(file=opened.place.file, field=opened.place.field or f"row {row + 1}")
    return locate_row(opened.files, row)


def cell_text(opened: OpenTable, column: str, row: int) -> str:
    """What a cell reads, shortened, for a message."""
    fetched = opened.fetch(opened.table.select(cell=opened.column(column).cast("string")).limit(1, offset=row))
    text = fetched["cell"][0].as_py() if fetched.num_rows else None
    return "an empty cell" if text is None else repr(text if len(text) <= 60 else text[:57] + "...")


def floats_of(fetched: pyarrow.Table, name: str) -> Floats:
    """A column as floats, NaN where it is null."""
    return np.asarray(fetched[name].to_numpy(), dtype=np.float64)


def time_expressions(opened: OpenTable, time: str) -> dict[str, ir.Value]:
    """``time_columns`` of a column, its complaint placed."""
    try:
        return time_columns(opened.column(time))
    except TimeError as error:
        raise DemandError(error.message, kind=error.kind, place=opened.place) from error


def flags_of(fetched: pyarrow.Table, name: str) -> NDArray[np.bool_]:
    """A column as booleans."""
    return np.asarray(fetched[name].to_numpy(), dtype=np.bool_)


def raw_times(fetched: pyarrow.Table) -> RawTimes:
    """The columns of ``time_columns`` as arrays."""
    rows = fetched.num_rows
    number, has_number = np.zeros(rows), np.zeros(rows, dtype=np.bool_)
    if "time_number" in fetched.column_names:
        has_number = _valid(fetched["time_number"])
        number = np.where(has_number, floats_of(fetched, "time_number"), 0.0)
    local, has_local = micros_of(fetched, "time_local")
    instant, has_instant = micros_of(fetched, "time_instant")
    return RawTimes(
        number=number,
        has_number=has_number,
        local=local,
        has_local=has_local,
        instant=instant,
        has_instant=has_instant,
    )


def micros_of(fetched: pyarrow.Table, name: str) -> tuple[Ints, NDArray[np.bool_]]:
    """A column of timestamps as microseconds, and where there is one at all."""
    import pyarrow as pa

    if name not in fetched.column_names:
        return np.zeros(fetched.num_rows, dtype=np.int64), np.zeros(fetched.num_rows, dtype=np.bool_)
    column: Any = fetched[name]
    micros = column.cast(pa.timestamp("us", tz=column.type.tz), safe=False).cast(pa.int64())
    return np.asarray(micros.fill_null(0).to_numpy(), dtype=np.int64), _valid(column)


def _valid(column: Any) -> NDArray[np.bool_]:
    return np.asarray(column.is_valid().to_numpy(), dtype=np.bool_)
