"""Real demand replayed: every policy planned on its past alone, all scored on the same requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ebbtide.errors import InputError
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import hours_label
from ebbtide.fleet.schedule import Schedule
from ebbtide.simulate.plays import Played, replica_hours
from ebbtide.simulate.realised import Realised, window_starts
from ebbtide.simulate.scoring import Cells, Score, together
from ebbtide.simulate.streams import Stream, stream_of
from ebbtide.workflows.backtest_choices import Choices, choices_of
from ebbtide.workflows.backtest_plans import Plans, plans_of, realised_of
from ebbtide.workflows.backtest_queues import play_all
from ebbtide.workflows.backtest_span import Fold, days_of, days_that_fit, folds_of, last_days
from ebbtide.workflows.backtest_trial import EBBTIDE, HINDSIGHT, ORDER, Trial
from ebbtide.workflows.demand import Demand, source_talk


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PolicyScore:
    """One policy over all tested stretches: its scores by workload and window, and what it held and moved."""

    name: str
    scores: Mapping[str, Mapping[str, Score]]
    gpu_h: Mapping[str, float]
    production_gpu_h: float
    moving_gpu_h: float
    research_gpu_h: float
    lost_gpu_h: float
    moves: int
    shortages: tuple[str, ...]
    over_nodes: Mapping[str, int]
    notes: tuple[str, ...]

    def of_workload(self, workload: str) -> Score:
        """One workload's score over all windows."""
        return together(list(self.scores[workload].values()))

    @property
    def score(self) -> Score:
        """All workloads together."""
        return together([one for windows in self.scores.values() for one in windows.values()])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tested:
    """One fold as it was played: for the timeline. By policy and workload, for every cell: the wait, and who missed."""

    fold: Fold
    schedule: Schedule
    cells: Cells
    streams: Mapping[str, Stream]
    realised: Mapping[str, Realised]
    waits_s: Mapping[str, Mapping[str, Floats]]
    missed: Mapping[str, Mapping[str, NDArray[np.bool_]]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Backtested:
    """What `backtest` found. ``unit``: ``week`` or ``day``; ``unscored``: intervals interpolated, not scored.

    ``days`` were replayed, the last of ``possible_days``; ``chosen``: ebbtide chose so few, since more take long.
    """

    fleet: Fleet
    policies: tuple[PolicyScore, ...]
    tested: tuple[Tested, ...]
    seed: int
    unit: str
    unscored: int
    intervals: int
    talk: tuple[str, ...]
    troubles: str
    days: int
    possible_days: int
    chosen: bool
    written: tuple[Path, ...] = ()

    def policy(self, name: str) -> PolicyScore | None:
        """The policy of that name; None where it was not asked for."""
        return next((one for one in self.policies if one.name == name), None)

    def regret(self, policy: PolicyScore) -> float | None:
        """Production GPU-hours over hindsight's − 1; None without hindsight, and for itself."""
        best = self.policy(HINDSIGHT)
        if best is None or policy is best or best.production_gpu_h <= 0:
            return None
        return policy.production_gpu_h / best.production_gpu_h - 1.0


@dataclass(slots=True, kw_only=True, eq=False)
class _Sums:
    """A policy's sums while folds are added."""

    scores: dict[str, dict[str, list[Score]]] = field(default_factory=dict)
    gpu_h: dict[str, float] = field(default_factory=dict)
    given: list[Realised] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def backtested(
    fleet: Fleet,
    demand: Demand,
    trial: Trial,
    *,
    days: int | None = None,
    choices: Callable[[Fold], Choices] | None = None,
) -> Backtested:
    """Plan on weeks 1 … k, run week k + 1, for every k; days instead of weeks where there are fewer than two.

    Weeks are of seven calendar days in the fleet's zone, from the first whole one of the demand; what is left over at
    its end is not tested. Of all that, the last ``days`` are run; None: as many as have forty million requests.
    ``choices``: what the policies chose for a fold, where that is known from another trial; it must be of the same
    policies and seed. ``InputError`` where the demand has less than two whole days, or fewer to test than ``days``.
    """
    unit, every = folds_of(fleet, demand)
    if days is not None and days > days_of(every):
        raise InputError(
            f"the demand has {days_of(every)} days to test, not {days}; what is before them is planned on",
            kind="too_few_days",
            hint=f"--days {days_of(every)} at most, or give more history",
        )
    shown = days_that_fit(fleet, demand, every) if days is None else days
    folds = last_days(fleet, every, shown)
    sums = {name: _Sums() for name in ORDER if name == EBBTIDE or name in trial.against}
    known = choices or partial(choices_of, fleet, demand, trial=trial)
    tested = [_test(fleet, demand, fold, known(fold), trial, sums) for fold in folds]
    streams = [stream for one in tested for stream in one.streams.values()]
    return Backtested(
        fleet=fleet,
        policies=tuple(_policy_score(name, one) for name, one in sums.items()),
        tested=tuple(tested),
        seed=trial.seed,
        unit=unit,
        unscored=sum(int((~stream.scored).sum()) for stream in streams),
        intervals=sum(len(stream.scored) for stream in streams),
        talk=tuple(line for record in demand.records for line in source_talk(record)),
        troubles=trial.troubles,
        days=days_of(folds),
        possible_days=days_of(every),
        chosen=days is None,
    )


def _test(
    fleet: Fleet,
    demand: Demand,
    fold: Fold,
    choices: Choices,
    trial: Trial,
    sums: dict[str, _Sums],
) -> Tested:
    plans = plans_of(fleet, demand, fold, choices, trial)
    starts_s, window = window_starts(
        plans.schedule.windows, start_s=fold.start_s, end_s=fold.end_s, time_zone=fleet.time_zone
    )
    cells = Cells(starts_s=starts_s, window=window, end_s=float(fold.end_s), windows=len(plans.schedule.windows))
    streams = {
        one.name: stream_of(one, demand.series[one.name], start_s=fold.start_s, end_s=fold.end_s)
        for one in fleet.workloads
    }
    played = play_all(fleet, fold, plans, streams, cells, trial)
    given = {}
    for name, one in sums.items():
        mine = {workload: runs[name] for workload, runs in played.items()}
        given[name] = realised_of(fleet, fold, name, plans, mine)
        _add(one, fleet, fold, plans, name, mine, given[name])
    tallies = {name: {workload: runs[name].tally for workload, runs in played.items()} for name in sums}
    shares = {one.name: one.targets[0].percentile for one in fleet.workloads}
    return Tested(
        fold=fold,
        schedule=plans.schedule,
        cells=cells,
        streams=streams,
        realised=given,
        waits_s={name: {key: one.wait_s(shares[key]) for key, one in mine.items()} for name, mine in tallies.items()},
        missed={name: {key: ~one.held for key, one in mine.items()} for name, mine in tallies.items()},
    )


def _add(
    sums: _Sums,
    fleet: Fleet,
    fold: Fold,
    plans: Plans,
    name: str,
    played: Mapping[str, Played],
    given: Realised,
) -> None:
    for workload in fleet.workloads:
        score = played[workload.name].tally.score
        by_window = sums.scores.setdefault(workload.name, {})
        for k, window in enumerate(plans.schedule.windows):
            if score.cells[k] or window.valid_from is None:
                by_window.setdefault(hours_label(window), []).append(score.of_window(k))
        pods = given.pods[workload.name]
        hours = replica_hours(pods, start_s=fold.start_s, end_s=fold.end_s) * workload.gpus_per_replica
        sums.gpu_h[workload.name] = sums.gpu_h.get(workload.name, 0.0) + hours
    sums.given.append(given)
    sums.notes.append(plans.notes[name])


def _policy_score(name: str, sums: _Sums) -> PolicyScore:
    over: dict[str, int] = {}
    for given in sums.given:
        for held in given.pools:
            over[held.pool.name] = max(over.get(held.pool.name, 0), held.over)
    return PolicyScore(
        name=name,
        scores={
            workload: {label: together(parts) for label, parts in windows.items()}
            for workload, windows in sums.scores.items()
        },
        gpu_h=sums.gpu_h,
        production_gpu_h=sum(one.production_gpu_h for one in sums.given),
        moving_gpu_h=sum(one.moving_gpu_h for one in sums.given),
        research_gpu_h=sum(one.given_gpu_h for one in sums.given),
        lost_gpu_h=sum(one.lost_gpu_h for one in sums.given),
        moves=sum(one.moves for one in sums.given),
        shortages=tuple(short for one in sums.given for short in one.shortages),
        over_nodes=over,
        notes=tuple(sums.notes),
    )
