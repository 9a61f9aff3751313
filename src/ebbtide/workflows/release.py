"""`ebbtide release`: give everything back, with the controller dead (§6.9).

Autoscalers' bounds, research's quota with its limits, cordons and marks, quarantine labels, parked work, deletion
costs, joining taints. Replicas stay as they are: what stood before is nobody's wish any more, and a cut would hurt
production. Nodes on their way cannot be called back: they are named. Done twice is done once; what fails is said, and
the rest is done all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ebbtide.adapters.kubernetes import marks, node_acts
from ebbtide.adapters.kubernetes.autoscalers import read_autoscalers
from ebbtide.adapters.kubernetes.bindings import Bindings, bindings_of
from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.kinds import Kinds
from ebbtide.adapters.kubernetes.node_sight import is_ours, side_of
from ebbtide.adapters.kubernetes.objects import NodeObject, Queued
from ebbtide.adapters.kubernetes.quota import give_back, known_before, read_quota
from ebbtide.adapters.kubernetes.replica_acts import lower_cost, set_bounds
from ebbtide.adapters.kubernetes.rereading import rereading
from ebbtide.adapters.kubernetes.research_acts import activate
from ebbtide.adapters.kubernetes.research_sight import is_parked
from ebbtide.adapters.kubernetes.scales import read_scales
from ebbtide.control.memory import AWAY, Memory
from ebbtide.control.state import Bounds, Side, Tenure
from ebbtide.errors import PermanentError, WorldError
from ebbtide.fleet.operations import Mode
from ebbtide.workflows.people import Desk, status


@dataclass(slots=True, kw_only=True)
class Released:
    """What was given back, in words; what could not be; nodes that are on their way."""

    done: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    away: list[str] = field(default_factory=list)


def release(desk: Desk, now_s: float, *, force: bool) -> Released:
    """Give everything back.

    Raises ``PermanentError`` while a controller acts (``force``: all the same): it would take everything again.
    """
    found = status(desk, now_s)
    acting = found.alive and desk.fleet.mode is Mode.ACTIVE and found.wishes.pause is None
    if acting and not force:
        raise PermanentError(
            f"{found.holder} holds the Lease and acts",
            kind="still_acting",
            hint="pause it first (`ebbtide pause`), stop it, or set the Fleet's mode to Shadow",
        )
    bindings, released = bindings_of(desk.fleet), Released()
    memory = desk.memory.read()
    _try(released, lambda: _bounds(desk.clusters[Side.PRODUCTION], bindings, memory, released))
    _try(released, lambda: _costs(desk.clusters[Side.PRODUCTION], bindings))
    for side in Side:
        _try(released, lambda side=side: _nodes(desk, side, bindings, released))  # type: ignore[misc] # bound now
    _try(released, lambda: _work(desk.clusters[Side.RESEARCH], released))
    _try(released, lambda: _quota(desk.clusters[Side.RESEARCH], bindings, released))
    released.away = [f"{one.node} ({one.direction}, {one.stage})" for one in memory.moves if one.stage in AWAY]
    if not released.failed:
        fresh = Memory(
            version=memory.version,
            moves=tuple(one for one in memory.moves if one.stage in AWAY),
            sizes=memory.sizes,  # what was asked for them
            finished=memory.finished,
            next_move=memory.next_move,
        )
        if fresh != memory:
            _try(released, lambda: desk.memory.write(fresh))
    return released


def _try(released: Released, what: Callable[[], None]) -> None:
    try:
        what()
    except WorldError as problem:
        released.failed.append(str(problem))


def _bounds(cluster: Cluster, bindings: Bindings, memory: Memory, released: Released) -> None:
    """Where they still are what we wrote: what somebody set since is theirs."""
    autoscalers = read_autoscalers(cluster, Kinds(cluster), bindings.workloads)
    for key, written in memory.written.items():
        name, _, what = key.removeprefix("workload/").partition(":")
        one = autoscalers.get(name)
        if not key.startswith("workload/") or what != "bounds" or one is None:
            continue
        if one.bounds == Bounds.of(written.value):
            set_bounds(cluster, one, Bounds.of(written.before))
            released.done.append(f"bounds of {one.name}: {written.before}")
        elif one.bounds != Bounds.of(written.before):
            released.done.append(f"bounds of {one.name}: left as somebody set them")


def _costs(cluster: Cluster, bindings: Bindings) -> None:
    scales = read_scales(cluster, Kinds(cluster), bindings.workloads)
    for name, scaled in scales.items():
        lower_cost(cluster, bindings.workload(name).namespace, scaled, frozenset())


def _nodes(desk: Desk, side: Side, bindings: Bindings, released: Released) -> None:
    """Cordons and marks of ours go; a node that stands on the side under the joining taint is let in."""
    cluster = desk.clusters[side]
    one_cluster = desk.clusters[Side.PRODUCTION] is desk.clusters[Side.RESEARCH]
    for pool in bindings.pools:
        for node in cluster.list("/api/v1/nodes", NodeObject, labels=pool.selector):
            if side_of(node.metadata.labels, None if one_cluster else side) is not side:
                continue
            name, had = node.metadata.name, []
            if is_ours(node) or _is_marked(node):
                rereading(lambda name=name: node_acts.uncordon(cluster, name))  # type: ignore[misc] # bound now
                had.append("cordon and marks")
            if any(taint.key == marks.JOINING for taint in node.spec.taints):
                rereading(lambda name=name: node_acts.admit(cluster, side, name, Tenure.EPHEMERAL))  # type: ignore[misc] # bound now
                had.append("joining taint")
            if had:
                released.done.append(f"node {name} of {side}: {', '.join(had)}")


def _is_marked(node: NodeObject) -> bool:
    return marks.QUARANTINED in node.metadata.labels or marks.CORDONED in node.metadata.annotations


def _work(cluster: Cluster, released: Released) -> None:
    root = Kinds(cluster).kueue
    for one in [] if root is None else cluster.list(f"{root}/workloads", Queued):
        if is_parked(one) and not one.spec.active:
            space, name = one.metadata.namespace, one.metadata.name
            path = f"{root}/namespaces/{space}/workloads/{name}"
            rereading(lambda path=path: activate(cluster, path))  # type: ignore[misc] # bound now
            released.done.append(f"Workload {space}/{name}: active again")


def _quota(cluster: Cluster, bindings: Bindings, released: Released) -> None:
    if bindings.quota is None:
        return
    quota = read_quota(cluster, Kinds(cluster), bindings.quota, bindings.pools)
    if quota is not None and known_before(quota):
        flavors = give_back(cluster, quota)
        released.done.append(f"quota of {bindings.quota.kind} {bindings.quota.name}: {', '.join(flavors)}")
