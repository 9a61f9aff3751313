"""Why a workload has its numbers (§5.12): the floor, the given count, and the first one refused, for many windows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ebbtide.allocate.deficits import missing_shares
from ebbtide.allocate.needs import station_shape
from ebbtide.allocate.requirement import day_peak
from ebbtide.allocate.samples import WorkloadSamples, stretches
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints
from ebbtide.fleet.schedule import Standing, WorkloadReason
from ebbtide.fleet.workload import Target, Workload
from ebbtide.queueing.curves import wait_percentiles_s, waiting_curves


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cases:
    """One workload in K windows: its samples there, its needs, and what the windows are about.

    ``target_need`` is what the targets ask for, as far as it was looked for and can be met; ``is_known`` (bool[K]):
    where that many meet all targets. ``required`` is with the user's minimum, ``floor`` the least stable count, ``day``
    the past day that decides, int64[K] each. ``horizon_s`` (float64[K]) bounds a wait; ``width_gpus`` is what a replica
    takes of the pool.
    """

    workload: Workload
    samples: WorkloadSamples
    target_need: Ints
    is_known: NDArray[np.bool_]
    required: Ints
    floor: Ints
    day: Ints
    horizon_s: Floats
    confidence: float
    width_gpus: int
    value_usd_per_gpu_h: float

    def reasons(self, given: Ints, alone: Ints | None = None) -> list[WorkloadReason]:
        """The reasons of ``given[k]`` replicas in window k, which by itself, were moves free, would give ``alone[k]``.

        The target that speaks is the tightest: the one whose wait at its percentile, on the deciding day with the given
        replicas, is the largest share of its bound. A few queueing calls for all windows together.
        """
        counts = np.array([np.minimum(self.floor, given), given, given + 1])
        targets = self.workload.targets
        waits = np.array([[self.wait_s(target, row) for row in counts] for target in targets])
        shares = waits[:, 1] / np.array([target.bound_s for target in targets])[:, None]
        tightest = np.argmax(shares, axis=0)
        attainment = np.array([[self.attainment(target, row) for row in counts] for target in targets])
        each = np.arange(len(given))
        floor, now, refused = (
            self._standings(row, waits[tightest, c, each], attainment[tightest, c, each])
            for c, row in enumerate(counts)
        )
        rates, peaks, share = self.samples.value_mean_rps, self._peak_rps(), shares[tightest, each]
        most = self.workload.max_replicas
        columns = (given, given if alone is None else alone, self.target_need, rates, peaks, share)
        return [
            WorkloadReason(
                rate_rps=rate_rps,
                peak_rps=peak_rps,
                target_share=target_share,
                floor=floor[k],
                given=now[k],
                refused=None if count == most else refused[k],
                bound=self.bound(k, now[k], by_itself),
                cost_usd_per_h=self.cost_usd_per_h,
                least_replicas=least if self.is_known[k] else None,
            )
            for k, (count, by_itself, least, rate_rps, peak_rps, target_share) in enumerate(
                zip(*(column.tolist() for column in columns), strict=True)
            )
        ]

    def bound(self, window: int, given: Standing, alone: int) -> str:
        """What held the number in a window: the word of ``WorkloadReason.bound``."""
        count, most, required = given.replicas, self.workload.max_replicas, int(self.required[window])
        if count < self.target_need[window]:
            return "maximum" if count == most else "shortage"
        if count < alone:
            return "move"
        if count > required:
            return self._beyond(given, alone)
        if self.target_need[window] < required:
            return "minimum"
        is_floor = required <= self.floor[window] and self.workload.service.claim is None
        return "floor" if is_floor else "target"

    def _beyond(self, given: Standing, alone: int) -> str:
        """What gave a replica that neither targets nor the minimum ask for."""
        if given.replicas == self.workload.max_replicas:
            return "maximum"
        # A saving that is equal but for its rounding still pays.
        if given.gain_usd_per_h >= self.cost_usd_per_h * (1.0 - 1e-9):
            return "gain"
        return "move" if given.replicas > alone else "room"

    @property
    def cost_usd_per_h(self) -> float:
        """What a replica costs research."""
        return self.width_gpus * self.value_usd_per_gpu_h

    def _standings(self, counts: Ints, wait_s: Floats, attainment: Floats) -> list[Standing]:
        before, waiting = self._waiting(counts)
        # Of a claim's waits nothing is known, and the Fleet gives them no price: one more saves nothing.
        saved = np.nan_to_num(before - waiting, nan=0.0)
        gain = np.maximum(0.0, self.workload.waiting_cost_usd_per_request_h * saved)
        columns = (counts, wait_s, waiting, attainment, np.where(counts > 0, gain, 0.0))
        return [
            Standing(replicas=count, wait_s=wait, waiting=idle, attainment=attained, gain_usd_per_h=saved)
            for count, wait, idle, attained, saved in zip(*(column.tolist() for column in columns), strict=True)
        ]

    @property
    def _deciding(self) -> tuple[Ints, Ints, Ints]:
        """The deciding days' scenarios with requests; their samples, and the offsets of these."""
        samples = self.samples
        is_deciding = (samples.day == samples.per_scenario(self.day)) & (samples.scenario_mean_rps > 0.0)
        scenarios = np.flatnonzero(is_deciding)
        return scenarios, *stretches(samples.offsets, scenarios)

    def _peak_rps(self) -> Floats:
        """Greatest planned rate of each window's deciding day; 0 without load."""
        scenarios, rows, offsets = self._deciding
        peaks = np.zeros(len(self.samples.day))
        np.maximum.at(peaks, np.repeat(scenarios, np.diff(offsets)), self.samples.rates_rps[rows])
        return day_peak(self.samples, peaks, self.day)

    def wait_s(self, target: Target, replicas: Ints) -> Floats:
        """Wait (or latency) at the target's percentile in the hardest scenario of the deciding day; 0 without load.

        NaN, not observed, by a claim.
        """
        samples = self.samples
        if self.workload.service.claim is not None:
            return np.full(len(replicas), np.nan)
        scenarios, rows, offsets = self._deciding
        counts = samples.per_scenario(replicas)[scenarios]
        waits = np.zeros(len(samples.day))
        waits[scenarios] = wait_percentiles_s(
            station_shape(self.workload),
            target,
            rates_rps=samples.rates_rps[rows],
            scv=samples.scv[rows],
            service_time_s=samples.per_scenario(samples.service_time_s)[scenarios],
            service_scv=samples.per_scenario(samples.service_scv)[scenarios],
            offsets=offsets,
            replicas=np.maximum(counts, 1),
        )
        waits[scenarios[counts == 0]] = np.inf
        return day_peak(samples, waits, self.day)

    def _waiting(self, counts: Ints) -> tuple[Floats, Floats]:
        """Mean requests waiting with one replica fewer and with the counts, on the past rates; NaN by a claim."""
        samples = self.samples
        if self.workload.service.claim is not None:
            return np.full(len(counts), np.nan), np.full(len(counts), np.nan)
        before = np.maximum(counts - 1, 0)
        first = np.maximum(before, 1)
        values, starts = waiting_curves(
            station_shape(self.workload),
            rates_rps=samples.value_rates_rps,
            scv=samples.value_scv,
            service_time_s=samples.service_time_s,
            service_scv=samples.service_scv,
            offsets=samples.value_offsets,
            low=first,
            high=np.maximum(counts, first),
            horizon_s=self.horizon_s,
            stop_saving=0.0,
        )
        idle = samples.value_mean_rps * self.horizon_s

        def at(count: Ints) -> Floats:
            # A curve that ends early saves nothing beyond.
            place = np.minimum(starts[:-1] + np.maximum(count - first, 0), starts[1:] - 1)
            return np.where(count > 0, values[place], idle)

        return at(before), at(counts)

    def attainment(self, target: Target, counts: Ints) -> Floats:
        """Share within the target that the asked share of past days reaches."""
        # What a target of everybody would be missed by.
        everybody = np.ones((1, len(counts)))
        return 1.0 - missing_shares(
            self.workload, (target,), everybody, self.samples, low=counts, high=counts, confidence=self.confidence
        )
