"""What becomes of a placing when durations are drawn: the probability that each job meets its deadline.

A job starts at its planned start, or as soon as the jobs before it on its GPUs and those it comes after have ended,
never earlier than planned. An interrupted run goes on where the plan lets it, less what was lost: work since the last
checkpoint, uniform in the interval. A job that must not be interrupted and outlives its ephemeral nodes counts as
missed: production wins there (§6.5). Nobody replans in between, so what is said here is what the plan alone gives.

What belongs here: the draw and the replay. What doesn't: planning again after a surprise (``replan``).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ebbtide.batch.fitting import Placing
from ebbtide.batch.hollows import Tenure

Floats = NDArray[np.float64]
DRAWS = 1000  # a probability of 0.9 is then known to ±0.02


def probabilities(placing: Placing, *, seed: int, draws: int = DRAWS) -> Floats:
    """For each job the share of draws in which it is done in time (0 where it has no place); deterministic by seed."""
    ends = finishes_s(placing, seed=seed, draws=draws)
    found: Floats = (ends <= placing.instance.latest_s[:, None]).mean(axis=1)
    return found


def finishes_s(placing: Placing, *, seed: int, draws: int = DRAWS) -> Floats:
    """When each job ends in each draw, shape (jobs, draws); infinite where it does not."""
    replay = _Replay(placing, np.random.default_rng(seed), draws)
    for run in np.argsort(placing.run_start_s, kind="stable"):
        replay.run(int(run))
    return replay.ends


class _Replay:
    """The runs of a placing, one after the other in the order of their planned starts, in all draws at once."""

    def __init__(self, placing: Placing, rng: np.random.Generator, draws: int) -> None:
        instance = placing.instance
        jobs = len(instance.jobs)
        self.ends = np.full((jobs, draws), np.inf)
        self._placing, self._rng = placing, rng
        self._left = _drawn_lengths(placing, rng.standard_normal((jobs, draws)))
        self._since = np.full((jobs, draws), -np.inf)
        # Every GPU of every node: when it is free in each draw, and when it is free in the plan.
        self._free = [np.full((int(gpus), draws), float(instance.at_s)) for gpus in instance.node_gpus]
        self._planned = [np.full(int(gpus), instance.at_s) for gpus in instance.node_gpus]

    def run(self, run: int) -> None:
        """One run: it starts, it stops at its end or where its nodes leave, and its GPUs are free again."""
        placing = self._placing
        job = int(placing.run_job[run])
        gpus = list(self._gpus(run))
        start = np.maximum(np.maximum(placing.run_start_s[run], self._since[job]), self._ready_s(job))
        for node, rows in gpus:
            start = np.maximum(start, self._free[node][rows].max(axis=0))
        open_ = np.isinf(self.ends[job]) & np.isfinite(start)  # what was done in an earlier run takes no more
        end = np.where(open_, start + self._left[job], -np.inf)
        turn = self._turn_s(run)
        done = open_ & (end <= turn)
        stop = np.where(open_, np.maximum(np.minimum(end, turn), start), -np.inf)
        self.ends[job][done] = end[done]
        broken = open_ & ~done
        self._left[job][broken] -= self._kept_s(job, (stop - start)[broken])
        self._since[job][broken] = stop[broken]
        for node, rows in gpus:
            self._free[node][rows] = np.maximum(self._free[node][rows], stop)
            self._planned[node][rows] = placing.run_end_s[run]

    def _kept_s(self, job: int, ran_s: Floats) -> Floats:
        """Of the time that broken runs ran, what was not lost."""
        loss_s = float(self._placing.instance.way_loss_s[self._placing.way_of[job]])
        if loss_s < 0:  # it must not be interrupted: all of it is lost
            return np.zeros_like(ran_s)
        kept: Floats = np.maximum(ran_s - self._rng.uniform(0.0, loss_s, len(ran_s)), 0.0)
        return kept

    def _ready_s(self, job: int) -> Floats:
        instance = self._placing.instance
        before = instance.after[instance.after_first[job] : instance.after_first[job + 1]]
        ready: Floats = self.ends[before].max(axis=0, initial=-np.inf)
        return ready

    def _gpus(self, run: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """The run's GPUs on each of its nodes, free in the plan when it starts."""
        placing = self._placing
        per_pod = int(placing.instance.way_gpus[placing.way_of[placing.run_job[run]]])
        for part in range(int(placing.run_part[run]), int(placing.run_part[run + 1])):
            node = int(placing.part_node[part])
            many = per_pod * int(placing.part_pods[part])
            yield node, np.flatnonzero(self._planned[node] <= placing.run_start_s[run])[:many]

    def _turn_s(self, run: int) -> float:
        """When the first of the run's ephemeral nodes leaves; never for reserved ones."""
        placing, instance = self._placing, self._placing.instance
        start, found = placing.run_start_s[run], np.inf
        for part in range(int(placing.run_part[run]), int(placing.run_part[run + 1])):
            node = int(placing.part_node[part])
            if instance.hollows[int(instance.node_hollow[node])].tenure is Tenure.EPHEMERAL:
                stays = slice(int(instance.stay_first[node]), int(instance.stay_first[node + 1]))
                ends = instance.stay_end_s[stays][instance.stay_start_s[stays] <= start]
                found = min(found, float(ends.max(initial=int(start))))
        return found


def _drawn_lengths(placing: Placing, normal: Floats) -> Floats:
    """A length for every job and draw, of the law of the shape that it runs in."""
    for job, way in enumerate(placing.way_of):
        duration = placing.instance.jobs[job].duration
        if way >= 0:
            duration = placing.instance.jobs[job].shapes[int(placing.instance.way_shape[way])].duration
        normal[job] = duration.expected_s * np.exp(duration.sigma * normal[job])
    return normal
