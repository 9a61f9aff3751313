"""How many consecutive requests carry as much information as one independent draw: the memory, by batch means (§M.2).

The variance of a mean over L consecutive requests is τ_L / L times that of one request; τ_L grows with L until L
is longer than any disturbance, and its limit is the memory (the integrated autocorrelation time). Taken from the bad
share alone it is too short while few requests are bad (a run without any looks like independent draws), so the latency
is looked at too, and the longer memory counts. Source: batch means, e.g. Law, Simulation Modeling and Analysis (2015),
§9.5.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ebbtide.capacity import kernels
from ebbtide.capacity.batches import Batches
from ebbtide.capacity.limits import Floats

# Batch means are trusted from this many on: their variance is then known to about a quarter.
LEAST_BATCHES = 32


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scatter:
    """A step's residuals around its own means, run by run, and its totals: what its memory is taken from."""

    size: int
    requests: int
    trials: float
    bad: float
    bad_residuals: Floats
    level_residuals: Floats
    level_squares: float


def scatter(step: Batches) -> Scatter:
    """The residuals of the bad counts around the step's bad share, and of the level around its mean."""
    trials, bad, levels = float(step.trials.sum()), float(step.bad.sum()), float(step.level.sum())
    requests, runs = step.requests, max(len(step.level), 1)
    return Scatter(
        size=step.size,
        requests=requests,
        trials=trials,
        bad=bad,
        bad_residuals=step.bad - step.trials * (bad / trials) if trials else step.bad,
        level_residuals=step.level - levels / runs,
        level_squares=float(step.level_square.sum()) - levels**2 / max(requests, 1),
    )


def memory(steps: Sequence[Scatter]) -> float:
    """Requests for one effective observation at the rates of those steps, at least 1.

    The largest τ_L of both series over all batch lengths that leave ``LEAST_BATCHES``: where the disturbances are
    longer than that the answer is too short, which shows in that it still grows with the number of requests.

    >>> rng = np.random.default_rng(1)
    >>> ones = np.ones(2000)
    >>> alone = (rng.random(2000) < 0.1).astype(float)
    >>> step = Batches(size=1, trials=ones, bad=alone, level=alone, level_square=alone)
    >>> lasting = np.repeat(alone[:200], 10)
    >>> slow = Batches(size=1, trials=ones, bad=lasting, level=lasting, level_square=lasting)
    >>> memory([scatter(step)]) < 2.0, 8.0 < memory([scatter(slow)]) < 15.0
    (True, True)
    """
    return max(largest for largest, _ in memories(steps))


def inflation(steps: Sequence[Scatter], *, level: bool) -> float:
    """What the variance of a bad share over all those steps is, in independent requests: τ_L at the longest L.

    Not the largest: stalls that come at regular times make short runs differ more than long ones do, and long ones are
    what a bad share is taken over. ``level``: the latency's counts too.

    >>> ones = np.ones(4096)
    >>> stalls = ((np.arange(4096) + 8) % 32 < 4) * 1.0
    >>> step = scatter(Batches(size=1, trials=ones, bad=stalls, level=stalls, level_square=stalls))
    >>> memory([step]) > 2.0, inflation([step], level=True)
    (True, 1.0)
    """
    of_bad, of_level = (last for _, last in memories(steps))
    return max(1.0, of_bad, of_level if level else 1.0)


def memories(steps: Sequence[Scatter]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Of the bad counts and of the level: the largest τ_L, and the one at the longest L (the mean of the last two)."""
    requests = sum(step.requests for step in steps)
    trials, bad = sum(step.trials for step in steps), sum(step.bad for step in steps)
    if not requests or not trials:
        return (1.0, 1.0), (1.0, 1.0)
    starts = np.cumsum([0, *(len(step.bad_residuals) for step in steps)])
    sizes = np.array([step.size for step in steps], dtype=np.int64)
    single_bad = bad / trials * (1.0 - bad / trials) * trials / requests
    single_level = sum(step.level_squares for step in steps) / requests
    return (
        _longest(single_bad, [step.bad_residuals for step in steps], starts, sizes),
        _longest(single_level, [step.level_residuals for step in steps], starts, sizes),
    )


def _longest(
    single: float, parts: list[Floats], starts: NDArray[np.int64], sizes: NDArray[np.int64]
) -> tuple[float, float]:
    if single <= 0.0:
        return 1.0, 1.0
    largest, last = kernels.inflations(np.concatenate(parts), starts, sizes, single, LEAST_BATCHES)
    return float(largest), float(last)
