"""How much margin: each past day planned from the days before it, the cheapest margin that held often enough (§5.3).

What belongs here: the choice. What doesn't: what a margin is (``forecast.seasonal``), how one is tried
(``forecast.trials``), plans for the future (``allocate``), simulation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ebbtide.fleet.horizon import DatedException, Window
from ebbtide.forecast.seasonal import Margin
from ebbtide.forecast.trials import FACTORS, MARGINS, NEIGHBOURS_S, Grid, Past, Tried, try_margins

ASSUMED = Margin(neighbour_s=3600, factor=1.15)  # 98 % of the study's window instances, and a quarter below static
LEAST_TRIALS = 20  # fewer cannot tell a share of 0.95 from 1
FLEET_SHARE = 0.5  # how much the fleet's trials count in a workload's held share; its own count the rest

LOWEST_PRICE_GPU_H = 1e-6

Place = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """Margins by workload, and what they rest on.

    ``trials`` past window instances were planned from the days before them. With these margins ``held_share`` of them
    would have had the replicas that they turned out to need (weighed as they were chosen), ``held_shares`` by
    workload (plain; absent without a trial). ``assumed``: there were too few trials to choose by.
    """

    margins: dict[str, Margin]
    trials: int
    held_share: float
    held_shares: dict[str, float]
    assumed: bool

    def __str__(self) -> str:
        """For the schedule's provenance.

        >>> margins = {"chat": Margin(factor=1.5), "agents": Margin(neighbour_s=1800, factor=1.05)}
        >>> str(Tuning(margins=margins, trials=264, held_share=0.981, held_shares={}, assumed=False))
        '±0.5h × 1.05 to × 1.5, by workload (held 98.1% of 264)'
        """
        kinds = sorted(set(self.margins.values()), key=lambda margin: (margin.factor, margin.neighbour_s))
        text = str(kinds[0]) if len(kinds) == 1 else f"{kinds[0]} to {kinds[-1]}, by workload"
        basis = f"assumed: {self.trials} trials" if self.assumed else f"held {self.held_share:.1%} of {self.trials}"
        return f"{text} ({basis})"


def supported_confidence(days: int) -> float:
    """The greatest share of days that ``days`` past days can support: m/(m+1).

    The worst of m past days is passed by the next one with probability 1/(m+1), were days exchangeable.

    >>> supported_confidence(13), supported_confidence(0)
    (0.9285714285714286, 0.0)
    """
    return days / (days + 1)


def tune_margins(
    pasts: Sequence[Past],
    windows: Sequence[Window],
    *,
    time_zone: str,
    confidence: float,
    wished_share: float | None = None,
    exceptions: tuple[DatedException, ...] = (),
) -> Tuning:
    """The margins with which the past would have been planned for the fewest GPU-hours.

    Every past window instance with two days before it is a trial: planned from those days as ``allocate`` would (the
    replicas that ``confidence`` of them needed, margin applied), held if that is at least what it then needed. The
    margins chosen cost the fewest GPU-hours at which the fleet holds ``wished_share`` (None: ``confidence``) of its
    trials; where none reaches it, the share is the greatest that any reaches. A workload's share counts half by its
    own trials, half by the fleet's: a few days of one workload say little, and no two workloads are alike.

    Need is the closed form's on the trial's own rates: noise, and queues left over from the window before, are not in
    it. With fewer than twenty trials the margin is ``ASSUMED``, and says so.

    Raises ``InputError`` as ``window_demand`` does. Cost: about 0.1 ms for every scenario of a past window.
    """
    tried = {past.workload.name: try_margins(past, windows, time_zone, confidence, exceptions) for past in pasts}
    trials = sum(trial.count for trial in tried.values())
    if trials < LEAST_TRIALS:
        return Tuning(
            margins=dict.fromkeys(tried, ASSUMED), trials=trials, held_share=np.nan, held_shares={}, assumed=True
        )
    chosen, held_share = _cheapest(list(tried.values()), confidence if wished_share is None else wished_share)
    return Tuning(
        margins={
            name: Margin(neighbour_s=NEIGHBOURS_S[place[0]], factor=FACTORS[place[1]])
            for name, place in zip(tried, chosen, strict=True)
        },
        trials=trials,
        held_share=held_share,
        held_shares={
            name: float(trial.held[place] / trial.count)
            for (name, trial), place in zip(tried.items(), chosen, strict=True)
            if trial.count
        },
        assumed=False,
    )


def _cheapest(tried: Sequence[Tried], wished_share: float) -> tuple[list[Place], float]:
    """The margins that hold the wished share for the fewest GPU-hours, and the share they hold.

    By a price on a held trial, bisected: at each price every workload's margin is its own best. A workload without
    trials takes the one that would be best for the whole fleet.
    """
    trials = sum(trial.count for trial in tried)
    all_held = sum((trial.held for trial in tried), np.zeros(MARGINS))
    all_gpu_h = sum((trial.gpu_h for trial in tried), np.zeros(MARGINS))
    weighed = [(1 - FLEET_SHARE) * trial.held + FLEET_SHARE * trial.count / trials * all_held for trial in tried]

    def best(gpu_h_per_held: float) -> tuple[list[Place], float]:
        everyone = _least(all_gpu_h - gpu_h_per_held * all_held)
        chosen = [
            _least(trial.gpu_h - gpu_h_per_held * held) if trial.count else everyone
            for trial, held in zip(tried, weighed, strict=True)
        ]
        return chosen, float(sum(held[place] for held, place in zip(weighed, chosen, strict=True)) / trials)

    low, high = LOWEST_PRICE_GPU_H, 1e6 * (float(all_gpu_h.max()) + 1.0)  # at high any trial is worth any hours
    answer = best(high)
    wished_share = min(wished_share, answer[1])
    for _ in range(60):
        middle = math.sqrt(low * high)
        found = best(middle)
        if found[1] >= wished_share - 1e-12:
            answer, high = found, middle
        else:
            low = middle
    return answer


def _least(cost: Grid) -> Place:
    """Where a cost is least; among equals the narrowest neighbourhood, then the smallest factor."""
    row, column = np.unravel_index(np.argmin(cost), cost.shape)
    return int(row), int(column)
