"""Trials of margins on the past: each past day planned from the days before it with each margin (§5.3).

What belongs here: which trials there are, what they would have been given, what they needed. What doesn't: which margin
is chosen (``forecast.margin``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ebbtide.fleet.demand import Series
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
    needs = _needs(past.workload, demands, [np.arange(len(demand.day)) for demand in demands], 1.0)
    trials = [_Trials.of(found, need, confidence) for found, need in zip(scenarios, needs, strict=True)]
    held, gpu_h = np.zeros(MARGINS), np.zeros(MARGINS)
    for column, factor in enumerate(FACTORS):
        planned = _needs(past.workload, demands, [trial.deciding for trial in trials], factor)
        for window, trial, replicas in zip(windows, trials, planned, strict=True):
            plan = np.maximum(replicas[trial.decided_by], past.workload.min_replicas)
            held[:, column] += (plan >= trial.need).sum(axis=1)
            gpu_h[:, column] += plan.sum(axis=1) * window.nominal_hours * past.workload.gpus_per_replica
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
        days = range(LEAST_DAYS_BEFORE, scenarios.days)
        rows = []
        for neighbour_s in NEIGHBOURS_S:
            near = np.flatnonzero(np.abs(scenarios.shift_s) <= neighbour_s)
            worst = _worst_by_day(scenarios.day[near], need[near], near)
            rows.append([_day_of_rank(need[worst[:day]], confidence, worst) for day in days])
        deciding, decided_by = np.unique(np.array(rows, dtype=np.int64), return_inverse=True)
        return cls(
            need=need[LEAST_DAYS_BEFORE : scenarios.days],
            deciding=deciding,
            decided_by=decided_by.reshape(len(NEIGHBOURS_S), len(days)),
        )


def _worst_by_day(day: Ints, need: Ints, scenario: Ints) -> Ints:
    """For each day the scenario that needed most."""
    order = np.lexsort((need, day))
    last = np.flatnonzero(np.diff(day[order], append=-1))
    return scenario[order[last]]


def _day_of_rank(need_by_day: Ints, confidence: float, worst: Ints) -> int:
    """The scenario of the day whose need is met on the confident share of days."""
    rank = confidence_rank(len(need_by_day), confidence)
    return int(worst[np.argsort(need_by_day, kind="stable")[rank - 1]])


def _needs(workload: Workload, demands: Sequence[WindowDemand], chosen: Sequence[Ints], factor: float) -> list[Ints]:
    """Replicas that the chosen scenarios of each window need at all targets, rates times ``factor``."""
    groups = [
        (demand, slice(demand.offsets[scenario], demand.offsets[scenario + 1]))
        for demand, scenarios in zip(demands, chosen, strict=True)
        for scenario in scenarios
    ]
    if not groups:
        return [np.zeros(0, np.int64) for _ in chosen]
    shape = StationShape(
        slots=workload.service.concurrency, balancing=workload.balancing, patience_s=workload.patience_s
    )
    sizes = [part.stop - part.start for _, part in groups]
    need = np.zeros(len(groups), np.int64)
    for target in workload.targets:
        found = required_replicas(
            shape,
            target,
            rates_rps=np.concatenate([demand.rates_rps[part] for demand, part in groups]) * factor,
            scv=np.concatenate([demand.scv[part] for demand, part in groups]),
            service_time_s=np.array([demand.service_time_s for demand, _ in groups]),
            service_scv=np.array([demand.service_scv for demand, _ in groups]),
            offsets=np.concatenate([[0], np.cumsum(sizes)]),
            at_most=AT_MOST_REPLICAS,
        )
        need = np.maximum(need, found)
    return np.split(need, np.cumsum([len(scenarios) for scenarios in chosen])[:-1])
