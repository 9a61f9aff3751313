"""A step's answers as sums over short runs of consecutive requests: all that the statistics need of it.

The raw answers stay with whoever keeps evidence; the search holds these sums, a few kilobytes a step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebbtide.capacity.limits import Answers, Floats, Limit, judged, level

# Enough runs that batch means of any length from a hundredth of the step up can be formed from them.
MOST_RUNS = 512


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batches:
    """Sums over runs of ``size`` requests, for one limit: ``trials`` it spoke of, ``bad`` ones, sums of the level.

    ``level_square`` is the sum of the squared level of the whole step's requests, run by run.
    """

    size: int
    trials: Floats
    bad: Floats
    level: Floats
    level_square: Floats

    @property
    def requests(self) -> int:
        """Requests in all runs."""
        return self.size * len(self.trials)

    @property
    def bad_share(self) -> float:
        """Bad ones among those that the limit speaks of; NaN where there are none."""
        trials = float(self.trials.sum())
        return float(self.bad.sum()) / trials if trials else float("nan")

    def after(self, requests: int) -> Batches:
        """Without the first ``requests``, rounded up to whole runs.

        >>> ones = np.ones(4)
        >>> Batches(size=5, trials=5 * ones, bad=ones, level=ones, level_square=ones).after(6).requests
        10
        """
        skip = -(-requests // self.size)
        return Batches(
            size=self.size,
            trials=self.trials[skip:],
            bad=self.bad[skip:],
            level=self.level[skip:],
            level_square=self.level_square[skip:],
        )


def batches(limit: Limit, answers: Answers) -> Batches:
    """The answers' sums; the last few requests that fill no run are left out.

    >>> from ebbtide.capacity.limits import LimitKind
    >>> answers = Answers(latency_s=np.arange(6.0), failed=np.zeros(6, dtype=bool))
    >>> batches(Limit(kind=LimitKind.LATENCY, bad_share=0.05, bound_s=2.5), answers).bad
    array([0., 0., 0., 1., 1., 1.])
    """
    size = -(-len(answers) // MOST_RUNS) if len(answers) else 1
    trials, bad = judged(limit, answers)
    levels = level(limit, answers)
    return Batches(
        size=size,
        trials=run_sums(trials.astype(np.float64), size),
        bad=run_sums(bad.astype(np.float64), size),
        level=run_sums(levels, size),
        level_square=run_sums(levels**2, size),
    )


def run_sums(values: Floats, length: int) -> Floats:
    """Sums over consecutive runs of ``length`` values; what fills no run is left out.

    >>> run_sums(np.arange(5.0), 2)
    array([1., 5.])
    """
    runs = len(values) // length
    return np.asarray(values[: runs * length].reshape(runs, length).sum(axis=1))
