"""All requests of a tested stretch through every policy's queues, as many at once as there are cores."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.workload import Workload
from ebbtide.simulate.plays import Played, Setting, play
from ebbtide.simulate.scoring import Cells
from ebbtide.simulate.streams import Stream
from ebbtide.workflows.backtest_plans import Plans
from ebbtide.workflows.backtest_span import Fold
from ebbtide.workflows.backtest_trial import Trial
from ebbtide.workflows.side_by_side import Tell, side_by_side

PLAYED_TOGETHER = 3  # policies that share one making of the requests, which takes less than half of a policy's queue


def play_all(
    fleet: Fleet,
    fold: Fold,
    plans: Plans,
    streams: Mapping[str, Stream],
    cells: Cells,
    trial: Trial,
) -> dict[str, dict[str, Played]]:
    """Every workload's runs under every policy, a few policies of one workload at a time; all on the same requests."""

    def tell(share: float) -> None:
        trial.stage(f"replaying {fold.name}", int(1000 * share), 1000)

    names = list(plans.settings)
    groups = [tuple(names[first : first + PLAYED_TOGETHER]) for first in range(0, len(names), PLAYED_TOGETHER)]
    parts = [(number, group) for number in range(len(fleet.workloads)) for group in groups]
    calls = []
    for number, group in parts:
        workload = fleet.workloads[number]
        settings = {name: plans.settings[name][workload.name] for name in group}
        calls.append(
            partial(_play_some, workload, streams[workload.name], settings, cells, (trial.seed, fold.number, number))
        )
    weights = [streams[fleet.workloads[number].name].expected_requests * len(group) for number, group in parts]
    found = side_by_side(calls, weights=weights, tell=tell)
    played: dict[str, dict[str, Played]] = {one.name: {} for one in fleet.workloads}
    for (number, _), some in zip(parts, found, strict=True):
        played[fleet.workloads[number].name] |= some
    return played


def _play_some(
    workload: Workload,
    stream: Stream,
    settings: Mapping[str, Setting],
    cells: Cells,
    seed: tuple[int, ...],
    tell: Tell,
) -> dict[str, Played]:
    return play(workload, stream, settings, cells, seed=seed, progress=tell)
