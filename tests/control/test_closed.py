"""Fail closed, narrowly (§6.6): differences, quarantine, freshness of either cluster; other pools go on."""

from __future__ import annotations

import pytest

from ebbtide.control.actions import (
    Admit,
    Cordon,
    GrowPool,
    Park,
    Quarantine,
    Record,
    RemoveNodes,
    SetQuota,
    SetReplicas,
    Uncordon,
)
from ebbtide.control.ledger import ledger
from ebbtide.control.limits import Limits
from ebbtide.control.memory import Broken, Direction, Memory, Move, Stage
from ebbtide.control.state import PoolSeen, Side

NIGHT = {"chat": 37, "agents": 3}
MORNING = {"chat": 25, "agents": 9}


def memory_of(decision, before):
    return next((one.memory for one in decision.actions if isinstance(one, Record)), before)


def book(scene, state, at_s):
    return ledger(state, scene.fleet.pools[0], at_s, Limits())


def move(at_s, direction=Direction.YIELD, node="p-000", stage=Stage.DRAINING, **more):
    return Move(
        id="h100-1",
        pool="h100",
        direction=direction,
        node=node,
        stage=stage,
        begun_s=at_s,
        since_s=at_s,
        due_s=at_s,
        **more,
    )


def refused(decision, what: str):
    return [one.why for one in decision.withheld if one.what.startswith(what)]


# --- a difference


def test_an_unexplained_difference_stops_yields_after_three_ticks_and_says_so(scene):
    """A node is missing (13 + 18 + 8 of 40). Yields begin within the three ticks, or it is never sure of anything."""
    at_s = scene.at("02:00")
    memory = Memory(difference_ticks={"h100": 2})
    state = scene.state(at_s, production=13, replicas=NIGHT, memory=memory)
    assert scene.decide(state, at_s).phase == "Yielding"
    state = scene.state(at_s, production=13, replicas=NIGHT, memory=Memory(difference_ticks={"h100": 3}))
    decision = scene.decide(state, at_s)
    assert decision.phase == "Holding"
    (why,) = refused(decision, "yield")
    assert (why.rule, why.numbers) == ("§6.6", {"difference": -1, "ticks": 4})


@pytest.mark.parametrize("production", [13, 15])
def test_one_too_many_is_a_difference_too(scene, production):
    at_s = scene.at("02:00")
    state = scene.state(at_s, production=production, replicas=NIGHT, memory=Memory(difference_ticks={"h100": 3}))
    assert scene.decide(state, at_s).phase == "Holding"


def test_ticks_are_counted_while_it_lasts_and_forgotten_when_it_adds_up(scene):
    at_s, memory = scene.at("03:00"), Memory()
    for ticks in (1, 2, 3, 4, 4):
        memory = memory_of(scene.decide(scene.state(at_s, production=7, ephemeral=24, memory=memory), at_s), memory)
        assert memory.difference_ticks == {"h100": ticks}
    memory = memory_of(scene.decide(scene.state(at_s, production=8, ephemeral=24, memory=memory), at_s), memory)
    assert memory.difference_ticks == {}


def test_a_cluster_that_is_not_seen_says_nothing_new_of_a_difference(scene):
    at_s = scene.at("03:00")
    for seen in ((at_s, at_s - 61.0), (at_s - 61.0, at_s)):
        decision = scene.decide(scene.state(at_s, production=7, ephemeral=24, seen=seen), at_s)
        assert memory_of(decision, Memory()).difference_ticks == {}


def test_a_difference_stops_the_removal_of_a_yield(scene, change, pick):
    at_s = scene.at("02:10")
    nodes = scene.nodes("p", 9)
    nodes = (change(nodes[0], cordoned=True, cordoned_by_us=True), *nodes[1:])
    for ephemeral, removed in ((23, 1), (22, 0)):
        memory = Memory(moves=(move(at_s),), next_move=2, difference_ticks={"h100": 3})
        state = scene.state(at_s, production=nodes, ephemeral=ephemeral, memory=memory)
        decision = scene.decide(state, at_s)
        assert len(pick(decision, RemoveNodes)) == removed
    assert memory_of(decision, memory).moves[0].stage is Stage.RETURNING


def test_a_difference_stops_quota_raises_never_lowerings(scene, pick):
    at_s = scene.at("03:00")
    for quota_gpus, asked in ((160, []), (200, [192])):
        memory = Memory(difference_ticks={"h100": 3})
        state = scene.state(at_s, production=9, ephemeral=24, quota_gpus=quota_gpus, memory=memory)
        assert [one.gpus for one in pick(scene.decide(state, at_s), SetQuota)] == asked
    state = scene.state(at_s, production=8, ephemeral=24, quota_gpus=160, memory=memory)
    assert [one.gpus for one in pick(scene.decide(state, at_s), SetQuota)] == [192]


def test_a_difference_never_stops_reclaims_or_scale_ups(scene, pick, change):
    at_s = scene.at("07:30")
    nodes = scene.nodes("e", 20)
    nodes = (change(nodes[0], cordoned=True, cordoned_by_us=True), *nodes[1:])
    memory = Memory(moves=(move(at_s, Direction.RECLAIM, "e-000"),), next_move=2, difference_ticks={"h100": 4})
    state = scene.state(
        at_s, production=11, ephemeral=nodes, replicas={"chat": 20, "agents": 9}, quota_gpus=160, memory=memory
    )
    decision = scene.decide(state, at_s)
    assert memory_of(decision, memory).difference_ticks == {"h100": 4}
    assert [one.nodes for one in pick(decision, RemoveNodes)] == [("e-000",)]
    assert [one.replicas for one in pick(decision, SetReplicas)] == [25]


# --- counting


def test_a_travelling_node_is_neither_lost_nor_counted_twice(scene, change):
    at_s = scene.at("03:00")
    for stage, arrived, ephemeral in ((Stage.REMOVING, "", 23), (Stage.TRAVELLING, "", 23), (Stage.JOINING, "x", 23)):
        nodes = scene.nodes("e", ephemeral)
        if arrived:
            nodes = (*nodes, change(nodes[0], name=arrived, provider_id="id-x", joining=True))
        memory = Memory(moves=(move(at_s, stage=stage, node="gone", arrived=arrived),))
        assert book(scene, scene.state(at_s, production=8, ephemeral=nodes, memory=memory), at_s).difference == 0


@pytest.mark.parametrize("old", [{"ready": False}, {"cordoned": True, "cordoned_by_us": True}])
@pytest.mark.parametrize("joining", [True, False])
def test_one_machine_under_two_names_counts_once(scene, change, old, joining):
    """The old Node object lingers, cordoned or not Ready, while the machine has joined the other side."""
    at_s = scene.at("03:00")
    nodes = scene.nodes("e", 24)
    arrived = change(nodes[-1], provider_id="id-p-8", joining=joining)
    ghost = change(scene.nodes("p", 9)[-1], **old)
    state = scene.state(at_s, production=(*scene.nodes("p", 8), ghost), ephemeral=(*nodes[:-1], arrived))
    assert book(scene, state, at_s).difference == 0


def test_nodes_without_a_provider_id_are_not_one_machine(scene, change):
    at_s = scene.at("03:00")
    bare = tuple(change(one, provider_id="", joining=True) for one in scene.nodes("e", 24))
    worn = tuple(change(one, provider_id="", ready=False) for one in scene.nodes("p", 8))
    assert book(scene, scene.state(at_s, production=worn, ephemeral=bare), at_s).difference == 0


def test_a_node_that_opted_out_is_still_there(scene, change):
    at_s = scene.at("03:00")
    nodes = scene.nodes("p", 8)
    state = scene.state(at_s, production=(change(nodes[0], managed=False), *nodes[1:]), ephemeral=24)
    assert book(scene, state, at_s).difference == 0
    state = scene.state(at_s, production=(change(nodes[0], tenure=None), *nodes[1:]), ephemeral=24)
    assert book(scene, state, at_s).difference == -1


def test_an_arrival_belongs_to_one_move(scene, change):
    """Two are waited for, one has come and is joining: it is not given to the other one too."""
    at_s = scene.at("03:00")
    nodes = scene.nodes("e", 24)
    came = move(at_s - 60.0, stage=Stage.JOINING, node="gone", arrived="e-023")
    waits = change(came, id="h100-2", stage=Stage.TRAVELLING, node="also gone", arrived="", asked_s=at_s)
    joining = (*nodes[:-1], change(nodes[-1], joining=True, ready=False))
    state = scene.state(at_s, production=7, ephemeral=joining, memory=Memory(moves=(came, waits), next_move=3))
    moves = memory_of(scene.decide(state, at_s), state.memory).moves
    assert [(one.stage, one.arrived) for one in moves[:2]] == [(Stage.JOINING, "e-023"), (Stage.TRAVELLING, "")]


# --- quarantine


def test_a_node_that_stays_broken_is_quarantined_after_ten_minutes(scene, change, pick):
    at_s = scene.at("03:00")
    nodes = scene.nodes("e", 24)
    for age_s, named in ((599.0, []), (600.0, ["e-000"])):
        sick = change(nodes[0], gpus=6, since_s=at_s - age_s)
        decision = scene.decide(scene.state(at_s, production=8, ephemeral=(sick, *nodes[1:])), at_s)
        assert [one.node for one in pick(decision, Quarantine)] == named
        assert decision.next_look_s <= at_s + 5.0 or not named
    assert memory_of(decision, Memory()).quarantined == {"e-000": Broken(pool="h100", since_s=at_s)}


def test_quarantine_is_asked_again_where_the_cordon_is_not_there(scene, change, pick):
    """The controller died between the record and the act."""
    at_s = scene.at("03:00")
    nodes = scene.nodes("e", 24)
    memory = Memory(quarantined={"e-000": Broken(pool="h100", since_s=at_s - 60.0)})
    for cordoned, named in ((False, ["e-000"]), (True, [])):
        sick = change(nodes[0], ready=False, cordoned=cordoned, cordoned_by_us=cordoned)
        state = scene.state(at_s, production=8, ephemeral=(sick, *nodes[1:]), memory=memory)
        assert [one.node for one in pick(scene.decide(state, at_s), Quarantine)] == named


def test_a_quarantined_node_explains_itself_there_or_gone(scene, change):
    """Research bears it: its quota is lower by one node, nothing else changes; its repair does not stop yields."""
    at_s = scene.at("02:00")
    memory = Memory(quarantined={"e-000": Broken(pool="h100", since_s=0.0)})
    nodes = scene.nodes("e", 18)
    sick = change(nodes[0], ready=False, cordoned=True, cordoned_by_us=True)
    for ephemeral in ((sick, *nodes[1:]), nodes[1:]):
        state = scene.state(at_s, ephemeral=ephemeral, replicas=NIGHT, quota_gpus=136, memory=memory)
        assert book(scene, state, at_s).difference == 0
        assert scene.decide(state, at_s).phase == "Yielding"
    # two missing are more than one broken explains
    state = scene.state(at_s, ephemeral=nodes[2:], replicas=NIGHT, memory=memory)
    assert book(scene, state, at_s).difference == -1


def test_another_pools_broken_node_explains_nothing_here(scene):
    at_s = scene.at("02:00")
    memory = Memory(quarantined={"a-000": Broken(pool="a100", since_s=0.0)})
    assert book(scene, scene.state(at_s, ephemeral=17, memory=memory), at_s).difference == -1


def test_a_broken_node_that_was_replaced_is_forgotten(scene):
    at_s = scene.at("03:00")
    memory = Memory(quarantined={"old": Broken(pool="h100", since_s=0.0)})
    decision = scene.decide(scene.state(at_s, production=8, ephemeral=24, memory=memory), at_s)
    assert memory_of(decision, memory).quarantined == {}
    still = scene.decide(scene.state(at_s, production=8, ephemeral=23, memory=memory), at_s)
    assert memory_of(still, memory).quarantined == memory.quarantined


def test_a_node_that_is_whole_again_is_given_back_step_by_step(scene, change, pick):
    at_s = scene.at("03:00")
    nodes = scene.nodes("e", 24)
    memory = Memory(quarantined={"e-000": Broken(pool="h100", since_s=0.0)})
    for more, acts in (
        ({"cordoned": True, "cordoned_by_us": True, "since_s": at_s - 29.0}, (0, 0)),
        ({"cordoned": True, "cordoned_by_us": True, "since_s": at_s - 30.0}, (1, 0)),
        ({"joining": True, "since_s": at_s - 30.0}, (0, 1)),
    ):
        state = scene.state(at_s, production=8, ephemeral=(change(nodes[0], **more), *nodes[1:]), memory=memory)
        decision = scene.decide(state, at_s)
        assert (len(pick(decision, Uncordon)), len(pick(decision, Admit))) == acts
        assert memory_of(decision, memory).quarantined == memory.quarantined
    state = scene.state(at_s, production=8, ephemeral=24, memory=memory)
    assert memory_of(scene.decide(state, at_s), memory).quarantined == {}


def test_one_broken_node_never_stops_the_morning_reclaim(scene, change, pick):
    """It came broken and late: it is quarantined, counts as no motion, and another one is fetched in its place."""
    at_s = scene.at("08:55")
    nodes = scene.nodes("p", 25)
    sick = change(nodes[-1], joining=True, gpus=0)
    late = move(at_s - 6000.0, Direction.RECLAIM, "e-020", Stage.JOINING, arrived="p-024")
    state = scene.state(
        at_s,
        production=(*nodes[:-1], sick),
        ephemeral=7,
        replicas={"chat": 36, "agents": 27},
        memory=Memory(moves=(late,), next_move=2),
    )
    decision = scene.decide(state, at_s)
    assert [one.node for one in pick(decision, Quarantine)] == ["p-024"]
    assert [one.side for one in pick(decision, Cordon)] == [Side.RESEARCH]
    assert [one.direction for one in memory_of(decision, Memory()).moves] == [Direction.RECLAIM]


def test_a_broken_arrival_is_not_given_to_another_move(scene, change):
    at_s = scene.at("03:00")
    nodes = scene.nodes("e", 24)
    waiting = move(at_s - 60.0, stage=Stage.TRAVELLING, node="gone", asked_s=at_s)
    memory = Memory(moves=(waiting,), quarantined={"e-000": Broken(pool="h100", since_s=0.0)})
    state = scene.state(
        at_s, production=8, ephemeral=(change(nodes[0], joining=True, gpus=0), *nodes[1:]), memory=memory
    )
    assert memory_of(scene.decide(state, at_s), memory).moves[0].stage is Stage.TRAVELLING


def test_a_node_that_came_without_a_move_is_admitted_unless_a_move_is_about_to_wait(scene, change, pick):
    """A provider replaces a machine by itself: without the joining taint taken away it were lost."""
    at_s = scene.at("03:00")
    nodes = scene.nodes("e", 24)
    new = (*nodes[:-1], change(nodes[-1], joining=True))
    alone = scene.state(at_s, production=8, ephemeral=new)
    assert [one.node for one in pick(scene.decide(alone, at_s), Admit)] == ["e-023"]
    leaving = move(at_s, stage=Stage.REMOVING, node="p-008", asked_s=at_s)
    ghost = change(scene.nodes("p", 9)[-1], provider_id=nodes[-1].provider_id, cordoned=True, leaving=True)
    state = scene.state(at_s, production=(*scene.nodes("p", 8), ghost), ephemeral=new, memory=Memory(moves=(leaving,)))
    assert pick(scene.decide(state, at_s), Admit) == []


# --- freshness


@pytest.mark.parametrize("age_s", [61.0, -61.0])
def test_a_dark_research_cluster_does_not_stop_scale_ups_or_admission_in_production(scene, change, pick, age_s):
    """Too old, or from the future: a clock jumped."""
    at_s = scene.at("06:00")
    nodes = scene.nodes("p", 12)
    nodes = (*nodes[:-1], change(nodes[-1], joining=True))
    came = move(at_s - 60.0, Direction.RECLAIM, "e-020", Stage.JOINING, arrived="p-011")
    state = scene.state(
        at_s,
        production=nodes,
        ephemeral=20,
        replicas={"chat": 16, "agents": 6},
        quota_gpus=10,
        memory=Memory(moves=(came,)),
        seen=(at_s, at_s - age_s),
    )
    decision = scene.decide(state, at_s)
    assert {one.workload: one.replicas for one in pick(decision, SetReplicas)} == {"chat": 25, "agents": 9}
    assert [one.node for one in pick(decision, Admit)] == ["p-011"]
    assert pick(decision, SetQuota) == []
    assert refused(decision, "quota")[0].rule == "§6.6"


@pytest.mark.parametrize("stage", [Stage.EMPTYING, Stage.DRAINING, Stage.REMOVING])
@pytest.mark.parametrize("age_s", [61.0, -61.0])
def test_nothing_is_done_in_a_research_cluster_that_is_not_seen(scene, pick, stage, age_s):
    at_s = scene.at("08:00")
    going = move(at_s - 60.0, Direction.RECLAIM, "e-000", stage)
    state = scene.state(
        at_s, production=11, ephemeral=21, quota_gpus=999, memory=Memory(moves=(going,)), seen=(at_s, at_s - age_s)
    )
    decision = scene.decide(state, at_s)
    sides = {getattr(one, "side", None) for one in decision.actions}
    assert Side.RESEARCH not in sides
    assert pick(decision, SetQuota) == pick(decision, Park) == []
    assert [one.rule for one in refused(decision, str(stage))] == ["§6.6"]
    assert [one.rule for one in refused(decision, "reclaim")] == ["§6.6"]


@pytest.mark.parametrize("age_s", [61.0, -61.0])
@pytest.mark.parametrize("stage", [Stage.EMPTYING, Stage.DRAINING, Stage.REMOVING, None])
def test_nothing_leaves_a_production_cluster_that_is_not_seen(scene, change, pick, stage, age_s):
    at_s = scene.at("02:10")
    moves = () if stage is None else (move(at_s - 60.0, stage=stage),)
    state = scene.state(
        at_s,
        production=14,
        replicas={"chat": 37, "agents": 3},
        memory=Memory(moves=moves, next_move=2),
        seen=(at_s - age_s, at_s),
    )
    decision = scene.decide(state, at_s)
    assert Side.PRODUCTION not in {getattr(one, "side", None) for one in decision.actions}
    assert pick(decision, SetReplicas) == []
    assert [one.stage for one in memory_of(decision, state.memory).moves] == [one.stage for one in moves]
    assert "§6.6" in {one.why.rule for one in decision.withheld}


def test_reclaims_already_begun_go_on_in_research_while_production_is_dark(scene, change, pick):
    at_s = scene.at("08:00")
    nodes = scene.nodes("e", 21)
    nodes = (change(nodes[0], cordoned=True, cordoned_by_us=True), *nodes[1:])
    memory = Memory(moves=(move(at_s, Direction.RECLAIM, "e-000"),), next_move=2)
    state = scene.state(at_s, production=11, ephemeral=nodes, memory=memory, seen=(at_s - 61.0, at_s))
    assert [one.nodes for one in pick(scene.decide(state, at_s), RemoveNodes)] == [("e-000",)]


def test_a_stale_sight_of_production_gives_no_move_up(scene, change):
    """It may have lost nodes since: what comes is needed more than ever."""
    at_s = scene.at("02:10")
    nodes = scene.nodes("e", 21)
    nodes = (change(nodes[0], cordoned=True, cordoned_by_us=True, pods=3), *nodes[1:])
    memory = Memory(moves=(move(at_s, Direction.RECLAIM, "e-000", Stage.DRAINING),), next_move=2)
    state = scene.state(at_s, production=11, ephemeral=nodes, memory=memory, seen=(at_s - 61.0, at_s))
    assert memory_of(scene.decide(state, at_s), memory).moves[0].stage is Stage.DRAINING


def test_sixty_seconds_are_fresh_enough(scene):
    at_s = scene.at("02:00")
    for age_s in (60.0, -60.0):
        state = scene.state(at_s, replicas=NIGHT, seen=(at_s - age_s, at_s - age_s))
        assert scene.decide(state, at_s).phase == "Yielding"


# --- two pools


@pytest.fixture
def two(scene, change):
    """A second pool, a100, like the first, with a workload of its own; its schedule is the same."""
    (h100,) = scene.fleet.pools
    chat, agents = scene.fleet.workloads
    fleet = change(
        scene.fleet,
        pools=(h100, change(h100, name="a100")),
        workloads=(chat, agents, change(chat, name="talk", pool="a100")),
    )
    (column,) = scene.schedule.pools
    schedule = change(
        scene.schedule,
        pools=(column, change(column, name="a100")),
        workloads=(*scene.schedule.workloads, change(scene.schedule.workloads[0], name="talk")),
    )
    return change(scene, fleet=fleet, schedule=schedule)


def both(scene, change, at_s, *, first: int = 14, **more):
    """The same nodes in both pools; of the first pool ``first`` stand in production."""
    state = scene.state(at_s, production=first, ephemeral=18, replicas={**NIGHT, "talk": 37}, **more)
    renamed = {}
    for side in Side:
        seen = state.sight(side).pools["h100"]
        nodes = seen.nodes if side is Side.RESEARCH else scene.nodes("p", 14)
        renamed[side] = PoolSeen(
            nodes=tuple(change(one, name=f"a{one.name}", provider_id=f"a{one.provider_id}") for one in nodes),
            size=len(nodes),
        )
    return change(
        state,
        production=change(state.production, pools={**state.production.pools, "a100": renamed[Side.PRODUCTION]}),
        research=change(state.research, pools={**state.research.pools, "a100": renamed[Side.RESEARCH]}),
    )


def begun(decision, pool: str) -> int:
    return sum(one.pool == pool for one in memory_of(decision, Memory()).moves)


def test_a_difference_in_one_pool_leaves_the_other_alone(two, change):
    at_s = two.at("02:00")
    memory = Memory(difference_ticks={"h100": 3})
    decision = two.decide(both(two, change, at_s, first=13, memory=memory), at_s)
    assert (begun(decision, "h100"), begun(decision, "a100")) == (0, 6)


def test_live_demand_of_one_pool_stops_no_other_pools_yields(two, change):
    at_s = two.at("02:00")
    live = {"live_rps": {"chat": 161.0, "agents": 1.0, "talk": 1.0}, "live_at_s": at_s}
    decision = two.decide(both(two, change, at_s, **live), at_s)
    assert (begun(decision, "h100"), begun(decision, "a100")) == (0, 6)


# --- stockouts and failed moves


def test_a_node_that_does_not_come_is_said_replaced_and_still_asked_for(scene, pick):
    """Twice the P90 after it left: the provider has no capacity. Another reclaim begins in its place."""
    at_s = scene.at("08:58")
    lost = move(at_s - 5401.0, Direction.RECLAIM, "gone", Stage.TRAVELLING, asked_s=at_s - 61.0)
    state = scene.state(
        at_s,
        production=24,
        ephemeral=7,
        replicas={"chat": 36, "agents": 27},
        memory=Memory(moves=(lost,), next_move=2, sizes={"production/h100": 25}),
    )
    decision = scene.decide(state, at_s)
    (why,) = refused(decision, "arrival")
    assert (why.rule, why.numbers["waited_s"]) == ("§6.7", 5401)
    assert [one.size for one in pick(decision, GrowPool)] == [25]
    assert len(pick(decision, Cordon)) == 1


def test_a_stockout_is_named(scene, change):
    at_s = scene.at("08:58")
    lost = move(at_s - 5401.0, Direction.RECLAIM, "gone", Stage.TRAVELLING, asked_s=at_s)
    state = scene.state(at_s, production=24, ephemeral=7, memory=Memory(moves=(lost,)))
    pools = {"h100": change(state.production.pools["h100"], stock_out_s=at_s - 600.0)}
    state = change(state, production=change(state.production, pools=pools))
    assert "no capacity" in refused(scene.decide(state, at_s), "arrival")[0].text


def test_moves_at_once_holds_and_is_said(scene, pick):
    at_s = scene.at("07:25")
    state = scene.state(at_s, production=11, ephemeral=21)
    decision = scene.decide(state, at_s)
    assert len(pick(decision, Cordon)) == 8
    assert [one.numbers["moves_at_once"] for one in refused(decision, "reclaim of 6")] == [8]


def test_moves_at_once_holds_for_yields_too(scene, change, pick):
    at_s = scene.at("02:00")
    few = change(scene, fleet=change(scene.fleet, pools=(change(scene.fleet.pools[0], moves_at_once=4),)))
    decision = few.decide(few.state(at_s, replicas=NIGHT), at_s)
    assert len(pick(decision, Cordon)) == 4
    assert [one.numbers["moves_at_once"] for one in refused(decision, "yield of 2")] == [4]


@pytest.mark.parametrize("late", [False, True])
def test_a_stalled_move_takes_no_others_place(scene, change, pick, late):
    """One may move at once; it is on its way, or it is twice as late as ever."""
    at_s = scene.at("08:58")
    pool = change(scene.fleet.pools[0], moves_at_once=1)
    slow = change(scene, fleet=change(scene.fleet, pools=(pool,)))
    gone = move(at_s - (5401.0 if late else 60.0), Direction.RECLAIM, "gone", Stage.TRAVELLING, asked_s=at_s)
    state = slow.state(at_s, production=23, ephemeral=8, memory=Memory(moves=(gone,), next_move=2))
    assert len(pick(slow.decide(state, at_s), Cordon)) == late


def test_a_node_in_motion_takes_no_second_move(scene):
    """Somebody took its cordon away: it looks free."""
    at_s = scene.at("02:00")
    memory = Memory(moves=(move(at_s - 5.0, stage=Stage.EMPTYING),), next_move=2)
    moves = memory_of(scene.decide(scene.state(at_s, replicas=NIGHT, memory=memory), at_s), memory).moves
    assert len({one.node for one in moves}) == len(moves) == 6


def test_a_quarantined_node_does_not_count_however_whole_it_looks(scene):
    at_s = scene.at("03:00")
    memory = Memory(quarantined={"p-000": Broken(pool="h100", since_s=0.0)})
    state = scene.state(at_s, production=8, ephemeral=24, memory=memory)
    assert book(scene, state, at_s).usable == {Side.PRODUCTION: 7, Side.RESEARCH: 24}
    assert "p-000" not in {one.name for one in book(scene, state, at_s).movable(Side.PRODUCTION)}


def test_a_minimum_is_not_crossed_by_a_yield_while_what_comes_has_not_come(scene, change, pick):
    """8 nodes must stay; one of nine breaks as the ninth is ready to go, and one is on its way from research."""
    at_s = scene.at("02:30")
    fleet = change(scene.fleet, pools=(change(scene.fleet.pools[0], min_production_nodes=8),))
    careful = change(scene, fleet=fleet)
    nodes = scene.nodes("p", 9)
    coming = move(at_s, Direction.RECLAIM, "gone", Stage.TRAVELLING, asked_s=at_s)
    for sick, removed in ((False, 1), (True, 0)):
        here = (change(nodes[0], cordoned=True, cordoned_by_us=True), change(nodes[1], ready=not sick), *nodes[2:])
        memory = Memory(moves=(change(move(at_s), id="h100-2"), coming), next_move=3)
        state = scene.state(at_s, production=here, ephemeral=22, memory=memory)
        assert len(pick(careful.decide(state, at_s), RemoveNodes)) == removed


def test_where_more_stand_than_the_size_says_a_removal_takes_only_those_named(scene, change, pick):
    """A provider that brought one node twice: 15 stand of 14 asked for. A size of 13 would take one besides."""
    at_s = scene.at("02:10")
    nodes = scene.nodes("p", 15)
    nodes = (change(nodes[0], cordoned=True, cordoned_by_us=True), *nodes[1:])
    memory = Memory(moves=(move(at_s - 10.0, stage=Stage.REMOVING),), next_move=2)
    state = scene.state(at_s, production=nodes, ephemeral=17, replicas=NIGHT, memory=memory)
    for size, asked in ((14, 14), (15, 14), (16, 15)):  # one more is on its way: it is waited for
        pools = {"h100": PoolSeen(nodes=nodes, size=size)}
        seen = change(state, production=change(state.production, pools=pools))
        (removal,) = pick(scene.decide(seen, at_s), RemoveNodes)
        assert (removal.nodes, removal.size) == (("p-000",), asked)


@pytest.mark.parametrize(("size", "grown"), [(27, 28), (28, 28), (30, 30)])
def test_a_growth_is_never_less_than_what_is_there(scene, change, pick, size, grown):
    """27 written before; somebody made it 30 since: 27 + 1 would take nodes away, and one may be reserved."""
    at_s = scene.at("02:10")
    memory = Memory(
        moves=(move(at_s - 10.0, stage=Stage.TRAVELLING, node="gone"),), sizes={"research/h100": 27}, next_move=2
    )
    state = scene.state(at_s, production=13, replicas=NIGHT, memory=memory)
    pools = {"h100": change(state.research.pools["h100"], size=size)}
    seen = change(state, research=change(state.research, pools=pools))
    assert [one.size for one in pick(scene.decide(seen, at_s), GrowPool)] == [grown]


def test_a_late_move_is_asked_for_beside_what_others_added(scene, change, pick):
    """26 stand in research, as many as the size says, for somebody joined one: nothing comes until 27 are asked for."""
    at_s = scene.at("02:10")
    for late, grown in ((False, []), (True, [27])):
        now_s = at_s if late else at_s - 60.0
        since_s = at_s - 9000.0 if late else now_s - 60.0
        waiting = move(since_s, stage=Stage.TRAVELLING, node="gone", late=late, asked_s=since_s)
        memory = Memory(moves=(waiting,), sizes={"research/h100": 26}, next_move=2)
        state = scene.state(now_s, production=13, replicas=NIGHT, memory=memory)
        assert [one.size for one in pick(scene.decide(state, now_s), GrowPool)] == grown


def test_what_is_removed_at_the_same_look_is_not_there_any_more(scene, change, pick):
    """One goes from research's 26 and one comes: 25, then 26; not 27, of which one would be nobody's."""
    at_s = scene.at("02:10")
    goes = change(move(at_s - 10.0, Direction.RECLAIM, "e-000", stage=Stage.REMOVING), id="h100-2")
    comes = move(at_s - 10.0, stage=Stage.TRAVELLING, node="gone")
    nodes = scene.nodes("e", 18)
    nodes = (change(nodes[0], cordoned=True, cordoned_by_us=True), *nodes[1:])
    memory = Memory(moves=(comes, goes), next_move=3)
    state = scene.state(at_s, production=13, ephemeral=nodes, replicas=NIGHT, memory=memory)
    decision = scene.decide(state, at_s)
    assert [one.size for one in pick(decision, RemoveNodes)] == [25]
    assert [one.size for one in pick(decision, GrowPool)] == [26]


@pytest.mark.parametrize(("broken", "known", "named"), [(8, 0, 8), (9, 0, 0), (4, 4, 4), (5, 4, 0), (0, 20, 0)])
def test_many_that_look_broken_at_once_have_one_cause_and_are_not_cordoned(scene, change, pick, broken, known, named):
    """A taint put on all of them by somebody, a device plugin's rollout: eight of 40 may move at once, no more."""
    at_s = scene.at("20:00")
    nodes = [change(one, ready=False, since_s=at_s - 700.0) for one in scene.nodes("p", broken)]
    memory = Memory(quarantined={f"x-{k:03}": Broken(pool="h100", since_s=at_s - 60.0) for k in range(known)})
    state = scene.state(at_s, production=(*nodes, *scene.nodes("p", 14)[broken:]), replicas=NIGHT, memory=memory)
    decision = scene.decide(state, at_s)
    assert len(pick(decision, Quarantine)) == named
    said = [one for one in decision.withheld if one.what == f"quarantine of {broken} nodes of h100"]
    assert [one.why.numbers["at_most"] for one in said] == ([8] if named < broken else [])
