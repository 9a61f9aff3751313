"""A scene for the controller: the example's fleet and schedule, and states of it as they would be seen."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from whenever import PlainDateTime

from ebbtide.control.actions import Action, Decision
from ebbtide.control.decide import DEFAULT_LIMITS, decide
from ebbtide.control.limits import Limits
from ebbtide.control.memory import Memory
from ebbtide.control.state import Node, PoolSeen, Replicas, ResearchWork, Sight, State, Tenure
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import WEEK, DayPattern
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


def of(decision: Decision, kind: type[Action]) -> list[Action]:
    return [action for action in decision.actions if isinstance(action, kind)]


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
