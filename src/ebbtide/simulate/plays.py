"""Policies played against the same requests, piece by piece; and the autoscaler's target, tuned on past ones.

What belongs here: one workload's requests through the queue of every policy. What doesn't: which policies there are and
what they set (``policies``, ``allocate``), nodes (``realised``), documents.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ebbtide.fleet.demand import Series
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.workload import Workload
from ebbtide.simulate.autoscaler import Autoscaler
from ebbtide.simulate.fcfs import Capacity
from ebbtide.simulate.policies import TOLERANCE, grid_windows
from ebbtide.simulate.realised import window_starts
from ebbtide.simulate.runs import Run, autoscaled_run, planned_run
from ebbtide.simulate.scoring import Cells, Tally
from ebbtide.simulate.streams import Stream, pieces_of, split_days, stream_of
from ebbtide.units import SECONDS_PER_HOUR

TARGETS = tuple(round(0.1 * tenth, 1) for tenth in range(2, 10))  # shares of slots in use that are tried
MOST_TUNING_REQUESTS = 6e6  # past days are tuned on, the youngest first, up to so many requests of a workload
TRIED_TOGETHER = 3  # targets that share one making of the requests

STEADY = "steady"

Setting = Capacity | Autoscaler


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Played:
    """One policy's run of one workload: what became of the requests, what served, and what pods were held."""

    tally: Tally
    capacity: Capacity
    pods: Capacity


def play(
    workload: Workload,
    stream: Stream,
    settings: Mapping[str, Setting],
    cells: Cells,
    *,
    seed: tuple[int, ...],
    progress: Callable[[float], None] = lambda share: None,
) -> dict[str, Played]:
    """Every policy's run over the same requests; ``progress`` is told the share of the stream that is done.

    Memory: a piece of requests, and the standing queue of every policy.
    """
    runs = {name: _run(workload, stream, setting) for name, setting in settings.items()}
    tallies = {name: Tally.of(workload, stream, cells) for name in settings}
    for requests, draws, until_s in pieces_of(stream, seed=seed):
        for name, run in runs.items():
            tallies[name].add(run.take(requests, draws, until_s))
        progress((until_s - stream.start_s) / (stream.end_s - stream.start_s))
    for name, run in runs.items():
        tallies[name].add(run.close())
    return {name: Played(tally=tallies[name], capacity=run.capacity, pods=run.pods) for name, run in runs.items()}


def autoscaler_of(fleet: Fleet, workload: Workload, target: float) -> Autoscaler:
    """Kubernetes' defaults with the workload's start-up time; at most what its pool's movable nodes hold of it."""
    pool = fleet.pool(workload.pool)
    wide = math.ceil(workload.gpus_per_replica / pool.gpus_per_node)
    fits = (
        pool.max_production_nodes // wide
        if workload.gpus_per_replica > pool.gpus_per_node
        else pool.max_production_nodes * (pool.gpus_per_node // workload.gpus_per_replica)
    )
    least = max(workload.min_replicas, 1)  # an autoscaler has a minimum of 1
    most = fits if workload.max_replicas is None else min(fits, workload.max_replicas)
    return Autoscaler(
        target=target, min_replicas=least, max_replicas=max(most, least), startup_s=workload.startup_time_s
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedTarget:
    """An autoscaler's target, and the share of simulated past windows that it held, and static."""

    target: float
    held_share: float
    static_share: float

    def __str__(self) -> str:
        """For people.

        >>> str(TunedTarget(target=0.6, held_share=0.9881, static_share=0.9762))
        'at 60 % of slots in use, held 98.8 % of past windows (static 97.6 %)'
        """
        shares = (f"{100 * share:.1f} %" for share in (self.held_share, self.static_share))
        return "at {:.0f} % of slots in use, held {} of past windows (static {})".format(100 * self.target, *shares)


def tuned_target(
    fleet: Fleet,
    workload: Workload,
    series: Series,
    static: int,
    *,
    seed: tuple[int, ...],
    progress: Callable[[float], None] = lambda share: None,
) -> TunedTarget:
    """The target of the fewest pod-hours with which the youngest past days hold as many windows as under ``static``.

    Less half a point (``TOLERANCE``); where no target does, of those that hold most. Whole days, windows of two hours,
    all on the same requests. ``progress`` is told how much of all targets was tried; it may end before all are.
    """
    past = tuning_stream(workload, series)
    starts_s, window = window_starts(grid_windows(), start_s=past.start_s, end_s=past.end_s, time_zone=fleet.time_zone)
    cells = Cells(starts_s=starts_s, window=window, end_s=float(past.end_s), windows=len(grid_windows()))
    steady = Capacity(starts_s=np.array([float(past.start_s)]), replicas=np.array([static], dtype=np.int64))
    tried = _tried(fleet, workload, past, cells, steady, seed=seed, progress=progress)
    wished = _share(tried.pop(STEADY).tally) - TOLERANCE
    held = {float(target): _share(one.tally) for target, one in tried.items()}
    enough = min(wished, max(held.values()))
    best = min(
        (target for target in held if held[target] >= enough),
        key=lambda target: replica_hours(tried[str(target)].pods, start_s=past.start_s, end_s=past.end_s),
    )
    return TunedTarget(target=best, held_share=held[best], static_share=wished + TOLERANCE)


def tuning_stream(workload: Workload, series: Series) -> Stream:
    """The youngest past days, as many as have not too many requests, and at least one."""
    whole = stream_of(workload, series, start_s=series.start_s, end_s=series.end_s)
    start_s = max(split_days(whole, MOST_TUNING_REQUESTS), whole.start_s)
    return stream_of(workload, series, start_s=start_s, end_s=series.end_s)


def _tried(
    fleet: Fleet,
    workload: Workload,
    past: Stream,
    cells: Cells,
    steady: Capacity,
    *,
    seed: tuple[int, ...],
    progress: Callable[[float], None],
) -> dict[str, Played]:
    """``steady`` and targets on the same requests: the highest first, until one holds what ``steady`` does.

    A lower one takes more pods at every look, so that it can only cost more.
    """
    found: dict[str, Played] = {}
    falling = sorted(TARGETS, reverse=True)
    for first in range(0, len(falling), TRIED_TOGETHER):
        settings: dict[str, Setting] = {} if found else {STEADY: steady}
        group = falling[first : first + TRIED_TOGETHER]
        settings |= {str(target): autoscaler_of(fleet, workload, target) for target in group}

        def tell(share: float, before: int = first, here: int = len(group)) -> None:
            progress((before + share * here) / len(falling))

        found |= play(workload, past, settings, cells, seed=seed, progress=tell)
        wished = _share(found[STEADY].tally) - TOLERANCE
        if any(_share(found[str(target)].tally) >= wished for target in group):
            break
    return found


def replica_hours(pods: Capacity, *, start_s: float, end_s: float) -> float:
    """Replicas over time on a stretch, in hours.

    >>> replica_hours(Capacity.steady(3), start_s=0.0, end_s=7200.0)
    6.0
    """
    lengths_s = np.diff(np.append(np.clip(pods.starts_s, start_s, end_s), end_s))
    return float((pods.replicas * lengths_s).sum()) / SECONDS_PER_HOUR


def _share(tally: Tally) -> float:
    share = tally.score.held_share
    return 1.0 if math.isnan(share) else share


def _run(workload: Workload, stream: Stream, setting: Setting) -> Run:
    slots, balancing = workload.service.concurrency, workload.balancing
    if isinstance(setting, Capacity):
        return planned_run(setting, balancing=balancing, slots=slots)
    load = stream.rates_rps[0] * stream.service_time_s if len(stream.rates_rps) else 0.0
    return autoscaled_run(
        setting,
        start_s=float(stream.start_s),
        replicas=math.ceil(load / slots / setting.target),
        balancing=balancing,
        slots=slots,
    )
