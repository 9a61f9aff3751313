"""Trials of margins on the past: each past day planned from the days before it with each margin (§5.3).

What belongs here: which trials there are, what they would have been given, what they needed. What doesn't: which margin
is chosen (``forecast.margin``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ebbtide.fleet.demand import Floats, Series
from ebbtide.fleet.horizon import DatedException, Window
from ebbtide.fleet.planned import Ints, WindowDemand, confidence_rank
from ebbtide.fleet.workload import Workload
from ebbtide.forecast.scenarios import Scenarios, past_scenarios
from ebbtide.forecast.seasonal import Margin, demand_of
from ebbtide.queueing.curves import StationShape, required_replicas

NEIGHBOURS_S = (0, 1800, 3600)
FACTORS = (1.0, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.75, 2.0)
MARGINS = (len(NEIGHBOURS_S), len(FACTORS))
LEAST_DAYS_BEFORE = 2  # one day says nothing of how days differ
AT_MOST_REPLICAS = 100_000

Grid = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Past:
    """One workload with the demand that was seen of it, cut off where the plan is made."""

    workload: Workload
    series: Series


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tried:
    """Of ``count`` trials, how many held and what they cost, by neighbour and factor."""

    count: int
    held: Grid
    gpu_h: Grid


def try_margins(
    past: Past,
    windows: Sequence[Window],
    time_zone: str,
    confidence: float,
    exceptions: tuple[DatedException, ...],
) -> Tried:
    """Plans every past instance of every window with every margin."""
    widest = Margin(neighbour_s=NEIGHBOURS_S[-1])
    name, service = past.workload.name, past.workload.service
    scenarios = [
        past_scenarios(
            past.series,
            window,
            time_zone=time_zone,
            shifts_s=widest.shifts_s,
            exceptions=exceptions,
            workload=name,
        )
        for window in windows
    ]
    demands = [
        demand_of(past.series, found, service_time_s=service.time_s, service_scv=service.scv, workload=name)
        for found in scenarios
    ]
    batch = _Batch.of(demands)
    needs = np.split(batch.needs(past.workload), batch.windows[1:-1])
    trials = [_Trials.of(found, need, confidence) for found, need in zip(scenarios, needs, strict=True)]
    deciding = [first + trial.deciding for first, trial in zip(batch.windows.tolist(), trials, strict=False)]
    planned = batch.of_scenarios(np.concatenate(deciding)).times(FACTORS).needs(past.workload)
    by_window = np.split(planned.reshape(len(FACTORS), -1), np.cumsum([len(few) for few in deciding])[:-1], axis=1)
    held, gpu_h = np.zeros(MARGINS), np.zeros(MARGINS)
    for window, trial, replicas in zip(windows, trials, by_window, strict=True):
        plan = np.maximum(replicas[:, trial.decided_by], past.workload.min_replicas)  # [factor, neighbour, trial]
        held += (plan >= trial.need).sum(axis=2).T
        gpu_h += plan.sum(axis=2).T * window.nominal_hours * past.workload.gpus_per_replica
    return Tried(count=sum(len(trial.need) for trial in trials), held=held, gpu_h=gpu_h)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Trials:
    """A window's trials: trial ``t`` needed ``need[t]``, and ``deciding[decided_by[h, t]]`` is the scenario that
    decides its plan with neighbour ``h``. Which one decides is taken from the rates without factor: one factor on all
    of them does not change their order, but for rounding.
    """

    need: Ints
    deciding: Ints
    decided_by: Ints

    @classmethod
    def of(cls, scenarios: Scenarios, need: Ints, confidence: float) -> _Trials:
        """From what each scenario needed."""
        before = np.arange(LEAST_DAYS_BEFORE, scenarios.days)
        rows = np.zeros((len(NEIGHBOURS_S), len(before)), dtype=np.int64)
        for row, neighbour_s in zip(rows, NEIGHBOURS_S, strict=True):
            near = np.flatnonzero(np.abs(scenarios.shift_s) <= neighbour_s)
            worst = _worst_by_day(scenarios.day[near], need[near], near)
            row[:] = worst[_days_of_rank(need[worst], before, confidence)]
        deciding, decided_by = np.unique(rows, return_inverse=True)
        return cls(
            need=need[LEAST_DAYS_BEFORE : scenarios.days],
            deciding=deciding,
            decided_by=decided_by.reshape(rows.shape),
        )


def _worst_by_day(day: Ints, need: Ints, scenario: Ints) -> Ints:
    """For each day the scenario that needed most."""
    order = np.lexsort((need, day))
    last = np.flatnonzero(np.diff(day[order], append=-1))
    return scenario[order[last]]


def _days_of_rank(need_by_day: Ints, before: Ints, confidence: float) -> Ints:
    """Of the first ``before[t]`` days the one whose need is met on the confident share of them."""
    is_past = np.arange(len(need_by_day)) < before[:, None]
    order = np.argsort(np.where(is_past, need_by_day, np.iinfo(np.int64).max), axis=1, kind="stable")
    ranks = np.array([confidence_rank(days, confidence) for days in before.tolist()], dtype=np.int64)
    return order[np.arange(len(before)), ranks - 1]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Batch:
    """Scenarios of one workload, ragged: ``g`` has the samples ``offsets[g]:offsets[g+1]``, its window's service.

    Window ``k`` of those that it was made of has the scenarios ``windows[k]:windows[k+1]``.
    """

    rates_rps: Floats
    scv: Floats
    service_time_s: Floats
    service_scv: Floats
    offsets: Ints
    windows: Ints

    @classmethod
    def of(cls, demands: Sequence[WindowDemand]) -> _Batch:
        """All scenarios of some windows, one window after the other."""
        counts = [len(demand.day) for demand in demands]
        sizes = np.concatenate([np.diff(demand.offsets) for demand in demands])
        return cls(
            rates_rps=np.concatenate([demand.rates_rps for demand in demands]),
            scv=np.concatenate([demand.scv for demand in demands]),
            service_time_s=np.repeat([demand.service_time_s for demand in demands], counts),
            service_scv=np.repeat([demand.service_scv for demand in demands], counts),
            offsets=np.concatenate([[0], np.cumsum(sizes)]),
            windows=np.concatenate([[0], np.cumsum(counts)]),
        )

    def of_scenarios(self, chosen: Ints) -> _Batch:
        """The chosen scenarios only, in their order."""
        sizes = np.diff(self.offsets)[chosen]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1][chosen] - offsets[:-1], sizes)
        return _Batch(
            rates_rps=self.rates_rps[rows],
            scv=self.scv[rows],
            service_time_s=self.service_time_s[chosen],
            service_scv=self.service_scv[chosen],
            offsets=offsets,
            windows=np.array([0, len(chosen)]),
        )

    def times(self, factors: Sequence[float]) -> _Batch:
        """The whole batch with its rates times each factor, one after the other."""
        many = len(factors)
        sizes = np.tile(np.diff(self.offsets), many)
        return _Batch(
            rates_rps=np.outer(factors, self.rates_rps).ravel(),
            scv=np.tile(self.scv, many),
            service_time_s=np.tile(self.service_time_s, many),
            service_scv=np.tile(self.service_scv, many),
            offsets=np.concatenate([[0], np.cumsum(sizes)]),
            windows=np.array([0, len(sizes)]),
        )

    def needs(self, workload: Workload) -> Ints:
        """Replicas that each scenario needs at all targets."""
        shape = StationShape(
            slots=workload.service.concurrency, balancing=workload.balancing, patience_s=workload.patience_s
        )
        need = np.zeros(len(self.service_time_s), np.int64)
        for target in workload.targets if len(need) else ():
            found = required_replicas(
                shape,
                target,
                rates_rps=self.rates_rps,
                scv=self.scv,
                service_time_s=self.service_time_s,
                service_scv=self.service_scv,
                offsets=self.offsets,
                at_most=AT_MOST_REPLICAS,
            )
            need = np.maximum(need, found)
        return need
