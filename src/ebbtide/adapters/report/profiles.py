"""From the demand that was seen to the wave that is drawn: intervals folded onto the cycle in the fleet's zone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from whenever import Instant

from ebbtide.adapters.report.inputs import DemandProfile
from ebbtide.fleet.demand import Floats, Series
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import DAY_MINUTES
from ebbtide.fleet.workload import Workload

_DAY_S = 86_400
_HOUR_S = 3600
# Bins divide the day, so that every day folds onto the same ones. A day is drawn at 10 minutes and a week at 30 at the
# finest: about three pixels each, below which a wave turns into hatching.
_BINS_MIN = (10, 15, 20, 30, 60, 120, 180, 240, 360, 480, 720, 1440)
_WEEK_BIN_MIN = 30
# 1970-01-01 was a Thursday, three days after a Monday.
_EPOCH_WEEKDAY = 3

Ints = NDArray[np.int64]


def demand_profiles(
    fleet: Fleet, series: Mapping[str, Series], *, service_times_s: Mapping[str, float] | None = None
) -> tuple[DemandProfile, ...]:
    """The profile of every workload of the fleet that has a series (``series`` by the workload's name).

    With one day pattern the cycle is a day, else a week. ``service_times_s`` gives the time of workloads whose service
    is observed; where it says nothing, the trace's rate-weighted mean counts. Intervals that were not observed take
    no part; the hour that a day of 25 hours repeats is averaged, the one that a day of 23 hours lacks is NaN.
    """
    given = service_times_s or {}
    return tuple(
        _profile(fleet, workload, series[workload.name], given.get(workload.name))
        for workload in fleet.workloads
        if workload.name in series
    )


def zone_offsets_s(starts_s: Ints, time_zone: str) -> Ints:
    """Offset from UTC in seconds at each instant, looked up per day; per hour in the few days where it changes.

    >>> zone_offsets_s(np.array([0, 1_793_430_000]), "America/New_York") // 3600
    array([-5, -4])
    """
    offsets = np.empty(len(starts_s), dtype=np.int64)
    days = starts_s // _DAY_S
    for day in np.unique(days):
        first, last = _offset_s(int(day) * _DAY_S, time_zone), _offset_s((int(day) + 1) * _DAY_S, time_zone)
        inside = days == day
        offsets[inside] = first if first == last else _quarter_offsets_s(starts_s[inside], time_zone)
    return offsets


def _quarter_offsets_s(starts_s: Ints, time_zone: str) -> Ints:
    """The same for the few instants of a day in which the zone's offset changes (changes fall on quarter hours)."""
    quarters, place = np.unique(starts_s // 900, return_inverse=True)
    return np.array([_offset_s(int(quarter) * 900, time_zone) for quarter in quarters], dtype=np.int64)[place]


def _offset_s(at_s: int, time_zone: str) -> int:
    return Instant.from_timestamp(at_s).to_tz(time_zone).to_plain().assume_utc().timestamp() - at_s


def _profile(fleet: Fleet, workload: Workload, series: Series, service_time_s: float | None) -> DemandProfile:
    week = len(fleet.patterns) > 1
    bin_min = _bin_minutes(series.interval_s, week=week)
    cycle_min = DAY_MINUTES * 7 if week else DAY_MINUTES
    seen = series.observed
    local_s = series.starts_s + zone_offsets_s(series.starts_s, fleet.time_zone)
    days = local_s // _DAY_S
    turns = days - (days + _EPOCH_WEEKDAY) % 7 if week else days
    bins = (local_s - turns * _DAY_S) // 60 // bin_min
    listed, place = np.unique(turns, return_inverse=True)
    return DemandProfile(
        workload=workload.name,
        minutes=np.arange(0, cycle_min, bin_min, dtype=np.int64),
        turns=listed,
        rates_rps=_folded(place[seen], bins[seen], series.rate_rps[seen], (len(listed), cycle_min // bin_min)),
        gpus_per_rps=_gpus_per_rps(workload, series, service_time_s),
    )


def _folded(turn: Ints, bins: Ints, rate_rps: Floats, shape: tuple[int, int]) -> Floats:
    """Mean rate per turn and bin; NaN in empty bins."""
    flat = turn * shape[1] + bins
    counts = np.bincount(flat, minlength=shape[0] * shape[1])
    sums = np.bincount(flat, weights=rate_rps, minlength=shape[0] * shape[1])
    means: Floats = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
    return means.reshape(shape)


def _bin_minutes(interval_s: int, *, week: bool) -> int:
    least = max(-(-interval_s // 60), _WEEK_BIN_MIN if week else _BINS_MIN[0])
    return next((minutes for minutes in _BINS_MIN if minutes >= least), DAY_MINUTES)


def _gpus_per_rps(workload: Workload, series: Series, service_time_s: float | None) -> float:
    time_s = service_time_s if service_time_s is not None else workload.service.planned_time_s
    if time_s is None:
        time_s = _observed_service_time_s(series)
    return time_s * workload.gpus_per_replica / workload.service.concurrency


def _observed_service_time_s(series: Series) -> float:
    """Rate-weighted mean of the trace's service times; NaN where it has none (the wave is then not drawn)."""
    if series.service_mean_s is None:
        return float("nan")
    use = series.observed & ~np.isnan(series.service_mean_s) & (series.rate_rps > 0)
    weight = series.rate_rps[use].sum()
    return float((series.rate_rps[use] * series.service_mean_s[use]).sum() / weight) if weight > 0 else float("nan")
