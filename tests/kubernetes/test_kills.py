"""Killed at every step of yield and reclaim and started again: the same end, no node lost or asked for twice (§6.1)."""

from __future__ import annotations

import json
import signal

import pytest

from ebbtide.adapters.documents.fleet import read_fleet
from ebbtide.adapters.documents.schedule import schedule_of_object
from ebbtide.adapters.kubernetes.world import Wishes
from ebbtide.control.limits import Limits
from ebbtide.control.loop import tick
from ebbtide.control.memory import Direction
from ebbtide.control.state import Mode, Side
from kubelab.cluster import delete_quietly
from kubelab.objects import QUEUES
from kubelab.waiting import until
from worlds.on_kubernetes import POOL, now_s, small_fleet
from worlds.run_process import Papers, running

QUICK = Limits(stable_s=0.5, retry_s=1.0, research_grace_s=5.0, drain_grace_s=3.0, broken_after_s=600.0)


@pytest.fixture
def papers(production, research, new_namespace, tmp_path):
    space = new_namespace(production)
    research.api.create("/api/v1/namespaces", {"metadata": {"name": space}})
    with small_fleet(production, research, space) as fleet:
        fleet.stand_nodes(2, 2)
        fleet.stand_chat(3)
        fleet.stand_queue(16)
        for name in ("one", "two"):
            fleet.stand_job(name)
        made = Papers(folder=tmp_path, fleet=fleet, nodes=4)
        made.write_fleet("Active")
        yield made
    delete_quietly(research.api, f"/api/v1/namespaces/{space}")


class KilledError(BaseException):
    """SIGKILL: nothing catches it."""


class Mortal:
    """A world in which the controller dies right after every act that is of a kind, or at a stage, not seen before.

    What was done, done or not, lives on in the clusters; the next controller knows nothing else. (Killed after *every*
    record it would never come to the act: nobody goes on without a moment's life.)
    """

    def __init__(self, world, deaths):
        self.world, self.deaths = world, deaths

    def observe(self, at_s, /):
        return self.world.observe(at_s)

    def apply(self, action, at_s, /):
        result = self.world.apply(action, at_s)
        step = (type(action).__name__, str(result), tuple(sorted(one.stage for one in self.world.last.memory.moves)))
        if step not in self.deaths:
            self.deaths.add(step)
            raise KilledError
        return result


def until_it_stands(papers, replicas, production, deaths):
    """Controllers that die, one after the other, until a whole look finds nothing on its way."""
    fleet = read_fleet(papers.fleet_file).fleet
    schedule, _ = schedule_of_object(papers.schedule_object(replicas=replicas, production=production))

    def dies_or_rests():
        with papers.fleet.world(lambda _at_s: Wishes(mode=Mode.ACTIVE)) as world:
            try:
                tick(Mortal(world, deaths), fleet, schedule, now_s(), QUICK)
            except KilledError:
                return None
            rests = not world.last.memory.moves and len(sides(papers, Side.PRODUCTION)) == production
            return world.last if rests else None

    return until(dies_or_rests, f"{production} production nodes", within_s=180.0)


def sides(papers, side):
    """Machines that stand on a side, by their label there."""
    return {
        node["metadata"]["name"]
        for node in papers.fleet.nodes(side)
        if node["metadata"]["labels"]["ebbtide.dev/side"] == side
    }


def everyone(papers):
    return {side: sides(papers, side) for side in Side}


def quota(papers):
    queue = papers.fleet.api(Side.RESEARCH).get(f"{QUEUES}/clusterqueues/{papers.fleet.space}")
    return int(queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"])


def test_killed_after_every_step_it_goes_on_to_the_same_end(papers):
    machines = set().union(*everyone(papers).values())
    yielded: set[tuple[str, ...]] = set()
    state = until_it_stands(papers, 1, 1, yielded)
    assert {kind for kind, *_ in yielded} >= {"Record", "Cordon", "SetReplicas", "RemoveNodes", "GrowPool", "Admit"}
    assert [one.direction for one in state.memory.finished] == [Direction.YIELD]
    assert (len(everyone(papers)[Side.RESEARCH]), quota(papers)) == (3, 24)
    reclaimed: set[tuple[str, ...]] = set()
    state = until_it_stands(papers, 3, 2, reclaimed)
    assert {kind for kind, *_ in reclaimed} >= {"Record", "Cordon", "SetQuota", "RemoveNodes", "GrowPool", "Admit"}
    assert sorted(one.direction for one in state.memory.finished) == [Direction.RECLAIM, Direction.YIELD]
    now = everyone(papers)
    assert (len(now[Side.PRODUCTION]), len(now[Side.RESEARCH])) == (2, 2)
    assert set().union(*now.values()) == machines
    assert not now[Side.PRODUCTION] & now[Side.RESEARCH]
    assert quota(papers) == 16
    assert state.memory.next_move == 3  # two moves in all: none was begun twice
    assert state.production.pool(POOL).nodes
    jobs = papers.fleet.api(Side.RESEARCH).items(f"/apis/batch/v1/namespaces/{papers.fleet.space}/jobs")
    assert not any(one["type"] == "Failed" for job in jobs for one in job["status"].get("conditions", ()))


def test_the_process_is_killed_again_and_again_during_a_yield(papers):
    papers.write_schedule(replicas=1, production=1)
    acts: list[str] = []
    for turn in range(70):  # one act a life; replacing pods first takes some more
        with running(papers, f"life-{turn}") as one:
            until(
                lambda one=one: one.acted() or (len(sides(papers, Side.RESEARCH)) == 3 and not moving(papers)),
                "an act, or the end",
                within_s=120,
            )
            acts += one.acted()
            one.signal(signal.SIGKILL)
            one.ended()
        if len(sides(papers, Side.RESEARCH)) == 3 and not moving(papers) and quota(papers) == 24:
            break
    assert (len(sides(papers, Side.PRODUCTION)), len(sides(papers, Side.RESEARCH)), quota(papers)) == (1, 3, 24)
    assert {"Cordon", "RemoveNodes", "GrowPool", "Admit", "SetQuota"} <= set(acts)


def moving(papers):
    space = papers.fleet.space
    found = papers.fleet.api(Side.PRODUCTION).find(f"/api/v1/namespaces/{space}/configmaps/ebbtide-{space}")
    memory = json.loads(found["data"]["memory.json"]) if found else {}
    return memory.get("moves", [])
