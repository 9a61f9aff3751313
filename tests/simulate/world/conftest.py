"""A small fleet and hand-written actions, to drive a simulated world without a controller."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ebbtide.control import actions as act
from ebbtide.control.actions import Action, Why
from ebbtide.control.state import Node, Replicas, ResearchWork, Side
from ebbtide.control.world import Result
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.workload import DemandRef, Service, Target, TargetKind, Workload
from ebbtide.simulate.world.jobs import ResearchLoad
from ebbtide.simulate.world.simulated import SimulatedWorld
from ebbtide.simulate.world.start import Start


def workload(name: str, gpus: int, **more: object) -> Workload:
    return Workload(
        name=name,
        demand=DemandRef(source="s", key=name),
        pool="h100",
        gpus_per_replica=gpus,
        service=Service(time_s=1.0),
        targets=(Target(kind=TargetKind.WAIT, bound_s=1.0),),
        **more,
    )


FLEET = Fleet(
    name="f",
    digest="d",
    time_zone="UTC",
    confidence=0.9,
    patterns=(),
    pools=(Pool(name="h100", gpus_per_node=8, nodes=12, reserved_nodes=2, min_production_nodes=1, moves_at_once=4),),
    workloads=(workload("chat", 2), workload("wide", 16, min_replicas=0)),
    research=Research(),
)
IDLE = ResearchLoad(backlog=0, fill_reserved=False)


class Hands:
    """A world and somebody who acts on it by hand; each helper looks anew."""

    def __init__(self, world: SimulatedWorld) -> None:
        self.world = world

    def do(self, kind: type[Action], **fields: object) -> Result:
        return self.world.apply(kind(why=Why(rule="§6", text="by hand"), **fields), self.world.now_s)

    def wait(self, seconds: float) -> None:
        self.world.advance(self.world.now_s + seconds)

    def nodes(self, side: Side) -> dict[str, Node]:
        return {node.name: node for node in self.world.observe(self.world.now_s).sight(side).pool("h100").nodes}

    def node(self, side: Side, name: str) -> Node:
        return self.nodes(side)[name]

    def size(self, side: Side) -> int:
        size = self.world.observe(self.world.now_s).sight(side).pool("h100").size
        assert size is not None
        return size

    def replicas(self, name: str = "chat") -> Replicas:
        return self.world.observe(self.world.now_s).production.replicas[name]

    def work(self) -> dict[str, ResearchWork]:
        return {one.name: one for one in self.world.observe(self.world.now_s).research.work}

    def remove(self, side: Side, *names: str, size: int | None = None) -> Result:
        left = self.size(side) - len(names) if size is None else size
        return self.do(act.RemoveNodes, side=side, pool="h100", nodes=names, size=left, moves=names)

    def grow(self, side: Side, size: int) -> Result:
        return self.do(act.GrowPool, side=side, pool="h100", size=size)

    def joined(self, side: Side) -> list[Node]:
        return [node for node in self.nodes(side).values() if node.joining]


@pytest.fixture
def hands() -> Callable[..., Hands]:
    """Makes a world with ten movable nodes, six of them in production, where research and strangers are idle."""

    def make(
        *,
        production_nodes: int = 6,
        replicas: int = 8,
        wide: int = 0,
        quota_gpus: dict[str, int] | None = None,
        fleet: Fleet = FLEET,
        load: ResearchLoad = IDLE,
        seed: int = 1,
        **more: object,
    ) -> Hands:
        start = Start(
            production_nodes={"h100": production_nodes},
            replicas={"chat": replicas, "wide": wide},
            quota_gpus=quota_gpus or {},
        )
        return Hands(SimulatedWorld(fleet, seed=seed, start=start, load=load, **more))

    return make
