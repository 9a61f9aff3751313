"""A scene for the controller: the example's fleet and schedule, and states of it as they would be seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from whenever import PlainDateTime, Time

from ebbtide.control.actions import (
    Action,
    Activate,
    Admit,
    Cordon,
    Decision,
    DeletePods,
    Drain,
    GrowPool,
    LowerDeletionCost,
    Park,
    Quarantine,
    Record,
    RemoveNodes,
    Restore,
    SetQuota,
    SetReplicas,
    Surge,
    Uncordon,
)
from ebbtide.control.decide import DEFAULT_LIMITS, decide
from ebbtide.control.limits import Limits
from ebbtide.control.loop import tick
from ebbtide.control.memory import Direction, Memory, Move, Stage
from ebbtide.control.state import Mode, Node, PoolSeen, Replicas, ResearchWork, Side, Sight, State, Tenure
from ebbtide.control.world import Result
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import WEEK, DayPattern, windows_of
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.schedule import Schedule
from ebbtide.fleet.workload import DemandRef, Service, Target, TargetKind, Workload

LONG_AGO_S = 0.0


def workload(name: str, gpus: int, **more: object) -> Workload:
    return Workload(
        name=name,
        demand=DemandRef(source="small", key=name),
        pool="h100",
        gpus_per_replica=gpus,
        service=Service(time_s=6.0, scv=1.0),
        targets=(Target(kind=TargetKind.WAIT, bound_s=2.0),),
        **more,
    )


@dataclass(frozen=True, kw_only=True)
class Scene:
    """The example: h100, 40 nodes of 8, 8 reserved; chat (1 GPU) and agents (2)."""

    fleet: Fleet
    schedule: Schedule

    def at(self, clock: str, day: int = 15) -> float:
        return PlainDateTime.parse_iso(f"2026-09-{day:02}T{clock}:00").assume_tz("Asia/Shanghai").timestamp()

    def nodes(self, kind: str, count: int, tenure: Tenure = Tenure.EPHEMERAL, **more: object) -> tuple[Node, ...]:
        return tuple(
            Node(name=f"{kind}-{k:03}", tenure=tenure, provider_id=f"id-{kind}-{k}", gpus=8, **more)
            for k in range(count)
        )

    def state(
        self,
        at_s: float,
        *,
        production: tuple[Node, ...] | int = 14,
        ephemeral: tuple[Node, ...] | int = 18,
        replicas: dict[str, int] | None = None,
        quota_gpus: int | None = None,
        work: tuple[ResearchWork, ...] = (),
        memory: Memory | None = None,
        seen: tuple[float, float] | None = None,
        **more: object,
    ) -> State:
        """What a calm fleet looks like with so many nodes on either side, all as the window of ``at_s`` has it."""
        prod = self.nodes("p", production) if isinstance(production, int) else production
        eph = self.nodes("e", ephemeral) if isinstance(ephemeral, int) else ephemeral
        fixed = self.nodes("r", 8, Tenure.RESERVED)
        counts = replicas or {}
        seen_s = seen or (at_s, at_s)
        return State(
            production=Sight(
                seen_at_s=seen_s[0],
                pools={"h100": PoolSeen(nodes=prod, size=len(prod))},
                replicas={name: Replicas(workload=name, wanted=count, ready=count) for name, count in counts.items()},
            ),
            research=Sight(
                seen_at_s=seen_s[1],
                pools={"h100": PoolSeen(nodes=eph + fixed, size=len(eph) + 8)},
                quota_gpus={} if quota_gpus is None else {"h100": quota_gpus},
                work=work,
            ),
            memory=memory or Memory(),
            **more,
        )

    def decide(self, state: State, at_s: float, limits: Limits = DEFAULT_LIMITS) -> Decision:
        return decide(state, self.fleet, self.schedule, at_s, limits)


class CrashError(Exception):
    """The controller dies."""


class ToyWorld:
    """Six nodes of 8, two clusters, one Kueue-like queue, all as kind as can be: what is asked for happens, in time.

    It keeps everything that ``apply`` is asked to do, and dies before or after the action of a number (``CrashError``).
    """

    TRAVEL_S = 240.0

    def __init__(self, at_s: float, production: int = 4, ephemeral: int = 1, reserved: int = 1) -> None:
        self.now_s = at_s
        self.serial = 0
        self.memory = Memory()
        self.nodes: dict[Side, dict[str, Node]] = {Side.PRODUCTION: {}, Side.RESEARCH: {}}
        for _ in range(production):
            self._add(Side.PRODUCTION, since_s=0.0)
        for _ in range(ephemeral):
            self._add(Side.RESEARCH, since_s=0.0)
        for _ in range(reserved):
            self._add(Side.RESEARCH, since_s=0.0, tenure=Tenure.RESERVED)
        self.size = {side: len(nodes) for side, nodes in self.nodes.items()}
        self.coming: list[tuple[float, Side]] = []
        self.quota = 8 * ephemeral
        self.replicas = {
            "chat": Replicas(workload="chat", wanted=24 if production > 2 else 10, ready=0),
            "agents": Replicas(workload="agents", wanted=3 if production > 2 else 2, ready=0),
        }
        self.width = {"chat": 1, "agents": 2}
        self.work = {
            name: ResearchWork(
                name=name, pool="h100", gpus=gpus, nodes=(), preemptible=True, checkpointed_s=at_s, has_quota=False
            )
            for name, gpus in (("base", 8), ("gang", 16))
        }
        self.ending: dict[str, float] = {}
        self.log: list[tuple[float, Action]] = []
        self.decisions: list[Decision] = []
        self.crash_before: int | None = None
        self.crash_after: int | None = None
        self.more: dict[str, object] = {}
        self.dark: dict[Side, Sight] = {}
        self.broken_arrivals = 0
        self.stock_out = False
        self._settle()

    def _add(self, side: Side, *, since_s: float, tenure: Tenure = Tenure.EPHEMERAL, **more: object) -> Node:
        self.serial += 1
        name = f"n{self.serial:02}"
        node = Node(name=name, tenure=tenure, provider_id=f"id-{name}", gpus=8, since_s=since_s, **more)
        self.nodes[side][name] = node
        return node

    # --- time

    def pass_to(self, at_s: float) -> None:
        """Let the world go on: nodes come and become Ready, pods go and come, work ends and is admitted."""
        self.now_s = at_s
        for due_s, side in list(self.coming):
            if due_s <= at_s and not self.stock_out:
                self.coming.remove((due_s, side))
                broken = self.broken_arrivals > 0
                self.broken_arrivals -= broken
                node = self._add(side, since_s=at_s, joining=True)
                self.nodes[side][node.name] = replace(node, gpus=0 if broken else 8)
        for name, end_s in list(self.ending.items()):
            if end_s <= at_s:
                del self.ending[name]
                self.work[name] = replace(self.work[name], nodes=(), has_quota=False)
        self._settle()

    def _settle(self) -> None:
        for name, one in self.replicas.items():
            self.replicas[name] = self._placed(one, self.width[name])
        self._admit_work()
        for side, nodes in self.nodes.items():
            for name, node in nodes.items():
                pods = sum(one.on.get(name, 0) for one in self.replicas.values()) if side is Side.PRODUCTION else 0
                pods += sum(one.nodes.count(name) for one in self.work.values()) if side is Side.RESEARCH else 0
                nodes[name] = replace(node, pods=pods)

    def _free(self, name: str) -> int:
        node = self.nodes[Side.PRODUCTION][name]
        if node.cordoned or node.joining or not node.ready:
            return 0
        return node.gpus - sum(one.on.get(name, 0) * self.width[one.workload] for one in self.replicas.values())

    def _placed(self, one: Replicas, width: int) -> Replicas:
        on = {name: count for name, count in one.on.items() if name in self.nodes[Side.PRODUCTION] and count}
        self.replicas[one.workload] = replace(one, on=on)
        while sum(on.values()) > one.wanted:
            order = sorted(on, key=lambda name: (name not in one.lowered_cost, name))
            on[order[0]] -= 1
            on = {name: count for name, count in on.items() if count}
        self.replicas[one.workload] = replace(one, on=on)
        for name in sorted(self.nodes[Side.PRODUCTION]):
            more = min(max(self._free(name), 0) // width, one.wanted - sum(on.values()))
            if more > 0:
                on[name] = on.get(name, 0) + more
                self.replicas[one.workload] = replace(one, on=dict(on))
        return replace(one, on=dict(on), ready=sum(on.values()))

    def _admit_work(self) -> None:
        used = sum(one.gpus for one in self.work.values() if one.has_quota)
        for name, one in self.work.items():
            busy = {node for other in self.work.values() for node in other.nodes}
            free = [
                node.name
                for node in self.nodes[Side.RESEARCH].values()
                if node.tenure is Tenure.EPHEMERAL and not node.cordoned and not node.joining and node.name not in busy
            ]
            if one.active and not one.has_quota and used + one.gpus <= self.quota and len(free) >= one.gpus // 8:
                used += one.gpus
                placed = tuple(free[: one.gpus // 8])
                self.work[name] = replace(one, nodes=placed, has_quota=True, checkpointed_s=self.now_s)

    # --- the protocol

    def observe(self, at_s: float, /) -> State:
        sights = {}
        for side, nodes in self.nodes.items():
            pools = {"h100": PoolSeen(nodes=tuple(nodes.values()), size=self.size[side])}
            if side is Side.PRODUCTION:
                sights[side] = Sight(seen_at_s=at_s, pools=pools, replicas=dict(self.replicas))
            else:
                sights[side] = Sight(
                    seen_at_s=at_s, pools=pools, quota_gpus={"h100": self.quota}, work=tuple(self.work.values())
                )
        sights |= self.dark
        return State(
            production=sights[Side.PRODUCTION],
            research=sights[Side.RESEARCH],
            memory=self.memory,
            **{"mode": Mode.ACTIVE, **self.more},
        )

    def apply(self, action: Action, at_s: float, /) -> Result:
        if self.crash_before == len(self.log):
            self.crash_before = None
            raise CrashError
        self.log.append((at_s, action))
        getattr(self, f"_do_{type(action).__name__.lower()}")(action)
        if self.crash_after == len(self.log) - 1:
            self.crash_after = None
            raise CrashError
        return Result.DONE

    def _do_record(self, action: Record) -> None:
        assert action.memory.version == self.memory.version
        self.memory = replace(action.memory, version=self.memory.version + 1)

    def _mark(self, side: Side, name: str, cordoned: bool) -> None:
        node = self.nodes[side].get(name)
        if node is not None:
            self.nodes[side][name] = replace(node, cordoned=cordoned, cordoned_by_us=cordoned, marked=cordoned)

    def _do_cordon(self, action: Cordon | Quarantine) -> None:
        self._mark(action.side, action.node, True)

    _do_quarantine = _do_cordon

    def _do_uncordon(self, action: Uncordon) -> None:
        self._mark(action.side, action.node, False)

    def _do_restore(self, action: Restore) -> None:
        pass

    def _do_setquota(self, action: SetQuota) -> None:
        self.quota = action.gpus

    def _do_park(self, action: Park) -> None:
        self.work[action.work] = replace(self.work[action.work], active=False, parked_by_us=True)
        self.ending.setdefault(action.work, self.now_s + 60.0)

    def _do_activate(self, action: Activate) -> None:
        assert self.work[action.work].gone
        self.work[action.work] = replace(self.work[action.work], active=True, parked_by_us=False)

    def _do_lowerdeletioncost(self, action: LowerDeletionCost) -> None:
        self.replicas[action.workload] = replace(self.replicas[action.workload], lowered_cost=action.nodes)

    def _do_setreplicas(self, action: SetReplicas | Surge) -> None:
        self.replicas[action.workload] = replace(self.replicas[action.workload], wanted=action.replicas)

    _do_surge = _do_setreplicas

    def _do_drain(self, action: Drain | DeletePods) -> None:
        for name, one in self.replicas.items():
            self.replicas[name] = replace(one, on={node: k for node, k in one.on.items() if node != action.node})

    _do_deletepods = _do_drain

    def _do_removenodes(self, action: RemoveNodes) -> None:
        for name in action.nodes:
            node = self.nodes[action.side].get(name)
            if node is not None:
                assert node.tenure is Tenure.EPHEMERAL
                assert node.pods == 0
                del self.nodes[action.side][name]
        self.size[action.side] = action.size
        assert len(self.nodes[action.side]) + sum(side is action.side for _, side in self.coming) == action.size

    def _do_growpool(self, action: GrowPool) -> None:
        self.size[action.side] = action.size
        there = len(self.nodes[action.side]) + sum(side is action.side for _, side in self.coming)
        self.coming += [(self.now_s + self.TRAVEL_S, action.side)] * (action.size - there)
        assert self.machines() <= 6

    def _do_admit(self, action: Admit) -> None:
        node = self.nodes[action.side][action.node]
        self.nodes[action.side][action.node] = replace(node, joining=False, tenure=action.tenure)

    # --- the books

    def machines(self) -> int:
        return sum(len(nodes) for nodes in self.nodes.values()) + len(self.coming)

    def whole(self, side: Side) -> int:
        return sum(
            not (one.joining or one.cordoned) and one.tenure is Tenure.EPHEMERAL for one in self.nodes[side].values()
        )

    def kinds(self) -> list[str]:
        """What was done, without the records, runs of the same kind as one."""
        names = [type(action).__name__ for _, action in self.log if not isinstance(action, Record)]
        return [name for k, name in enumerate(names) if k == 0 or names[k - 1] != name]


def of(decision: Decision, kind: type[Action]) -> list[Action]:
    return [action for action in decision.actions if isinstance(action, kind)]


@dataclass(frozen=True, kw_only=True)
class Tide(Scene):
    """A small fleet with two windows: 02:00 with 2 production nodes of 6, 09:00 with 4; 2 move at once."""

    def world(self, clock: str = "01:50", **more: object) -> ToyWorld:
        """As the window before 09:00 leaves it, or (from midnight to 02:00) the one before 02:00."""
        day = {"production": 4, "ephemeral": 1} if clock < "02:30" else {"production": 2, "ephemeral": 3}
        return ToyWorld(self.at(clock), **{**day, **more})

    def run(
        self,
        world: ToyWorld,
        until_s: float,
        *,
        every_s: float = 60.0,
        limits: Limits = DEFAULT_LIMITS,
        watch: Callable[[ToyWorld], None] | None = None,
    ) -> ToyWorld:
        """Tick after tick until an instant, restarted at once after a crash."""
        while world.now_s < until_s:
            next_s = world.now_s + every_s
            try:
                done = tick(world, self.fleet, self.schedule, world.now_s, limits)
                world.decisions.append(done.decision)
                next_s = min(next_s, done.decision.next_look_s)
            except CrashError:
                next_s = world.now_s + 5.0
            if watch is not None:
                watch(world)
            world.pass_to(min(next_s, until_s))
        return world


@pytest.fixture
def scene(schedule: Schedule) -> Scene:
    fleet = Fleet(
        name="day-and-night",
        digest=schedule.fleet_digest,
        time_zone=schedule.time_zone,
        confidence=0.95,
        patterns=(DayPattern(days=WEEK, starts=tuple(window.start for window in schedule.windows)),),
        pools=(Pool(name="h100", gpus_per_node=8, nodes=40, reserved_nodes=8, reclaim_time_s=2700.0, moves_at_once=8),),
        workloads=(workload("chat", 1), workload("agents", 2)),
        research=Research(value_usd_per_gpu_h=2.0),
    )
    return Scene(fleet=fleet, schedule=schedule)


@pytest.fixture
def pick():
    """Actions of one kind."""
    return of


@pytest.fixture
def change():
    """A frozen value with some fields replaced."""
    return replace


@pytest.fixture
def tide(scene: Scene) -> Tide:
    starts = (Time(2), Time(9))
    (pool,) = scene.schedule.pools
    schedule = replace(
        scene.schedule,
        windows=windows_of(DayPattern(days=WEEK, starts=starts)),
        workloads=tuple(
            replace(column, replicas=counts, holds_rps=tuple(10.0 * count for count in counts))
            for column, counts in zip(scene.schedule.workloads, ((10, 24), (2, 3)), strict=True)
        ),
        pools=(
            replace(
                pool,
                production_nodes=(2, 4),
                ephemeral_nodes=(3, 1),
                ephemeral_quota_gpus=(24, 8),
                lead_s=(0.0, 1200.0),
            ),
        ),
    )
    small = Pool(
        name="h100",
        gpus_per_node=8,
        nodes=6,
        reserved_nodes=1,
        min_production_nodes=1,
        yield_time_s=600.0,
        reclaim_time_s=900.0,
        moves_at_once=2,
    )
    return Tide(fleet=replace(scene.fleet, pools=(small,)), schedule=schedule)


@pytest.fixture
def seen(scene, change):
    """A state with these replicas, 8 production nodes by default: in force 02:00 (chat 16, agents 6)."""

    def make(at_s, *replicas, production=8, ephemeral=24, **more):
        state = scene.state(at_s, production=production, ephemeral=ephemeral, **more)
        return change(state, production=change(state.production, replicas={one.workload: one for one in replicas}))

    return make


@pytest.fixture
def leaving():
    """Memory of one yield from ``node``, at that stage since ``at_s``."""

    def make(at_s: float, node: str = "p-000", stage: Stage = Stage.EMPTYING) -> Memory:
        move = Move(
            id="h100-1",
            pool="h100",
            direction=Direction.YIELD,
            node=node,
            stage=stage,
            begun_s=at_s,
            since_s=at_s,
            due_s=at_s,
        )
        return Memory(moves=(move,), next_move=2)

    return make
