"""Targets that the fleet misses (§5.7): who, when, and by how much, for many windows in one call a workload."""

from __future__ import annotations

import numpy as np

from ebbtide.allocate.needs import Needs, required_of, station_shape
from ebbtide.allocate.pool_plan import PoolPlan
from ebbtide.allocate.requirement import day_peak, window_deficits
from ebbtide.allocate.samples import WorkloadSamples, stretches
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints
from ebbtide.fleet.schedule import Shortage
from ebbtide.fleet.workload import Target, Workload
from ebbtide.queueing.curves import attainment_curves, wait_percentiles_s

# How many replicas are looked for to say what is missing, window by window: more than any cluster, and the curves of
# fifteen past days up to it fit into memory.
MOST_REPLICAS = 1_000_000


def shortages_of(plan: PoolPlan) -> list[Shortage]:
    """All shortages of a pool's plan: by workload in the Fleet's order, then by window.

    ``missing_gpus`` are those of the replicas between the given number and what the targets need, None where no number
    is enough; ``attainment`` and
    ``wait_s`` are those of the target that is missed most, on the day that ``confidence`` asks for.
    """
    if not plan.workloads:
        return []
    needs = plan.windows[0].context.curves.needs
    given = np.array(plan.replicas, dtype=np.int64).T
    found: list[Shortage] = []
    for w, workload in enumerate(plan.workloads):
        short = np.flatnonzero((given[w] < needs.target[w]) | needs.out_of_reach[w])
        if len(short):
            confidence = plan.windows[0].context.confidence
            case = _Missed(workload, needs.samples[w].pick(short), needs.day[w, short], given[w, short], confidence)
            missing = [
                None
                if needs.out_of_reach[w, k]
                else (_whole_need(needs, workload, w, k, confidence) - int(given[w, k]))
                * int(needs.shape.width_gpus[w])
                for k in short.tolist()
            ]
            names = [plan.timeline.windows[k].name for k in short.tolist()]
            found += case.shortages(names, missing)
    return found


def _whole_need(needs: Needs, workload: Workload, w: int, k: int, confidence: float) -> int:
    """The replicas that workload ``w`` needs in window ``k``, though they may be far more than the pool's plan asks."""
    need = int(needs.target[w, k])
    if need <= needs.sought[w]:
        return need
    at_most = max(MOST_REPLICAS, 4 * int(needs.floor[w, k]))
    found, _ = required_of(workload, needs.samples[w].pick(np.array([k])), at_most, confidence)
    return int(found[0])


class _Missed:
    """One workload in the windows where it is short."""

    def __init__(self, workload: Workload, samples: WorkloadSamples, day: Ints, given: Ints, confidence: float) -> None:
        self.workload, self.samples, self.day, self.given = workload, samples, day, given
        self.confidence = confidence

    def shortages(self, windows: list[str], missing_gpus: list[int | None]) -> list[Shortage]:
        targets = self.workload.targets
        deficits = np.array([self._deficits(target) for target in targets])
        worst = np.argmax(deficits, axis=0)
        waits_s = np.array([self._waits_s(target) for target in targets])
        return [
            Shortage(
                workload=self.workload.name,
                window=window,
                missing_gpus=missing_gpus[k],
                attainment=float(targets[t].percentile - deficits[t, k]),
                required=targets[t].percentile,
                wait_s=float(waits_s[t, k]),
            )
            for k, (window, t) in enumerate(zip(windows, worst.tolist(), strict=True))
        ]

    def _deficits(self, target: Target) -> Floats:
        """How far below the target's percentile every window stays."""
        samples = self.samples
        counts = samples.per_scenario(self.given)
        values, starts = attainment_curves(
            station_shape(self.workload),
            target,
            rates_rps=samples.rates_rps,
            scv=samples.scv,
            service_time_s=samples.per_scenario(samples.service_time_s),
            service_scv=samples.per_scenario(samples.service_scv),
            offsets=samples.offsets,
            low=np.maximum(counts, 1),
            high=np.maximum(counts, 1),
        )
        ones = np.ones(len(self.given), dtype=np.int64)
        return window_deficits(
            samples,
            values[None, :],
            starts,
            np.array([target.percentile]),
            first=np.maximum(self.given, 1),
            low=self.given,
            lengths=ones,
            confidence=self.confidence,
        )

    def _waits_s(self, target: Target) -> Floats:
        """Wait (or latency) at the target's percentile in the hardest scenario of each window's deciding day."""
        samples = self.samples
        deciding = np.flatnonzero(samples.day == samples.per_scenario(self.day))
        rows, offsets = stretches(samples.offsets, deciding)
        counts = samples.per_scenario(self.given)[deciding]
        found = wait_percentiles_s(
            station_shape(self.workload),
            target,
            rates_rps=samples.rates_rps[rows],
            scv=samples.scv[rows],
            service_time_s=samples.per_scenario(samples.service_time_s)[deciding],
            service_scv=samples.per_scenario(samples.service_scv)[deciding],
            offsets=offsets,
            replicas=np.maximum(counts, 1),
        )
        waits = np.zeros(len(samples.day))
        waits[deciding] = np.where(counts == 0, np.inf, found)
        return day_peak(samples, waits, self.day)
