"""A whole day on two real clusters: yield and reclaim, 24 nodes, six Deployments, Kueue jobs on ephemeral nodes."""

from __future__ import annotations

from collections import Counter

import pytest
from whenever import Instant

from ebbtide.control.limits import Limits
from ebbtide.control.loop import tick
from ebbtide.control.memory import AWAY, Direction
from ebbtide.control.state import Side
from kubelab.cluster import delete_quietly, is_true
from kubelab.nodes import GPU
from kubelab.recorder import Recorder
from kubelab.waiting import until
from worlds.day_fleet import (
    GPUS,
    LEAD_S,
    NODES,
    POOL,
    PRODUCTION_NODES,
    RESERVED,
    STARTS,
    STARTUP_S,
    Clock,
    day_fleet,
    replicas_of,
)

MIDNIGHT = Instant.from_utc(2026, 11, 2).timestamp()
# Real nodes' own times are those of the wall: only what we see changing counts by the controller's clock.
LIMITS = Limits(broken_after_s=7200.0, late_factor=20.0)
DAY_S = 86_400.0


@pytest.fixture
def fleet(production, research, new_namespace):
    space = new_namespace(production)
    research.api.create("/api/v1/namespaces", {"metadata": {"name": space}})
    with day_fleet(production, research, space) as made:
        made.stand(PRODUCTION_NODES[0])
        yield made
    delete_quietly(research.api, f"/api/v1/namespaces/{space}")


class Day:
    """Drives the controller's loop, and counts at every tick."""

    def __init__(self, fleet, world):
        self.it, self.world = fleet, world
        self.fleet, self.schedule = fleet.fleet, fleet.schedule
        self.clock = Clock(MIDNIGHT + 600.0)
        self.unexplained, self.counted = [], []

    def tick(self):
        done = tick(self.world, self.fleet, self.schedule, self.clock.now_s(), LIMITS)
        state = self.world.last
        # A node that came is one too many until its move is told so, which is at the same look: never for four of them.
        self.unexplained.append(state.memory.difference_ticks.get(POOL, 0))
        # Wherever a machine is: a Node stands for it on one side, or its move does.
        self.counted.append(
            standing(state) + sum(one.stage in AWAY and not stands(state, one) for one in state.memory.moves)
        )
        return done

    def settled(self, done):
        """Nothing is on its way and nothing is asked for; what is withheld is not waited for."""
        acted = [one for one, _ in done.results]
        return not acted and not self.world.last.memory.moves

    def go_to(self, at_s, *, calm=2):
        """Tick until nothing is left to do before ``at_s``, then be there; time that passes on its own is let pass."""
        quiet = 0
        while self.clock.now_s() < at_s and quiet < calm:
            quiet = quiet + 1 if self.settled(self.tick()) else 0
        if self.clock.now_s() < at_s:
            self.clock.jump(at_s)


def standing(state):
    """Machines that a Node stands for, on either side."""
    return sum(len(state.sight(side).pool(POOL).nodes) for side in Side)


def stands(state, move):
    """Whether a Node stands for a move's machine, where it was or where it goes."""
    names = {node.name for side in Side for node in state.sight(side).pool(POOL).nodes}
    return move.node in names  # bare metal keeps its name


def ready_pods(fleet, name):
    """Ready pods of a Deployment on existing Ready nodes, by other eyes than the controller's."""
    api = fleet.api(Side.PRODUCTION)
    nodes = {one["metadata"]["name"] for one in api.items("/api/v1/nodes") if is_true(one, "Ready")}
    pods = api.items(f"/api/v1/namespaces/{fleet.space}/pods", f"app={name}")
    return sum(is_true(one, "Ready") and one["spec"].get("nodeName") in nodes for one in pods)


def short_of(fleet, planned):
    """Deployments below their plan."""
    counts = {name: ready_pods(fleet, name) for name in planned}
    return {name: (counts[name], count) for name, count in planned.items() if counts[name] < count}


def test_a_whole_day(fleet):
    fleet.stand_job("steady", queue="fixed", pods=2, completions=2, after="20m")
    for k in range(6):
        fleet.stand_job(f"sweep-{k}", queue="tide", pods=2, completions=4, after="25s")
    paths = ["/api/v1/nodes", f"/api/v1/namespaces/{fleet.space}/pods", f"/apis/batch/v1/namespaces/{fleet.space}/jobs"]
    apis = {str(side): fleet.api(side) for side in Side}
    with Recorder(apis, paths) as recorder, fleet.world() as world:
        until(lambda: not short_of(fleet, replicas_of(PRODUCTION_NODES[0])), "the night stands")
        until(lambda: fleet.jobs()["steady"]["status"].get("ready") == 2, "the steady job runs")
        day = Day(fleet, world)
        for window in (1, 2, 3, 0):
            starts_s = MIDNIGHT + (STARTS[window] * 3600.0 if window else DAY_S)
            grows = PRODUCTION_NODES[window] > PRODUCTION_NODES[window - 1]
            if grows:
                day.go_to(starts_s - LEAD_S + 1.0)
                day.go_to(starts_s - STARTUP_S + 1.0)
            day.go_to(starts_s)
            if grows:
                until(lambda window=window: not short_of(fleet, replicas_of(PRODUCTION_NODES[window])), "kept in time")
            day.go_to(starts_s + 5400.0, calm=4)
            assert short_of(fleet, replicas_of(PRODUCTION_NODES[window])) == {}
            seen = world.last.production.pool(POOL).nodes
            assert sum(not node.cordoned for node in seen) == PRODUCTION_NODES[window]
        assert Counter(one.direction for one in world.last.memory.finished) == {
            Direction.RECLAIM: 10,
            Direction.YIELD: 10,
        }
        until(lambda: all(job["status"].get("succeeded") == 4 for job in sweeps(fleet)), "sweeps", within_s=300)
    assert recorder.holes == []
    assert set(day.counted) == {NODES}
    assert max(day.unexplained) <= LIMITS.difference_ticks
    assert day.unexplained[-1] == 0
    check_jobs(fleet, recorder)
    check_machines(fleet, recorder)


def sweeps(fleet):
    return [job for name, job in fleet.jobs().items() if name.startswith("sweep")]


def check_jobs(fleet, recorder):
    """A parked job ran again and kept the indices that it had finished; the steady one never stopped."""
    finished, parked = {}, set()
    for event, _ in recorder.replay():
        if not event.path.endswith("/jobs"):
            continue
        name, thing = event.thing["metadata"]["name"], event.thing
        indices = thing["status"].get("completedIndexes", "")
        count = thing["status"].get("succeeded", 0)
        assert count >= finished.get(name, (0, ""))[0], f"{name} lost finished indices"
        finished[name] = (count, indices)
        if thing["spec"].get("suspend") and event.kind == "MODIFIED" and thing["status"].get("startTime") is None:
            parked.add(name)
    assert finished["steady"][0] == 0  # it runs on
    steady = {
        event.thing["metadata"]["uid"]
        for event, _ in recorder.replay()
        if event.path.endswith("/pods") and event.thing["metadata"]["name"].startswith("steady")
    }
    assert len(steady) == 2
    assert {name for name, (count, _) in finished.items() if count == 4} == {f"sweep-{k}" for k in range(6)}
    assert parked & {f"sweep-{k}" for k in range(6)}, "nothing was ever parked: the day shows nothing"


def check_machines(fleet, recorder):
    """Each machine stands on one side at most, at every instant; reserved nodes are as they were; GPUs fit."""
    sides, reserved = {}, {}
    for event, standing in recorder.replay():
        thing, name = event.thing, event.thing["metadata"]["name"]
        if event.path.endswith("/nodes") and name.startswith(fleet.space):
            labels = thing["metadata"]["labels"]
            sides.setdefault(name, {})[event.cluster] = labels["ebbtide.dev/side"] == event.cluster
            assert sum(sides[name].values()) <= 1, f"{name} stands on both sides"
            assert event.kind != "DELETED"
            if labels["ebbtide.dev/tenure"] == "reserved":
                spec = reserved.setdefault((event.cluster, name), thing["spec"].get("unschedulable", False))
                assert thing["spec"].get("unschedulable", False) == spec, f"{name} was touched"
                assert "ebbtide.dev/cordoned-by" not in thing["metadata"].get("annotations", {})
        elif event.path.endswith("/pods"):
            fits(standing, event)
    assert len(sides) == NODES
    assert sum(name.startswith(f"{fleet.space}-r") for name in sides) == RESERVED


def fits(standing, event):
    """A node's pods never ask for more GPUs than it has."""
    node = event.thing["spec"].get("nodeName")
    if node is None:
        return
    asked = sum(
        int(pod["spec"]["containers"][0]["resources"]["limits"].get(GPU, 0))
        for (cluster, path, _), pod in standing.items()
        if cluster == event.cluster
        and path.endswith("/pods")
        and pod["spec"].get("nodeName") == node
        and pod["status"].get("phase") not in ("Succeeded", "Failed")
    )
    assert asked <= GPUS, f"{node} holds {asked} GPUs' worth of pods"
