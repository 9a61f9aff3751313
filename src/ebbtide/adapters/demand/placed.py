"""Rows at their instants: wall-clock times become UTC, the repeated hour becomes two, the hour that never was none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ebbtide.adapters.demand.rows import Rows
from ebbtide.adapters.demand.times import MICRO
from ebbtide.adapters.demand.zones import Ints, clock_over
from ebbtide.fleet.demand import Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placed:
    """Rows sorted by key and instant; ``row`` is their number in the source (twice where one was split in two)."""

    codes: Ints
    utc_s: Floats
    value: Floats
    row: Ints
    unordered_rows: int = 0

    def where(self, keep: NDArray[np.bool_]) -> Placed:
        """Only the rows that are to be kept."""
        return Placed(
            codes=self.codes[keep],
            utc_s=self.utc_s[keep],
            value=self.value[keep],
            row=self.row[keep],
            unordered_rows=self.unordered_rows,
        )


def place_rows(rows: Rows, *, zone: str | None, is_count: bool) -> Placed:
    """The rows at their instants, sorted by key and time.

    In the repeated hour of the autumn change a key with two rows for one time has both hours, in the order of the
    source; with one row, that row holds both hours: each gets half of a count, or the same rate. A row of the spring
    hour that never was is left out where it is 0 or empty; else ``DemandError`` ``hour_does_not_exist``.
    """
    index = np.arange(len(rows.codes), dtype=np.int64)
    if not rows.times.is_local:
        return _sorted(rows.codes, rows.times.micros / MICRO, rows.value, index, rows.codes, rows.times.micros, index)
    assert zone is not None
    seconds, rest = np.divmod(rows.times.micros, MICRO)
    clock = clock_over(zone, int(seconds.min()), int(seconds.max()))
    earlier, later, never = clock.readings(seconds)
    if (real := never & (rows.value > 0)).any():
        message = f"this hour does not exist in {zone}: the clock was put forward"
        hint = "is another time zone meant, such as UTC?"
        rows.complain(int(np.argmax(real)), "hour_does_not_exist", message, hint)
    second, both = _repeated_hour(rows.codes, seconds, (earlier != later) & ~never)
    utc_s = np.where(second, later, earlier) + rest / MICRO
    value = np.where(both, rows.value * 0.5, rows.value) if is_count else rows.value
    pick = np.concatenate([index[~never], index[both]])
    at = np.concatenate([utc_s[~never], later[both] + rest[both] / MICRO])
    own = index[~never]
    return _sorted(rows.codes[pick], at, value[pick], pick, rows.codes[own], utc_s[own], own)


def _sorted(
    codes: Ints, utc_s: Floats, value: Floats, row: Ints, own_codes: Ints, own_times: Ints | Floats, own_rows: Ints
) -> Placed:
    order = np.lexsort((row, utc_s, codes))
    as_read = np.lexsort((own_rows, own_codes))
    back = (np.diff(own_times[as_read]) < 0) & (np.diff(own_codes[as_read]) == 0)
    return Placed(
        codes=codes[order], utc_s=utc_s[order], value=value[order], row=row[order], unordered_rows=int(back.sum())
    )


def _repeated_hour(codes: Ints, local_s: Ints, twice: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Rows of the second hour, and rows that hold both hours."""
    second, both = np.zeros(len(codes), dtype=np.bool_), np.zeros(len(codes), dtype=np.bool_)
    rows = np.flatnonzero(twice)
    if len(rows) == 0:
        return second, both
    rows = rows[np.lexsort((rows, local_s[rows], codes[rows]))]
    again = (np.diff(codes[rows], prepend=-1) == 0) & (np.diff(local_s[rows], prepend=local_s[rows[0]] - 1) == 0)
    second[rows[again]] = True
    # One change of the clock a day: a key and a date name one repeated hour.
    hours = np.unique(np.stack([codes[rows], local_s[rows] // 86_400]), axis=1, return_inverse=True)[1].ravel()
    begins = np.full(hours.max() + 1, np.iinfo(np.int64).max)
    np.minimum.at(begins, hours[again], rows[again])
    doubled = begins[hours] < np.iinfo(np.int64).max
    alone = ~again & ~np.append(again[1:], False)
    second[rows[alone & doubled & (rows > begins[hours])]] = True
    both[rows[alone & ~doubled]] = True
    return second, both
