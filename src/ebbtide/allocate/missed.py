"""Targets that the fleet misses (§5.7): who, when, and by how much, for many windows in one call a workload."""

from __future__ import annotations

import numpy as np

from ebbtide.allocate.needs import Needs, required_of
from ebbtide.allocate.pool_plan import PoolPlan
from ebbtide.allocate.reason import Cases
from ebbtide.fleet.planned import Ints
from ebbtide.fleet.schedule import Shortage
from ebbtide.fleet.workload import Workload

# How many replicas are looked for to say what is missing, window by window: more than any cluster, and the curves of
# fifteen past days up to it fit into memory.
MOST_REPLICAS = 1_000_000


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
    for w, workload in enumerate(plan.workloads):
        short = np.flatnonzero((given[w] < needs.target[w]) | needs.out_of_reach[w])
        if len(short):
            missing = [
                _missing_gpus(needs, workload, w, k, int(given[w, k]), context.confidence) for k in short.tolist()
            ]
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


def _missing_gpus(needs: Needs, workload: Workload, w: int, k: int, given: int, confidence: float) -> int | None:
    if needs.out_of_reach[w, k]:
        return None
    return (_whole_need(needs, workload, w, k, confidence) - given) * int(needs.shape.width_gpus[w])


def _whole_need(needs: Needs, workload: Workload, w: int, k: int, confidence: float) -> int:
    """The replicas that workload ``w`` needs in window ``k``, though they may be far more than the pool's plan asks."""
    need = int(needs.target[w, k])
    if need <= needs.sought[w]:
        return need
    at_most = max(MOST_REPLICAS, 4 * int(needs.floor[w, k]))
    found, _ = required_of(workload, needs.samples[w].pick(np.array([k])), at_most, confidence)
    return int(found[0])
