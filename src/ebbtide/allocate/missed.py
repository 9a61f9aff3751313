"""Targets that the fleet misses (§5.7): who, when, and by how much, for many windows in one call a workload."""

from __future__ import annotations

import numpy as np

from ebbtide.allocate.deficits import least_above
from ebbtide.allocate.pool_plan import PoolPlan
from ebbtide.allocate.reason import Cases
from ebbtide.fleet.planned import Ints
from ebbtide.fleet.schedule import Shortage


def shortages_of(plan: PoolPlan) -> list[Shortage]:
    """All shortages of a pool's plan: by workload in the Fleet's order, then by window.

    ``missing_gpus`` are those of the replicas between the given number and what the targets need, None where no number
    is enough; ``attainment`` and ``wait_s`` are those of the target that is missed most, on the day that ``confidence``
    asks for.
    """
    if not plan.workloads:
        return []
    context = plan.windows[0].context
    needs = context.curves.needs
    given = np.array(plan.replicas, dtype=np.int64).T
    found: list[Shortage] = []
    for w in range(len(plan.workloads)):
        short = np.flatnonzero((given[w] < needs.target[w]) | needs.out_of_reach[w])
        if len(short):
            missing = _missing_gpus(plan, w, short, given[w, short])
            names = [plan.timeline.windows[k].name for k in short.tolist()]
            found += _shortages(context.cases(w, short), given[w, short], names, missing)
    return found


def _shortages(cases: Cases, given: Ints, windows: list[str], missing_gpus: list[int | None]) -> list[Shortage]:
    """One workload in the windows where it is short."""
    targets = cases.workload.targets
    asked = np.array([target.percentile for target in targets])
    attained = np.minimum(asked[:, None], [cases.attainment(target, given) for target in targets])
    waits_s = np.array([cases.wait_s(target, given) for target in targets])
    worst = np.argmax(asked[:, None] - attained, axis=0)
    return [
        Shortage(
            workload=cases.workload.name,
            window=window,
            missing_gpus=missing_gpus[k],
            attainment=float(attained[t, k]),
            required=targets[t].percentile,
            wait_s=float(waits_s[t, k]),
        )
        for k, (window, t) in enumerate(zip(windows, worst.tolist(), strict=True))
    ]


def _missing_gpus(plan: PoolPlan, w: int, short: Ints, given: Ints) -> list[int | None]:
    """What one workload lacks in the windows where it is short, be it far more than what the pool's plan looks for."""
    context, workload = plan.windows[0].context, plan.workloads[w]
    needs, counts = context.curves.needs, context.curves.needs.target[w, short]
    counts[needs.out_of_reach[w, short]] = -1
    beyond = np.flatnonzero(counts > needs.sought[w])
    if len(beyond):
        samples = needs.samples[w].pick(short[beyond])
        sought = np.full(len(beyond), needs.sought[w])
        counts[beyond] = least_above(workload, samples, sought, context.confidence)
    gpus = int(needs.shape.width_gpus[w])
    return [
        None if need < 0 else (need - have) * gpus for need, have in zip(counts.tolist(), given.tolist(), strict=True)
    ]
