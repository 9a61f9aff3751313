"""Control and a simulated world under any sequence of failures, delays, crashes, clock jumps and strangers' edits.

A Hypothesis state machine strikes and lets time pass; after every look the invariants of §6.6 are checked against the
ground truth, which the controller never sees. In the end failures stop, and the schedule's state must be reached.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from whenever import OffsetDateTime, Time, hours

from ebbtide.control.actions import Action, Drain, Record, RemoveNodes, SetReplicas, Surge
from ebbtide.control.decide import decide
from ebbtide.control.limits import Limits
from ebbtide.control.loop import tick
from ebbtide.control.memory import Direction, Stage
from ebbtide.control.state import Side, State
from ebbtide.control.world import Result
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import WEEK, DayPattern, windows_of
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.schedule import PoolColumn, Schedule, WorkloadColumn
from ebbtide.fleet.workload import DemandRef, Service, Target, TargetKind, Workload
from ebbtide.simulate.drive import drive
from ebbtide.simulate.world.doors import side_of
from ebbtide.simulate.world.jobs import ResearchLoad
from ebbtide.simulate.world.simulated import SimulatedWorld
from ebbtide.simulate.world.start import Start
from ebbtide.simulate.world.troubles import Provider, Trouble, Troubles

LIMITS = Limits()
STARTS_H = (0, 6, 12, 18)
NODES = (3, 8, 10, 5)
REPLICAS = {"chat": (10, 30, 40, 20), "agents": (4, 10, 14, 6)}
BEGIN_S = OffsetDateTime(2026, 9, 14, 0, 0, offset=hours(0)).timestamp()
FLEETS_OWN = 14


def the_fleet() -> Fleet:
    def service(name: str, gpus: int) -> Workload:
        return Workload(
            name=name,
            demand=DemandRef(source="s", key=name),
            pool="h100",
            gpus_per_replica=gpus,
            service=Service(time_s=6.0, scv=1.0),
            targets=(Target(kind=TargetKind.WAIT, bound_s=2.0),),
            min_replicas=2,
        )

    return Fleet(
        name="tide",
        digest="sha256:tide",
        time_zone="UTC",
        confidence=0.95,
        patterns=(),
        pools=(
            Pool(
                name="h100",
                gpus_per_node=8,
                nodes=FLEETS_OWN,
                reserved_nodes=2,
                min_production_nodes=2,
                moves_at_once=3,
                reclaim_time_s=3600.0,
                yield_time_s=1800.0,
            ),
        ),
        workloads=(service("chat", 1), service("agents", 2)),
        research=Research(),
    )


def the_schedule() -> Schedule:
    return Schedule(
        name="tide",
        fleet_name="tide",
        fleet_digest="sha256:tide",
        time_zone="UTC",
        valid_until=OffsetDateTime(2027, 9, 14, offset=hours(0)),
        windows=windows_of(DayPattern(days=WEEK, starts=tuple(Time(hour) for hour in STARTS_H))),
        workloads=tuple(
            WorkloadColumn(name=name, replicas=counts, holds_rps=tuple(float(count) for count in counts))
            for name, counts in REPLICAS.items()
        ),
        pools=(
            PoolColumn(
                name="h100",
                production_nodes=NODES,
                ephemeral_nodes=tuple(12 - count for count in NODES),
                ephemeral_quota_gpus=tuple(8 * (12 - count) for count in NODES),
                lead_s=(0.0, 7500.0, 3900.0, 0.0),
            ),
        ),
    )


@dataclass
class Watched:
    """The world as the controller meets it: its clock may be off, it may die between any two actions.

    Every action is checked against what the controller had seen when it was decided.
    """

    world: SimulatedWorld
    dies_after: int | None = None
    seen: State | None = None
    wrong: list[str] = field(default_factory=list)

    def observe(self, at_s: float, /) -> State:
        self.seen = self.world.observe(at_s)
        return self.seen

    def apply(self, action: Action, at_s: float, /) -> Result:
        if self.dies_after is not None:
            if self.dies_after == 0:
                return Result.FAILED if not isinstance(action, Record) else Result.CONFLICT
            self.dies_after -= 1
        assert self.seen is not None
        age_s = abs(at_s - self.seen.sight(side_of(action)).seen_at_s)
        if not isinstance(action, Record) and age_s > LIMITS.stale_after_s:
            self.wrong.append(f"{type(action).__name__} on a sight of {age_s:.0f} s")
        self._minimum(action)
        if isinstance(action, Drain) and action.side is Side.PRODUCTION:
            self._drained(action.node)
        return self.world.apply(action, at_s)

    def _minimum(self, action: Action) -> None:
        if isinstance(action, SetReplicas | Surge) and action.replicas < 2:
            self.wrong.append(f"{action.workload} below its minimum: {action.replicas}")
        if isinstance(action, RemoveNodes) and action.side is Side.PRODUCTION:
            truth = {one.node: one for one in self.world.machines("h100") if one.side is Side.PRODUCTION and one.node}
            stays = [one for name, one in truth.items() if name not in action.nodes and not one.leaving]
            goes = [truth[name] for name in action.nodes if name in truth and not truth[name].leaving]
            if goes and sum(one.usable for one in stays) < 2:
                self.wrong.append(f"production left with {sum(one.usable for one in stays)} usable nodes")

    def _drained(self, node: str) -> None:
        """What is drained now and what was being drained together leave every service its minimum, as it was seen."""
        assert self.seen is not None
        going = {move.node for move in self.world.memory.moves if move.stage is Stage.DRAINING} | {node}
        for one in self.seen.production.replicas.values():
            if one.on.get(node, 0) and one.ready - sum(one.on.get(name, 0) for name in going) < 2:
                self.wrong.append(f"{one.workload} drained below its minimum with {node}")


class TideMachine(RuleBasedStateMachine):
    """Strikes, crashes, jumps, and time."""

    world: SimulatedWorld

    @initialize(
        seed=st.integers(0, 2**16),
        provider=st.sampled_from(Provider),
        wild=st.booleans(),
        steadfast=st.sampled_from([0.0, 0.3]),
        hour=st.sampled_from([0.0, 4.5, 9.0, 17.0]),
    )
    def begin(self, seed, provider, wild, steadfast, hour):
        window = max(index for index, start in enumerate(STARTS_H) if start <= hour)
        self.fleet, self.schedule = the_fleet(), the_schedule()
        writes = Troubles(
            delivery_fails=0.05,
            delivery_stalls=0.05,
            delivery_late=0.1,
            delivery_part=0.1,
            broken_gpus=0.1,
            removal_slow=0.1,
            pods_hang=0.03,
            write_fails=0.05,
            answer_lost=0.05,
            write_conflicts=0.05,
        )
        self.world = SimulatedWorld(
            self.fleet,
            seed=seed,
            start=Start(
                at_s=BEGIN_S + hour * 3600,
                production_nodes={"h100": NODES[window]},
                replicas={name: counts[window] for name, counts in REPLICAS.items()},
                quota_gpus={"h100": 8 * (12 - NODES[window])},
            ),
            troubles=writes if wild else Troubles(),
            load=ResearchLoad(backlog=4, steadfast=steadfast, hours=(1.0, 6.0)),
            provider=provider,
        )
        self.watched = Watched(world=self.world)
        self.steadfast = steadfast > 0.0

    @rule(minutes=st.sampled_from([0.25, 2, 10, 45, 120, 400]))
    def time_passes(self, minutes):
        drive(self.watched, self.fleet, self.schedule, until_s=self.world.now_s + minutes * 60, clock=self.world)

    @rule(trouble=st.sampled_from(Trouble), lasts_h=st.sampled_from([0.05, 0.5, 3.0]))
    def strike(self, trouble, lasts_h):
        self.world.strike(trouble, lasts_s=lasts_h * 3600)

    @rule(after=st.integers(0, 12))
    def crash(self, after):
        """The controller dies after some of its writes; the next look is a new process's."""
        self.watched.dies_after = after
        tick(self.watched, self.fleet, self.schedule, self.world.now_s, LIMITS)
        self.watched.dies_after = None

    @rule(offset_s=st.sampled_from([-7200.0, -90.0, 90.0, 7200.0]))
    def clock_jumps(self, offset_s):
        """One look by a clock that is off."""
        tick(self.watched, self.fleet, self.schedule, self.world.now_s + offset_s, LIMITS)

    @invariant()
    def nothing_wrong_was_done(self):
        if not hasattr(self, "watched"):
            return
        assert self.watched.wrong == []
        assert self.world.tally.wrongs == []

    @invariant()
    def every_machine_is_counted_once(self):
        if not hasattr(self, "watched"):
            return
        truth = self.world.truth("h100")
        assert truth.total - truth.extra == FLEETS_OWN
        moves = self.world.memory.moves
        assert len({move.id for move in moves}) == len(moves)
        assert len({move.node for move in moves}) == len(moves)
        arrived = [move.arrived for move in moves if move.arrived]
        assert len(set(arrived)) == len(arrived)

    @invariant()
    def reserved_machines_stay(self):
        if not hasattr(self, "watched"):
            return
        for one in self.world.machines("h100"):
            if one.reserved:
                assert one.side is Side.RESEARCH or not one.node

    @invariant()
    def no_more_move_at_once_than_may(self):
        if not hasattr(self, "watched"):
            return
        moving = [move for move in self.world.memory.moves if not move.late]
        assert len(moving) <= 3

    def teardown(self):
        if not hasattr(self, "watched"):
            return
        self.world.heal()
        drive(self.watched, self.fleet, self.schedule, until_s=self.world.now_s + 36 * 3600, clock=self.world)
        # 36 hours later at an hour in the middle of a window whose moves are long over
        now_s = self.world.now_s
        to_s = now_s + (86400 - (now_s - BEGIN_S) % 86400) + 17 * 3600
        drive(self.watched, self.fleet, self.schedule, until_s=to_s, clock=self.world)
        assert self.watched.wrong == []
        state = self.world.observe(to_s)
        if self.steadfast:  # work that must not be interrupted may keep its nodes: then the shortage is said
            decision = decide(state, self.fleet, self.schedule, to_s)
            missing = NODES[2] - self.world.truth("h100").usable_production
            assert missing <= 0 or decision.shortages["h100"] == missing
            return
        truth = self.world.truth("h100")
        assert truth.usable_production == NODES[2]
        assert truth.usable_research == 12 - NODES[2]
        assert {name: one.ready for name, one in state.production.replicas.items()} == {
            name: counts[2] for name, counts in REPLICAS.items()
        }
        assert state.research.quota_gpus["h100"] == 8 * (12 - NODES[2])
        assert [move for move in state.memory.moves if move.direction is Direction.RECLAIM] == []


TestTide = TideMachine.TestCase
TestTide.settings = settings(
    max_examples=40,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
