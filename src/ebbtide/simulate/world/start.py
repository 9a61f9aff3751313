"""How a world begins: machines, replicas and queues as they stand at the first instant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from ebbtide.control.state import Side
from ebbtide.fleet.fleet import Fleet
from ebbtide.simulate.world.cloud import Cloud
from ebbtide.simulate.world.demand import LiveDemand
from ebbtide.simulate.world.deployments import Deployment
from ebbtide.simulate.world.dice import Dice
from ebbtide.simulate.world.jobs import Arrivals, ResearchLoad
from ebbtide.simulate.world.kueue import Queue
from ebbtide.simulate.world.replicas import Manners, Scheduler
from ebbtide.simulate.world.tally import Series, Tally
from ebbtide.simulate.world.timeline import Timeline
from ebbtide.simulate.world.troubles import Pace, Provider, Troubles


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How things stand at the start, whatever the schedule says. By pool and workload; what is absent has its default:
    every movable node in production, replicas at their minimum, quota for the nodes that are there."""

    at_s: float = 0.0
    production_nodes: Mapping[str, int] = field(default_factory=dict)
    replicas: Mapping[str, int] = field(default_factory=dict)
    quota_gpus: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What everything in a world stands on."""

    fleet: Fleet
    start: Start
    line: Timeline
    tally: Tally
    troubles: Troubles
    pace: Pace
    seed: int


def stand_clouds(ground: Ground, provider: Provider, scheduler: Scheduler) -> dict[str, Cloud]:
    """Every pool's machines, on both sides."""
    clouds: dict[str, Cloud] = {}
    for number, pool in enumerate(ground.fleet.pools):
        dice = Dice(ground.seed, 100 + number)
        cloud = Cloud(pool, ground.line, ground.tally, dice, ground.troubles, ground.pace, provider)
        cloud.begin(ground.start.production_nodes.get(pool.name, pool.max_production_nodes))
        side = cloud.sides[Side.PRODUCTION]
        side.on_room = partial(scheduler.ask, side)
        clouds[pool.name] = cloud
    return clouds


def stand_deployments(
    ground: Ground,
    clouds: Mapping[str, Cloud],
    manners: Mapping[str, Manners],
    scheduler: Scheduler,
    demand: LiveDemand | None,
) -> dict[str, Deployment]:
    """Every workload with its replicas, ready where they have room."""
    found: dict[str, Deployment] = {}
    for number, workload in enumerate(ground.fleet.workloads):
        one = Deployment(
            workload,
            manners.get(workload.name, Manners()),
            clouds[workload.pool].sides[Side.PRODUCTION],
            ground.line,
            Dice(ground.seed, 10_000 + number),
            ground.troubles,
            ground.pace,
            ground.tally.ready.setdefault(workload.name, Series()),
            scheduler,
        )
        if demand is not None:
            one.rate_rps = _rate_of(demand, workload.name, ground.line)
        one.begin(ground.start.replicas.get(workload.name, workload.min_replicas))
        found[workload.name] = one
    return found


def _rate_of(demand: LiveDemand, workload: str, line: Timeline) -> Callable[[], float | None]:
    return lambda: demand.rate_rps(workload, line.now_s)


def stand_queues(ground: Ground, clouds: Mapping[str, Cloud], load: ResearchLoad) -> dict[str, Queue]:
    """Every pool's research work: it comes as soon as time passes."""
    found: dict[str, Queue] = {}
    for number, (name, cloud) in enumerate(clouds.items()):
        pool = cloud.sides[Side.RESEARCH]
        arrivals = Arrivals(load, Dice(ground.seed, 200 + number))
        dice = Dice(ground.seed, 300 + number)
        queue = Queue(pool, arrivals, ground.line, ground.tally, dice, ground.troubles)
        pool.on_room = queue.ask
        movable = sum(not host.machine.reserved for host in pool.hosts.values())
        queue.set_quota(ground.start.quota_gpus.get(name, movable * pool.full_gpus), "")
        found[name] = queue
    return found
