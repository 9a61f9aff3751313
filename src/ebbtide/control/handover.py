"""Pods on nodes that leave: replaced on nodes that stay before they go, so that no service is short of them (§6.3).

A Deployment that shrinks loses the pods on leaving nodes first, by their deletion cost. One that does not shrink has as
many replicas more for a while as it has pods there; once those are ready it is scaled down again, and the pods on the
leaving nodes go. Where an autoscaler or an order (StatefulSet) says which pods go, theirs are evicted in the end, and
only while enough are ready elsewhere. Whoever takes a node away looks here first.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from ebbtide.control.actions import Why
from ebbtide.control.draft import Draft, why
from ebbtide.control.memory import Direction, Move, Stage
from ebbtide.control.state import Node, Replicas
from ebbtide.fleet.workload import Workload


def leaving_nodes(draft: Draft, pool: str) -> frozenset[str]:
    """Production nodes of a pool on their way out."""
    return frozenset(
        move.node
        for move in draft.moves.values()
        if move.pool == pool and move.direction is Direction.YIELD and move.stage is not Stage.RETURNING
    )


def standing(seen: Replicas, leaving: frozenset[str]) -> frozenset[str]:
    """Leaving nodes that pods of a workload stand on."""
    if not leaving:
        return leaving
    return frozenset(name for name, pods in seen.on.items() if pods > 0 and name in leaving)


def pods_on(seen: Replicas, nodes: Iterable[str]) -> int:
    """Pods of a workload on these nodes."""
    return sum(seen.on.get(name, 0) for name in nodes)


def emptied_by_scaling(draft: Draft, seen: Replicas) -> bool:
    """Whether scaling takes a workload's pods off a leaving node; where it does not they can only be evicted."""
    return _is_ours(draft, seen) and seen.autoscaler is None and not seen.ordered


def _is_ours(draft: Draft, seen: Replicas) -> bool:
    return seen.managed and not seen.paused and seen.workload in draft.wants.replicas


def yields_by_s(draft: Draft, move: Move) -> float:
    """Until when a node's services may take to leave it: as long as a replacement takes to start, and its grace."""
    return move.since_s + draft.limits.drain_grace_s + draft.plan.slowest_startup_s[move.pool]


def too_few(draft: Draft, move: Move) -> Why | None:
    """Why the pods of a yield's node may not be evicted: too few would stay ready elsewhere; None: they may.

    What stands on nodes that are being drained already is gone in this count: two drains never add up to one too many.
    """
    going = {move.node} | {
        other.node
        for other in draft.moves.values()
        if other.direction is Direction.YIELD and other.stage is Stage.DRAINING
    }
    for seen in draft.replicas_on(move.node):
        there, least = pods_on(seen, going), _least_ready(draft, seen)
        if seen.ready - there < least:
            text = f"too few replicas of {seen.workload} are ready on other nodes"
            return why("6.3", text, move=move.id, ready=seen.ready, on_leaving=there, least=least)
    return None


def _least_ready(draft: Draft, seen: Replicas) -> int:
    """Ready replicas that an eviction must leave: what is wanted; of a workload that is not ours to grow, all but one.

    Its owner's disruption budget says it better, where there is one: then the eviction itself is refused.
    """
    if _is_ours(draft, seen):
        return draft.wants.replicas[seen.workload].replicas
    return max(seen.wanted - 1, 1) if seen.disruptions_allowed is None else 0


def handed_over(seen: Replicas, granted: int, leaving: frozenset[str], room: int, *, nodes_each: int = 1) -> int:
    """Replicas to ask for now, so that pods on leaving nodes go when their replacements are ready.

    ``room``: replicas that nodes which stay have free GPUs for. ``nodes_each``: nodes that one replica spans.

    >>> calm = Replicas(workload="chat", wanted=8, ready=8, on={"stays": 6, "goes": 2})
    >>> handed_over(calm, 8, frozenset({"goes"}), room=5)
    10
    >>> handed_over(Replicas(workload="chat", wanted=10, ready=10, on={"stays": 8, "goes": 2}), 8, {"goes"}, room=3)
    8
    """
    # Told to go and not gone yet: nothing is to be replaced twice.
    going = max(sum(seen.on.values()) // nodes_each - seen.wanted, 0)
    there = max(pods_on(seen, leaving) - going, 0)
    if there == 0:
        return granted
    above = max(seen.wanted, granted)
    if seen.autoscaler is not None or seen.ordered:
        return min(granted + there, above + room)
    if seen.wanted > granted:
        ready = seen.ready >= seen.wanted or seen.wanted > granted + there
        return granted if ready else seen.wanted
    return granted + min(there, room)


def easiest(draft: Draft, nodes: Iterable[Node], count: int, workloads: Iterable[Workload]) -> list[Node]:
    """``count`` nodes whose pods leave with the fewest GPUs of replacements; hung pods last, then fewest pods, by name.

    What a workload loses by shrinking is free; every pod beyond it has to be replaced. A node costs no less once others
    are chosen, so a cost that was worked out before is a bound, and most are never worked out again (Minoux, 1978).
    """
    gpus = {one.name: one.gpus_per_replica for one in workloads}
    spare = {name: _shrinks_by(draft, name) for name in gpus}

    def key(node: Node) -> tuple[int, int, int, str]:
        cost_gpus = 0
        for seen in draft.replicas_on(node.name):
            more = seen.on[node.name] - spare.get(seen.workload, 0)
            if more > 0:
                cost_gpus += more * gpus.get(seen.workload, 1)
        return node.stuck_pods, cost_gpus, node.pods, node.name

    heap = [(key(node), number, node) for number, node in enumerate(nodes)]
    heapq.heapify(heap)
    chosen: list[Node] = []
    while heap and len(chosen) < count:
        known, number, node = heapq.heappop(heap)
        now = key(node)
        if now > known:
            heapq.heappush(heap, (now, number, node))
            continue
        chosen.append(node)
        for seen in draft.replicas_on(node.name):
            if seen.workload in spare:
                spare[seen.workload] = max(spare[seen.workload] - seen.on[node.name], 0)
    return chosen


def _shrinks_by(draft: Draft, workload: str) -> int:
    """Replicas that go anyhow, and may as well be those on a leaving node."""
    seen = draft.state.production.replicas.get(workload)
    if seen is None or not emptied_by_scaling(draft, seen):
        return 0
    return max(seen.wanted - draft.wants.replicas[workload].replicas, 0)
