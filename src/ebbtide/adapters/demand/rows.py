"""Rows of a source as checked arrays: key, time, value. Errors name the row's file and line where there is one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ebbtide.adapters.demand.columns import Roles
from ebbtide.adapters.demand.files import locate_row, printable
from ebbtide.adapters.demand.tables import FILE_COLUMN, OpenTable
from ebbtide.adapters.demand.times import RawTimes, TimeError, Times, resolve_times, time_columns
from ebbtide.adapters.demand.zones import Ints
from ebbtide.errors import DemandError, Place
from ebbtide.fleet.demand import Floats

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Rows per interval in the order of the source: ``codes[i]`` is row i's place in ``keys``.

    ``value`` is NaN where the cell is empty (missing, never 0); ``scv``, ``service_s`` are None without such a column.
    """

    opened: OpenTable
    keys: tuple[str, ...]
    codes: Ints
    times: Times
    value: Floats
    scv: Floats | None
    service_s: Floats | None

    def complain(self, row: int, kind: str, message: str, hint: str | None = None) -> NoReturn:
        """Raise the ``DemandError`` for a row."""
        raise DemandError(message, kind=kind, place=row_place(self.opened, row), hint=hint)


def read_rows(opened: OpenTable, roles: Roles) -> Rows:
    """All rows of a source that has a row per interval, checked: times, numbers, keys.

    Raises ``DemandError``: ``no_rows``, ``bad_number``, ``negative``, ``no_workload`` and those of ``resolve_times``.
    """
    value = roles.rate or roles.count
    assert value is not None
    wanted = {"value": value, "cv": roles.cv, "service": roles.service_time}
    numbers = {name: column for name, column in wanted.items() if column is not None}
    columns: dict[str, ir.Value] = {"key": key_column(opened, roles)}
    columns |= _time_columns(opened, roles.time)
    for name, column in numbers.items():
        columns |= number_columns(opened, column, name)
    fetched = opened.fetch(opened.table.select(**columns))
    if fetched.num_rows == 0:
        raise DemandError("holds no rows", kind="no_rows", place=opened.place, hint="check the export")
    keys, codes = keys_of(opened, roles, fetched)
    times = _times(opened, roles, fetched)
    read = {name: _checked(opened, fetched, name, column) for name, column in numbers.items()}
    cv = read.get("cv")
    # A client without requests has a cv of 0 in many exports: that is no measurement.
    scv = None if cv is None else np.where((read["value"] > 0) & (cv > 0), cv * cv, np.nan)
    return Rows(
        opened=opened,
        keys=keys,
        codes=codes,
        times=times,
        value=read["value"],
        scv=scv,
        service_s=read.get("service"),
    )


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
    """``name`` as a float, and ``name_given``: true where the cell holds anything at all."""
    cell = opened.column(column)
    kind = cell.type()
    if kind.is_string():
        text = cell.strip()
        return {name: text.try_cast("float64"), f"{name}_given": (text != "").fill_null(False)}
    if kind.is_numeric() and not kind.is_boolean():
        return {name: cell.cast("float64"), f"{name}_given": cell.notnull()}
    message = f"column {column[:60]!r} of type {kind} holds no numbers"
    raise DemandError(message, kind="bad_number", place=opened.place)


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


def _time_columns(opened: OpenTable, time: str) -> dict[str, ir.Value]:
    try:
        return time_columns(opened.column(time))
    except TimeError as error:
        raise DemandError(error.message, kind=error.kind, place=opened.place) from error


def _times(opened: OpenTable, roles: Roles, fetched: pyarrow.Table) -> Times:
    try:
        return resolve_times(raw_times(fetched), relative=roles.time_is_relative, source=opened.source)
    except TimeError as error:
        cell = cell_text(opened, roles.time, error.row)
        message = f"{cell} {error.message}" if error.kind == "not_a_time" else f"{error.message}: {cell}"
        raise DemandError(message, kind=error.kind, place=row_place(opened, error.row), hint=error.hint) from error


def raw_times(fetched: pyarrow.Table) -> RawTimes:
    """The columns of ``time_columns`` as arrays."""
    rows = fetched.num_rows
    number, has_number = np.zeros(rows), np.zeros(rows, dtype=np.bool_)
    if "time_number" in fetched.column_names:
        has_number = _valid(fetched["time_number"])
        number = np.where(has_number, floats_of(fetched, "time_number"), 0.0)
    local, has_local = _micros(fetched, "time_local")
    instant, has_instant = _micros(fetched, "time_instant")
    return RawTimes(
        number=number,
        has_number=has_number,
        local=local,
        has_local=has_local,
        instant=instant,
        has_instant=has_instant,
    )


def _micros(fetched: pyarrow.Table, name: str) -> tuple[Ints, NDArray[np.bool_]]:
    import pyarrow as pa

    if name not in fetched.column_names:
        return np.zeros(fetched.num_rows, dtype=np.int64), np.zeros(fetched.num_rows, dtype=np.bool_)
    column: Any = fetched[name]
    micros = column.cast(pa.timestamp("us", tz=column.type.tz), safe=False).cast(pa.int64())
    return np.asarray(micros.fill_null(0).to_numpy(), dtype=np.int64), _valid(column)


def _valid(column: Any) -> NDArray[np.bool_]:
    return np.asarray(column.is_valid().to_numpy(), dtype=np.bool_)


def _checked(opened: OpenTable, fetched: pyarrow.Table, name: str, column: str) -> Floats:
    numbers = floats_of(fetched, name)
    bad = np.asarray(fetched[f"{name}_given"].to_numpy(), dtype=np.bool_) & ~np.isfinite(numbers)
    if bad.any():
        _complain_of_number(opened, column, int(np.argmax(bad)), "bad_number", "is no finite number")
    if (below := numbers < 0).any():
        _complain_of_number(opened, column, int(np.argmax(below)), "negative", "is below zero")
    return numbers


def _complain_of_number(opened: OpenTable, column: str, row: int, kind: str, what: str) -> NoReturn:
    message = f"{column[:60]} {cell_text(opened, column, row)} {what}"
    hint = "leave the cell empty where nothing was observed" if kind == "bad_number" else None
    raise DemandError(message, kind=kind, place=row_place(opened, row), hint=hint)
