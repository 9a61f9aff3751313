"""The time column of a request log as engine expressions: one look for its kind where the type leaves it open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from ebbtide.adapters.demand.cells import time_expressions
from ebbtide.adapters.demand.columns import Roles
from ebbtide.adapters.demand.lines import locate_cell
from ebbtide.adapters.demand.tables import OpenTable
from ebbtide.adapters.demand.times import (
    EPOCH_UNITS,
    FIRST_S,
    LAST_S,
    MICRO,
    NANOSECOND,
    READABLE,
    is_relative,
    origin_of,
    zone_of,
)
from ebbtide.adapters.demand.zones import clock_over
from ebbtide.errors import DemandError, Place

if TYPE_CHECKING:
    import ibis.expr.types as ir

# Any instant of our days tells where a zone's midnight falls between the intervals of an hour or less.
_AN_INSTANT_S = 1_767_225_600


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogTimes:
    """``at``: each request's time; ``bucket``: its interval's start. Timestamps, or microseconds (``is_timestamp``).

    ``anchor_s``: intervals begin there modulo their length, in UTC or, ``is_local``, on the wall clock.
    """

    at: ir.Value
    bucket: ir.Value
    is_timestamp: bool
    is_local: bool
    step_s: int
    anchor_s: int


def log_times(opened: OpenTable, roles: Roles, step_s: int) -> LogTimes:
    """How the log's times are to be read. Raises ``DemandError`` as ``resolve_times`` does."""
    expressions = time_expressions(opened, roles.time)
    kind = next(iter(expressions)) if len(expressions) == 1 else _one_kind(opened, roles, expressions)
    if kind == "time_number":
        return _numbers(opened, roles, expressions[kind], step_s)
    is_local = kind == "time_local"
    if is_local:
        zone_of(opened.source)
    anchor_s = 0 if is_local else _midnight_s(opened) % step_s
    # The engine's session is in UTC: without its zone an instant keeps its UTC reading.
    at = expressions[kind] if is_local else expressions[kind].cast("timestamp")
    return LogTimes(
        at=at,
        bucket=_bucket(at, step_s, anchor_s),
        is_timestamp=True,
        is_local=is_local,
        step_s=step_s,
        anchor_s=anchor_s,
    )


def complain_of_cell(opened: OpenTable, column: str, bad: ir.BooleanValue, kind: str, what: str, hint: str) -> NoReturn:
    """Raise the ``DemandError`` for the first cell that ``bad`` finds, with its line where it has one."""
    cell = opened.column(column).cast("string")
    fetched = opened.fetch(opened.table.filter(bad).select(cell=cell).limit(1))
    text = fetched["cell"][0].as_py() if fetched.num_rows else None
    place = locate_cell(opened.files, column, text) if opened.files is not None else opened.place
    if place == Place():
        place = opened.place
    shown = "an empty cell" if text is None else repr(text if len(text) <= 60 else text[:57] + "...")
    raise DemandError(f"{column[:60]} {shown} {what}", kind=kind, place=place, hint=hint)


def outside_range(at: ir.Value, *, is_timestamp: bool) -> ir.BooleanValue:
    """Whether a time lies outside the years 1971 to 2199."""
    import ibis

    first, last = (
        ibis.timestamp(str(year) + "-01-01") if is_timestamp else ibis.literal(second * MICRO)
        for year, second in ((1971, FIRST_S), (2200, LAST_S))
    )
    return (at < first) | (at >= last)


def _bucket(at: ir.Value, step_s: int, anchor_s: int) -> ir.Value:
    import ibis

    return at.bucket(seconds=step_s, offset=ibis.interval(seconds=anchor_s) if anchor_s else None)


def _midnight_s(opened: OpenTable) -> int:
    zone = opened.source.time_zone
    if zone is None:
        return 0
    clock = clock_over(zone, _AN_INSTANT_S, _AN_INSTANT_S)
    return -int(clock.offset_at(np.array([_AN_INSTANT_S], dtype=np.int64))[0])


def _one_kind(opened: OpenTable, roles: Roles, expressions: dict[str, ir.Value]) -> str:
    look = opened.table.aggregate(
        rows=opened.table.count(), **{name: cell.count() for name, cell in expressions.items()}
    )
    counts: dict[str, int] = opened.fetch(look).to_pylist()[0]
    rows = counts.pop("rows")
    if rows == 0:
        raise DemandError("holds no rows", kind="no_rows", place=opened.place, hint="check the export")
    if sum(counts.values()) < rows:
        number, local, instant = expressions["time_number"], expressions["time_local"], expressions["time_instant"]
        unread = number.isnull() & local.isnull() & instant.isnull()
        complain_of_cell(opened, roles.time, unread, "not_a_time", "cannot be read as a time", READABLE)
    kinds = sorted((name for name in counts if counts[name]), key=lambda name: counts[name])
    if len(kinds) > 1:
        what = "has another form than the other times: with an offset, without one, or a number"
        hint = "write all times in one form"
        complain_of_cell(opened, roles.time, expressions[kinds[0]].notnull(), "mixed_times", what, hint)
    return kinds[0]


def _numbers(opened: OpenTable, roles: Roles, number: ir.Value, step_s: int) -> LogTimes:
    import ibis

    unread = number.isnull() | number.isnan() | number.isinf()
    look = opened.table.aggregate(rows=opened.table.count(), low=number.min(), high=number.max(), unread=unread.sum())
    seen = opened.fetch(look).to_pylist()[0]
    if seen["rows"] == 0:
        raise DemandError("holds no rows", kind="no_rows", place=opened.place, hint="check the export")
    if seen["unread"]:
        complain_of_cell(opened, roles.time, unread, "not_a_time", "cannot be read as a time", READABLE)
    relative = roles.time_is_relative or is_relative(seen["low"], seen["high"])
    if relative and max(abs(seen["low"]), abs(seen["high"])) >= EPOCH_UNITS[0][0]:
        far = number.abs() >= EPOCH_UNITS[0][0]
        complain_of_cell(opened, roles.time, far, "time_out_of_range", "is a time far outside the trace", "")
    factor = ibis.literal(float(MICRO)) if relative else _unit(number)
    at = (number * factor).round().cast("int64") + (origin_of(opened.source) * MICRO if relative else 0)
    anchor_s = _midnight_s(opened) % step_s
    bucket = (at - anchor_s * MICRO) // (step_s * MICRO) * (step_s * MICRO) + anchor_s * MICRO
    return LogTimes(at=at, bucket=bucket, is_timestamp=False, is_local=False, step_s=step_s, anchor_s=anchor_s)


def _unit(number: ir.Value) -> ir.Value:
    import ibis

    branches = [(number.abs() < below, ibis.literal(unit)) for below, unit in EPOCH_UNITS]
    return ibis.cases(*branches, else_=ibis.literal(NANOSECOND))
