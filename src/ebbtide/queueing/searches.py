"""The least replicas at which a group attains a share: by recursion, by bands of shared curves, or by bisection."""

from __future__ import annotations

import numpy as np

from ebbtide.fleet.planned import Ints
from ebbtide.fleet.workload import TargetKind
from ebbtide.queueing import curve_kernels, curve_limits, search_kernels
from ebbtide.queueing.groups import Groups
from ebbtide.queueing.repeats import first_reached

_BAND = 8  # counts above the floor that a band of shared curves begins with; a quarter of the floor where that is more


def least_replicas(groups: Groups, kind: TargetKind, bound_s: float, share: float, at_most: int) -> Ints:
    """``curves.required_replicas``."""
    floors = np.empty(groups.size, dtype=np.int64)
    batch = (groups.rates_rps, groups.service_time_s, groups.offsets)
    curve_limits.fill_floors(groups.slots, groups.is_patient, share, *batch, at_most, floors)
    shared = groups.sharing(np.zeros(groups.size))
    if shared.repeats is not None:
        return np.where(groups.total_rps > 0.0, _by_bands(shared, kind, bound_s, share, floors, at_most), 0)
    if groups.is_stepwise and kind is TargetKind.WAIT:
        return _by_walk(groups, kind, bound_s, share, floors, at_most)
    out = np.empty(groups.size, dtype=np.int64)
    terms = groups.terms(is_latency=kind is TargetKind.LATENCY, bound_s=bound_s)
    samples = (groups.rates_rps, groups.scv, groups.service_time_s, groups.service_scv, groups.offsets)
    search_kernels.fill_required(terms, share, *samples, floors, at_most, out)
    return out


def _by_walk(groups: Groups, kind: TargetKind, bound_s: float, share: float, floors: Ints, at_most: int) -> Ints:
    """Up from the floors, where a step costs little."""
    total = groups.total_rps
    least = curve_kernels.NEGLIGIBLE_SHARE
    high = np.full(groups.size, at_most)
    bounds = np.full(groups.size, bound_s)
    values, starts = groups.walk(False, least, -np.inf, share * total, kind, bounds, floors, high)
    steps = np.diff(starts)
    last = np.where(steps > 0, values[starts[1:] - 1], -1.0) if len(values) else np.full(groups.size, -1.0)
    return np.where(total > 0.0, np.where(last >= share * total, floors + steps - 1, at_most + 1), 0)


def _by_bands(groups: Groups, kind: TargetKind, bound_s: float, share: float, floors: Ints, at_most: int) -> Ints:
    """Band after band of counts upwards from the floors: where samples repeat, a whole band costs little."""
    found = np.full(groups.size, at_most + 1)
    here = np.flatnonzero((groups.total_rps > 0.0) & (floors <= at_most))
    low = floors[here]
    width = np.maximum(_BAND, low // 4)
    while here.size:
        high = np.minimum(low + width, at_most)
        is_in = np.zeros(groups.size, dtype=bool)
        is_in[here] = True
        values, starts = groups.only(is_in).attainment(kind, bound_s, low, high)
        reached = np.empty(here.size, dtype=np.int64)
        first_reached(values, starts, low, share, reached)
        found[here[reached > 0]] = reached[reached > 0]
        is_open = (reached < 0) & (high < at_most)
        here, low, width = here[is_open], high[is_open] + 1, 2 * width[is_open]
    return found
