"""A log of requests, one a row, aggregated by the engine: rate, arrival SCV, service mean and SCV of every interval."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ebbtide.adapters.demand.cells import LARGEST_NUMBER, floats_of, key_column, keys_of, micros_of, number_columns
from ebbtide.adapters.demand.columns import Roles
from ebbtide.adapters.demand.grid import Grid, grid_at, midnight_s
from ebbtide.adapters.demand.log_times import LogTimes, complain_of_cell, log_times, outside_range
from ebbtide.adapters.demand.placed import place_rows
from ebbtide.adapters.demand.rows import Rows
from ebbtide.adapters.demand.tables import OpenTable
from ebbtide.adapters.demand.times import MICRO, TimeError, Times, check_range
from ebbtide.adapters.demand.zones import Ints
from ebbtide.errors import DemandError
from ebbtide.fleet.demand import Floats

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow

DEFAULT_INTERVAL_S = 600
# From n exponential gaps an SCV comes out with a standard error of 2/√n (delta method: (κ−1) − 4·skew·cv + 4·cv² = 4
# at κ = 9, skew = 2, cv = 1): 0.2 at 100. A service mean has no such need: it is averaged over intervals by their rate.
FEWEST_REQUESTS_FOR_SCV = 100
# The first and the last interval of a log are cut off by its ends, unless no request came there by chance: for
# Poisson arrivals an empty stretch of ten mean gaps has a probability of e⁻¹⁰.
_GAPS_THAT_SHOW_A_CUT = 10.0


def read_requests(opened: OpenTable, roles: Roles) -> Grid:
    """The log on a grid of ``interval`` (10 minutes unless the source says so).

    An empty interval inside the log's span is 0; its first and last interval are missing where the log begins or ends
    inside them. Arrival SCV is that of the gaps between requests of one workload inside one interval. Both SCVs are NaN
    below 100 requests. Raises ``DemandError`` as ``read_rows`` does.
    """
    step_s = opened.source.interval_s or DEFAULT_INTERVAL_S
    # Hours are what zones repeat and leave out: longer intervals are put together from hours afterwards.
    step_s = 3600 if step_s > 3600 and step_s % 3600 == 0 else step_s
    times = log_times(opened, roles, step_s)
    fetched = opened.fetch(aggregation(opened, roles, times))
    if fetched.num_rows == 0:
        raise DemandError("holds no rows", kind="no_rows", place=opened.place, hint="check the export")
    if roles.service_time is not None:
        _check_service(opened, roles.service_time, fetched)
    bucket = _micros(opened, roles, times, fetched)
    rows = _rows(opened, roles, times, fetched, bucket)
    placed = place_rows(rows, zone=opened.source.time_zone, is_count=True)
    anchor_s = midnight_s(placed, opened.source.time_zone) if times.is_local else times.anchor_s
    return _whole(grid_at(rows, placed, step_s, anchor_s, is_count=True), *_cuts(times, fetched, bucket))


def aggregation(opened: OpenTable, roles: Roles, times: LogTimes) -> ir.Table:
    """The one query over all requests, grouped by key and interval: counts, ends, moments of gaps and service times."""
    columns: dict[str, ir.Value] = {"key": key_column(opened, roles), "at": times.at, "bucket": times.bucket}
    if roles.service_time is not None:
        columns |= number_columns(opened, roles.service_time, "service")
        columns["service"] = (columns["service"].abs() < LARGEST_NUMBER).ifelse(columns["service"], None)
    log = opened.table.select(**columns)
    before = log.at.lag().over(group_by=[log.key, log.bucket], order_by=log.at)
    gap_us = log.at.delta(before, unit="microsecond") if times.is_timestamp else log.at - before
    log = log.mutate(gap_us=gap_us.cast("float64"))
    measures: dict[str, ir.Value] = {
        "requests": log.count(),
        "first": log.at.min(),
        "last": log.at.max(),
        "gap_mean": log.gap_us.mean(),
        "gap_variance": log.gap_us.var(how="pop"),
    }
    if roles.service_time is not None:
        measures |= {
            "service_mean": log.service.mean(),
            "service_variance": log.service.var(how="pop"),
            "service_lowest": log.service.min(),
            "unread": (log.service_given & log.service.isnull()).sum(),
        }
    return log.group_by(["key", "bucket"]).aggregate(**measures)


def _micros(opened: OpenTable, roles: Roles, times: LogTimes, fetched: pyarrow.Table) -> Ints:
    """Every group's interval start, microseconds; the times are checked here, where only one a group is left."""
    if not times.is_timestamp:
        micros: Ints = np.asarray(fetched["bucket"].to_numpy(), dtype=np.int64)
    else:
        micros, given = micros_of(fetched, "bucket")
        if not given.all():
            missing = opened.column(roles.time).isnull()
            complain_of_cell(opened, roles.time, missing, "not_a_time", "is no time", "leave such rows out")
    try:
        check_range(micros)
    except TimeError as error:
        bad = outside_range(times.at, is_timestamp=times.is_timestamp)
        complain_of_cell(opened, roles.time, bad, error.kind, f"is {error.message}", str(error.hint))
    return micros


def _rows(opened: OpenTable, roles: Roles, times: LogTimes, fetched: pyarrow.Table, bucket: Ints) -> Rows:
    if roles.workload is not None and any(not (key or "").strip() for key in fetched["key"].to_pylist()):
        key = key_column(opened, roles)
        nobody = key.isnull() | (key.strip() == "")
        complain_of_cell(opened, roles.workload, nobody, "no_workload", "names no workload", "leave such rows out")
    keys, codes = keys_of(opened, roles, fetched)
    requests = floats_of(fetched, "requests")
    with_service = roles.service_time is not None
    return Rows(
        opened=opened,
        keys=keys,
        codes=codes,
        times=Times(micros=bucket, is_local=times.is_local),
        value=requests,
        scv=_scv(fetched, "gap", requests),
        service_s=floats_of(fetched, "service_mean") if with_service else None,
        service_scv=_scv(fetched, "service", requests) if with_service else None,
        numbered=False,
    )


def _scv(fetched: pyarrow.Table, name: str, requests: Floats) -> Floats:
    mean, variance = floats_of(fetched, f"{name}_mean"), floats_of(fetched, f"{name}_variance")
    enough = (requests >= FEWEST_REQUESTS_FOR_SCV) & (mean > 0)
    return np.where(enough, variance / np.square(np.where(enough, mean, 1.0)), np.nan)


def _cuts(times: LogTimes, fetched: pyarrow.Table, bucket: Ints) -> tuple[bool, bool]:
    """Whether the log begins and ends inside its first and last interval."""
    requests, step_us = floats_of(fetched, "requests"), times.step_s * MICRO
    first, last = (
        micros_of(fetched, name)[0] if times.is_timestamp else np.asarray(fetched[name].to_numpy(), dtype=np.int64)
        for name in ("first", "last")
    )
    low, high = int(bucket.min()), int(bucket.max())
    before_us, after_us = int(first.min()) - low, high + step_us - int(last.max())
    in_first, in_last = requests[bucket == low].sum(), requests[bucket == high].sum()
    limit_us = _GAPS_THAT_SHOW_A_CUT * step_us
    return bool(before_us * in_first > limit_us), bool(after_us * in_last > limit_us)


def _whole(grid: Grid, head_is_cut: bool, tail_is_cut: bool) -> Grid:
    value = np.nan_to_num(grid.value)
    if head_is_cut:
        value[:, 0] = np.nan
    if tail_is_cut:
        value[:, -1] = np.nan
    return replace(grid, value=value)


def _check_service(opened: OpenTable, column: str, fetched: pyarrow.Table) -> None:
    cell = number_columns(opened, column, "n")
    number, given = cell["n"], cell["n_given"]
    if floats_of(fetched, "unread").sum():
        bad = given & (number.isnull() | (number.abs() >= LARGEST_NUMBER))
        complain_of_cell(opened, column, bad, "bad_number", "is no finite number", "leave such cells empty")
    if (floats_of(fetched, "service_lowest") < 0).any():
        complain_of_cell(opened, column, number < 0, "negative", "is below zero", "a service time is 0 or more")
