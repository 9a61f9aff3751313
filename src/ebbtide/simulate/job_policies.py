"""Who starts when: Kueue's two orders, EDF and least slack, and ebbtide's own door.

``InOrder`` with ``first_come`` is a ClusterQueue of Kueue's: ``blocking`` its StrictFIFO, where the head of the queue
blocks all behind it until it fits, else BestEffortFIFO, where what does not fit is passed over. Flavors are tried in
their order; one whose nodes a job does not tolerate is skipped, as a taint does.

What belongs here: orders and starts. What doesn't: events (``jobs``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from ebbtide.batch.door.following import Following, followed
from ebbtide.batch.door.wishes import Wishes
from ebbtide.batch.door.work import Stage, Told, Work
from ebbtide.batch.durations import Duration
from ebbtide.batch.hollows import Hollow, Tenure
from ebbtide.batch.instance import PLANNED_CONFIDENCE
from ebbtide.batch.job import Job
from ebbtide.batch.plan import Promise
from ebbtide.simulate.jobs import Waits, Yard

Order = Callable[[Waits, float], float]


class Tolerates(StrEnum):
    """Who may start on ephemeral nodes."""

    ALL = "all"  # everybody: no taint
    PREEMPTIBLE = "preemptible"  # what may be interrupted: its pods tolerate the taint
    ENDING = "ending"  # also what ends before they leave, in nine of ten runs


def first_come(waits: Waits, at_s: float) -> float:
    """FIFO: the earliest submission first."""
    del at_s
    return waits.job.earliest_start_s


def earliest_deadline(waits: Waits, at_s: float) -> float:
    """EDF: the nearest deadline first; what can hardly be in time any more behind all others."""
    late = _slack_s(waits, at_s) < 0
    return (math.inf if waits.job.deadline_s is None else waits.job.deadline_s) + (1e12 if late else 0.0)


def least_slack(waits: Waits, at_s: float) -> float:
    """The least time to spare first; what can hardly be in time any more behind all others."""
    slack_s = _slack_s(waits, at_s)
    return slack_s + (1e12 if slack_s < 0 else 0.0)


def _slack_s(waits: Waits, at_s: float) -> float:
    """Time to spare until the deadline, if the job began now and took what half of the runs take."""
    if waits.job.deadline_s is None:
        return math.inf
    return waits.job.deadline_s - at_s - max(waits.job.duration.expected_s - waits.ran_s, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class InOrder:
    """Waiting jobs started in an order, each on the first hollow that takes it, ephemeral ones tried first."""

    order: Order
    tolerates: Tolerates
    blocking: bool = False

    def dispatch(self, yard: Yard) -> None:
        """Start in order who fits; ``blocking``: until the first who doesn't."""
        waiting = sorted(yard.waiting.values(), key=lambda one: (self.order(one, yard.at_s), one.job.name))
        for one in waiting:
            if not self._starts(yard, one) and self.blocking:
                return

    def next_s(self, at_s: float) -> float:
        """Never."""
        del at_s
        return math.inf

    def _starts(self, yard: Yard, one: Waits) -> bool:
        hollows = sorted(range(len(yard.hollows)), key=lambda k: yard.hollows[k].tenure is Tenure.RESERVED)
        for hollow in hollows:
            ephemeral = yard.hollows[hollow].tenure is Tenure.EPHEMERAL
            free_to_go = not ephemeral or one.job.preemptible or self.tolerates is Tolerates.ALL
            if not free_to_go and self.tolerates is Tolerates.PREEMPTIBLE:
                continue
            if yard.start(one.job.name, hollow, stays_s=0.0 if free_to_go else planned_s(one.job.duration)):
                return True
        return False


@dataclass(slots=True, kw_only=True)
class Door:
    """Ebbtide: the plan follows what is seen (``batch.door``), and a job starts when its planned start has come.

    ``promises``: the first promise that each job was given. ``again_s``: how often it looks although nothing happens.
    """

    again_s: float = 3600.0
    seed: int = 1
    promises: dict[str, Promise] = field(default_factory=dict)
    _following: Following | None = None

    def dispatch(self, yard: Yard) -> None:
        """Plan anew where something changed, and start who is due."""
        hollows = [_from(_twice(one), yard.at_s) for one in yard.hollows]
        self._following = followed(self._following, self._works(yard), hollows, at_s=yard.at_s, seed=self.seed)
        number = {(one.pool, one.tenure): k for k, one in enumerate(yard.hollows)}
        due = []
        for one in self._following.plan.jobs:
            if one.promise is not None:
                self.promises.setdefault(one.job.name, one.promise)
            if one.job.name in yard.waiting and one.place is not None and one.place.start_s <= yard.at_s:
                due.append((one.place.start_s, one.job.earliest_start_s, one.job.name, one.place))
        for _, _, name, place in sorted(due, key=lambda row: row[:3]):
            job = yard.waiting[name].job
            safe = job.preemptible or place.tenure is Tenure.RESERVED
            yard.start(name, number[place.pool, place.tenure], stays_s=0.0 if safe else planned_s(job.duration))

    def next_s(self, at_s: float) -> float:
        """The next planned start, or after a while."""
        plan = self._following.plan.jobs if self._following is not None else ()
        starts = [one.place.start_s for one in plan if one.place is not None and one.place.start_s > at_s]
        return min([at_s + self.again_s, *starts])

    def _works(self, yard: Yard) -> list[Work]:
        flavors = tuple(one.pool for one in yard.hollows)
        last = {} if self._following is None else self._following.plan.by_name
        waiting = [replace(_work(one.job, flavors), stage=Stage.HELD, ran_s=one.ran_s) for one in yard.waiting.values()]
        running = [
            replace(
                _work(one.job, flavors),
                stage=Stage.RUNNING,
                flavor=flavors[one.hollow],
                since_s=one.since_s,
                ran_s=one.ran_s,
            )
            for one in yard.running.values()
        ]
        return [
            replace(one, told=Told(promise=last[one.name].promise)) if one.name in last else one
            for one in (*waiting, *running)
        ]


def planned_s(duration: Duration) -> float:
    """The time that nine of ten runs need: what Kueue's check asks of nodes."""
    return duration.quantile_s(PLANNED_CONFIDENCE)


def _work(job: Job, flavors: tuple[str, ...]) -> Work:
    return Work(
        name=job.name,
        team="study",
        stage=Stage.HELD,
        created_s=job.earliest_start_s,
        pods=job.pods,
        gpus_per_pod=job.gpus_per_pod,
        flavors=flavors,
        wishes=Wishes(
            duration=job.duration,
            deadline_s=job.deadline_s,
            value_usd=job.value_usd,
            checkpoint_interval_s=job.checkpoint_interval_s,
        ),
    )


def _twice(hollow: Hollow) -> Hollow:
    """The cycle goes round again: a plan that saw the world end with the simulation would start little before it."""
    span_s = hollow.edges_s[-1] - hollow.edges_s[0]
    again = (edge + span_s for edge in hollow.edges_s[1:])
    return replace(hollow, edges_s=(*hollow.edges_s, *again), nodes=(*hollow.nodes, *hollow.nodes))


def _from(hollow: Hollow, at_s: float) -> Hollow:
    """A hollow from an instant inside it on."""
    edges = [edge for edge in hollow.edges_s if edge > at_s]
    nodes = [hollow.nodes_at(at_s), *(hollow.nodes_at(edge) for edge in edges[:-1])]
    return replace(hollow, edges_s=(at_s, *edges), nodes=tuple(nodes))
