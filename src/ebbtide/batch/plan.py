"""A batch plan: when and where each job runs, how sure that is, and why it waits (§7.2, §7.6)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ebbtide.batch.fitting import Placing
from ebbtide.batch.hollows import Tenure
from ebbtide.batch.job import Job


class Cause(StrEnum):
    """Why a job starts when it does, or not at all."""

    AT_ONCE = "at_once"  # it waits for nothing
    PREDECESSOR = "predecessor"  # for a job that it comes after
    TIDE = "tide"  # for nodes: even alone it could not start before
    JOBS = "jobs"  # for GPUs that other jobs hold
    PROMISE = "promise"  # its start was promised, and a promise is not moved for a little
    NO_ROOM = "no_room"  # nothing before the horizon's end
    TOO_WIDE = "too_wide"  # no hollow is ever wide enough
    LOST_PREDECESSOR = "lost_predecessor"  # a job that it comes after has no place


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why: the cause, the jobs that are meant, and since when a start was possible but for them."""

    cause: Cause
    jobs: tuple[str, ...] = ()
    possible_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A stretch of time without a break, with its pods on each node of the hollow, numbered as ``Hollow`` does."""

    start_s: float
    end_s: float
    nodes: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a job runs, and in which runs.

    The last run ends at the planned finish: by then the job is done with the planned confidence. After a turn of the
    tide it may stand elsewhere in the same hollow.
    """

    pool: str
    tenure: Tenure
    pods: int
    gpus_per_pod: int
    runs: tuple[Run, ...]

    @property
    def nodes(self) -> tuple[tuple[int, int], ...]:
        """Pods on each node in the first run."""
        return self.runs[0].nodes

    @property
    def start_s(self) -> float:
        """Start of the first run."""
        return self.runs[0].start_s

    @property
    def finish_s(self) -> float:
        """End of the last run."""
        return self.runs[-1].end_s

    @property
    def gpus(self) -> int:
        """GPUs of the whole gang."""
        return self.pods * self.gpus_per_pod


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A start that somebody was told (§7.6): when it was first given, when it last moved (None: never), and why."""

    start_s: float
    given_s: float
    moved_s: float | None = None
    reason: str = ""

    @property
    def since_s(self) -> float:
        """Since when it stands as it is."""
        return self.given_s if self.moved_s is None else self.moved_s


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJob:
    """A job and what is planned for it. ``place`` None: it has none. ``promise`` None: nobody was told.

    ``probability``: that it is done by its deadline (without one: by the horizon's end) if the plan is followed, None
    where nothing was simulated.
    """

    job: Job
    place: Place | None
    reason: Reason
    probability: float | None = None
    promise: Promise | None = None

    @property
    def in_time(self) -> bool:
        """Whether its planned finish is by its deadline; without one, whether it has a place."""
        deadline_s = self.job.deadline_s
        return self.place is not None and (deadline_s is None or self.place.finish_s <= deadline_s)

    @property
    def slack_s(self) -> float | None:
        """From the planned finish to the deadline, below 0 where it is missed; None without a deadline or a place."""
        if self.place is None or self.job.deadline_s is None:
            return None
        return self.job.deadline_s - self.place.finish_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What no plan can exceed, and how far the plan is from it: ``gap`` = (bound − value) / bound, 0 where both are 0.

    ``method``: how it was proven.
    """

    value_usd: float
    bound_usd: float
    method: str

    @property
    def gap(self) -> float:
        """The share of the bound that the plan does not reach.

        >>> Bound(value_usd=98.0, bound_usd=100.0, method="all in time").gap
        0.02
        """
        return 0.0 if self.bound_usd <= 0 else max(self.bound_usd - self.value_usd, 0.0) / self.bound_usd


class ReliefKind(StrEnum):
    """What would help."""

    LATER_DEADLINE = "later_deadline"
    MORE_NODES = "more_nodes"
    MOVE = "move"


@dataclass(frozen=True, slots=True, kw_only=True)
class Relief:
    """One thing that, done alone, makes all deadlines hold.

    A later deadline: ``deadlines_s`` by job. More nodes, or a move: ``nodes`` more of ``pool`` between ``from_s`` and
    ``until_s``, for good in the first case. ``gpu_hours``: what it takes from others. ``proven``: whether less is
    proven not to do.
    """

    kind: ReliefKind
    deadlines_s: tuple[tuple[str, float], ...] = ()
    pool: str = ""
    nodes: int = 0
    gpus: int = 0
    from_s: float = 0.0
    until_s: float = 0.0
    gpu_hours: float = 0.0
    proven: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """The plan of all jobs, in the order in which they were given. Instants: seconds since the epoch.

    ``until_s``: the horizon's end. ``rule``: the list rule that the search began from. ``reliefs``: what, each alone,
    would make the missed deadlines hold.
    """

    at_s: float
    until_s: float
    confidence: float
    jobs: tuple[PlannedJob, ...]
    bound: Bound
    rule: str = ""
    reliefs: tuple[Relief, ...] = ()

    @property
    def value_usd(self) -> float:
        """What the jobs that are done in time are worth."""
        return math.fsum(one.job.value_usd for one in self.jobs if one.in_time)

    @property
    def missed(self) -> tuple[PlannedJob, ...]:
        """The jobs whose deadline does not hold."""
        return tuple(one for one in self.jobs if one.job.deadline_s is not None and not one.in_time)

    @property
    def by_name(self) -> Mapping[str, PlannedJob]:
        """The jobs by their names."""
        return {one.job.name: one for one in self.jobs}


def places_of(placing: Placing) -> list[Place | None]:
    """The places of all jobs of a placing, in the instance's order."""
    runs: list[list[int]] = [[] for _ in placing.instance.jobs]
    for run, job in enumerate(placing.run_job):
        runs[job].append(run)
    hollow = placing.instance.way_hollow
    return [
        None if way < 0 else _place(placing, int(way), int(hollow[way]), runs[job])
        for job, way in enumerate(placing.way_of)
    ]


def _place(placing: Placing, way: int, hollow: int, runs: list[int]) -> Place:
    instance = placing.instance
    return Place(
        pool=instance.hollows[hollow].pool,
        tenure=instance.hollows[hollow].tenure,
        pods=int(instance.way_pods[way]),
        gpus_per_pod=int(instance.way_gpus[way]),
        runs=tuple(_run(placing, run, int(instance.hollow_first[hollow])) for run in runs),
    )


def _run(placing: Placing, run: int, first: int) -> Run:
    last = placing.runs[run + 1, 3] if run + 1 < len(placing.runs) else len(placing.parts)
    parts = placing.parts[placing.runs[run, 3] : last]
    nodes = sorted((int(node) - first, int(pods)) for node, pods in parts)
    return Run(start_s=float(placing.runs[run, 1]), end_s=float(placing.runs[run, 2]), nodes=tuple(nodes))
