"""The measurements around the crossing: where to put the next block, and what all of them say (§M.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp, inf, log, sqrt

import numpy as np

from ebbtide.capacity.batches import Batches, run_sums
from ebbtide.capacity.fit import Blocks, Crossing, crossing, line, logit
from ebbtide.capacity.limits import Floats, Limit, LimitKind
from ebbtide.capacity.memory import inflation, memory
from ebbtide.capacity.steps import Purpose, Step
from ebbtide.capacity.verdict import warmed

BLOCK_MEMORIES = 25.0
# Rates farther than this from the crossing, in the logarithm, stay out: a straight line no longer describes them.
WINDOW = log(1.1)
# Steps that guide may be farther away; they only decide where to measure.
GUIDE_WIDTH = 0.12
# Few long runs rather than many short ones: stalls at regular times make runs of one period and a bit differ by a whole
# stall. Thirty know the variance to a quarter, which the t quantile allows for.
MOST_CLUSTERS = 32
# What is believed of the slope before anything is seen: most services cross their limit within this range.
PRIOR_SLOPE, PRIOR_SPREAD = 12.0, 10.0
_SLOPES = (1.0, 80.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """Where the crossing seems to be, ln(rate), how steep the first limit to fail is there, and which it is."""

    at: float
    slope: float
    limit: int


def memory_near(steps: Sequence[Step], at: float, limits: int) -> float:
    """The longest memory of the blocks within a tenth of ``exp(at)``; of all steps there is where there are none."""
    near = [step for step in steps if _is_near(step, at)]
    if not near:
        close = [step.measured.memory for step in steps if apart(step, at) <= 0.3 and not step.measured.growing]
        return max(close, default=1.0)
    return max(memory([step.measured.scatters[index] for step in near]) for index in range(limits))


def _is_near(step: Step, at: float) -> bool:
    return step.plan.purpose is Purpose.BLOCK and apart(step, at) <= WINDOW


def apart(step: Step, at: float) -> float:
    """Distance of the step's rate from ``exp(at)``, in the logarithm."""
    return abs(log(step.plan.rate_rps) - at)


def guess(steps: Sequence[Step], limits: Sequence[Limit], centre: float) -> Guess:
    """Where to measure next, from all steps around ``centre``, nearer ones counting more."""
    found = [_guessed(steps, limit, index, centre) for index, limit in enumerate(limits)]
    return min(found, key=lambda one: one.at)


def _guessed(steps: Sequence[Step], limit: Limit, index: int, centre: float) -> Guess:
    """By a weighted line with a prior slope; half a bad request in ten effective ones keeps it finite."""
    x, trials, bad = [centre], [10.0], [10.0 * limit.bad_share]
    for step in steps:
        one = step.measured.scatters[index]
        if not one.trials or (step.measured.growing and apart(step, centre) > WINDOW):
            continue
        weight = exp(-0.5 * (apart(step, centre) / GUIDE_WIDTH) ** 2) / step.measured.memory
        x.append(log(step.plan.rate_rps))
        trials.append(weight * one.trials)
        bad.append(weight * one.bad)
    blocks = Blocks(x=np.array(x), trials=np.array(trials), bad=np.array(bad))
    found = line(blocks, centre, slope=PRIOR_SLOPE, weight=1.0 / PRIOR_SPREAD**2)
    height, slope = found if found is not None else (logit(limit.bad_share), PRIOR_SLOPE)
    slope = min(max(slope, _SLOPES[0]), _SLOPES[1])
    return Guess(at=centre + (logit(limit.bad_share) - height) / slope, slope=slope, limit=index)


def clustered(steps: Sequence[Step], index: int, at: float, lasting: float) -> Blocks:
    """Independent blocks for the fit, rates in units of ``exp(at)``: the steps near it, cut into runs.

    A run is half a block, 12.5 memories: what neighbours share is 4 % of the variance. Runs are longer where that would
    make too many of them: longer ones are the more independent. A step that has become too short, since the memory was
    longer than thought, is one run.
    """
    near = [step for step in steps if _is_near(step, at)]
    kept = [(step, warmed(step.whole, warm_up=step.plan.warm_up_requests, lasting=lasting)[0][index]) for step in near]
    total = sum(one.requests for _, one in kept)
    length = max(0.5 * BLOCK_MEMORIES * lasting, total / MOST_CLUSTERS)
    rows = [
        _cut(step.plan.rate_rps / exp(at), one, length) for step, one in kept if one.requests >= 0.5 * BLOCK_MEMORIES
    ]
    if not rows:
        return Blocks(x=np.empty(0), trials=np.empty(0), bad=np.empty(0))
    x, trials, bad = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    return Blocks(x=x, trials=trials, bad=bad)


def _cut(x: float, one: Batches, length: float) -> tuple[Floats, Floats, Floats]:
    pieces = max(1, int(one.requests / length))
    runs = max(1, len(one.trials) // pieces)
    trials, bad = run_sums(one.trials, runs)[:pieces], run_sums(one.bad, runs)[:pieces]
    return np.full(len(trials), x), trials, bad


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The sustained rate with its interval, all in ln(rate); an end may be infinite."""

    at: float
    low: float
    high: float
    limit: int
    clusters: int
    effective: float
    slope: float
    inflation: float

    @property
    def half_width(self) -> float:
        """Half the interval as a share of the rate in its middle."""
        if self.low == -inf or self.high == inf:
            return inf
        low, high = exp(self.low), exp(self.high)
        return (high - low) / (high + low)


def interval(steps: Sequence[Step], limits: Sequence[Limit], at: float, confidence: float) -> Interval | None:
    """The first limit to fail, and where: the least crossing, its ends the least low and the least high of all.

    A limit whose bad share lies far below what it allows on all of the data does not bind and is left out. None
    where a binding limit's crossing can't be fitted.
    """
    centre = at
    for _ in range(3):
        found = _interval(steps, limits, centre, confidence)
        if found is None or abs(found.at - centre) < 1e-3:
            return found
        centre = found.at
    return found


def _interval(steps: Sequence[Step], limits: Sequence[Limit], at: float, confidence: float) -> Interval | None:
    lasting = memory_near(steps, at, len(limits))
    parts: list[tuple[int, Crossing, Blocks]] = []
    for index, limit in enumerate(limits):
        blocks = clustered(steps, index, at, lasting)
        scatters = [step.measured.scatters[index] for step in steps if _is_near(step, at)]
        of_latency = limit.kind is LimitKind.LATENCY
        floor = inflation(scatters, level=of_latency)
        if not float(blocks.trials.sum()) or _slack(blocks, limit, lasting if of_latency else floor):
            continue
        found = crossing(blocks, limit.bad_share, confidence, least_inflation=floor)
        if found is None:
            return None
        parts.append((index, found, blocks))
    if not parts:
        return None
    index, first, blocks = min(parts, key=lambda part: part[1].at)
    low, high = min(part[1].low for part in parts), min(part[1].high for part in parts)
    return Interval(
        at=at + _log(first.at),
        low=at + _log(low),
        high=at + _log(high),
        limit=index,
        clusters=first.blocks,
        effective=float(blocks.trials.sum()) / max(first.inflation, 1.0),
        slope=first.slope,
        inflation=first.inflation,
    )


def _log(relative: float) -> float:
    return log(relative) if relative > 0.0 else -inf


def _slack(blocks: Blocks, limit: Limit, lasting: float) -> bool:
    """Whether the bad share at the highest rates lies five standard deviations below what is allowed.

    ``lasting``: memory of what the limit speaks of, as its fit would take it. Errors and wrong answers need not last as
    long as queues do: by the queue's memory, no number of answers within a budget would show a service without errors.
    """
    high = blocks.x >= np.median(blocks.x)
    trials, bad = float(blocks.trials[high].sum()), float(blocks.bad[high].sum())
    deviation = sqrt(limit.bad_share * (1.0 - limit.bad_share) * lasting / trials)
    return bool(bad / trials < limit.bad_share - 5.0 * deviation)


def offset(slope: float, side: int) -> float:
    """How far from the crossing to measure, in ln(rate): where the odds of a bad request are 0.45 and 2.2 times.

    Far enough for the slope to be known, near enough for the line to be straight and the service to be steady; never
    more than 7 %.
    """
    wanted = (-1.1 if side < 0 else 0.8) / slope
    return side * min(max(abs(wanted), 0.008), 0.07) if side else 0.0


def block_requests(guessed: Guess, limit: Limit, lasting: float, tolerance: float) -> tuple[int, int]:
    """Requests of a block to be measured, and of all blocks that the tolerance is likely to need.

    ``n = (2 / tolerance)² · τ / (α (1 − α) b²)``, a third more for the slope and what is not known of τ.
    """
    spread = limit.bad_share * (1.0 - limit.bad_share)
    needed = 1.33 * (2.1 / tolerance) ** 2 * lasting / (spread * guessed.slope**2)
    needed = max(needed, 16.0 * BLOCK_MEMORIES * lasting)
    return ceil(max(BLOCK_MEMORIES * lasting, needed / 16.0)), ceil(needed)
