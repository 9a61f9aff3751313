"""Good neighbours (§6.8): what is set back twice in ten minutes is left alone, said, and tried an hour later."""

from __future__ import annotations

import pytest

from ebbtide.control.actions import Cordon, Record, SetQuota, SetReplicas
from ebbtide.control.memory import Direction, Memory, Move, Revert, Stage, Written

CALM = {"chat": 16, "agents": 6}


def memory_of(decision, before):
    return next((one.memory for one in decision.actions if isinstance(one, Record)), before)


class Fight:
    """Argo CD puts the scale of chat back to 30 every ``every_s``; we want 16."""

    def __init__(self, scene, change, every_s: float, until_s: float = float("inf")) -> None:
        self.scene, self.change, self.every_s, self.until_s = scene, change, every_s, until_s
        self.wanted, self.memory, self.writes, self.said = 30, Memory(), [], []

    def run(self, from_s: float, until_s: float) -> Fight:
        at_s = from_s
        while at_s < until_s:
            if (at_s - from_s) % self.every_s == 0 and at_s < self.until_s:
                self.wanted = 30
            state = self.scene.state(at_s, production=8, ephemeral=24, replicas=CALM, memory=self.memory)
            seen = self.change(
                state.production.replicas["chat"], wanted=self.wanted, ready=self.wanted, set_by="argocd-controller"
            )
            replicas = {**state.production.replicas, "chat": seen}
            state = self.change(state, production=self.change(state.production, replicas=replicas))
            decision = self.scene.decide(state, at_s)
            self.memory = memory_of(decision, self.memory)
            for one in decision.actions:
                if isinstance(one, SetReplicas) and one.workload == "chat":
                    self.wanted = one.replicas
                    self.writes.append(at_s - from_s)
            self.said += [(at_s - from_s, one.why.text) for one in decision.withheld if one.what.endswith(":replicas")]
            at_s += 30.0
        return self


def test_set_back_twice_in_ten_minutes_it_is_left_and_who_is_said(scene, change):
    at_s = scene.at("02:30")
    fight = Fight(scene, change, every_s=180.0).run(at_s, at_s + 3600.0)
    assert fight.writes == [0.0, 180.0]  # the second time that it is set back is the last word
    assert fight.said[0] == (360.0, "argocd-controller sets it back")
    assert fight.memory.reverts["workload/chat:replicas"].who == "argocd-controller"


def test_after_an_hour_it_is_tried_again_and_two_more_reverts_are_needed(scene, change):
    at_s = scene.at("02:30")
    fight = Fight(scene, change, every_s=180.0).run(at_s, at_s + 2 * 3600.0)
    tried = [one for one in fight.writes if one > 360.0]
    assert tried == [3990.0, 4140.0]


def test_set_back_now_and_then_it_is_written_again(scene, change):
    at_s = scene.at("02:30")
    fight = Fight(scene, change, every_s=690.0).run(at_s, at_s + 3000.0)
    assert fight.writes == [0.0, 690.0, 1380.0, 2070.0, 2760.0]
    assert fight.said == []


def test_ten_minutes_apart_is_within_ten_minutes(scene, change):
    at_s = scene.at("02:30")
    assert Fight(scene, change, every_s=600.0).run(at_s, at_s + 3000.0).writes == [0.0, 600.0]


def test_a_field_that_is_as_wanted_is_not_said_to_be_fought_for(scene, change):
    at_s = scene.at("02:30")
    fight = Fight(scene, change, every_s=180.0, until_s=at_s + 361.0).run(at_s, at_s + 600.0)
    assert fight.said
    state = scene.state(at_s + 700.0, production=8, ephemeral=24, replicas=CALM, memory=fight.memory)
    decision = scene.decide(state, at_s + 700.0)
    assert not [one for one in decision.withheld if one.what.endswith(":replicas")]


def test_a_write_that_failed_is_no_revert(scene, change, pick):
    """It was never seen in place: nobody set anything back."""
    at_s, memory = scene.at("02:30"), Memory()
    for tick in range(8):
        now_s = at_s + 30.0 * tick
        state = scene.state(now_s, production=8, ephemeral=24, replicas={"chat": 30, "agents": 6}, memory=memory)
        decision = scene.decide(state, now_s)
        assert len(pick(decision, SetReplicas)) == 1
        memory = memory_of(decision, memory)
    assert memory.reverts == {}


def test_our_own_next_value_is_no_revert(scene, change):
    """The window changes: 16, then 25."""
    at_s, memory = scene.at("03:00"), Memory()
    for clock, chat in (("03:00", 30), ("03:01", 16), ("06:00", 16), ("06:01", 25)):
        now_s = scene.at(clock)
        state = scene.state(now_s, production=11, ephemeral=21, replicas={"chat": chat, "agents": 9}, memory=memory)
        memory = memory_of(scene.decide(state, now_s), memory)
    assert memory.reverts == {}
    assert memory.written["workload/chat:replicas"].value == "25"
    assert at_s < now_s


def left(at_s: float, key: str, value: str, who: str = "flux") -> Memory:
    return Memory(
        written={key: Written(before="", value=value, at_s=at_s - 100.0)},
        reverts={key: Revert(who=who, seen_s=(at_s - 90.0, at_s - 30.0))},
    )


def test_a_quota_that_is_fought_for_is_left_and_said(scene, pick):
    at_s = scene.at("03:00")
    memory = left(at_s, "quota/h100:gpus", "192")
    state = scene.state(at_s, production=8, ephemeral=24, quota_gpus=100, memory=memory)
    decision = scene.decide(state, at_s)
    assert pick(decision, SetQuota) == []
    assert [one.why.text for one in decision.withheld if one.what == "quota/h100:gpus"] == ["flux sets it back"]
    state = scene.state(at_s + 3600.0, production=8, ephemeral=24, quota_gpus=100, memory=memory)
    assert [one.gpus for one in pick(scene.decide(state, at_s + 3600.0), SetQuota)] == [192]


def test_a_node_that_somebody_uncordons_twice_is_given_up_and_spared(scene, change, pick):
    at_s = scene.at("07:40")
    move = Move(
        id="h100-1",
        pool="h100",
        direction=Direction.RECLAIM,
        node="e-000",
        stage=Stage.EMPTYING,
        begun_s=at_s - 200.0,
        since_s=at_s - 200.0,
        due_s=scene.at("09:00"),
    )
    memory = change(left(at_s, "node/e-000:cordon", "cordoned"), moves=(move,), next_move=2)
    state = scene.state(at_s, production=11, ephemeral=21, memory=memory)
    decision = scene.decide(state, at_s)
    after = memory_of(decision, memory)
    assert next(one.stage for one in after.moves if one.id == "h100-1") is Stage.RETURNING
    assert after.spared["e-000"] == at_s + 3600.0
    assert "e-000" not in [one.node for one in pick(decision, Cordon)]


@pytest.mark.parametrize("reverts", [1, 2])
def test_once_is_not_twice(scene, pick, change, reverts):
    at_s = scene.at("03:00")
    memory = left(at_s, "quota/h100:gpus", "192")
    known = memory.reverts["quota/h100:gpus"]
    memory = change(memory, reverts={"quota/h100:gpus": change(known, seen_s=known.seen_s[-reverts:])})
    state = scene.state(at_s, production=8, ephemeral=24, quota_gpus=100, memory=memory)
    assert len(pick(scene.decide(state, at_s), SetQuota)) == 2 - reverts
