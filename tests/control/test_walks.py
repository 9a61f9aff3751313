"""A whole night and morning, hand in hand with a kind world: the order of every step, and crashes between any two."""

from __future__ import annotations

import pytest

from ebbtide.control.actions import (
    Cordon,
    GrowPool,
    Record,
    RemoveNodes,
    SetQuota,
    SetReplicas,
)
from ebbtide.control.memory import Direction, Stage
from ebbtide.control.state import Mode, Side, Tenure


def settled(world, production: int, quota: int, chat: int, agents: int) -> None:
    """What the schedule asks for is there, and nothing of a move is left."""
    assert world.memory.moves == ()
    assert world.whole(Side.PRODUCTION) == production
    assert world.whole(Side.RESEARCH) == 5 - production
    assert world.machines() == 6
    assert not [one for nodes in world.nodes.values() for one in nodes.values() if one.cordoned or one.joining]
    assert world.quota == quota
    assert {name: one.ready for name, one in world.replicas.items()} == {"chat": chat, "agents": agents}
    assert not [one.lowered_cost for one in world.replicas.values() if one.lowered_cost]
    assert all(one.active and not one.parked_by_us for one in world.work.values())


def test_a_night_and_a_morning(tide):
    world = tide.run(tide.world(), tide.at("02:20"))
    settled(world, production=2, quota=24, chat=10, agents=2)
    tide.run(world, tide.at("09:00"))
    settled(world, production=4, quota=8, chat=24, agents=3)
    assert [one.direction for one in world.memory.finished] == [Direction.YIELD] * 2 + [Direction.RECLAIM] * 2


def test_a_yield_goes_in_the_rules_order(tide):
    """Cordon; deletion cost; scale down; replace what does not shrink; remove; grow; admit; quota up (§6.3)."""
    world = tide.run(tide.world(), tide.at("02:20"))
    order = ["Cordon", "LowerDeletionCost", "SetReplicas", "Surge", "RemoveNodes", "GrowPool", "Admit", "SetQuota"]
    assert list(dict.fromkeys(world.kinds())) == order
    assert {action.side for _, action in world.log if isinstance(action, Cordon)} == {Side.PRODUCTION}
    assert [action.gpus for _, action in world.log if isinstance(action, SetQuota)][-1] == 24


def test_a_reclaim_goes_in_the_rules_order(tide):
    """Cordon; quota down; end the Workloads; remove; grow; admit; scale up (§6.2), and let them requeue."""
    world = tide.run(tide.world("08:30"), tide.at("09:00"))
    order = ["Cordon", "SetQuota", "Park", "RemoveNodes", "Activate", "GrowPool", "Admit", "SetReplicas"]
    assert world.kinds() == order
    assert [(action.side, action.size) for _, action in world.log if isinstance(action, RemoveNodes)] == [
        (Side.RESEARCH, 2)
    ]
    assert [(action.side, action.size) for _, action in world.log if isinstance(action, GrowPool)] == [
        (Side.PRODUCTION, 4)
    ]


def test_all_leaving_nodes_are_named_in_one_action_with_the_size_without_them(tide):
    world = tide.run(tide.world("08:30"), tide.at("09:00"))
    (removal,) = [action for _, action in world.log if isinstance(action, RemoveNodes)]
    cordoned = {action.node for _, action in world.log if isinstance(action, Cordon)}
    assert set(removal.nodes) == cordoned
    assert (len(removal.nodes), removal.size, len(removal.moves)) == (2, 2, 2)


def test_in_shadow_nothing_is_done(tide):
    world = tide.world()
    world.more["mode"] = Mode.SHADOW
    tide.run(world, tide.at("02:20"))
    assert world.log == []
    assert any(isinstance(one, Cordon) for decision in world.decisions for one in decision.actions)


def test_nothing_is_begun_that_is_not_written(tide):
    """Before every act on a node the record holds the move that it belongs to."""
    world = tide.world()
    tide.run(world, tide.at("09:00"))
    recorded: set[str] = set()
    sizes: dict[str, set[int]] = {}
    for _, action in world.log:
        if isinstance(action, Record):
            recorded |= {move.node for move in action.memory.moves}
            removing = {move.id for move in action.memory.moves if move.stage is Stage.REMOVING}
            for key, size in action.memory.sizes.items():
                sizes.setdefault(key, set()).add(size)
        elif isinstance(action, Cordon):
            assert action.node in recorded
        elif isinstance(action, RemoveNodes):
            assert removing >= set(action.moves)
        elif isinstance(action, GrowPool):
            assert action.size in sizes[f"{action.side}/{action.pool}"]


def test_every_action_and_everything_withheld_names_its_rule_and_its_numbers(tide):
    world = tide.run(tide.world(), tide.at("09:30"))
    reasons = [one.why for decision in world.decisions for one in (*decision.actions, *decision.withheld)]
    assert len(reasons) > 20
    for one in reasons:
        assert one.rule.startswith(("§5.", "§6.", "§7."))
        assert one.text
        assert one.numbers


def test_the_same_state_gives_the_same_decision(tide):
    world = tide.world("02:00")
    for _ in range(30):
        state = world.observe(world.now_s)
        first, second = (tide.decide(state, world.now_s) for _ in range(2))
        assert first == second
        tide.run(world, world.now_s + 15.0, every_s=15.0)


def never(world) -> None:
    """What must hold at every instant."""
    gone = sum(
        one.stage in (Stage.REMOVING, Stage.TRAVELLING) and not any(one.node in nodes for nodes in world.nodes.values())
        for one in world.memory.moves
    )
    assert world.machines() <= 6 <= world.machines() + gone
    assert sum(one.tenure is Tenure.RESERVED for one in world.nodes[Side.RESEARCH].values()) == 1
    assert sum(not one.cordoned for one in world.nodes[Side.RESEARCH].values() if one.tenure is Tenure.RESERVED) == 1
    assert world.whole(Side.PRODUCTION) >= 1
    assert len(world.memory.moves) <= 2


@pytest.mark.parametrize(("begin", "end"), [("01:59", "02:22"), ("08:38", "09:02")])
@pytest.mark.parametrize("when", ["crash_before", "crash_after"])
def test_killed_between_any_two_actions_it_goes_on(tide, begin, end, when):
    """Whatever action the controller dies before or after: it restarts, and the same state is reached."""
    calm = tide.run(tide.world(begin), tide.at(end))
    assert len(calm.log) >= 20
    for number in range(len(calm.log)):
        world = tide.world(begin)
        setattr(world, when, number)
        tide.run(world, tide.at(end), watch=never)
        assert getattr(world, when) is None, number
        if end < "03:00":
            settled(world, production=2, quota=24, chat=10, agents=2)
        else:
            settled(world, production=4, quota=8, chat=24, agents=3)


def test_asking_again_after_a_lost_answer_changes_nothing(tide):
    """Every action is applied twice."""

    def twice(world):
        once = world.apply

        def apply(action, at_s):
            result = once(action, at_s)
            if not isinstance(action, Record):
                once(action, at_s)
            return result

        world.apply = apply
        return world

    world = tide.run(twice(tide.world()), tide.at("02:20"), watch=never)
    settled(world, production=2, quota=24, chat=10, agents=2)
    tide.run(world, tide.at("09:00"), watch=never)
    settled(world, production=4, quota=8, chat=24, agents=3)


def test_no_record_no_act(tide):
    """Home refuses the record: nothing is begun."""
    world = tide.world("02:00")
    world.memory = type(world.memory)(version=7)
    observed = world.observe

    def stale(at_s):
        state = observed(at_s)
        return type(state)(
            production=state.production, research=state.research, mode=Mode.ACTIVE, memory=type(world.memory)(version=6)
        )

    world.observe = stale
    refused = world.apply

    def apply(action, at_s):
        if isinstance(action, Record):
            return "conflict"
        return refused(action, at_s)

    world.apply = apply
    tide.run(world, tide.at("02:10"))
    assert world.log == []


def test_the_scale_follows_the_nodes_not_the_clock(tide):
    """Replicas grow only when the nodes that they need are usable."""
    world = tide.world("08:30")
    world.stock_out = True
    tide.run(world, tide.at("09:30"))
    assert not [one for _, one in world.log if isinstance(one, SetReplicas) and one.replicas > 12]
    assert world.decisions[-1].shortages["h100"] == 2
    world.stock_out = False
    tide.run(world, tide.at("10:00"))
    settled(world, production=4, quota=8, chat=24, agents=3)
