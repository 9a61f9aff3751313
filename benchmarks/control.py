"""A year of the controller in the simulated world, and single decisions of a large fleet, in CPU time.

    uv run python -m benchmarks.control [year [DAYS]] [decision]

``year``: 50 workloads on 500 nodes of 8 GPUs under 24 windows a day, a wave that moves about 150 nodes each way every
day, an ordinary troubled cloud (``Troubles.usual()``). Virtual time jumps to the controller's next look or to the
world's next event that is worth one, and looks lie ``GAP_S`` apart at least: what happens in between is seen together.
DAYS are 10 unless told otherwise, and limits are for a year: a run is held to its share of them.
The CPU time of decisions and that of the world (its own events, being looked at, being acted upon) are told apart.
``decision``: one decision for 5 pools of 1,000 nodes and 500 workloads, from sights that were never seen before, in
every kind of instant. Limits are in ``limits.toml``, section ``[control]``; exit code 1 where one is broken.
"""

from __future__ import annotations

import gc
import math
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from whenever import OffsetDateTime, Time, hours

from ebbtide.control.actions import Action, Decision, Record
from ebbtide.control.decide import decide
from ebbtide.control.ledger import source_of
from ebbtide.control.loop import Tick
from ebbtide.control.memory import Direction, Memory, Move, Stage
from ebbtide.control.state import Mode, Node, PoolSeen, Replicas, ResearchWork, Side, Sight, State, Tenure
from ebbtide.control.world import Result
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import WEEK, DayPattern, windows_of
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.schedule import PoolColumn, Schedule, WorkloadColumn
from ebbtide.fleet.workload import DemandRef, Service, Target, TargetKind, Workload
from ebbtide.simulate.drive import drive
from ebbtide.simulate.world.simulated import SimulatedWorld
from ebbtide.simulate.world.start import Start
from ebbtide.simulate.world.troubles import Provider, Troubles

LIMITS = tomllib.loads(Path(__file__).with_name("limits.toml").read_text())["control"]
FIRST_HOUR = OffsetDateTime(2026, 9, 14, offset=hours(0)).timestamp()
DAY_S = 86_400.0
GAP_S = 60.0
GPUS = 8
WIDTHS = (1, 2, 4, 8)
# Production nodes hour by hour: 220 at night, 370 by day, up in four steps and down in four.
NIGHT, STEP = 220, 150
RISE = (0,) * 6 + (20, 70, 120) + (150,) * 10 + (120, 70, 20) + (0,) * 2
WAVE = tuple(NIGHT + rise for rise in RISE)
SEED = 4


def workload(name: str, pool: str, gpus: int) -> Workload:
    """A service of one replica's width."""
    return Workload(
        name=name,
        demand=DemandRef(source="s", key=name),
        pool=pool,
        gpus_per_replica=gpus,
        service=Service(time_s=1.0, scv=1.0),
        targets=(Target(kind=TargetKind.WAIT, bound_s=1.0),),
    )


def fleet_of(pools: tuple[Pool, ...], workloads: tuple[Workload, ...]) -> Fleet:
    """The pools and what runs on them."""
    return Fleet(
        name="control",
        digest="sha256:control",
        time_zone="UTC",
        confidence=0.95,
        patterns=(),
        pools=pools,
        workloads=workloads,
        research=Research(),
    )


def schedule_of(fleet: Fleet, nodes: tuple[int, ...]) -> Schedule:
    """Every pool follows ``nodes`` hour by hour; its workloads share what they hold but for a twentieth."""
    columns = []
    for pool in fleet.pools:
        there = fleet.workloads_of(pool.name)
        share = 0.95 * pool.gpus_per_node / len(there)
        columns += [
            WorkloadColumn(
                name=one.name,
                replicas=tuple(max(int(count * share / one.gpus_per_replica), 1) for count in nodes),
                holds_rps=(1e9,) * len(nodes),
            )
            for one in there
        ]
    return Schedule(
        name="control",
        fleet_name="control",
        fleet_digest="sha256:control",
        time_zone="UTC",
        valid_until=OffsetDateTime(2040, 1, 1, offset=hours(0)),
        windows=windows_of(DayPattern(days=WEEK, starts=tuple(Time(hour) for hour in range(len(nodes))))),
        workloads=tuple(columns),
        pools=tuple(_column(pool, nodes) for pool in fleet.pools),
    )


def _column(pool: Pool, nodes: tuple[int, ...]) -> PoolColumn:
    left = tuple(pool.nodes - pool.reserved_nodes - count for count in nodes)
    return PoolColumn(
        name=pool.name,
        production_nodes=nodes,
        ephemeral_nodes=left,
        ephemeral_quota_gpus=tuple(pool.gpus_per_node * count for count in left),
        lead_s=(2400.0,) * len(nodes),
    )


# --- a year


class Timed:
    """A world whose own time is told apart: being looked at, being acted upon, and its events."""

    def __init__(self, world: SimulatedWorld) -> None:
        self.world, self.spent_s = world, 0.0

    def observe(self, at_s: float, /) -> State:
        """Look."""
        begin_s = time.process_time()
        state = self.world.observe(at_s)
        self.spent_s += time.process_time() - begin_s
        return state

    def apply(self, action: Action, at_s: float, /) -> Result:
        """Act."""
        begin_s = time.process_time()
        result = self.world.apply(action, at_s)
        self.spent_s += time.process_time() - begin_s
        return result

    @property
    def now_s(self) -> float:
        """The instant reached."""
        return self.world.now_s

    @property
    def next_event_s(self) -> float:
        """When something happens that is worth a look."""
        return self.world.next_event_s

    def advance(self, until_s: float) -> None:
        """Let time pass."""
        begin_s = time.process_time()
        self.world.advance(until_s)
        self.spent_s += time.process_time() - begin_s


@dataclass(slots=True)
class Seen:
    """What the ticks of a run did: nodes moved by direction, actions, looks that led to none."""

    moved: Counter[Direction] = field(default_factory=Counter)
    actions: int = 0
    idle: int = 0
    _moves: dict[str, Move] = field(default_factory=dict)

    def add(self, _: float, tick: Tick) -> None:
        """Take one tick in."""
        self.actions += len(tick.results)
        self.idle += not tick.results
        if not tick.results or not isinstance(tick.results[0][0], Record):
            return
        moves = {move.id: move for move in tick.results[0][0].memory.moves}
        for gone in self._moves.keys() - moves.keys():
            self.moved[self._moves[gone].direction] += self._moves[gone].stage is Stage.JOINING
        self._moves = moves


def a_year(days: int) -> bool:
    """Run it, say what it was, and whether all limits held and nothing wrong was done."""
    pool = Pool(
        name="h100",
        gpus_per_node=GPUS,
        nodes=500,
        reserved_nodes=100,
        min_production_nodes=50,
        moves_at_once=50,
        yield_time_s=2700.0,
        reclaim_time_s=3600.0,
    )
    fleet = fleet_of((pool,), tuple(workload(f"w{k:02}", "h100", WIDTHS[k % 4]) for k in range(50)))
    schedule = schedule_of(fleet, WAVE)
    start = Start(
        at_s=FIRST_HOUR,
        production_nodes={"h100": WAVE[0]},
        replicas={column.name: column.replicas[0] for column in schedule.workloads},
        quota_gpus={"h100": GPUS * (400 - WAVE[0])},
    )
    world = SimulatedWorld(fleet, seed=SEED, start=start, troubles=Troubles.usual(), provider=Provider.CLOUD)
    timed, seen = Timed(world), Seen()
    until_s = FIRST_HOUR + days * DAY_S
    begin_s = time.process_time()
    ticks = drive(timed, fleet, schedule, clock=timed, until_s=until_s, least_gap_s=GAP_S, seen=seen.add)
    total_s = time.process_time() - begin_s
    decide_s = total_s - timed.spent_s
    moved = ", ".join(f"{count:,} {direction}s" for direction, count in sorted(seen.moved.items()))
    print(f"{days} days, looks at least {GAP_S:.0f} s apart: {ticks:,} ticks, {seen.idle:,} of them without an action")
    print(f"{moved} finished; {seen.actions:,} actions; others did {len(world.tally.deeds):,} things")
    share = days / 365
    held = [
        _at_most("total", total_s, LIMITS["year_cpu_s"] * share, "CPU-s"),
        _at_most("decisions", decide_s, LIMITS["year_decisions_cpu_s"] * share, "CPU-s"),
    ]
    return _nothing_wrong(world) and all(held)


def _nothing_wrong(world: SimulatedWorld) -> bool:
    truth, moves = world.truth("h100"), world.memory.moves
    wrongs = [f"{one.what}: {one.to}" for one in world.tally.wrongs]
    if truth.total - truth.extra != world.fleet.pool("h100").nodes:
        wrongs.append(f"{truth.total - truth.extra} machines of {world.fleet.pool('h100').nodes}")
    if any(one.reserved and one.side is Side.PRODUCTION for one in world.machines("h100")):
        wrongs.append("a reserved machine stands in production")
    if len({move.node for move in moves}) < len(moves):
        wrongs.append("a node is in two moves")
    print(f"wrong: {len(wrongs)} {wrongs[:3] if wrongs else ''}")
    return not wrongs


def _at_most(what: str, value: float, limit: float, unit: str) -> bool:
    print(f"{what:34} {value:8.1f} {unit}  at most {limit:6.1f}  {'ok' if value <= limit else 'TOO SLOW'}")
    return value <= limit


# --- one decision

POOLS, NODES, RESERVED, SERVICES = 5, 1000, 100, 100
MOVING = 20  # of a pool, each way
DAILY = tuple(300 + hour % 12 * 40 for hour in range(24))
AT_S = FIRST_HOUR + DAY_S / 2 + 600.0  # ten past noon: the next window's reclaims begin at twenty past


def _node(name: str, tenure: Tenure = Tenure.EPHEMERAL, **more: Any) -> Node:
    return Node(name=name, tenure=tenure, provider_id=name, gpus=GPUS, pods=3, **more)


def a_state(fleet: Fleet, schedule: Schedule, production: int, stage: Stage | None = None) -> State:
    """Sights that nobody has seen before: so many production nodes in every pool, moves in a stage both ways."""
    moves = [] if stage is None else [one for pool in fleet.pools for one in _moves(pool, stage)]
    replicas = {column.name: column.replicas[12] for column in schedule.workloads}
    gone = {move.node for move in moves if stage is Stage.TRAVELLING or stage is Stage.JOINING}
    shut = {move.node for move in moves if stage in (Stage.EMPTYING, Stage.DRAINING, Stage.REMOVING, Stage.RETURNING)}

    def stand(prefix: str, count: int) -> tuple[Node, ...]:
        names = [f"{prefix}{k}" for k in range(count)]
        return tuple(
            _node(name, cordoned=name in shut, cordoned_by_us=name in shut) for name in names if name not in gone
        )

    def came(side: Side, pool: Pool) -> tuple[Node, ...]:
        return tuple(
            _node(move.arrived, joining=True, since_s=AT_S - 10.0)
            for move in moves
            if move.arrived and move.pool == pool.name and source_of(move.direction) is not side
        )

    free = {pool.name: pool.nodes - RESERVED - production for pool in fleet.pools}
    return State(
        mode=Mode.ACTIVE,
        memory=Memory(moves=tuple(moves), next_move=len(moves) + 1),
        production=Sight(
            seen_at_s=AT_S,
            pools={
                pool.name: PoolSeen(
                    nodes=stand(f"{pool.name}-a", production) + came(Side.PRODUCTION, pool), size=production
                )
                for pool in fleet.pools
            },
            replicas={
                one.name: Replicas(
                    workload=one.name,
                    wanted=replicas[one.name],
                    ready=replicas[one.name],
                    on={f"{one.pool}-a{k % production}": 1 for k in range(replicas[one.name])},
                )
                for one in fleet.workloads
            },
        ),
        research=Sight(
            seen_at_s=AT_S,
            pools={
                pool.name: PoolSeen(
                    nodes=stand(f"{pool.name}-b", free[pool.name])
                    + tuple(_node(f"{pool.name}-r{k}", Tenure.RESERVED) for k in range(RESERVED))
                    + came(Side.RESEARCH, pool),
                    size=pool.nodes - production,
                )
                for pool in fleet.pools
            },
            quota_gpus={pool.name: GPUS * free[pool.name] for pool in fleet.pools},
            work=tuple(
                ResearchWork(
                    name=f"{pool.name}-j{k}",
                    pool=pool.name,
                    gpus=2 * GPUS,
                    nodes=(f"{pool.name}-b{2 * k}", f"{pool.name}-b{2 * k + 1}"),
                    preemptible=True,
                    checkpointed_s=AT_S - k,
                )
                for pool in fleet.pools
                for k in range(free[pool.name] // 2)
            ),
        ),
    )


def _moves(pool: Pool, stage: Stage) -> Iterator[Move]:
    for direction, letter in ((Direction.RECLAIM, "b"), (Direction.YIELD, "a")):
        for k in range(MOVING):
            number = f"{pool.name}-{direction[0]}{k}"
            yield Move(
                id=number,
                pool=pool.name,
                direction=direction,
                node=f"{pool.name}-{letter}{k}",
                stage=stage,
                begun_s=AT_S - 600.0,
                since_s=AT_S - 300.0,
                due_s=AT_S + 3600.0,
                batch=MOVING,
                arrived=f"{number}-new" if stage is Stage.JOINING else "",
            )


def one_decision() -> bool:
    """Every kind of instant, each from fresh sights: the least CPU time of some."""
    pools = tuple(
        Pool(name=f"p{k}", gpus_per_node=GPUS, nodes=NODES, reserved_nodes=RESERVED, moves_at_once=40)
        for k in range(POOLS)
    )
    services = tuple(workload(f"{pool.name}-w{k:02}", pool.name, 1 + k % 2) for pool in pools for k in range(SERVICES))
    fleet = fleet_of(pools, services)
    schedule = schedule_of(fleet, DAILY)
    wanted = DAILY[12]
    kinds: list[tuple[str, int, Stage | None]] = [
        ("calm", wanted, None),
        ("200 reclaims begin", wanted - 40, None),
        ("200 yields begin", DAILY[13] + 40, None),  # what the next window wants stays
        *((f"100 reclaims and 100 yields {stage}", wanted, stage) for stage in Stage),
    ]
    held = True
    for name, production, stage in kinds:
        took_s, decision = _least_s(fleet, schedule, production, stage)
        kind = f"{name} ({len(decision.actions)} actions)"
        held &= _at_most(kind, 1000.0 * took_s, LIMITS["decision_cpu_ms"], "CPU-ms")
    return held


def _least_s(fleet: Fleet, schedule: Schedule, production: int, stage: Stage | None) -> tuple[float, Decision]:
    """CPU seconds of the quickest of seven decisions, and the decision."""
    least_s, decision = math.inf, None
    for _ in range(7):
        state = a_state(fleet, schedule, production, stage)
        gc.collect()
        begin_s = time.process_time()
        decision = decide(state, fleet, schedule, AT_S)
        least_s = min(least_s, time.process_time() - begin_s)
    assert decision is not None
    return least_s, decision


def main(words: list[str]) -> int:
    """1 where a limit does not hold."""
    days = next((int(word) for word in words if word.isdigit()), 10)
    kinds = [word for word in words if not word.isdigit()] or ["decision", "year"]
    held = [one_decision() if kind == "decision" else a_year(days) for kind in kinds]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
