"""A demand source read as a ``Trace``: the steps in their order."""

from __future__ import annotations

import difflib

import numpy as np
from numpy.typing import NDArray

from ebbtide.adapters.demand.columns import find_roles
from ebbtide.adapters.demand.files import digest_of
from ebbtide.adapters.demand.grid import Grid, coarsened, grid_of
from ebbtide.adapters.demand.outages import find_outages, outage_spans
from ebbtide.adapters.demand.placed import place_rows
from ebbtide.adapters.demand.requests import read_requests
from ebbtide.adapters.demand.rows import read_rows
from ebbtide.adapters.demand.source import DemandSource
from ebbtide.adapters.demand.sums import find_sums
from ebbtide.adapters.demand.tables import OpenTable, open_source
from ebbtide.adapters.demand.zones import check_zone
from ebbtide.errors import DemandError, Place
from ebbtide.fleet.demand import Floats, Seen, Series, Trace


def read_trace(source: DemandSource, *, keys: frozenset[str] | None = None, sql_url: str | None = None) -> Trace:
    """The source's demand: one series a workload on one grid, with what is missing and what was put right (§5.2).

    ``keys`` None: every series but the sums; else exactly those, a sum among them included. Outages and sums are judged
    over all of the source's series either way. ``sql_url`` names the engine of a source that is a table.

    Raises ``DemandError`` where the source cannot be read as demand (docs/reference/demand-files.md lists the kinds),
    ``InputError`` where a table has no engine, ``PermanentError`` where the engine refuses.
    """
    if source.time_zone is not None:
        check_zone(source.time_zone, field=f"demand[{source.name}].timeZone")
    opened = open_source(source, sql_url=sql_url)
    grid = _grid(opened)
    _check_keys(opened, grid, keys)
    sums = find_sums(grid)
    outage = find_outages(grid, counted=~sums, zone=source.time_zone)
    return _trace(opened, grid, sums, outage, keys)


def _grid(opened: OpenTable) -> Grid:
    source = opened.source
    file = opened.place.file
    roles = find_roles(list(opened.names), chosen=source.columns, source=source.name, file=file)
    if not roles.a_row_per_interval:
        return read_requests(opened, roles)
    rows = read_rows(opened, roles)
    placed = place_rows(rows, zone=source.time_zone, is_count=roles.rate is None)
    return grid_of(rows, placed, is_count=roles.rate is None, zone=source.time_zone, interval_s=source.interval_s)


def _check_keys(opened: OpenTable, grid: Grid, keys: frozenset[str] | None) -> None:
    for key in sorted(keys or ()):
        if key not in grid.keys:
            near = difflib.get_close_matches(key, grid.keys, n=3, cutoff=0.3) or list(grid.keys[:3])
            message = f"no demand for {key!r} in source {opened.source.name}"
            hint = f"nearest: {', '.join(near)} ({len(grid.keys)} in all)"
            place = Place(file=opened.place.file, field=opened.place.field)
            raise DemandError(message, kind="no_demand", place=place, hint=hint)


def _trace(
    opened: OpenTable, grid: Grid, sums: NDArray[np.bool_], outage: NDArray[np.bool_], keys: frozenset[str] | None
) -> Trace:
    spans = outage_spans(grid, outage)
    wanted = [key in keys if keys is not None else not is_sum for key, is_sum in zip(grid.keys, sums, strict=True)]
    rest = ~sums & ~np.array(wanted)
    seen = np.where(outage, Seen.OUTAGE, Seen.OBSERVED)
    states = np.where(outage, Seen.OUTAGE, np.where(np.isfinite(grid.value), seen, Seen.MISSING)).astype(np.uint8)
    grid, states = _at_interval(grid, states, opened.source.interval_s)
    files = opened.files
    return Trace(
        source=opened.source.name,
        files=() if files is None else tuple(files.shown(path) for path in files.paths),
        sha256="" if files is None else digest_of(files),
        interval_s=grid.interval_s,
        series={key: _series(grid, states, row) for row, key in enumerate(grid.keys) if wanted[row]},
        sums=tuple(key for row, key in enumerate(grid.keys) if sums[row] and not wanted[row]),
        outages=spans,
        duplicate_rows=grid.duplicate_rows,
        unordered_rows=grid.unordered_rows,
        rest_rps=float(
            np.nansum([_mean(grid.value[row][states[row] == Seen.OBSERVED]) for row in np.flatnonzero(rest)])
        ),
    )


def _at_interval(grid: Grid, states: NDArray[np.uint8], interval_s: int | None) -> tuple[Grid, NDArray[np.uint8]]:
    """The grid at the source's own ``interval``: averaged over what was observed; half of a long interval must be."""
    observed = states == Seen.OBSERVED
    cells: dict[str, Floats | None] = {
        name: None if cell is None else np.where(observed, cell, np.nan) for name, cell in grid.cells.items()
    }
    clean = grid.like(grid.start_s, grid.interval_s, cells)
    if interval_s is None or interval_s == grid.interval_s:
        return clean, states
    coarse = coarsened(clean, interval_s)
    dark = coarsened(
        clean.like(clean.start_s, clean.interval_s, {**cells, "value": (states == Seen.OUTAGE) * 1.0}), interval_s
    )
    unseen = np.where(dark.value > 0, Seen.OUTAGE, Seen.MISSING)
    return coarse, np.where(np.isfinite(coarse.value), Seen.OBSERVED, unseen).astype(np.uint8)


def _series(grid: Grid, states: NDArray[np.uint8], row: int) -> Series:
    def own(cell: Floats | None) -> Floats | None:
        return None if cell is None else cell[row]

    return Series(
        key=grid.keys[row],
        start_s=grid.start_s,
        interval_s=grid.interval_s,
        rate_rps=grid.value[row],
        seen=states[row],
        arrival_scv=own(grid.scv),
        service_mean_s=own(grid.service_s),
        service_scv=own(grid.service_scv),
    )


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else 0.0
