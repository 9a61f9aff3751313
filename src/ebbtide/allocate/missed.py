"""Targets that the fleet misses (§5.7): who, when, and by how much, for many windows in one call a workload."""

from __future__ import annotations

import numpy as np

from ebbtide.allocate.needs import station_shape
from ebbtide.allocate.pool_plan import PoolPlan
from ebbtide.allocate.requirement import window_deficits
from ebbtide.allocate.samples import WorkloadSamples
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints
from ebbtide.fleet.schedule import Shortage
from ebbtide.fleet.workload import Target, Workload
from ebbtide.queueing.curves import attainment_curves, wait_percentile_s


def shortages_of(plan: PoolPlan) -> list[Shortage]:
    """All shortages of a pool's plan: by workload in the Fleet's order, then by window.

    ``missing_gpus`` are those of the replicas between the given number and what the targets need; ``attainment`` and
    ``wait_s`` are those of the target that is missed most, on the day that ``confidence`` asks for.
    """
    if not plan.workloads:
        return []
    needs = plan.windows[0].context.curves.needs
    given = np.array(plan.replicas, dtype=np.int64).T
    found: list[Shortage] = []
    for w, workload in enumerate(plan.workloads):
        short = np.flatnonzero(given[w] < needs.target[w])
        if len(short):
            confidence = plan.windows[0].context.confidence
            case = _Missed(workload, needs.samples[w].pick(short), needs.day[w, short], given[w, short], confidence)
            missing = (needs.target[w, short] - given[w, short]) * int(needs.shape.width_gpus[w])
            names = [plan.timeline.windows[k].name for k in short.tolist()]
            found += case.shortages(names, missing)
    return found


class _Missed:
    """One workload in the windows where it is short."""

    def __init__(self, workload: Workload, samples: WorkloadSamples, day: Ints, given: Ints, confidence: float) -> None:
        self.workload, self.samples, self.day, self.given = workload, samples, day, given
        self.confidence = confidence

    def shortages(self, windows: list[str], missing_gpus: Ints) -> list[Shortage]:
        targets = self.workload.targets
        deficits = np.array([self._deficits(target) for target in targets])
        worst = np.argmax(deficits, axis=0)
        return [
            Shortage(
                workload=self.workload.name,
                window=window,
                missing_gpus=int(missing_gpus[k]),
                attainment=float(targets[t].percentile - deficits[t, k]),
                required=targets[t].percentile,
                wait_s=self._wait_s(targets[t], k),
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

    def _wait_s(self, target: Target, window: int) -> float:
        """Wait (or latency) at the target's percentile in the hardest scenario of the deciding day."""
        samples = self.samples
        if self.given[window] == 0:
            return float("inf")
        waits = [0.0]
        for g in range(int(samples.windows[window]), int(samples.windows[window + 1])):
            if samples.day[g] == self.day[window]:
                rows = slice(int(samples.offsets[g]), int(samples.offsets[g + 1]))
                waits.append(
                    wait_percentile_s(
                        station_shape(self.workload),
                        target,
                        rates_rps=samples.rates_rps[rows],
                        scv=samples.scv[rows],
                        service_time_s=float(samples.service_time_s[window]),
                        service_scv=float(samples.service_scv[window]),
                        replicas=int(self.given[window]),
                    )
                )
        return max(waits)
