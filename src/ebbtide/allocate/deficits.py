"""How far counts of replicas stay below target in many windows, and the least count that does not.

What belongs here: one workload's missing shares, from the queueing curves to the order statistics over past days. What
doesn't: what a missing share is worth against other workloads' (``curves``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ebbtide.allocate.needs import station_shape
from ebbtide.allocate.requirement import window_deficits
from ebbtide.allocate.samples import WorkloadSamples
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints
from ebbtide.fleet.workload import Target, Workload
from ebbtide.queueing.curves import attainment_curves

# Whole numbers are exact as doubles up to here: no search for a count of slots goes further, and no fleet either.
MOST_SLOTS = 1 << 53


def missing_shares(
    workload: Workload,
    targets: Sequence[Target],
    shares: Floats,
    samples: WorkloadSamples,
    *,
    low: Ints,
    high: Ints,
    confidence: float,
) -> Floats:
    """Σ over targets of the share that is missing to ``shares[target, k]``, for low[k] … high[k] replicas: flat.

    On the day that ``confidence`` asks for; window k of ``samples`` has ``high[k] − low[k] + 1`` entries.
    """
    if len(low) == 0:
        return np.zeros(0)
    first, last = np.maximum(low, 1), np.maximum(high, 1)
    attained = [
        attainment_curves(
            station_shape(workload),
            target,
            rates_rps=samples.rates_rps,
            scv=samples.scv,
            service_time_s=samples.per_scenario(samples.service_time_s),
            service_scv=samples.per_scenario(samples.service_scv),
            offsets=samples.offsets,
            low=samples.per_scenario(first),
            high=samples.per_scenario(last),
        )
        for target in targets
    ]
    return window_deficits(
        samples,
        np.array([values for values, _ in attained]),
        attained[0][1],
        shares,
        first=first,
        low=low,
        lengths=high - low + 1,
        confidence=confidence,
    )


def least_above(workload: Workload, samples: WorkloadSamples, above: Ints, confidence: float) -> Ints:
    """Least replicas per window that meet all targets, where ``above[k]`` do not; −1 where no number does.

    Counts double until they are enough and are then bisected: a point of the stationary formulas costs the same for ten
    replicas and for a million million.
    """
    shares = np.array([np.full(len(above), target.percentile) for target in workload.targets])
    most = MOST_SLOTS // workload.service.concurrency
    few, enough = above.copy(), np.full(len(above), most + 1)
    while (is_open := enough - few > 1).any():
        windows = np.flatnonzero(is_open)
        tried = np.where(enough > most, np.minimum(2 * np.maximum(few, 1), most), (few + enough) // 2)[windows]
        missing = missing_shares(
            workload,
            workload.targets,
            shares[:, windows],
            samples.pick(windows),
            low=tried,
            high=tried,
            confidence=confidence,
        )
        enough[windows[missing == 0.0]] = tried[missing == 0.0]
        few[windows[missing > 0.0]] = tried[missing > 0.0]
    return np.where(enough > most, -1, enough)
