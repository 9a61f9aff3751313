"""Jobs with their true durations on research capacity, in virtual time, under any queueing policy.

A policy is asked after every event (a job comes, ends, or is stopped; nodes come or leave) and whenever it wants to be.
It sees the jobs' estimates and starts whom it likes where there is room; how long a job really runs only the simulation
knows. Where nodes leave, what stands on them is stopped: a job that may be interrupted keeps what it did until its last
checkpoint, any other loses all; both wait again from then on.

What belongs here: the events and what room there is. What doesn't: who starts when (``job_policies``), planning
(``batch``).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ebbtide.batch.hollows import Hollow
from ebbtide.batch.job import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Real:
    """A job as it is estimated, and how long it really runs, in whole seconds. It comes at its earliest start."""

    job: Job
    lasts_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """A stretch of a job's time on nodes: from when to when, and on which of a hollow's nodes how many pods.

    ``kept_s``: of this time what was not lost; all of it where the job was done.
    """

    hollow: int
    start_s: float
    end_s: float
    nodes: tuple[tuple[int, int], ...]
    kept_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What became of a job. ``end_s`` None: it was not done when the simulation ended."""

    job: Job
    end_s: float | None
    stays: tuple[Stay, ...]

    @property
    def in_time(self) -> bool:
        """Whether it was done, and by its deadline where it has one."""
        return self.end_s is not None and (self.job.deadline_s is None or self.end_s <= self.job.deadline_s)

    @property
    def wasted_gpu_s(self) -> float:
        """GPU-seconds of work that was stopped and lost."""
        return self.job.gpus * sum(one.end_s - one.start_s - one.kept_s for one in self.stays)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """A job that has come and does not run. ``ran_s``: what it has done already and kept."""

    job: Job
    ran_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """A job that runs, on which hollow and nodes, since when; ``ran_s``: what it had done before and kept."""

    job: Job
    hollow: int
    nodes: tuple[tuple[int, int], ...]
    since_s: float
    ran_s: float


class JobPolicy(Protocol):
    """Who starts when. Implementations: ``job_policies``."""

    def dispatch(self, yard: Yard) -> None:
        """Start whom it likes now, by ``yard.start``."""
        ...

    def next_s(self, at_s: float) -> float:
        """When it wants to be asked again although nothing happens; infinite: never."""
        ...


@dataclass(slots=True, kw_only=True)
class Yard:
    """What a policy sees and does: the instant, the hollows, who waits (in order of coming) and who runs."""

    hollows: tuple[Hollow, ...]
    at_s: float = 0.0
    waiting: dict[str, Waits] = field(default_factory=dict)
    running: dict[str, Runs] = field(default_factory=dict)
    _used: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._used = [[0] * one.most_nodes for one in self.hollows]

    def start(self, name: str, hollow: int, *, stays_s: float = 0.0) -> bool:
        """Start a waiting job whole on nodes that stay for ``stays_s`` from now; False where it doesn't fit."""
        waits = self.waiting[name]
        nodes = self._fit(waits.job, hollow, stays_s)
        if not nodes:
            return False
        del self.waiting[name]
        self.running[name] = Runs(job=waits.job, hollow=hollow, nodes=nodes, since_s=self.at_s, ran_s=waits.ran_s)
        self._hold(self.running[name], 1)
        return True

    def end(self, name: str) -> Runs:
        """Take a running job off its nodes."""
        runs = self.running.pop(name)
        self._hold(runs, -1)
        return runs

    def wait(self, job: Job, ran_s: float = 0.0) -> None:
        """A job comes, or comes back to its old place in the queue."""
        self.waiting[job.name] = Waits(job=job, ran_s=ran_s)
        self.waiting = dict(sorted(self.waiting.items(), key=lambda item: (item[1].job.earliest_start_s, item[0])))

    def stranded(self) -> list[str]:
        """Who runs on nodes that have left."""
        here = [one.nodes_at(self.at_s) for one in self.hollows]
        return [name for name, runs in self.running.items() if max(node for node, _ in runs.nodes) >= here[runs.hollow]]

    def _hold(self, runs: Runs, sign: int) -> None:
        for node, pods in runs.nodes:
            self._used[runs.hollow][node] += sign * pods * runs.job.gpus_per_pod

    def _fit(self, job: Job, hollow: int, stays_s: float) -> tuple[tuple[int, int], ...]:
        """Nodes for all pods, the fullest first, of equals the one that stays longest; () where there are too few."""
        place = self.hollows[hollow]
        until_s = min(self.at_s + stays_s, math.nextafter(place.edges_s[-1], 0.0))
        edges = [edge for edge in place.edges_s if self.at_s < edge < until_s]
        stays = min(place.nodes_at(at) for at in (self.at_s, *edges))
        room = [
            (place.gpus_per_node - self._used[hollow][node], node)
            for node in range(stays)
            if place.gpus_per_node - self._used[hollow][node] >= job.gpus_per_pod
        ]
        left, found = job.pods, []
        for free, node in sorted(room):
            pods = min(free // job.gpus_per_pod, left)
            found.append((node, pods))
            left -= pods
            if left == 0:
                return tuple(found)
        return ()


def simulated_jobs(real: Sequence[Real], hollows: Sequence[Hollow], policy: JobPolicy) -> list[Ending]:
    """What becomes of all jobs until the hollows end, in the order given.

    Instants: seconds since the epoch. Dependencies and widths are not simulated: ``ValueError`` where a job has some.
    """
    if any(one.job.after or one.job.widths for one in real):
        raise ValueError("jobs with predecessors or a choice of widths are not simulated")
    play = _Play(real, hollows, policy)
    while play.step():
        pass
    return [
        Ending(job=one.job, end_s=play.ends.get(one.job.name), stays=tuple(play.stays[one.job.name])) for one in real
    ]


class _Play:
    """The events in their order: at one instant ends first, then the tide, then who comes, then the policy."""

    def __init__(self, real: Sequence[Real], hollows: Sequence[Hollow], policy: JobPolicy) -> None:
        self.ends: dict[str, float] = {}
        self.stays: Mapping[str, list[Stay]] = {one.job.name: [] for one in real}
        self._policy = policy
        self._lasts_s = {one.job.name: one.lasts_s for one in real}
        self._coming = sorted((one.job for one in real), key=lambda job: (-job.earliest_start_s, job.name))
        self._turns = sorted({edge for one in hollows for edge in one.edges_s}, reverse=True)
        self._until_s = self._turns[0]
        self._ending: list[tuple[float, str]] = []
        self._yard = Yard(hollows=tuple(hollows), at_s=self._turns[-1])

    def step(self) -> bool:
        """The next instant at which something happens; False once the hollows have ended."""
        self._yard.at_s = at_s = self._next_s()
        while self._ending and self._ending[0][0] <= at_s:
            self._finish(heapq.heappop(self._ending)[1])
        while self._turns and self._turns[-1] <= at_s:
            self._turns.pop()
        for name in self._yard.stranded():
            self._stop(name)
        if at_s >= self._until_s:
            return False
        while self._coming and self._coming[-1].earliest_start_s <= at_s:
            self._yard.wait(self._coming.pop())
        before = set(self._yard.running)
        self._policy.dispatch(self._yard)
        for name in self._yard.running.keys() - before:
            runs = self._yard.running[name]
            heapq.heappush(self._ending, (at_s + self._lasts_s[name] - runs.ran_s, name))
        return True

    def _next_s(self) -> float:
        at_s = self._policy.next_s(self._yard.at_s)
        at_s = min(at_s if at_s > self._yard.at_s else math.inf, self._turns[-1] if self._turns else math.inf)
        if self._ending:
            at_s = min(at_s, self._ending[0][0])
        return max(min(at_s, self._coming[-1].earliest_start_s if self._coming else math.inf), self._yard.at_s)

    def _finish(self, name: str) -> None:
        runs = self._yard.end(name)
        self.ends[name] = self._yard.at_s
        self._record(name, runs, self._yard.at_s - runs.since_s)

    def _stop(self, name: str) -> None:
        """The nodes leave: back to the queue, with what a checkpoint kept."""
        runs = self._yard.end(name)
        self._ending = [one for one in self._ending if one[1] != name]
        heapq.heapify(self._ending)
        ran_s, interval_s = self._yard.at_s - runs.since_s, runs.job.checkpoint_interval_s
        kept_s = 0.0 if interval_s is None else ran_s - ran_s % interval_s
        self._record(name, runs, kept_s)
        self._yard.wait(runs.job, runs.ran_s + kept_s)

    def _record(self, name: str, runs: Runs, kept_s: float) -> None:
        stay = Stay(hollow=runs.hollow, start_s=runs.since_s, end_s=self._yard.at_s, nodes=runs.nodes, kept_s=kept_s)
        self.stays[name].append(stay)
