"""What becomes of every policy's choices on one tested stretch: schedules under control, nodes for an autoscaler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.schedule import Schedule
from ebbtide.simulate.driven import driven, live_demand
from ebbtide.simulate.plays import Played, Setting
from ebbtide.simulate.realised import Realised, on_demand, realised
from ebbtide.simulate.world.demand import LiveDemand
from ebbtide.workflows.backtest_choices import Choices
from ebbtide.workflows.backtest_span import Fold
from ebbtide.workflows.backtest_trial import EBBTIDE, REACTIVE, TROUBLES, Trial
from ebbtide.workflows.demand import Demand


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plans:
    """The schedule that windows are scored by, each policy's settings by workload, and what it chose, in words.

    ``driven`` are policies with a schedule, as the controller drove it.
    """

    schedule: Schedule
    settings: Mapping[str, Mapping[str, Setting]]
    driven: Mapping[str, Realised]
    notes: Mapping[str, str]


def plans_of(fleet: Fleet, demand: Demand, fold: Fold, choices: Choices, trial: Trial) -> Plans:
    """The schedules driven through the fold. Only ebbtide sees live demand."""
    live = live_demand(demand.series, start_s=fold.start_s, end_s=fold.end_s)
    ran = {}
    for number, (name, schedule) in enumerate(choices.schedules.items()):
        trial.stage(f"moving nodes, {fold.name}", number, len(choices.schedules))
        ran[name] = _driven(fleet, schedule, fold, trial, live if name == EBBTIDE else None)
    settings: dict[str, Mapping[str, Setting]] = {name: one.capacity for name, one in ran.items()}
    if choices.autoscalers:
        settings[REACTIVE] = choices.autoscalers
    return Plans(schedule=choices.schedules[EBBTIDE], settings=settings, driven=ran, notes=choices.notes)


def _driven(fleet: Fleet, schedule: Schedule, fold: Fold, trial: Trial, live: LiveDemand | None) -> Realised:
    """What the controller makes of a schedule; every policy meets the same dice."""
    seed = int(np.random.SeedSequence((trial.seed, fold.number)).generate_state(1)[0])
    return driven(
        fleet,
        schedule,
        start_s=fold.start_s,
        end_s=fold.end_s,
        seed=seed,
        live=live,
        troubles=TROUBLES[trial.troubles],
    )


def realised_of(fleet: Fleet, fold: Fold, name: str, plans: Plans, played: Mapping[str, Played]) -> Realised:
    """What a policy gave, once its runs are over: the controller's run, or nodes for the pods that came of it."""
    if name in plans.driven:
        return plans.driven[name]
    capacity = {workload: one.capacity for workload, one in played.items()}
    pods = {workload: one.pods for workload, one in played.items()}
    held = on_demand(fleet, pods, end_s=float(fold.end_s), ready_ahead=name != REACTIVE)
    return realised(fleet, capacity, held, pods=pods)
