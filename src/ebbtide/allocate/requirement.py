"""Order statistics over past days (§5.3): the replicas that a window needs, and the shortage that fewer leave.

A day needs the replicas that its hardest scenario needs for its hardest target. A window needs the least count that
holds on at least the share ``confidence`` of its days: the ⌈confidence·days⌉-th smallest of the days' needs. m days
support at most m/(m+1); beyond that this is the worst day, and the margin is assumed.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ebbtide.allocate.samples import WorkloadSamples
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints, confidence_rank


def window_needs(samples: WorkloadSamples, needs: Ints, confidence: float) -> tuple[Ints, Ints]:
    """Per window the replicas needed and the day that decides: int64[windows] each.

    ``needs`` is per scenario. Among days that need the same the one with the larger mean rate counts as the harder.
    """
    ranks = _ranks(samples, confidence)
    need, day = _window_needs(needs, samples.scenario_mean_rps, samples.day, samples.windows, samples.days, ranks)
    return need, day


def day_peak(samples: WorkloadSamples, per_scenario: Floats, deciding_day: Ints) -> Floats:
    """Greatest number of the deciding day's scenarios, per window; 0 where that day has none."""
    peak: Floats = _day_peak(per_scenario, samples.day, samples.windows, deciding_day)
    return peak


def window_deficits(
    samples: WorkloadSamples,
    attainment: Floats,
    starts: Ints,
    shares: Floats,
    *,
    first: Ints,
    low: Ints,
    lengths: Ints,
    confidence: float,
) -> Floats:
    """How far below target a window stays, for a run of counts: flat float64, ``lengths[k]`` entries of window k.

    ``attainment[target, starts[g] + i]`` is scenario g's with ``first[k] + i`` replicas; the run starts at ``low[k]``,
    which may be 0 where ``first`` is 1: nobody attains anything there. A day's deficit is Σ over targets of
    max(0, ``shares[target, k]`` − the day's worst attainment); the window's is the least that the asked share of days
    keeps to. It is 0 exactly where the count is at least what ``window_needs`` asks for.
    """
    ranks = _ranks(samples, confidence)
    deficits: Floats = _window_deficits(
        attainment,
        starts,
        shares,
        samples.scenario_mean_rps > 0.0,
        samples.day,
        samples.windows,
        samples.days,
        ranks,
        first - low,
        lengths,
    )
    return deficits


def _ranks(samples: WorkloadSamples, confidence: float) -> Ints:
    known = {days: confidence_rank(days, confidence) for days in set(samples.days.tolist())}
    return np.array([known[days] for days in samples.days.tolist()], dtype=np.int64)


@njit(cache=True)
def _window_needs(needs, mean_rps, day, windows, days, ranks):  # type: ignore[no-untyped-def]  # numba infers types
    count = len(windows) - 1
    need = np.zeros(count, dtype=np.int64)
    deciding = np.zeros(count, dtype=np.int64)
    for k in range(count):
        if days[k] == 0:
            continue
        by_day = np.zeros(days[k], dtype=np.int64)
        load = np.zeros(days[k])
        for g in range(windows[k], windows[k + 1]):
            by_day[day[g]] = max(by_day[day[g]], needs[g])
            load[day[g]] = max(load[day[g]], mean_rps[g])
        order = np.argsort(load, kind="mergesort")
        order = order[np.argsort(by_day[order], kind="mergesort")]
        deciding[k] = order[ranks[k] - 1]
        need[k] = by_day[deciding[k]]
    return need, deciding


@njit(cache=True)
def _day_peak(values, day, windows, deciding):  # type: ignore[no-untyped-def]  # numba infers types
    peak = np.zeros(len(windows) - 1)
    for k in range(len(windows) - 1):
        for g in range(windows[k], windows[k + 1]):
            if day[g] == deciding[k]:
                peak[k] = max(peak[k], values[g])
    return peak


@njit(cache=True)
def _window_deficits(attainment, starts, shares, asked, day, windows, days, ranks, skipped, lengths):  # type: ignore[no-untyped-def]  # numba infers types
    out = np.zeros(lengths.sum())
    before = 0
    for k in range(len(windows) - 1):
        if days[k] > 0:
            for i in range(lengths[k]):
                by_day = np.zeros(days[k])
                for t in range(len(shares)):
                    worst = np.ones(days[k])
                    for g in range(windows[k], windows[k + 1]):
                        if asked[g]:
                            attained = attainment[t, starts[g] + i - skipped[k]] if i >= skipped[k] else 0.0
                            worst[day[g]] = min(worst[day[g]], attained)
                    by_day += np.maximum(0.0, shares[t, k] - worst)
                out[before + i] = np.sort(by_day)[ranks[k] - 1]
        before += lengths[k]
    return out
