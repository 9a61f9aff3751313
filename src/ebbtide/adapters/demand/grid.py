"""From rows to a regular grid: the interval found, times snapped, duplicates told from conflicts, nothing made up."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ebbtide.adapters.demand.placed import Placed
from ebbtide.adapters.demand.rows import Rows
from ebbtide.adapters.demand.zones import Ints, clock_over
from ebbtide.errors import DemandError
from ebbtide.fleet.demand import Floats
from ebbtide.units import format_duration

# Ten years of minutes; beyond, a stray time has stretched the grid and its arrays would eat the machine.
MAX_INTERVALS = 5_260_000
MAX_CELLS = 400_000_000
# A key with fewer rows than this says too little about its own interval; it takes the others'.
_ROWS_THAT_SHOW_AN_INTERVAL = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """All series of a source side by side: row k is ``keys[k]``, NaN where there was nothing.

    ``value`` is a rate in requests per second, shape (keys, intervals); so are ``scv``, ``service_s``, ``service_scv``
    where there are such. ``start_s`` is the first interval's start, seconds since the epoch.
    """

    keys: tuple[str, ...]
    start_s: int
    interval_s: int
    value: Floats
    scv: Floats | None = None
    service_s: Floats | None = None
    service_scv: Floats | None = None
    duplicate_rows: int = 0
    unordered_rows: int = 0

    def like(self, start_s: int, interval_s: int, cells: dict[str, Floats | None]) -> Grid:
        """The same keys and counts with other cells."""
        return replace(self, start_s=start_s, interval_s=interval_s, **cells)  # type: ignore[arg-type]  # dict of fields

    @property
    def cells(self) -> dict[str, Floats | None]:
        """The arrays by field name."""
        return {
            "value": self.value,
            "scv": self.scv,
            "service_s": self.service_s,
            "service_scv": self.service_scv,
        }


def grid_of(rows: Rows, placed: Placed, *, is_count: bool, zone: str | None, interval_s: int | None) -> Grid:
    """The rows on a regular grid of the interval found (or ``interval_s`` where keys differ).

    Found: the most frequent difference of each key's times. A grid starts at a multiple of the interval since midnight
    (in ``zone``, else UTC); times beside it are snapped by each key's own mean displacement. Raises ``DemandError``:
    ``duplicate_rows`` (same time, other value), ``mixed_intervals``, ``interval_unknown``, ``interval_mismatch``,
    ``span_too_long``.
    """
    placed, duplicates = _without_duplicates(rows, placed)
    by_key = _intervals_by_key(rows, placed, interval_s)
    lengths = sorted(set(by_key.tolist()))
    anchor_s = midnight_s(placed, zone)
    parts = [
        grid_at(rows, placed.where(by_key[placed.codes] == step), step, anchor_s, is_count=is_count) for step in lengths
    ]
    if len(parts) > 1:
        assert interval_s is not None
        parts = [coarsened(part, interval_s) for part in parts]
    grid = parts[0] if len(parts) == 1 else _side_by_side(parts)
    return replace(grid, duplicate_rows=duplicates, unordered_rows=placed.unordered_rows)


def coarsened(grid: Grid, interval_s: int) -> Grid:
    """The grid on longer intervals, a multiple of its own; a long interval counts where half of it was observed.

    Rates are averaged over what was observed; what belongs to requests (SCV, service times) is weighted by the rate.
    """
    factor = interval_s // grid.interval_s
    if factor == 1:
        return grid
    phase_s = grid.start_s % grid.interval_s
    lead = ((grid.start_s - phase_s) % interval_s) // grid.interval_s
    tail = -(lead + grid.value.shape[1]) % factor
    seen = _blocks(np.isfinite(grid.value).astype(np.float64), lead, tail, factor, fill=0.0).mean(axis=2)
    weight = _blocks(grid.value, lead, tail, factor, fill=np.nan)
    mean = np.nansum(weight, axis=2) / np.maximum(np.isfinite(weight).sum(axis=2), 1)
    cells: dict[str, Floats | None] = {"value": np.where(seen >= 0.5, mean, np.nan)}
    for name, cell in grid.cells.items():
        if name != "value":
            cells[name] = None if cell is None else _weighted(_blocks(cell, lead, tail, factor, fill=np.nan), weight)
    return grid.like(grid.start_s - lead * grid.interval_s, interval_s, cells)


def _blocks(cell: Floats, lead: int, tail: int, factor: int, *, fill: float) -> Floats:
    padded = np.pad(cell, ((0, 0), (lead, tail)), constant_values=fill)
    return padded.reshape(len(cell), -1, factor)


def _weighted(cell: Floats, rate: Floats) -> Floats:
    weight = np.where(np.isfinite(cell) & np.isfinite(rate), rate, 0.0)
    total = weight.sum(axis=2)
    value = (np.where(weight > 0, cell, 0.0) * weight).sum(axis=2)
    return np.where(total > 0, value / np.where(total > 0, total, 1.0), np.nan)


def _side_by_side(parts: list[Grid]) -> Grid:
    start_s = min(part.start_s for part in parts)
    interval_s = parts[0].interval_s
    places = [(part.start_s - start_s) // interval_s for part in parts]
    length = max(place + part.value.shape[1] for place, part in zip(places, parts, strict=True))
    cells: dict[str, Floats | None] = {}
    for name, cell in parts[0].cells.items():
        if cell is None:
            cells[name] = None
            continue
        cells[name] = np.full((len(cell), length), np.nan)
        for place, part in zip(places, parts, strict=True):
            own = part.cells[name]
            assert own is not None
            target = cells[name][:, place : place + own.shape[1]]  # type: ignore[index]  # set on the line above the loop
            np.copyto(target, own, where=np.isfinite(own))
    return parts[0].like(start_s, interval_s, cells)


def _without_duplicates(rows: Rows, placed: Placed) -> tuple[Placed, int]:
    same = (np.diff(placed.codes, prepend=-1) == 0) & (np.diff(placed.utc_s, prepend=np.nan) == 0)
    if not same.any():
        return placed, 0
    first = np.flatnonzero(~same)
    high, low = np.fmax.reduceat(placed.value, first), np.fmin.reduceat(placed.value, first)
    if (conflict := high > low).any():
        at = first[int(np.argmax(conflict))]
        row = int(placed.row[at + 1])
        key = rows.keys[placed.codes[at]]
        message = f"a second row for {key[:60]!r} at the same time, with another value"
        rows.complain(row, "duplicate_rows", message, "leave one of the two out, or add them up")
    kept = placed.where(~same)
    return replace(kept, value=high), int(same.sum())


def _intervals_by_key(rows: Rows, placed: Placed, interval_s: int | None) -> Ints:
    """For every key the interval of its rows, seconds."""
    field = f"demand[{rows.opened.source.name}].interval"
    steps_s = np.rint(np.diff(placed.utc_s)).astype(np.int64)
    inside = (np.diff(placed.codes) == 0) & (steps_s > 0)
    codes, steps_s = placed.codes[1:][inside], steps_s[inside]
    if len(codes) == 0:
        if interval_s is not None:
            return np.full(len(rows.keys), interval_s, dtype=np.int64)
        message = "one row a workload does not show how long an interval is"
        raise DemandError(message, kind="interval_unknown", place=rows.opened.place, hint=f"set {field}")
    pairs, counts = np.unique(np.stack([codes, steps_s]), axis=1, return_counts=True)
    base_s = _most_frequent(pairs[1], counts)
    by_key = np.full(len(rows.keys), base_s, dtype=np.int64)
    for code in np.unique(codes):
        own = pairs[0] == code
        if counts[own].sum() >= _ROWS_THAT_SHOW_AN_INTERVAL - 1:
            by_key[code] = _key_interval(pairs[1][own], counts[own], base_s)
    _check_intervals(rows, by_key, base_s, interval_s, field)
    return by_key


def _most_frequent(steps_s: Ints, counts: Ints) -> int:
    lengths, inverse = np.unique(steps_s, return_inverse=True)
    return int(lengths[np.argmax(np.bincount(inverse, weights=counts))])


def _key_interval(steps_s: Ints, counts: Ints, base_s: int) -> int:
    """A sparse key that leaves out rows shows the source's interval now and then; one that never does has its own."""
    sparse = base_s in steps_s and steps_s.min() >= base_s
    return base_s if sparse else _most_frequent(steps_s, counts)


def _check_intervals(rows: Rows, by_key: Ints, base_s: int, interval_s: int | None, field: str) -> None:
    for code in np.flatnonzero(by_key != base_s):
        if interval_s is None or interval_s % by_key[code]:
            other = rows.keys[int(np.argmax(by_key == base_s))] if (by_key == base_s).any() else "most"
            message = (
                f"rows of {rows.keys[code][:60]!r} are {format_duration(int(by_key[code]))} apart, "
                f"those of {other[:60]!r} {format_duration(base_s)}"
            )
            hint = f"set {field} to a common multiple, or make two sources of them"
            raise DemandError(message, kind="mixed_intervals", place=rows.opened.place, hint=hint)
    if interval_s is not None and interval_s % base_s:
        message = (
            f"rows are {format_duration(base_s)} apart; {field} {format_duration(interval_s)} is no multiple of it"
        )
        hint = "leave it out, or write a multiple"
        raise DemandError(message, kind="interval_mismatch", place=rows.opened.place, hint=hint)


def grid_at(rows: Rows, placed: Placed, step_s: int, anchor_s: int, *, is_count: bool) -> Grid:
    """The placed rows on intervals of ``step_s`` that begin at ``anchor_s`` modulo the interval.

    SCVs of a row that holds both repeated hours are those of neither, so they are left out there.
    """
    anchor_s %= step_s
    shift_s = _displacement_s(placed.codes, placed.utc_s - anchor_s, step_s, len(rows.keys))
    at = np.floor((placed.utc_s - anchor_s - shift_s[placed.codes]) / step_s + 0.5).astype(np.int64)
    _check_span(rows, placed, at)
    _check_one_row_each(rows, placed, at, step_s)
    first, length = int(at.min()), int(at.max() - at.min()) + 1
    shape, where = (len(rows.keys), length), (placed.codes, at - first)
    split = np.bincount(placed.row)[placed.row] > 1
    measured = {
        "scv": None if rows.scv is None else np.where(split, np.nan, rows.scv[placed.row]),
        "service_s": None if rows.service_s is None else rows.service_s[placed.row],
        "service_scv": None if rows.service_scv is None else np.where(split, np.nan, rows.service_scv[placed.row]),
    }
    cells = {name: None if values is None else _cells(shape, where, values) for name, values in measured.items()}
    value = _cells(shape, where, placed.value / step_s if is_count else placed.value)
    start_s = anchor_s + first * step_s
    return Grid(keys=rows.keys, start_s=start_s, interval_s=step_s, value=value, **cells)  # type: ignore[arg-type]  # fields


def _check_one_row_each(rows: Rows, placed: Placed, at: Ints, step_s: int) -> None:
    crowded = (np.diff(placed.codes, prepend=-1) == 0) & (np.diff(at, prepend=at[0] - 1) == 0)
    if crowded.any():
        which = int(np.argmax(crowded))
        key = rows.keys[placed.codes[which]]
        message = f"two rows of {key[:60]!r} fall into one interval of {format_duration(step_s)}"
        hint = "rows of one source are equally far apart; make two sources of them, or aggregate them first"
        rows.complain(int(placed.row[which]), "mixed_intervals", message, hint)


def _cells(shape: tuple[int, int], where: tuple[Ints, Ints], values: Floats) -> Floats:
    cell = np.full(shape, np.nan)
    cell[where] = values
    return cell


def midnight_s(placed: Placed, zone: str | None) -> int:
    """A midnight of the zone (UTC where none is named): hours in Kolkata begin at half past in UTC."""
    if zone is None:
        return 0
    at_s = int(placed.utc_s.min())
    return -int(clock_over(zone, at_s, at_s).offset_at(np.array([at_s], dtype=np.int64))[0])


def _displacement_s(codes: Ints, from_anchor_s: Floats, step_s: int, keys: int) -> Floats:
    """Each key's mean displacement from the grid, in (−step/2, step/2]: a circular mean, which jitter cannot split."""
    angle = 2.0 * np.pi * np.mod(from_anchor_s, step_s) / step_s
    sine = np.bincount(codes, weights=np.sin(angle), minlength=keys)
    cosine = np.bincount(codes, weights=np.cos(angle), minlength=keys)
    return np.asarray(np.arctan2(sine, cosine) / (2.0 * np.pi) * step_s, dtype=np.float64)


def _check_span(rows: Rows, placed: Placed, at: Ints) -> None:
    length = int(at.max() - at.min()) + 1
    if length <= MAX_INTERVALS and length * len(rows.keys) <= MAX_CELLS:
        return
    farthest = int(np.argmax(np.abs(at - int(np.median(at)))))
    message = f"the times span {length:,} intervals; the row farthest from the others is this one"
    rows.complain(
        int(placed.row[farthest]), "span_too_long", message, "leave stray rows out, or name a longer interval"
    )
