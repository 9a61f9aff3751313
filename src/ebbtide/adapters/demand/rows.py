"""Rows of a source as checked arrays: key, time, value. Errors name the row's file and line where there is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from ebbtide.adapters.demand.cells import (
    LARGEST_NUMBER,
    cell_text,
    flags_of,
    floats_of,
    key_column,
    keys_of,
    number_columns,
    raw_times,
    row_place,
    time_expressions,
)
from ebbtide.adapters.demand.columns import Roles
from ebbtide.adapters.demand.tables import OpenTable
from ebbtide.adapters.demand.times import TimeError, Times, resolve_times
from ebbtide.adapters.demand.zones import Ints
from ebbtide.errors import DemandError
from ebbtide.fleet.demand import Floats

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Rows per interval in the order of the source: ``codes[i]`` is row i's place in ``keys``.

    ``value`` is NaN where the cell is empty (missing, never 0); ``scv``, ``service_s`` are None without such a column.
    ``numbered``: row i is row i of the source (False where the engine put rows together).
    """

    opened: OpenTable
    keys: tuple[str, ...]
    codes: Ints
    times: Times
    value: Floats
    scv: Floats | None
    service_s: Floats | None
    service_scv: Floats | None = None
    numbered: bool = True

    def complain(self, row: int, kind: str, message: str, hint: str | None = None) -> NoReturn:
        """Raise the ``DemandError`` for a row."""
        place = row_place(self.opened, row) if self.numbered else self.opened.place
        raise DemandError(message, kind=kind, place=place, hint=hint)


def read_rows(opened: OpenTable, roles: Roles) -> Rows:
    """All rows of a source that has a row per interval, checked: times, numbers, keys.

    Raises ``DemandError``: ``no_rows``, ``bad_number``, ``negative``, ``no_workload`` and those of ``resolve_times``.
    """
    value = roles.rate or roles.count
    assert value is not None
    wanted = {"value": value, "cv": roles.cv, "service": roles.service_time}
    numbers = {name: column for name, column in wanted.items() if column is not None}
    columns: dict[str, ir.Value] = {"key": key_column(opened, roles)}
    columns |= time_expressions(opened, roles.time)
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


def _times(opened: OpenTable, roles: Roles, fetched: pyarrow.Table) -> Times:
    try:
        return resolve_times(raw_times(fetched), relative=roles.time_is_relative, source=opened.source)
    except TimeError as error:
        cell = cell_text(opened, roles.time, error.row)
        message = f"{cell} {error.message}" if error.kind == "not_a_time" else f"{error.message}: {cell}"
        raise DemandError(message, kind=error.kind, place=row_place(opened, error.row), hint=error.hint) from error


def _checked(opened: OpenTable, fetched: pyarrow.Table, name: str, column: str) -> Floats:
    numbers = floats_of(fetched, name)
    bad = flags_of(fetched, f"{name}_given") & ~(np.abs(numbers) < LARGEST_NUMBER)
    if bad.any():
        _complain_of_number(opened, column, int(np.argmax(bad)), "bad_number", "is no finite number")
    if (below := numbers < 0).any():
        _complain_of_number(opened, column, int(np.argmax(below)), "negative", "is below zero")
    return numbers


def _complain_of_number(opened: OpenTable, column: str, row: int, kind: str, what: str) -> NoReturn:
    message = f"{column[:60]} {cell_text(opened, column, row)} {what}"
    hint = "leave the cell empty where nothing was observed" if kind == "bad_number" else None
    raise DemandError(message, kind=kind, place=row_place(opened, row), hint=hint)
