"""Deadlines that cannot hold, and the least that would make them hold (§7.3).

Each relief is the least of its kind and is checked: planned again with it, all deadlines hold; with one step less they
do not. "Do not" is proven where energies or CP-SAT prove it, and otherwise what the same search found: ``proven`` says
which.

What belongs here: reliefs and their check. What doesn't: which plan is kept meanwhile (``search``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from ebbtide.batch.exact import proven_late
from ebbtide.batch.fitting import Placing
from ebbtide.batch.hollows import Hollow, Tenure
from ebbtide.batch.instance import Instance, instance_of
from ebbtide.batch.job import Job
from ebbtide.batch.neighbourhoods import Effort
from ebbtide.batch.plan import Relief, ReliefKind
from ebbtide.batch.search import searched

STEP_S = 60.0  # a deadline moves by minutes
MOST_JOBS = 12  # deadlines that are looked at one by one; of more, all are moved to when their jobs end anyway
MOST_NODES = 256
_TRY = Effort(reinsertions=150, models=1)


def reliefs(placing: Placing, *, seed: int, most: int = 3) -> tuple[Relief, ...]:
    """What would make the missed deadlines of a placing hold: of each kind the least, the cheapest first.

    Nothing where all hold. A job that is wider than a pool ever is needs nodes: no later deadline is offered for it.
    """
    problem = _Problem(placing, seed)
    if not problem.missed:
        return ()
    found = [relief for make in (problem.later, problem.more, problem.move) if (relief := make()) is not None]
    return tuple(found[:most])


class _Problem:
    """An instance whose deadlines do not all hold, and what is tried on it."""

    def __init__(self, placing: Placing, seed: int) -> None:
        instance = placing.instance
        self._instance, self._placing, self._seed = instance, placing, seed
        held = placing.in_time
        self.missed = [
            place for place, job in enumerate(instance.jobs) if job.deadline_s is not None and not held[place]
        ]
        self._proven = bool(self.missed) and proven_late(_demanding(instance), seed=seed)

    def later(self) -> Relief | None:
        """The missed jobs' deadlines, each no later than it must be while the others are as given."""
        placing = self._placing
        if any(placing.way_of[job] < 0 for job in self.missed):
            return None
        deadlines = {job: float(placing.end_s[job]) for job in self.missed}
        if not self._holds(self._with_deadlines(deadlines)):
            return None
        if len(self.missed) <= MOST_JOBS:
            for job in self.missed:
                deadlines[job] = self._least_deadline(job, deadlines)
        named = tuple((self._instance.jobs[job].name, at) for job, at in deadlines.items())
        tight = len(self.missed) == 1 and proven_late(
            _demanding(self._with_deadlines({self.missed[0]: deadlines[self.missed[0]] - STEP_S})), seed=self._seed
        )
        return Relief(kind=ReliefKind.LATER_DEADLINE, deadlines_s=named, proven=self._proven and tight)

    def more(self) -> Relief | None:
        """The fewest nodes that research would need beyond those it has, all the time, in one of the pools."""
        found = [
            one for pool in self._pools() if (one := self._nodes(pool, ReliefKind.MORE_NODES, self._span())) is not None
        ]
        return min(found, key=lambda one: one.gpu_hours, default=None)

    def move(self) -> Relief | None:
        """The cheapest stretch between two turns of the tide in which more nodes of a pool would do."""
        found: list[Relief] = []
        for pool in self._pools():
            for span in self._stretches(pool):
                relief = self._nodes(pool, ReliefKind.MOVE, span)
                if relief is not None:
                    found.append(relief)
        return min(found, key=lambda one: one.gpu_hours, default=None)

    def _nodes(self, pool: str, kind: ReliefKind, span: tuple[float, float]) -> Relief | None:
        tenure = Tenure.RESERVED if kind is ReliefKind.MORE_NODES else Tenure.EPHEMERAL
        gpus = next(hollow.gpus_per_node for hollow in self._instance.hollows if hollow.pool == pool)

        def holds(nodes: int) -> bool:
            return self._holds(self._with_nodes(pool, tenure, nodes, span))

        nodes = _least(holds, MOST_NODES if kind is ReliefKind.MORE_NODES else 2 * self._widest(gpus))
        if nodes is None:
            return None
        less = self._with_nodes(pool, tenure, nodes - 1, span)
        return Relief(
            kind=kind,
            pool=pool,
            nodes=nodes,
            gpus=nodes * gpus,
            from_s=span[0],
            until_s=span[1],
            gpu_hours=nodes * gpus * (span[1] - span[0]) / 3600.0,
            proven=proven_late(_demanding(less), seed=self._seed),
        )

    def _holds(self, instance: Instance) -> bool:
        demanding = _demanding(instance)
        _, placing = searched(demanding, seed=self._seed, effort=_TRY)
        return bool(placing.in_time.all())

    def _least_deadline(self, job: int, deadlines: dict[int, float]) -> float:
        """By bisection in steps: the earliest deadline of one job with which all deadlines hold."""
        first_s = math.floor(self._instance.jobs[job].deadline_s or 0.0)
        steps = math.ceil((deadlines[job] - first_s) / STEP_S)

        def holds(count: int) -> bool:
            return self._holds(self._with_deadlines(deadlines | {job: first_s + count * STEP_S}))

        found = _bisected(holds, 0, steps)
        return min(first_s + found * STEP_S, deadlines[job]) if found < steps else deadlines[job]

    def _with_deadlines(self, deadlines: dict[int, float]) -> Instance:
        jobs = [
            replace(job, deadline_s=deadlines[place]) if place in deadlines else job
            for place, job in enumerate(self._instance.jobs)
        ]
        return self._again(jobs, self._instance.hollows)

    def _with_nodes(self, pool: str, tenure: Tenure, nodes: int, span: tuple[float, float]) -> Instance:
        return self._again(self._instance.jobs, with_nodes(self._instance.hollows, pool, tenure, nodes, span))

    def _again(self, jobs: Sequence[Job], hollows: Sequence[Hollow]) -> Instance:
        return instance_of(jobs, hollows, at_s=self._instance.at_s, confidence=self._instance.confidence)

    def _pools(self) -> list[str]:
        """The pools in which every missed job could run."""
        pools = dict.fromkeys(hollow.pool for hollow in self._instance.hollows)
        wanted = [self._instance.jobs[job].pools for job in self.missed]
        return [pool for pool in pools if all(not some or pool in some for some in wanted)]

    def _widest(self, gpus: int) -> int:
        nodes = (self._instance.jobs[job].shapes[0].nodes(gpus) or 1 for job in self.missed)
        return max(sum(nodes), 1)

    def _span(self) -> tuple[float, float]:
        return float(self._instance.at_s), float(self._instance.until_s)

    def _stretches(self, pool: str) -> Iterator[tuple[float, float]]:
        """Between turns of the pool's tide, where a missed job could run."""
        edges = sorted({edge for hollow in self._instance.hollows if hollow.pool == pool for edge in hollow.edges_s})
        first = min(int(self._instance.release_s[job]) for job in self.missed)
        last = max(int(self._instance.latest_s[job]) for job in self.missed)
        inside = [(max(a, first), min(b, last)) for a, b in pairwise(edges)]
        yield from [(a, b) for a, b in inside if a < b][:MOST_JOBS]


def with_nodes(
    hollows: Sequence[Hollow], pool: str, tenure: Tenure, nodes: int, span: tuple[float, float]
) -> tuple[Hollow, ...]:
    """The hollows with so many more nodes of a pool and tenure in a span of time (a new one where there was none).

    >>> one = Hollow(pool="h100", tenure=Tenure.RESERVED, gpus_per_node=8, edges_s=(0, 10), nodes=(1,))
    >>> [(more.edges_s, more.nodes) for more in with_nodes([one], "h100", Tenure.RESERVED, 2, (4, 6))]
    [((0, 4, 6, 10), (1, 3, 1))]
    """
    if nodes == 0:
        return tuple(hollows)
    found = list(hollows)
    place = next((k for k, one in enumerate(found) if (one.pool, one.tenure) == (pool, tenure)), None)
    if place is None:
        like = next(one for one in found if one.pool == pool)
        edges = (like.edges_s[0], like.edges_s[-1])
        found.append(replace(like, tenure=tenure, edges_s=edges, nodes=(0,)))
        place = len(found) - 1
    one = found[place]
    edges_s = tuple(sorted({*one.edges_s, *(at for at in span if one.edges_s[0] < at < one.edges_s[-1])}))
    counts = tuple(one.nodes_at(at) + (nodes if span[0] <= at < span[1] else 0) for at in edges_s[:-1])
    found[place] = replace(one, edges_s=edges_s, nodes=counts)
    return tuple(found)


def _demanding(instance: Instance) -> Instance:
    """The same with the jobs that have a deadline alone, and those that they wait for, all worth the same."""
    needed: set[str] = set()
    waiting = [job.name for job in instance.jobs if job.deadline_s is not None]
    by_name = {job.name: job for job in instance.jobs}
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += by_name[name].after
    jobs = [replace(job, value_usd=1.0) for job in instance.jobs if job.name in needed]
    return instance_of(jobs, instance.hollows, at_s=instance.at_s, confidence=instance.confidence)


def _least(holds: Callable[[int], bool], most: int) -> int | None:
    """The least number from 1 on that holds (and then all above it do), None where not even ``most`` does."""
    high = 1
    while not holds(high):
        if high >= most:
            return None
        high = min(2 * high, most)
    return _bisected(holds, high // 2, high)


def _bisected(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The least number above ``low`` that holds; ``high`` is known to."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
