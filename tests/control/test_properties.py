"""Whatever is seen, some things are never asked for (§6.6): any state, however unkind."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ebbtide.control.actions import (
    Admit,
    Cordon,
    DeletePods,
    Drain,
    GrowPool,
    LowerDeletionCost,
    Park,
    Quarantine,
    Record,
    RemoveNodes,
    SetQuota,
    SetReplicas,
    Surge,
    Uncordon,
)
from ebbtide.control.decide import decide
from ebbtide.control.ledger import source_of
from ebbtide.control.memory import AT_HOME, Broken, Direction, Memory, Move, Stage
from ebbtide.control.state import Node, PoolSeen, Replicas, ResearchWork, Side, Sight, State, Tenure

MOVES_AT_ONCE, NODES = 2, 6


@st.composite
def nodes(draw, side: str, at_s: float):
    found = []
    for k in range(draw(st.integers(0, 5))):
        cordoned = draw(st.sampled_from([False, False, True]))
        found.append(
            Node(
                name=f"{side}{k}",
                tenure=draw(st.sampled_from([Tenure.EPHEMERAL] * 6 + [Tenure.RESERVED, None])),
                provider_id=f"id-{side}{k}",
                gpus=draw(st.sampled_from([8, 8, 8, 0, 7])),
                ready=draw(st.sampled_from([True, True, True, False])),
                since_s=at_s - draw(st.sampled_from([0.0, 29.0, 30.0, 700.0, 1e6, -50.0])),
                startup_taint=draw(st.integers(0, 9)) == 0,
                joining=draw(st.integers(0, 5)) == 0,
                cordoned=cordoned,
                cordoned_by_us=cordoned and draw(st.booleans()),
                leaving=draw(st.integers(0, 9)) == 0,
                pods=draw(st.sampled_from([0, 0, 2])),
                managed=draw(st.integers(0, 9)) > 0,
            )
        )
    return tuple(found)


@st.composite
def states(draw, at_s: float):
    seen = {Side.PRODUCTION: draw(nodes("p", at_s)), Side.RESEARCH: draw(nodes("e", at_s))}
    moves = []
    for k in range(draw(st.integers(0, MOVES_AT_ONCE))):
        direction = draw(st.sampled_from(list(Direction)))
        stage = draw(st.sampled_from(list(Stage)))
        names = [one.name for one in seen[source_of(direction)]] or ["gone"]
        begun_s = at_s - draw(st.sampled_from([0.0, 60.0, 1000.0, 5000.0]))
        moves.append(
            Move(
                id=f"h100-{k + 1}",
                pool="h100",
                direction=direction,
                node=draw(st.sampled_from(names)),
                stage=stage,
                begun_s=begun_s,
                since_s=begun_s,
                due_s=begun_s + draw(st.sampled_from([0.0, 1200.0])),
                arrived=draw(st.sampled_from(["", *[one.name for one in seen[source_of(direction).other]]]))
                if stage is Stage.JOINING
                else "",
            )
        )
    if len({one.node for one in moves}) < len(moves):
        moves = moves[:1]
    names = [one.name for one in (*seen[Side.PRODUCTION], *seen[Side.RESEARCH])]
    memory = Memory(
        moves=tuple(moves),
        next_move=9,
        quarantined={
            name: Broken(pool="h100", since_s=at_s - 60.0)
            for name in draw(st.lists(st.sampled_from(names or ["gone"]), max_size=2))
            if name not in {one.node for one in moves}
        },
        difference_ticks=draw(st.sampled_from([{}, {"h100": 4}])),
        spared=draw(st.sampled_from([{}, {"e0": at_s + 60.0}, {"p0": at_s + 60.0}])),
    )
    work = tuple(
        ResearchWork(
            name=f"w{k}",
            pool="h100",
            gpus=8,
            nodes=tuple(
                draw(st.lists(st.sampled_from([one.name for one in seen[Side.RESEARCH]] or ["gone"]), max_size=3))
            ),
            preemptible=draw(st.booleans()),
            checkpointed_s=at_s - 600.0,
            active=draw(st.booleans()),
            parked_by_us=draw(st.booleans()),
            has_quota=draw(st.booleans()),
            managed=draw(st.integers(0, 4)) > 0,
        )
        for k in range(draw(st.integers(0, 3)))
    )
    ages = [draw(st.sampled_from([0.0, 0.0, 0.0, 61.0, -61.0])) for _ in Side]
    on = [one.name for one in seen[Side.PRODUCTION]]
    return State(
        production=Sight(
            seen_at_s=at_s - ages[0],
            pools={"h100": PoolSeen(nodes=seen[Side.PRODUCTION], size=len(seen[Side.PRODUCTION]))},
            replicas={
                name: Replicas(
                    workload=name,
                    wanted=draw(st.integers(0, 30)),
                    ready=draw(st.integers(0, 30)),
                    on={node: 1 for node in on if draw(st.booleans())},
                    disruptions_allowed=draw(st.sampled_from([None, 0, 1])),
                )
                for name in ("chat", "agents")
            },
        ),
        research=Sight(
            seen_at_s=at_s - ages[1],
            pools={"h100": PoolSeen(nodes=seen[Side.RESEARCH], size=len(seen[Side.RESEARCH]))},
            quota_gpus={"h100": draw(st.integers(0, 30))},
            work=work,
        ),
        memory=memory,
    )


TIMES = ("02:00", "02:10", "08:45", "08:59", "12:00")


@given(st.data(), st.sampled_from(TIMES))
@settings(
    deadline=None, max_examples=300, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_never(tide, data, clock):
    at_s = tide.at(clock)
    state = data.draw(states(at_s))
    decision = decide(state, tide.fleet, tide.schedule, at_s)
    assert decision == decide(state, tide.fleet, tide.schedule, at_s)
    by_name = {one.name: one for side in Side for one in state.sight(side).pools["h100"].nodes}
    fresh = {side: abs(at_s - state.sight(side).seen_at_s) <= 60.0 for side in Side}
    for action in decision.actions:
        if isinstance(action, Cordon | Uncordon | Drain | DeletePods | Quarantine | Admit | RemoveNodes):
            assert fresh[action.side], "nothing acts on stale sight"
            for name in action.nodes if isinstance(action, RemoveNodes) else [action.node]:
                assert by_name[name].tenure is Tenure.EPHEMERAL, "no reserved or foreign node is touched"
                assert by_name[name].managed, "what opted out is left alone"
        if isinstance(action, RemoveNodes | GrowPool):
            assert fresh[action.side]
            assert 0 <= action.size <= NODES + 5
        if isinstance(action, SetReplicas | Surge | LowerDeletionCost):
            assert fresh[Side.PRODUCTION]
        if isinstance(action, SetReplicas | Surge):
            assert action.replicas >= 1, "no workload below its minimum"
        if isinstance(action, SetQuota | Park):
            assert fresh[Side.RESEARCH]
        if isinstance(action, Park):
            assert next(one.managed for one in state.research.work if one.name == action.work)
        assert action.why.numbers
    assert all(one.why.numbers and one.why.text for one in decision.withheld)
    records = [one for one in decision.actions if isinstance(one, Record)]
    assert decision.actions.index(records[0]) == 0 if records else True
    memory = records[0].memory if records else state.memory
    _moves_are_sound(state, memory)


def _moves_are_sound(state: State, memory: Memory) -> None:
    assert sum(not one.late for one in memory.moves) <= MOVES_AT_ONCE
    assert max(Counter(one.node for one in memory.moves).values(), default=0) <= 1, "one node, one move"
    assert len({one.id for one in memory.moves}) == len(memory.moves)
    before = {one.id: one for one in state.memory.moves}
    for move in memory.moves:
        old = before.get(move.id)
        if old is None:
            source = {one.name: one for one in state.sight(source_of(move.direction)).pools["h100"].nodes}
            assert move.stage is Stage.EMPTYING
            assert move.node in source
            assert move.node not in memory.quarantined, "a broken node is not moved"
            assert move.node not in state.memory.spared
        elif old.stage not in AT_HOME:
            assert move.stage not in AT_HOME, "past removal it goes on"
