"""Search around a placing: some jobs are taken out and placed anew, the others stay (large neighbourhood search).

Two ways take turns (Shaw 1998; Schrimpf et al. 2000): jobs around a missed one are put back in a shuffled order, a
hundred times a second; and CP-SAT solves a neighbourhood, whose answer the list scheduler puts on nodes. A step that
loses nothing is taken. The search is deterministic by seed: its effort is counted in steps, not in seconds.

What belongs here: which jobs are freed, and what is made of a try. What doesn't: the model (``exact``), the first
placing (``rules``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ebbtide.batch.exact import solve_neighbourhood
from ebbtide.batch.fitting import Placing, Score, place
from ebbtide.batch.instance import Ints
from ebbtide.batch.rules import earliest_deadline, least_slack, order_of, value_density

MOST_FREED = 30  # jobs that are taken out for a reinsertion
MOST_MODELLED = 60  # jobs of a model: more, and CP-SAT finds little in its time
FEW = 60  # jobs of which any order is worth a try
LATER_S = (600.0, 3600.0, 6 * 3600.0)  # mean time by which jobs are taken for less urgent than they are
NOISE, NOISE_OF_FEW = (0.7,), (0.3, 1.0, 3.0)  # standard deviations of the logarithm of value for a GPU-second
EXACT_EVERY = 120  # reinsertions for each model: about as long as one takes
EXACT_EFFORT = 0.1  # of CP-SAT's deterministic time: half a second


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long to search: reinsertions (at 2,000 jobs about a hundred a second), and models between them."""

    reinsertions: int = 600
    models: int = 5


def improved(
    placing: Placing,
    *,
    seed: int,
    effort: Effort,
    movable: Ints | None = None,
    stop: Callable[[], bool] = lambda: False,
    good_enough_usd: float = np.inf,
) -> Placing:
    """The best placing that was found from this one; never worse.

    ``movable``: the jobs that may be moved (None: all); the others stay exactly where they are. ``stop`` is asked
    between steps. Once the value reaches ``good_enough_usd`` and every job is in time that can be, earliness is left to
    a last pass.
    """
    search = _Search(placing, seed, movable)
    models = 0
    for step in range(effort.reinsertions):
        if stop() or search.is_done(good_enough_usd):
            break
        search.reinsert()
        if (step + 1) % EXACT_EVERY == 0 and models < effort.models:
            models += 1
            search.solve(models)
    found = search.compacted()
    return found if found.score > placing.score else placing


class _Search:
    """A placing on its way up."""

    def __init__(self, placing: Placing, seed: int, movable: Ints | None) -> None:
        self._instance = placing.instance
        jobs = len(self._instance.jobs)
        self._movable = np.ones(jobs, dtype=bool)
        if movable is not None:
            self._movable[:] = False
            self._movable[movable] = True
        self._rng = np.random.default_rng(seed)
        self._density = -value_density(self._instance)
        self._latest_start = least_slack(self._instance)
        self._worth = self._instance.values_usd + 1e-6 * max(float(self._instance.values_usd.max(initial=0.0)), 1e-6)
        self._possible = np.diff(self._instance.way_first) > 0
        self._seed = seed
        self._noise = NOISE_OF_FEW if jobs <= FEW else NOISE
        # Late jobs are in nobody's way: they are taken out, and put back behind all others at the end.
        late = np.flatnonzero(self._movable & ~placing.in_time)
        begun = place(self._instance, late, standing=placing, late=False)
        self._take(begun, begun.score)

    def is_done(self, good_enough_usd: float) -> bool:
        """Whether nobody is missed that may be moved, or there is no more to be had."""
        return len(self._missed) == 0 or self._score.value_usd >= good_enough_usd

    def reinsert(self) -> None:
        """A missed job, and what was taken out for it, put back by worth or by urgency, but for chance."""
        if self._rng.random() < 0.5:
            focus = self._focus()
            rest = self._in_the_way(focus)
        else:
            focus, around, others = self._around(int(self._rng.integers(4, MOST_FREED)))
            rest = np.concatenate([around, others])
        if self._rng.random() < 0.5:
            noise = self._rng.normal(0.0, self._rng.choice(self._noise), len(rest))
            order = np.concatenate([[focus], rest[np.argsort(-self._density[rest] * np.exp(noise), kind="stable")]])
        else:
            rest = np.concatenate([[focus], rest])
            late_s = self._rng.exponential(self._rng.choice(LATER_S), len(rest))
            order = rest[np.argsort(self._latest_start[rest] + late_s, kind="stable")]
        self._try(order.astype(np.int64))

    def solve(self, number: int) -> None:
        """The same neighbourhood for CP-SAT, and its answer on nodes."""
        free = np.flatnonzero(self._movable & self._possible)
        if len(free) > MOST_MODELLED:
            focus, around, others = self._around(MOST_MODELLED // 3)
            free = np.unique(np.concatenate([[focus], around, others[: MOST_MODELLED - len(around)]]).astype(np.int64))
        found = solve_neighbourhood(self._now, free, seed=self._seed + number, effort=EXACT_EFFORT)
        starts = self._now.start_s
        stays = {job for job, at in found.starts_s.items() if self._in_time[job] and starts[job] == at}
        moved = sorted(set(found.starts_s) - stays, key=lambda job: (found.starts_s[job], job))
        if not moved:
            return
        left = [int(job) for job in free if int(job) not in found.starts_s]
        release = self._instance.release_s.copy()
        release[moved] = [found.starts_s[job] for job in moved]
        for free_ones in ([*moved, *left], [*moved, *left, *sorted(stays, key=lambda job: starts[job])]):
            self._try(np.array(free_ones, dtype=np.int64), release_s=release)
            self._try(np.array(free_ones, dtype=np.int64))

    def compacted(self) -> Placing:
        """All movable jobs in the order of their starts, each as early as it may: kept where that loses nothing."""
        starts = self._now.start_s.astype(float)
        order = order_of(self._instance, starts)
        self._try(order[self._movable[order]])
        order = order_of(self._instance, earliest_deadline(self._instance))
        return place(self._instance, order[self._movable[order] & ~self._in_time[order]], standing=self._now)

    def _focus(self) -> int:
        """A missed job, the dear ones oftener."""
        weights = self._worth[self._missed]
        return int(self._rng.choice(self._missed, p=weights / weights.sum()))

    def _in_the_way(self, focus: int) -> Ints:
        """The movable jobs on nodes that would be cleared for a job, at a time that it could have: the cheapest nodes,
        but for chance.
        """
        instance, now = self._instance, self._now
        way = int(self._rng.integers(instance.way_first[focus], instance.way_first[focus + 1]))
        length = int(instance.way_length_s[way])
        first, last = int(instance.release_s[focus]), int(instance.latest_s[focus]) - length
        at = int(self._rng.integers(first, last + 1)) if last > first else first
        runs = np.flatnonzero((now.run_start_s < at + length) & (now.run_end_s > at))
        place = np.repeat(np.arange(len(now.runs)), np.diff(now.run_part))
        parts = np.flatnonzero(np.isin(place, runs))
        jobs, nodes = now.run_job[place[parts]], now.part_node[parts]
        cost = np.bincount(nodes, weights=self._worth[jobs], minlength=len(instance.node_gpus)).astype(float)
        cost[nodes[~self._movable[jobs]]] = np.inf
        hollow = int(instance.way_hollow[way])
        own = np.arange(instance.hollow_first[hollow], instance.hollow_first[hollow + 1])
        per_node = int(instance.node_gpus[own[0]]) // int(instance.way_gpus[way])
        many = -(-int(instance.way_pods[way]) // per_node)
        noise = self._rng.exponential(self._worth[focus] + 1e-12, len(own))
        cleared = own[np.argsort(cost[own] + noise, kind="stable")[:many]]
        return np.unique(jobs[np.isin(nodes, cleared) & self._movable[jobs]])

    def _around(self, most: int) -> tuple[int, Ints, Ints]:
        """A missed job, movable jobs that run while it could (``most`` of them), other missed ones of that time."""
        focus = self._focus()
        first, last = self._instance.release_s[focus], self._instance.latest_s[focus]
        running = np.flatnonzero(self._movable & self._in_time & (self._now.start_s < last) & (self._now.end_s > first))
        around = self._rng.permutation(running)[:most]
        missed = self._missed[(self._instance.release_s[self._missed] < last)]
        others = missed[(self._instance.latest_s[missed] > first) & (missed != focus)]
        return focus, around, others

    def _try(self, free: Ints, release_s: Ints | None = None) -> None:
        found = place(self._instance, _chained(self._now, free), standing=self._now, release_s=release_s, late=False)
        score = found.score
        if score >= self._score:
            self._take(found, score)

    def _take(self, placing: Placing, score: Score) -> None:
        self._now, self._score, self._in_time = placing, score, placing.in_time
        self._missed = np.flatnonzero(~self._in_time & self._movable & self._possible)


def _chained(placing: Placing, free: Ints) -> Ints:
    """The order with what waits for each other in it the right way round; chains bring what waits for them along."""
    instance = placing.instance
    if len(instance.after) == 0:
        return free
    wanted: dict[int, None] = {}
    inside = {int(job) for job in free}
    for job in free:
        for one in _before_first(instance.after_first, instance.after, int(job), inside):
            wanted.setdefault(one)
    return np.array(list(wanted), dtype=np.int64)


def _before_first(after_first: Ints, after: Ints, job: int, inside: set[int]) -> Iterator[int]:
    for before in after[after_first[job] : after_first[job + 1]]:
        if int(before) in inside:
            yield from _before_first(after_first, after, int(before), inside)
    yield job
