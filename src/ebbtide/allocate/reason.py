"""Why a workload has its number in one window (§5.12): the floor, the given count, and the first one refused."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebbtide.allocate.needs import station_shape
from ebbtide.allocate.samples import WorkloadSamples
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import confidence_rank
from ebbtide.fleet.schedule import Standing, WorkloadReason
from ebbtide.fleet.workload import Target, Workload
from ebbtide.queueing.curves import attainment_curves, wait_percentile_s, waiting_curves


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """One workload in one window: its samples (of that window alone), its needs, and what the window is about.

    ``target_need`` is what the targets ask for, ``required`` with the user's minimum, ``floor`` the least stable count,
    ``day`` the past day that decides. ``horizon_s`` bounds a wait; ``width_gpus`` is what a replica takes of the pool.
    """

    workload: Workload
    samples: WorkloadSamples
    target_need: int
    required: int
    floor: int
    day: int
    horizon_s: float
    confidence: float
    width_gpus: int
    value_usd_per_gpu_h: float

    def reason(self, given: int) -> WorkloadReason:
        """The reason of ``given`` replicas.

        The target that speaks is the tightest: the one whose wait at its percentile, on the deciding day with the given
        replicas, is the largest share of its bound. Costs a few milliseconds.
        """
        shares = [self._wait_s(target, given) / target.bound_s for target in self.workload.targets]
        tightest = self.workload.targets[int(np.argmax(shares))]
        refused = None if given == self.workload.max_replicas else given + 1
        floor = min(self.floor, given)
        counts = [floor, given] + ([] if refused is None else [refused])
        standings = self._standings(tightest, counts)
        planned = self._planned_rps()
        return WorkloadReason(
            rate_rps=float(self.samples.value_mean_rps[0]),
            peak_rps=float(planned.max(initial=0.0)),
            target_share=max(shares),
            floor=standings[0],
            given=standings[1],
            refused=None if refused is None else standings[2],
            bound=self.bound(given),
            cost_usd_per_h=self.width_gpus * self.value_usd_per_gpu_h,
        )

    def bound(self, given: int) -> str:
        """What held the number: the word of ``WorkloadReason.bound``."""
        if given < self.target_need:
            return "maximum" if given == self.workload.max_replicas else "shortage"
        if given > self.required:
            return "maximum" if given == self.workload.max_replicas else "gain"
        if self.target_need < self.required:
            return "minimum"
        return "floor" if self.target_need <= self.floor else "target"

    def _standings(self, target: Target, counts: list[int]) -> list[Standing]:
        waiting = self._waiting(max(min(counts) - 1, 0), max(counts))
        attainment = self._attainment(target, min(counts), max(counts))
        cost = self.workload.waiting_cost_usd_per_request_h
        first = max(min(counts) - 1, 0)
        return [
            Standing(
                replicas=count,
                wait_s=self._wait_s(target, count),
                waiting=float(waiting[count - first]),
                attainment=float(attainment[count - min(counts)]),
                gain_usd_per_h=max(0.0, float(cost * (waiting[count - 1 - first] - waiting[count - first])))
                if count
                else 0.0,
            )
            for count in counts
        ]

    def _planned_rps(self) -> Floats:
        samples = self.samples
        ours = [samples.rates_rps[samples.offsets[g] : samples.offsets[g + 1]] for g in self._day_scenarios()]
        return np.concatenate(ours) if ours else np.zeros(0)

    def _day_scenarios(self) -> list[int]:
        return [int(g) for g in np.flatnonzero(self.samples.day == self.day)]

    def _wait_s(self, target: Target, replicas: int) -> float:
        """Wait (or latency) at the target's percentile in the hardest scenario of the deciding day; 0 without load."""
        samples = self.samples
        waits = [0.0]
        for g in self._day_scenarios():
            rows = slice(int(samples.offsets[g]), int(samples.offsets[g + 1]))
            if not samples.rates_rps[rows].any():
                continue
            if replicas == 0:
                return float("inf")
            waits.append(
                wait_percentile_s(
                    station_shape(self.workload),
                    target,
                    rates_rps=samples.rates_rps[rows],
                    scv=samples.scv[rows],
                    service_time_s=float(samples.service_time_s[0]),
                    service_scv=float(samples.service_scv[0]),
                    replicas=replicas,
                )
            )
        return max(waits)

    def _waiting(self, low: int, high: int) -> Floats:
        """Mean requests waiting with low … high replicas, on the past rates."""
        samples = self.samples
        idle = samples.value_mean_rps[0] * self.horizon_s
        if len(samples.value_rates_rps) == 0:
            return np.zeros(high - low + 1)
        first = max(low, 1)
        values, _ = waiting_curves(
            station_shape(self.workload),
            rates_rps=samples.value_rates_rps,
            scv=samples.value_scv,
            service_time_s=samples.service_time_s,
            service_scv=samples.service_scv,
            offsets=samples.value_offsets,
            low=np.array([first]),
            high=np.array([max(high, first)]),
            horizon_s=np.array([self.horizon_s]),
            stop_saving=0.0,
        )
        return np.concatenate([np.full(first - low, idle), values])

    def _attainment(self, target: Target, low: int, high: int) -> Floats:
        """Share within the target that the asked share of past days reaches, with low … high replicas."""
        samples = self.samples
        first = max(low, 1)
        count = len(samples.day)
        values, starts = attainment_curves(
            station_shape(self.workload),
            target,
            rates_rps=samples.rates_rps,
            scv=samples.scv,
            service_time_s=samples.per_scenario(samples.service_time_s),
            service_scv=samples.per_scenario(samples.service_scv),
            offsets=samples.offsets,
            low=np.full(count, first),
            high=np.full(count, max(high, first)),
        )
        days = int(samples.days[0])
        by_day = np.ones((max(days, 1), max(high, first) - low + 1))
        for g in range(count):
            if samples.scenario_mean_rps[g] > 0.0:
                mine = np.concatenate([np.zeros(first - low), values[starts[g] : starts[g + 1]]])
                by_day[samples.day[g]] = np.minimum(by_day[samples.day[g]], mine)
        reached: Floats = -np.sort(-by_day, axis=0)[confidence_rank(days, self.confidence) - 1]
        return reached
