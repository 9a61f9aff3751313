"""The least replicas at which a group attains a share: by recursion, by bands of shared curves, or by bisection."""

from __future__ import annotations

import numpy as np

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints
from ebbtide.fleet.workload import TargetKind
from ebbtide.queueing import curve_kernels, curve_limits
from ebbtide.queueing.groups import Groups
from ebbtide.queueing.repeats import first_reached

_BAND = 8  # counts above the floor that a band of shared curves begins with; a quarter of the floor where that is more


def least_replicas(groups: Groups, kind: TargetKind, bound_s: float, share: float, at_most: int) -> Ints:
    """``curves.required_replicas``."""
    floors = np.empty(groups.size, dtype=np.int64)
    batch = (groups.rates_rps, groups.service_time_s, groups.offsets)
    curve_limits.fill_floors(groups.slots, groups.is_patient, share, *batch, at_most, floors)
    if groups.is_markov and kind is TargetKind.WAIT:
        out = np.empty(groups.size, dtype=np.int64)
        scratch = (np.zeros(groups.rates_rps.size), np.empty(groups.rates_rps.size))
        terms = groups.terms(is_latency=False, bound_s=bound_s)
        curve_kernels.fill_required(terms, share, *batch, floors, at_most, *scratch, out)
        return out
    shared = groups.sharing(np.zeros(groups.size))
    search = _by_bisection if shared.repeats is None else _by_bands
    return np.where(groups.total_rps > 0.0, search(shared, kind, bound_s, share, floors, at_most), 0)


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


def _by_bisection(groups: Groups, kind: TargetKind, bound_s: float, share: float, floors: Ints, at_most: int) -> Ints:
    """All groups gallop up from their floors and then bisect: attainment grows with n."""
    below, n = floors - 1, np.minimum(floors, at_most)
    step = np.ones(groups.size, dtype=np.int64)
    met = np.full(groups.size, at_most + 1)
    while True:
        # A group is settled where its last miss and its first success are neighbours.
        is_open = (met - below > 1) & (groups.total_rps > 0.0)
        if not np.any(is_open):
            return met
        part = groups.only(is_open)
        attained: Floats = part.attainment(kind, bound_s, n[is_open], n[is_open])[0]
        is_met = np.zeros(groups.size, dtype=bool)
        is_met[is_open] = attained >= share
        met = np.where(is_met, n, met)
        below = np.where(is_open & ~is_met, n, below)
        step = np.where(is_open & ~is_met, 2 * step, step)
        ahead = np.minimum(below + step, at_most)
        n = np.where(met <= at_most, (met + below) // 2, ahead)
