"""What every world must keep to, simulated or real: the contract of ``control.world.World``.

A world joins by a test module that takes these tests over (``from worlds.contract import *``) and has a fixture
``bench``: a ``Bench`` of its own. It stands the world up with a pool ``h100`` of eight-GPU nodes (at least three in
production, three in research), a workload ``chat`` of eight replicas of two GPUs, and research work on whole nodes that
leaves nothing of a quota of its own free; nothing else meddles with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ebbtide.control import actions as act
from ebbtide.control.memory import Memory
from ebbtide.control.state import Side, State
from ebbtide.control.world import Result, World

WHY = act.Why(rule="§6", text="contract")


class Bench:
    """Holds a world; says how its time passes. ``now_s`` stands still between two waits."""

    world: World

    @property
    def now_s(self) -> float:
        raise NotImplementedError

    def wait(self, seconds: float) -> None:
        """Let time pass: as much, in that world's own measure."""
        raise NotImplementedError

    def settle(self) -> None:
        """Wait until nothing changes by itself; a world that stands still between two waits has nothing to wait for."""

    def see(self) -> State:
        return self.world.observe(self.now_s)

    def do(self, kind: type[act.Action], **fields: object) -> Result:
        return self.world.apply(kind(why=WHY, **fields), self.now_s)

    def wait_until(self, holds: Callable[[State], object], within_s: float = 7200.0) -> None:
        end_s = self.now_s + within_s
        while not holds(self.see()):
            assert self.now_s < end_s
            self.wait(10.0)


def node_of(bench, side):
    """A movable node of a side: the first by name."""
    nodes = bench.see().sight(side).pool("h100").nodes
    return min(
        (node for node in nodes if node.tenure is not None and node.tenure.value == "ephemeral"), key=lambda n: n.name
    )


def find(state, side, name):
    return next((node for node in state.sight(side).pool("h100").nodes if node.name == name), None)


def without_time(state):
    return replace(
        state,
        production=replace(state.production, seen_at_s=0.0),
        research=replace(state.research, seen_at_s=0.0),
    )


def test_observing_changes_nothing_and_says_when_it_saw(bench):
    first = bench.see()
    assert first.production.seen_at_s == first.research.seen_at_s == bench.now_s
    assert without_time(first) == without_time(bench.see())
    again = bench.world.observe(bench.now_s + 5.0)
    assert again.production.seen_at_s == bench.now_s + 5.0


def test_what_was_seen_does_not_change_afterwards(bench):
    before = bench.see()
    kept = repr(before)
    node = node_of(bench, Side.PRODUCTION)
    bench.do(act.Cordon, side=Side.PRODUCTION, node=node.name)
    bench.do(act.SetReplicas, workload="chat", replicas=9)
    bench.do(act.SetQuota, pool="h100", gpus=8)
    bench.wait(600.0)
    bench.see()
    assert repr(before) == kept


def test_the_record_is_written_once_and_a_stale_writer_is_refused(bench):
    memory = bench.see().memory
    assert bench.do(act.Record, memory=replace(memory, next_move=5)) is Result.DONE
    written = bench.see().memory
    assert written.next_move == 5
    assert written.version != memory.version
    assert bench.do(act.Record, memory=replace(memory, next_move=6)) is Result.CONFLICT
    assert bench.see().memory == written
    assert bench.do(act.Record, memory=replace(written, next_move=6)) is Result.DONE
    assert isinstance(bench.see().memory, Memory)


TWICE = [
    (act.Cordon, {"side": Side.PRODUCTION, "node": True}),
    (act.Uncordon, {"side": Side.PRODUCTION, "node": True}),
    (act.Quarantine, {"side": Side.PRODUCTION, "node": True}),
    (act.SetReplicas, {"workload": "chat", "replicas": 9}),
    (act.Surge, {"workload": "chat", "replicas": 9}),
    (act.SetQuota, {"pool": "h100", "gpus": 16}),
    (act.LowerDeletionCost, {"workload": "chat", "nodes": frozenset()}),
    (act.GrowPool, {"side": Side.PRODUCTION, "pool": "h100", "size": 6}),
    (act.Drain, {"side": Side.PRODUCTION, "node": True}),
    (act.DeletePods, {"side": Side.PRODUCTION, "node": True}),
]


@pytest.mark.parametrize(("kind", "fields"), TWICE, ids=[kind.__name__ for kind, _ in TWICE])
def test_an_action_done_twice_is_done_once(bench, kind, fields):
    name = node_of(bench, Side.PRODUCTION).name
    filled = {key: name if value is True else value for key, value in fields.items()}
    if kind in (act.Drain, act.DeletePods):
        bench.do(act.Cordon, side=Side.PRODUCTION, node=name)  # or pods come back to it between
    bench.settle()
    assert bench.do(kind, **filled) is Result.DONE
    bench.settle()
    once = without_time(bench.see())
    assert bench.do(kind, **filled) is Result.DONE
    bench.settle()
    assert without_time(bench.see()) == once


def test_a_cordon_stops_new_pods_is_marked_as_ours_and_leaves_what_runs(bench):
    name = node_of(bench, Side.PRODUCTION).name
    bench.do(act.Cordon, side=Side.PRODUCTION, node=name)
    node = find(bench.see(), Side.PRODUCTION, name)
    assert (node.cordoned, node.cordoned_by_us, node.marked) == (True, True, True)
    on = bench.see().production.replicas["chat"].on.get(name, 0)
    bench.do(act.SetReplicas, workload="chat", replicas=12)
    bench.wait_until(lambda state: state.production.replicas["chat"].ready == 12)
    assert bench.see().production.replicas["chat"].on.get(name, 0) == on
    bench.do(act.Uncordon, side=Side.PRODUCTION, node=name)
    node = find(bench.see(), Side.PRODUCTION, name)
    assert (node.cordoned, node.cordoned_by_us, node.marked) == (False, False, False)


def test_a_named_node_leaves_its_pool_and_asked_again_no_other_does(bench):
    pool = bench.see().production.pool("h100")
    name = node_of(bench, Side.PRODUCTION).name
    ask = {"side": Side.PRODUCTION, "pool": "h100", "nodes": (name,), "size": pool.size - 1, "moves": ("m-1",)}
    for _ in range(3):
        assert bench.do(act.RemoveNodes, **ask) is Result.DONE
        bench.wait(60.0)
    bench.wait_until(lambda state: find(state, Side.PRODUCTION, name) is None)
    assert bench.do(act.RemoveNodes, **ask) is Result.DONE
    bench.wait(1200.0)
    after = bench.see().production.pool("h100")
    assert {node.name for node in after.nodes} == {node.name for node in pool.nodes} - {name}
    assert after.size == pool.size - 1


def test_a_node_changes_sides_and_joins_under_a_taint_that_admitting_takes_away(bench):
    production, research = (bench.see().sight(side).pool("h100") for side in Side)
    name = node_of(bench, Side.PRODUCTION).name
    known = {node.name for node in research.nodes}
    bench.do(act.RemoveNodes, side=Side.PRODUCTION, pool="h100", nodes=(name,), size=production.size - 1, moves=("m",))
    bench.wait_until(lambda state: find(state, Side.PRODUCTION, name) is None)
    for _ in range(2):
        bench.do(act.GrowPool, side=Side.RESEARCH, pool="h100", size=research.size + 1, moves=("m",))

    def whole(state):
        return [n for n in state.research.pool("h100").nodes if n.joining and n.ready and n.gpus == 8]

    bench.wait_until(whole)
    (node,) = whole(bench.see())
    assert node.name not in known
    assert node.tenure is not None
    assert bench.do(act.Admit, side=Side.RESEARCH, node=node.name, tenure=node.tenure) is Result.DONE
    assert bench.do(act.Admit, side=Side.RESEARCH, node=node.name, tenure=node.tenure) is Result.DONE
    assert not find(bench.see(), Side.RESEARCH, node.name).joining
    assert len(bench.see().research.pool("h100").nodes) == len(known) + 1


def test_a_parked_workload_ends_gives_its_quota_back_and_requeues_when_activated(bench):
    one = next(one for one in bench.see().research.work if one.nodes and one.requeues)
    bench.do(act.SetQuota, pool="h100", gpus=0)
    for _ in range(2):
        assert bench.do(act.Park, work=one.name) is Result.DONE

    def parked(state):
        return next(work for work in state.research.work if work.name == one.name)

    assert (parked(bench.see()).active, parked(bench.see()).parked_by_us) == (False, True)
    bench.wait_until(lambda state: parked(state).gone)
    assert all(find(bench.see(), Side.RESEARCH, name).pods == 0 for name in one.nodes)
    for _ in range(2):
        assert bench.do(act.Activate, work=one.name) is Result.DONE
    bench.wait(60.0)
    assert not any(work.name == one.name and work.nodes for work in bench.see().research.work)
    bench.do(act.SetQuota, pool="h100", gpus=32)
    bench.wait_until(lambda state: any(work.name == one.name and work.nodes for work in state.research.work))


def test_quota_lowered_below_its_use_ends_nothing(bench):
    before = {one.name: one.nodes for one in bench.see().research.work if one.has_quota}
    assert before
    bench.do(act.SetQuota, pool="h100", gpus=0)
    bench.wait(600.0)
    after = {one.name: one.nodes for one in bench.see().research.work if one.has_quota}
    assert after == before
    assert bench.see().research.quota_gpus["h100"] == 0


def test_pods_whose_cost_was_lowered_go_first(bench):
    on = bench.see().production.replicas["chat"].on
    name = min(on)
    bench.do(act.LowerDeletionCost, workload="chat", nodes=frozenset({name}))
    assert bench.see().production.replicas["chat"].lowered_cost == {name}
    wanted = bench.see().production.replicas["chat"].wanted - on[name]
    bench.do(act.SetReplicas, workload="chat", replicas=wanted)
    bench.wait_until(lambda state: find(state, Side.PRODUCTION, name).pods == 0)
    assert bench.see().production.replicas["chat"].wanted == wanted


@pytest.mark.parametrize("kind", [act.Cordon, act.Quarantine, act.Admit])
def test_a_node_that_is_not_there_is_refused(bench, kind):
    more = {"tenure": node_of(bench, Side.PRODUCTION).tenure} if kind is act.Admit else {}
    assert bench.do(kind, side=Side.PRODUCTION, node="nobody", **more) is Result.REFUSED


@pytest.mark.parametrize("kind", [act.Uncordon, act.Drain, act.DeletePods])
def test_what_is_to_be_undone_on_a_node_that_is_gone_is_done(bench, kind):
    assert bench.do(kind, side=Side.PRODUCTION, node="nobody") is Result.DONE
