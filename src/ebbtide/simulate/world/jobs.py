"""Research work: what arrives, how it saves its progress, and what an end costs it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from ebbtide.control.state import ResearchWork
from ebbtide.simulate.world.dice import Dice
from ebbtide.simulate.world.machines import Host

if TYPE_CHECKING:  # work knows the queue that runs it
    from ebbtide.simulate.world.kueue import Queue


class Stage(StrEnum):
    """Where work is in its life. Admitted work has quota, and waits for its nodes."""

    QUEUED = "queued"
    ADMITTED = "admitted"
    RUNNING = "running"
    ENDING = "ending"
    PARKED = "parked"
    DONE = "done"
    LOST = "lost"


class OnEviction(StrEnum):
    """What a Job makes of an evicted pod (seen, by its backoffLimit and its trainer's exit code)."""

    RETRIES = "retries"
    FAILS = "fails"
    SILENTLY_COMPLETES = "silently completes"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchLoad:
    """What research asks for. ``backlog``: jobs that always wait, so that quota never lies idle; hours are log-even.

    Shares say how many of the jobs are so: ``steadfast`` not preemptible, ``plain`` pods that do not requeue,
    ``outside`` pods that Kueue does not know, ``saves_on_signal`` write a checkpoint within their grace, ``fails`` or
    ``completes`` as an evicted Job does, ``no_estimate`` tell no end. ``nodes`` are sizes in whole nodes, each as
    likely; 0 is a part of one. ``topology`` False: admission looks at quota alone, not at what fits on nodes (fact 8).
    """

    backlog: int = 8
    nodes: tuple[int, ...] = (0, 1, 1, 2, 4)
    hours: tuple[float, float] = (1.0, 24.0)
    reserved_hours: tuple[float, float] = (24.0, 240.0)
    checkpoint_s: tuple[float, float] = (1800.0, 7200.0)
    grace_s: float = 180.0
    startup_s: float = 60.0
    steadfast: float = 0.0
    plain: float = 0.0
    outside: float = 0.0
    saves_on_signal: float = 0.5
    fails: float = 0.0
    completes: float = 0.0
    no_estimate: float = 0.2
    topology: bool = True
    fill_reserved: bool = True


@dataclass(slots=True, eq=False, kw_only=True)
class Job:
    """One Kueue Workload, or an owner's pods outside Kueue.

    ``saved_s`` of ``total_s`` is safe; ``begun_s``: since when it computes this time. ``useful_gpu_s`` and
    ``lost_gpu_s`` are settled whenever it stops.
    """

    name: str
    number: int
    queue: Queue
    gpus: int
    total_s: float
    checkpoint_s: float
    reserved: bool
    preemptible: bool = True
    requeues: bool = True
    known: bool = True
    saves_on_signal: bool = False
    on_eviction: OnEviction = OnEviction.RETRIES
    told_factor: float | None = 1.0
    stage: Stage = Stage.QUEUED
    active: bool = True
    parked_by_us: bool = False
    has_quota: bool = False
    hosts: tuple[Host, ...] = ()
    saved_s: float = 0.0
    begun_s: float = 0.0
    ended_s: float = 0.0
    hung: bool = False
    run: int = 0
    ran_gpu_s: float = 0.0
    useful_gpu_s: float = 0.0
    lost_gpu_s: float = 0.0

    def progress_s(self, at_s: float) -> float:
        """How far it is, saved or not."""
        if self.stage is Stage.ENDING:
            at_s = min(at_s, self.ended_s)
        elif self.stage is not Stage.RUNNING:
            return self.saved_s
        return min(self.saved_s + max(at_s - self.begun_s, 0.0), self.total_s)

    def checkpointed_at_s(self, at_s: float) -> float:
        """When its work was last saved."""
        if self.stage is Stage.ENDING:
            at_s = min(at_s, self.ended_s)
        return self.begun_s + max(at_s - self.begun_s, 0.0) // self.checkpoint_s * self.checkpoint_s

    def settle(self, at_s: float, *, saved: bool) -> None:
        """It stopped computing: what was saved is useful, the rest is lost."""
        done_s = self.progress_s(at_s)
        self.ran_gpu_s += (done_s - self.saved_s) * self.gpus
        kept_s = done_s
        if not saved and done_s < self.total_s:
            kept_s = min(self.saved_s + self.checkpointed_at_s(at_s) - self.begun_s, done_s)
        self.useful_gpu_s += (kept_s - self.saved_s) * self.gpus
        self.lost_gpu_s += (done_s - kept_s) * self.gpus
        self.saved_s = kept_s

    def computed_gpu_s(self, at_s: float) -> float:
        """GPU-time that it computed, whatever became of it."""
        return self.ran_gpu_s + (self.progress_s(at_s) - self.saved_s) * self.gpus

    def write_off(self) -> None:
        """Nobody will go on with it: what it saved is lost too."""
        self.lost_gpu_s += self.useful_gpu_s
        self.useful_gpu_s = 0.0

    def look(self, at_s: float) -> ResearchWork:
        """As a controller sees it now."""
        computes = self.stage in (Stage.RUNNING, Stage.ENDING)
        told = self.told_factor if self.stage is Stage.RUNNING else None
        return ResearchWork(
            name=self.name,
            pool=self.queue.pool.name,
            gpus=self.gpus,
            nodes=tuple([host.name for host in self.hosts]) if computes else (),
            preemptible=self.preemptible,
            checkpointed_s=self.checkpointed_at_s(at_s) if computes else at_s,
            ends_s=None if told is None else self.begun_s + told * (self.total_s - self.saved_s),
            requeues=self.requeues,
            active=self.active,
            parked_by_us=self.parked_by_us,
            has_quota=self.has_quota,
        )

    def host_changed(self, host: Host) -> None:
        """Its pods run on, whatever the Node object says."""

    def host_gone(self, host: Host) -> None:
        """One of its machines is gone: the gang with it."""
        self.queue.died(self)


class Arrivals:
    """Jobs as research submits them, by chance."""

    def __init__(self, load: ResearchLoad, dice: Dice) -> None:
        self.load = load
        self._dice, self._made = dice, 0

    def next_job(self, queue: Queue, *, reserved: bool) -> Job:
        """The next job of a pool. What is not preemptible by right stands on reserved nodes."""
        load, dice = self.load, self._dice
        self._made += 1
        full = queue.pool.full_gpus
        nodes = dice.pick(load.nodes) if not reserved else 1
        outside = not reserved and dice.chance(load.outside)
        plain = outside or (not reserved and dice.chance(load.plain))
        return Job(
            name=f"{queue.pool.name}-job-{self._made}",
            number=self._made,
            queue=queue,
            gpus=nodes * full if nodes else max(full // 2, 1),
            total_s=dice.between(load.reserved_hours if reserved else load.hours) * 3600.0,
            checkpoint_s=dice.between(load.checkpoint_s),
            reserved=reserved,
            preemptible=not reserved and not dice.chance(load.steadfast),
            requeues=not plain,
            known=not outside,
            saves_on_signal=dice.chance(load.saves_on_signal),
            on_eviction=self._on_eviction(),
            told_factor=None if dice.chance(load.no_estimate) else dice.between((0.7, 1.5)),
        )

    def _on_eviction(self) -> OnEviction:
        share = self._dice.share()
        if share < self.load.fails:
            return OnEviction.FAILS
        return OnEviction.SILENTLY_COMPLETES if share < self.load.fails + self.load.completes else OnEviction.RETRIES
