"""Times of rows: text, engine types, epochs by size, or seconds from an origin, all to microseconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ebbtide.adapters.demand.zones import Ints, check_zone, origin_s
from ebbtide.errors import DemandError, Place

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from ebbtide.adapters.demand.source import DemandSource

MICRO = 1_000_000
# Text that is a date, a time if any, and an offset if any. Names of zones after a time are refused, not dropped.
_ISO = r"^\s*\d{4}-\d{1,2}-\d{1,2}([Tt ]\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?\s*([Zz]|[+-]\d{2}(:?\d{2})?)?)?\s*$"
_OFFSET = r":\d{2}([.,]\d+)?\s*([Zz]|[+-]\d{2}(:?\d{2})?)\s*$"
# Seconds since 1970 passed 1e8 in March 1973 and reach 1e11 in the year 5138: so a size tells the unit of an epoch,
# and smaller numbers are seconds from some start.
RELATIVE_BELOW = 1e8
EPOCH_UNITS = ((1e11, 1e6), (1e14, 1e3), (1e17, 1.0))
NANOSECOND = 1e-3
FIRST_S, LAST_S = 31_536_000, 7_258_118_400  # 1971 and 2200: outside, a time is a mistake or a stand-in for "never"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Times:
    """Microseconds for every row: since the epoch, or of the wall clock (``is_local``) counted as if it were UTC."""

    micros: Ints
    is_local: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RawTimes:
    """A time column as read: per row a number, wall-clock micros or instant micros; the masks say which."""

    number: NDArray[np.float64]
    has_number: NDArray[np.bool_]
    local: Ints
    has_local: NDArray[np.bool_]
    instant: Ints
    has_instant: NDArray[np.bool_]

    @property
    def read(self) -> NDArray[np.bool_]:
        """True where the cell is a time of some kind."""
        return (self.has_number & np.isfinite(self.number)) | self.has_local | self.has_instant


class TimeError(Exception):
    """A time column that cannot be used; the reader adds the place. ``row`` is the first row that shows it."""

    def __init__(self, kind: str, message: str, hint: str | None, row: int) -> None:
        super().__init__(message)
        self.kind, self.message, self.hint, self.row = kind, message, hint, row


def time_columns(column: ir.Column) -> dict[str, ir.Value]:
    """Expressions ``time_number``, ``time_local``, ``time_instant``; a column's type leaves out those it cannot be."""
    kind = column.type()
    if kind.is_string():
        text = column.strip()
        shaped = text.re_search(_ISO)
        offset = text.re_search(_OFFSET)
        return {
            "time_number": text.try_cast("float64"),
            "time_local": (shaped & ~offset).ifelse(text, None).try_cast("timestamp"),
            "time_instant": (shaped & offset).ifelse(text, None).try_cast("timestamp('UTC')"),
        }
    if kind.is_date():
        return {"time_local": column.cast("timestamp")}
    if kind.is_timestamp():
        return {"time_local" if kind.timezone is None else "time_instant": column}
    if kind.is_numeric() and not kind.is_boolean():
        return {"time_number": column.cast("float64")}
    raise TimeError("not_a_time", f"a column of type {kind} holds no time", None, 0)


def resolve_times(raw: RawTimes, *, relative: bool, source: DemandSource) -> Times:
    """One reading for all rows: instants or wall-clock times, never both.

    Raises ``TimeError``: ``not_a_time``, ``mixed_times``, ``time_out_of_range``; ``DemandError`` where the origin or
    the zone is missing.
    """
    if not raw.read.all():
        raise TimeError("not_a_time", "cannot be read as a time", READABLE, int(np.argmin(raw.read)))
    kinds = np.where(raw.has_number, 0, np.where(raw.has_instant, 1, 2))
    if (odd := kinds != kinds[0]).any():
        message = "some times have an offset and some have none, or some are numbers"
        raise TimeError("mixed_times", message, "write all times in one form", int(np.argmax(odd)))
    micros = _numbers(raw.number, relative, source) if kinds[0] == 0 else (raw.instant if kinds[0] == 1 else raw.local)
    check_range(micros)
    if kinds[0] == 2:
        zone_of(source)
    return Times(micros=micros, is_local=bool(kinds[0] == 2))


def check_range(micros: Ints) -> None:
    """``TimeError`` ``time_out_of_range`` unless all times lie in the years 1971 to 2199."""
    outside = (micros < FIRST_S * MICRO) | (micros >= LAST_S * MICRO)
    if outside.any():
        message = "a time outside the years 1971 to 2199"
        raise TimeError("time_out_of_range", message, "leave such rows out", int(np.argmax(outside)))


READABLE = "ISO 8601 with or without an offset, and epochs in s, ms and µs are read"


def zone_of(source: DemandSource) -> str:
    """The zone in which times without an offset are read; ``DemandError`` ``zone_missing`` where none is named."""
    field = f"demand[{source.name}].timeZone"
    if source.time_zone is None:
        message = "its times have no offset, and no time zone is named"
        raise DemandError(message, kind="zone_missing", place=Place(field=field), hint=f"set {field}")
    check_zone(source.time_zone, field=field)
    return source.time_zone


def origin_of(source: DemandSource) -> int:
    """The source's t = 0, seconds since the epoch; ``DemandError`` ``origin_missing`` where none is given."""
    if source.origin is None:
        field = f"demand[{source.name}].origin"
        message = "its times are seconds from a start, and no origin is given"
        hint = f'set {field} to the wall-clock time of t = 0, such as "2026-09-01T00:00"'
        raise DemandError(message, kind="origin_missing", place=Place(field=field), hint=hint)
    return origin_s(source.origin, source.time_zone, source=source.name)


def is_relative(low: float, high: float) -> bool:
    """Whether numbers are too small for epochs, so that they count seconds from some start.

    >>> is_relative(0.0, 1_209_000.0), is_relative(1_788_192_000.0, 1_788_192_600.0)
    (True, False)
    """
    return max(abs(low), abs(high)) < RELATIVE_BELOW


def _numbers(number: NDArray[np.float64], relative: bool, source: DemandSource) -> Ints:
    size = np.abs(number)
    if relative or is_relative(float(number.min()), float(number.max())):
        start_s = origin_of(source)
        if (far := size >= EPOCH_UNITS[0][0]).any():
            raise TimeError("time_out_of_range", "a time far outside the trace", None, int(np.argmax(far)))
        return start_s * MICRO + np.rint(number * MICRO).astype(np.int64)
    factor = np.full(len(number), NANOSECOND)
    for below, unit in reversed(EPOCH_UNITS):
        factor[size < below] = unit
    micros: Ints = np.rint(np.clip(number * factor, -9e18, 9e18)).astype(np.int64)
    return micros
