"""The simulated world: ``control.World`` in virtual time, to be seen, acted upon, struck, and looked behind.

The driver advances it, looks with its own clock (which may jump: the world's does not), and applies actions. Nothing
here reads a clock; same fleet, troubles, load and seed: same run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain

from ebbtide.control.actions import Action, Record
from ebbtide.control.memory import Memory
from ebbtide.control.state import Mode, Override, PoolSeen, Side, Sight, State
from ebbtide.control.world import Result
from ebbtide.fleet.fleet import Fleet
from ebbtide.simulate.world.cloud import Cloud
from ebbtide.simulate.world.demand import LiveDemand
from ebbtide.simulate.world.deployments import Deployment
from ebbtide.simulate.world.dice import Dice
from ebbtide.simulate.world.doors import Doors, Written, side_of, written_by
from ebbtide.simulate.world.jobs import Job, ResearchLoad
from ebbtide.simulate.world.kueue import Queue
from ebbtide.simulate.world.replicas import Manners, Scheduler
from ebbtide.simulate.world.start import Ground, Start, stand_clouds, stand_deployments, stand_queues
from ebbtide.simulate.world.strangers import Strangers
from ebbtide.simulate.world.tally import Place, Steps, Tally
from ebbtide.simulate.world.things import Things
from ebbtide.simulate.world.timeline import Timeline
from ebbtide.simulate.world.troubles import Pace, Provider, Trouble, Troubles
from ebbtide.simulate.world.truth import MachineTruth, PoolTruth, machines_of, pool_truth
from ebbtide.units import SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchDone:
    """GPU-hours that research computed: kept, lost to interruptions, and neither yet."""

    useful_gpu_h: float
    lost_gpu_h: float
    unsaved_gpu_h: float


class SimulatedWorld:
    """Two clusters, a provider, research and strangers; implements ``control.world.World``.

    ``advance`` lets time pass; ``next_event_s`` is when a driver should look next, if it has no reason to look sooner.
    ``mode``, ``overrides`` and ``paused`` are people's to set. ``tally`` and ``truth`` are behind the mirror.

    >>> from ebbtide.fleet.pool import Pool, Research
    >>> fleet = Fleet(name="f", digest="", time_zone="UTC", confidence=0.9, patterns=(), workloads=(),
    ...               pools=(Pool(name="h100", gpus_per_node=8, nodes=3, reserved_nodes=1),), research=Research())
    >>> world = SimulatedWorld(fleet, seed=1)
    >>> [len(world.observe(0.0).sight(side).pool("h100").nodes) for side in Side]
    [2, 1]
    """

    def __init__(
        self,
        fleet: Fleet,
        *,
        seed: int,
        start: Start | None = None,
        troubles: Troubles | None = None,
        pace: Pace | None = None,
        load: ResearchLoad | None = None,
        provider: Provider = Provider.CLOUD,
        manners: Mapping[str, Manners] | None = None,
        demand: LiveDemand | None = None,
    ) -> None:
        begin = start if start is not None else Start()
        self.fleet, self.demand = fleet, demand
        self.troubles = troubles if troubles is not None else Troubles()
        self.pace = pace if pace is not None else Pace()
        self.memory = Memory()
        self.mode = Mode.ACTIVE
        self.overrides: tuple[Override, ...] = ()
        self.paused = False
        self.tally = Tally()
        self._line = Timeline(begin.at_s)
        self._dark_until_s = dict.fromkeys(Side, float("-inf"))
        self._sights = {side: Sight(seen_at_s=float("-inf")) for side in Side}
        self._edited: set[tuple[str, str]] = set()
        self._scheduler = Scheduler(self._line)
        ground = Ground(
            fleet=fleet,
            start=begin,
            line=self._line,
            tally=self.tally,
            troubles=self.troubles,
            pace=self.pace,
            seed=seed,
        )
        self._clouds = stand_clouds(ground, provider, self._scheduler)
        self._deployments = stand_deployments(ground, self._clouds, manners or {}, self._scheduler, demand)
        self._queues = stand_queues(ground, self._clouds, load if load is not None else ResearchLoad())
        self._strangers = self._make_strangers(seed)
        self._doors = Doors(
            fleet=fleet,
            clouds=self._clouds,
            deployments=self._deployments,
            queues=self._queues,
            tally=self.tally,
            line=self._line,
            pace=self.pace,
        )
        self._write_dice = Dice(seed, 1)
        if self.troubles.until_s < math.inf:
            self._line.at(self.troubles.until_s, self.heal)
        self._line.advance(begin.at_s)
        if demand is not None and any(one.manners.autoscaler for one in self._deployments.values()):
            self._autoscale()

    def _make_strangers(self, seed: int) -> Strangers:
        things = Things(
            clouds=self._clouds,
            deployments=self._deployments,
            queues=self._queues,
            edited=lambda kind, name: self._edited.add((kind, name)),
            darken=self._darken,
        )
        return Strangers(things, self._line, self.tally, Dice(seed, 2), self.troubles, self.pace)

    def _darken(self, side: Side, until_s: float) -> None:
        self._dark_until_s[side] = max(self._dark_until_s[side], until_s)
        self._line.at(until_s, _nothing)

    def _autoscale(self) -> None:
        """Autoscalers follow the load as it changes; after a write of ours they look within their period."""
        for one in self._deployments.values():
            one.autoscale()
        assert self.demand is not None
        next_s = self.demand.next_change_s(self._line.now_s)
        if next_s is not None:
            self._line.at(next_s + self.pace.autoscaler_period_s, self._autoscale, loud=False)

    # --- time

    @property
    def now_s(self) -> float:
        """The instant reached."""
        return self._line.now_s

    @property
    def next_event_s(self) -> float:
        """When something will happen that is worth a look; infinite where nothing is planned."""
        return self._line.next_loud_s

    def advance(self, until_s: float) -> None:
        """Let time pass. It never goes back, whatever a driver's clock does."""
        self._line.advance(until_s)

    # --- the protocol

    def observe(self, at_s: float, /) -> State:
        """What can be seen now; a cluster in the dark keeps its last sight."""
        production, research = self._look(Side.PRODUCTION, at_s), self._look(Side.RESEARCH, at_s)
        live = self.demand.at(self._line.now_s) if self.demand is not None else _NO_RATES
        return State(
            production=production,
            research=research,
            memory=self.memory,
            mode=self.mode,
            live_rps=live,
            live_at_s=at_s if live else float("-inf"),
            overrides=self.overrides,
            paused=self.paused,
        )

    def is_dark(self, side: Side) -> bool:
        """Whether a cluster cannot be reached now."""
        return self._line.now_s < self._dark_until_s[side]

    def _look(self, side: Side, at_s: float) -> Sight:
        if self.is_dark(side):
            return self._sights[side]
        if self._edited:
            self._edited = {one for one in self._edited if _side_of(one) is not side}
        last = self._sights[side]
        pools = last.pools
        clouds = self._clouds
        if not pools or any(cloud.sides[side].changed for cloud in clouds.values()):
            pools = {name: cloud.sides[side].look() for name, cloud in clouds.items()}
        if side is Side.PRODUCTION:
            replicas = last.replicas
            if self._scheduler.changed:
                replicas = {**replicas, **{one.workload.name: one.look() for one in self._scheduler.changed}}
                self._scheduler.changed.clear()
            sight = Sight(seen_at_s=at_s, pools=pools, replicas=replicas)
        else:
            sight = self._look_at_research(last, pools, at_s)
        self._sights[side] = sight
        return sight

    def _look_at_research(self, last: Sight, pools: Mapping[str, PoolSeen], at_s: float) -> Sight:
        queues, work = self._queues.values(), last.work
        quota_gpus, quota_set_by = last.quota_gpus, last.quota_set_by
        if any(queue.quota_changed for queue in queues):
            quota_gpus = {queue.pool.name: queue.quota_gpus for queue in queues}
            quota_set_by = {queue.pool.name: queue.quota_set_by for queue in queues}
            for queue in queues:
                queue.quota_changed = False
        if any(queue.changed for queue in queues):
            work = tuple(chain.from_iterable([queue.look() for queue in queues]))
        return Sight(seen_at_s=at_s, pools=pools, quota_gpus=quota_gpus, quota_set_by=quota_set_by, work=work)

    def apply(self, action: Action, at_s: float, /) -> Result:
        """Try one action: it may fail, before or after it took effect, or find its object changed."""
        side = side_of(action)
        if self.is_dark(side) or self._unlucky(self.troubles.write_fails):
            return Result.FAILED
        written = written_by(action)
        if written is not None and (written in self._edited or self._unlucky(self.troubles.write_conflicts)):
            return Result.CONFLICT
        result = self._write_memory(action)
        if result is None:
            result = self._doors.do(action)
        if result is Result.DONE and self._unlucky(self.troubles.answer_lost):
            return Result.FAILED
        return result

    def _write_memory(self, action: Action) -> Result | None:
        """The record, if the action is one: refused where another writer came between (§6.1)."""
        if not isinstance(action, Record):
            return None
        if action.memory.version != self.memory.version:
            return Result.CONFLICT
        self.memory = replace(action.memory, version=self.memory.version + 1)
        return Result.DONE

    def _unlucky(self, probability: float) -> bool:
        return self._write_dice.chance(probability)

    # --- what only the world can do, or know

    def strike(self, trouble: Trouble, what: str = "", lasts_s: float | None = None) -> None:
        """Let a trouble happen now: to the named node, workload, pool or work, or to one by chance."""
        self._strangers.strike(trouble, what, lasts_s)

    def heal(self) -> None:
        """Nothing goes wrong any more; what hangs, is broken, lost or lent comes right in ordinary time."""
        quiet = Troubles()
        self.troubles = self._strangers.troubles = quiet
        self._strangers.until_s = self._line.now_s
        things = self._things()
        for one in things:
            one.troubles = quiet
        self._strangers.stop()
        self._dark_until_s = dict.fromkeys(Side, float("-inf"))
        for one in things:
            one.heal()

    def _things(self) -> list[Cloud | Deployment | Queue]:
        return [*self._clouds.values(), *self._deployments.values(), *self._queues.values()]

    def truth(self, pool: str) -> PoolTruth:
        """One pool's machines, counted one by one."""
        return pool_truth(self._clouds[pool])

    def machines(self, pool: str) -> tuple[MachineTruth, ...]:
        """One pool's machines: each once."""
        return tuple(machines_of(self._clouds[pool]))

    def ready(self, workload: str) -> Steps:
        """Replicas that serve, over time: what ``fcfs.Capacity`` takes."""
        return self.tally.ready[workload].steps

    def standing(self, workload: str) -> Steps:
        """Replicas that hold GPUs, over time: ready or starting, those that finish their last requests not."""
        return self._deployments[workload].standing.steps

    def cut_replicas(self, workload: str) -> int:
        """Replicas that died under their requests: killed, or gone with their machine."""
        return self._deployments[workload].cut

    def gpu_h(self, pool: str) -> dict[Place, float]:
        """GPU-hours by place, from the start until now."""
        gpus = self.fleet.pool(pool).gpus_per_node
        series = {place: self.tally.places.get((pool, place)) for place in Place}
        return {
            place: 0.0 if one is None else one.total_s(self._line.now_s) * gpus / SECONDS_PER_HOUR
            for place, one in series.items()
        }

    def research(self, pool: str) -> ResearchDone:
        """What research got out of one pool so far."""
        useful, lost, unsaved = self._queues[pool].totals()
        return ResearchDone(
            useful_gpu_h=useful / SECONDS_PER_HOUR,
            lost_gpu_h=lost / SECONDS_PER_HOUR,
            unsaved_gpu_h=unsaved / SECONDS_PER_HOUR,
        )

    def jobs(self, pool: str) -> tuple[Job, ...]:
        """All research work of a pool so far, with what each got and lost: ended first."""
        return self._queues[pool].every()


_NO_RATES: Mapping[str, float] = {}


def _nothing() -> None:
    """A cluster can be reached again: worth a look."""


def _side_of(written: Written) -> Side:
    kind, name = written
    if kind == "pool":
        return Side(name.partition("/")[0])
    return Side.RESEARCH if kind == "quota" else Side.PRODUCTION
