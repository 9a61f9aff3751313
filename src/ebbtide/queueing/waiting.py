"""Curves of mean requests waiting, each as far as one more replica still saves something."""

from __future__ import annotations

import numpy as np

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints
from ebbtide.fleet.workload import TargetKind
from ebbtide.queueing import curve_limits
from ebbtide.queueing.groups import Groups

# Points of a waiting curve to begin with; most end within.
_STRETCH = 16


def mean_waiting(groups: Groups, horizon_s: Floats, low: Ints, high: Ints, stop_saving: float) -> tuple[Floats, Ints]:
    """``curves.waiting_curves``: in stretches that grow until each group's curve may end."""
    groups = groups.sharing(horizon_s)
    if groups.repeats is None:
        never = np.full(groups.size, np.inf)
        sums, starts = groups.walk(True, _least(stop_saving), stop_saving, never, TargetKind.WAIT, horizon_s, low, high)
        samples = np.maximum(1, np.diff(groups.offsets))
        return sums / np.repeat(samples, np.diff(starts)), starts
    heaviest = np.zeros(groups.size)
    np.maximum.at(heaviest, groups.group, groups.rates_rps)
    # Waits fall convexly once the heaviest sample is below capacity.
    settled = (heaviest * groups.service_time_s / groups.slots).astype(np.int64) + 1
    here, begin = np.arange(groups.size), low
    until = np.minimum(high, np.maximum(low, settled) + _STRETCH)
    length = np.zeros(groups.size, dtype=np.int64)
    rounds = []
    while here.size:
        values, starts = _stretch(groups, here, horizon_s, begin[here], until[here], stop_saving)
        sizes = np.diff(starts)
        kept = np.empty(here.size, dtype=np.int64)
        curve_limits.fill_lengths(values, starts, begin[here], settled[here], stop_saving, kept)
        rounds.append((here, begin[here], values, starts, np.minimum(kept, sizes)))
        length[here] = begin[here] - low[here] + np.minimum(kept, sizes)
        here = here[(kept > sizes) & (until[here] < high[here])]
        # The last point once more: its successor's saving counts from it.
        begin = until
        until = np.minimum(high, until + 4 * _STRETCH)
    offsets = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(length)))
    whole = np.empty(offsets[-1])
    for of, first, values, starts, kept in rounds:
        step = np.arange(len(values)) - np.repeat(starts[:-1], np.diff(starts))
        place = np.repeat(offsets[of] + first - low[of], np.diff(starts)) + step
        is_kept = step < np.repeat(kept, np.diff(starts))
        whole[place[is_kept]] = values[is_kept]
    return whole, offsets


def _stretch(
    groups: Groups, here: Ints, horizon_s: Floats, low: Ints, high: Ints, stop_saving: float
) -> tuple[Floats, Ints]:
    """Mean requests waiting of some groups at low … high; what is far below the least saving is left out."""
    is_in = np.zeros(groups.size, dtype=bool)
    is_in[here] = True
    part = groups.only(is_in)
    sums, starts = part.sums(True, _least(stop_saving), TargetKind.WAIT, horizon_s[here], low, high)
    samples = np.maximum(1, np.diff(part.offsets))
    return sums / np.repeat(samples, np.diff(starts)), starts


def _least(stop_saving: float) -> float:
    """A sample's waiting that is nothing, in requests."""
    return max(1e-300, 1e-9 * stop_saving)
