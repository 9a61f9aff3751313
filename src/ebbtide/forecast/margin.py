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
from ebbtide.forecast.needs import Past
from ebbtide.forecast.seasonal import Margin
from ebbtide.forecast.trials import MARGINS, Grid, Tried, try_margins

ASSUMED = Margin(neighbour_s=3600, factor=1.15)  # 98 % of the study's window instances, and a quarter below static
LEAST_TRIALS = 20  # fewer cannot tell a share of 0.95 from 1
BELOW_STATIC = 0.005  # half a point: fewer GPUs may cost that many windows more than a static peak misses anyway
FLEET_SHARE = 0.5  # how much the fleet's trials count in a workload's held share; its own count the rest

LOWEST_PRICE_GPU_H = 1e-6

Place = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """Margins by workload, and what they rest on.

    ``trials`` past window instances were planned from the days before them. ``held_share`` of them would have had the
    replicas that they turned out to need, ``held_shares`` by workload (absent without a trial); ``static_share`` would
    have with a static peak. The margins were chosen to hold ``wished_share``, each workload's own trials counting half
    (``tune_margins``), so that ``held_share`` may lie beside it. ``assumed``: there were too few trials to choose by,
    and the shares are NaN.
    """

    margins: dict[str, Margin]
    trials: int
    wished_share: float
    static_share: float
    held_share: float
    held_shares: dict[str, float]
    assumed: bool

    def __str__(self) -> str:
        """For the schedule's provenance.

        >>> margins = {"chat": Margin(factor=1.5), "agents": Margin(neighbour_s=1800, factor=1.05)}
        >>> shares = {"wished_share": 0.95, "static_share": 0.952, "held_share": 0.9541, "held_shares": {}}
        >>> str(Tuning(margins=margins, trials=860, **shares, assumed=False))
        'by workload: ±0-30 min, rates × 1.05-1.50; 95.4 % of 860 past windows would have held (static peak: 95.2 %)'
        >>> str(Tuning(margins={"chat": Margin(factor=1.1)}, trials=20, **shares, assumed=False))
        'rates × 1.10; 95.4 % of 20 past windows would have held (static peak: 95.2 %)'
        >>> margins["chat"] = Margin(factor=2.0, ceiling_rps=7.1)
        >>> str(Tuning(margins=margins, trials=860, **shares, assumed=False)).split(";")[0]
        'by workload: ±0-30 min, rates × 1.05-2.00, capped near the busiest past window for 1 of 2'
        >>> str(Tuning(margins={"chat": ASSUMED}, trials=12, **shares, assumed=True))
        '±60 min, rates × 1.15: assumed, only 12 past windows to try margins on'
        """
        text = _told(list(self.margins.values()))
        if self.assumed:
            return f"{text}: assumed, only {self.trials} past windows to try margins on"
        held, static = (f"{share:.1%}".replace("%", " %") for share in (self.held_share, self.static_share))
        return f"{text}; {held} of {self.trials} past windows would have held (static peak: {static})"


def _told(margins: Sequence[Margin]) -> str:
    """Margins in words: what all share, or between which bounds they lie."""
    around = sorted({margin.neighbour_s // 60 for margin in margins})
    factors = sorted({margin.factor for margin in margins})
    minutes = f"±{_span([f'{one}' for one in around])} min, " if around[-1:] > [0] else ""
    capped = sum(margin.ceiling_rps < math.inf for margin in margins)
    until = f", capped near the busiest past window for {capped} of {len(margins)}" if capped else ""
    by_workload = "by workload: " if len(set(margins)) > 1 else ""
    return f"{by_workload}{minutes}rates × {_span([f'{one:.2f}' for one in factors])}{until}"


def _span(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{texts[0]}-{texts[-1]}"


def supported_confidence(days: int) -> float:
    """The greatest share of days that ``days`` past days can support: m/(m+1).

    The worst of m past days is passed by the next one with probability 1/(m+1), were days exchangeable.

    >>> supported_confidence(13), supported_confidence(0)
    (0.9285714285714286, 0.0)
    """
    return days / (days + 1)


def wished_share(confidence: float, static_share: float) -> float:
    """The share of past window instances that a plan is to hold, where a static peak would have held ``static_share``.

    At least the confidence, and never more than half a point below static: who plans for fewer GPUs than a static peak
    takes them from where they were idle, not from where they were needed.

    >>> wished_share(0.95, 0.988), wished_share(0.95, 0.91)
    (0.983, 0.95)
    """
    return max(confidence, static_share - BELOW_STATIC)


def tune_margins(
    pasts: Sequence[Past],
    windows: Sequence[Window],
    *,
    time_zone: str,
    confidence: float,
    wished: float | None = None,
    exceptions: tuple[DatedException, ...] = (),
) -> Tuning:
    """The margins with which the past would have been planned for the fewest GPU-hours.

    Every past window instance with two days before it is a trial: planned from those days as ``allocate`` would (the
    replicas that ``confidence`` of them needed, margin applied), held if that is at least what it then needed. The
    margins chosen cost the fewest GPU-hours at which the fleet holds its ``wished_share`` of trials (or ``wished``,
    where given); where none reaches it, the share is the greatest that any reaches. A workload's share counts half by
    its own trials, half by the fleet's: a few days of one workload say little, and no two workloads are alike.

    Need is the closed form's on the trial's own rates: noise, and queues left over from the window before, are not in
    it. With fewer than twenty trials the margin is ``ASSUMED``, and says so.

    Raises ``InputError`` as ``window_demand`` does. Cost: about 0.1 ms for every scenario of a past window.
    """
    tried = {past.workload.name: try_margins(past, windows, time_zone, confidence, exceptions) for past in pasts}
    trials = sum(trial.count for trial in tried.values())
    if trials < LEAST_TRIALS:
        return _assumed(list(tried), trials)
    static_share = sum(trial.static_held for trial in tried.values()) / trials
    wish = wished_share(confidence, static_share) if wished is None else wished
    chosen = dict(zip(tried, _cheapest(list(tried.values()), wish), strict=True))
    held = {name: float(trial.held[chosen[name]]) for name, trial in tried.items()}
    return Tuning(
        margins={name: trial.margin(*chosen[name]) for name, trial in tried.items()},
        trials=trials,
        wished_share=wish,
        static_share=static_share,
        held_share=sum(held.values()) / trials,
        held_shares={name: held[name] / trial.count for name, trial in tried.items() if trial.count},
        assumed=False,
    )


def _assumed(names: Sequence[str], trials: int) -> Tuning:
    """For want of trials."""
    return Tuning(
        margins=dict.fromkeys(names, ASSUMED),
        trials=trials,
        wished_share=math.nan,
        static_share=math.nan,
        held_share=math.nan,
        held_shares={},
        assumed=True,
    )


def _cheapest(tried: Sequence[Tried], wished: float) -> list[Place]:
    """The margins that hold the wished share for the fewest GPU-hours.

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
    wished = min(wished, answer[1])
    for _ in range(60):
        middle = math.sqrt(low * high)
        found = best(middle)
        if found[1] >= wished - 1e-12:
            answer, high = found, middle
        else:
            low = middle
    return answer[0]


def _least(cost: Grid) -> Place:
    """Where a cost is least; among equals the narrowest neighbourhood, the smallest factor, then no ceiling."""
    neighbour, factor, ceiling = np.unravel_index(np.argmin(cost), cost.shape)
    return int(neighbour), int(factor), int(ceiling)
