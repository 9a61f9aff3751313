"""Every node counted once: what stands where, what is in motion, what is missing (§6.6).

A pool's nodes add up when those that are there (both sides, one machine once) and those that travel are as many as
the Fleet says. What is missing or too many is a difference: explained by nothing, it stops yields, removals and quota
raises of that pool after a few ticks, and never reclaims that have begun.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

from ebbtide.control.limits import Limits
from ebbtide.control.memory import AT_HOME, Direction, Move, Stage
from ebbtide.control.state import Node, PoolSeen, Side, State
from ebbtide.control.usable import Survey, survey
from ebbtide.fleet.pool import Pool


def source_of(direction: Direction) -> Side:
    """The side that a move leaves."""
    return Side.PRODUCTION if direction is Direction.YIELD else Side.RESEARCH


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """One pool's nodes. ``usable``: by side, those that can be counted on, in motion or not yet stable ones left out.

    ``difference``: nodes that are there and travel, less the Fleet's, where quarantine does not explain it: a broken
    node whose Node object is gone is being repaired. ``repaired``: those of them that are back, under another name.
    ``stable_s``: when the next node becomes stable.
    """

    pool: Pool
    surveys: dict[Side, Survey]
    seen: dict[Side, PoolSeen]
    moves: tuple[Move, ...]
    usable: dict[Side, int]
    unstable: frozenset[str]
    quarantined: frozenset[str]
    difference: int
    repaired: tuple[str, ...]
    stable_s: float

    def node_at_source(self, move: Move) -> Node | None:
        """The node under the name it leaves by, where it still stands."""
        return self.surveys[source_of(move.direction)].find(move.node)

    def node_arrived(self, move: Move) -> Node | None:
        """The node that came for a move, where it stands."""
        return self.surveys[source_of(move.direction).other].find(move.arrived) if move.arrived else None

    def movable(self, side: Side) -> list[Node]:
        """Usable nodes of a side that are not in motion."""
        taken = {name for move in self.moves for name in (move.node, move.arrived)}
        return [
            node
            for name, node in self.surveys[side].whole.items()
            if name not in taken and name not in self.quarantined and name not in self.unstable
        ]


def ledger(state: State, pool: Pool, at_s: float, limits: Limits) -> Ledger:
    """Count one pool."""
    seen = {side: state.sight(side).pool(pool.name) for side in Side}
    surveys = {side: survey(seen[side], pool, side) for side in Side}
    moves = tuple(move for move in state.memory.moves if move.pool == pool.name)
    quarantined = frozenset(state.memory.quarantined)
    taken = {name for move in moves for name in (move.node, move.arrived) if name} | quarantined
    usable: dict[Side, int] = {}
    unstable: set[str] = set()
    stable_s = float("inf")
    for side, one in surveys.items():
        if one.latest_s > at_s - limits.stable_s:
            young = [
                node for node in one.whole.values() if node.since_s > at_s - limits.stable_s and node.name not in taken
            ]
            unstable.update(node.name for node in young)
            stable_s = min([stable_s, *(node.since_s + limits.stable_s for node in young)])
        usable[side] = len(one.whole) - sum(name in one.whole for name in taken | unstable)
    difference = _there(surveys) + _travelling(moves, surveys) - pool.nodes
    away = [
        name
        for name, one in sorted(state.memory.quarantined.items(), key=lambda item: item[1].since_s)
        if one.pool == pool.name and not any(each.stands(name) for each in surveys.values())
    ]
    missing = max(-difference, 0)
    return Ledger(
        pool=pool,
        surveys=surveys,
        seen=seen,
        moves=moves,
        usable=usable,
        unstable=frozenset(unstable),
        quarantined=quarantined,
        difference=difference + min(missing, len(away)),
        repaired=tuple(away[: len(away) - missing]) if len(away) > missing else (),
        stable_s=stable_s,
    )


_PROVIDER_ID = attrgetter("provider_id")


def _there(surveys: dict[Side, Survey]) -> int:
    """Nodes that are ours, one machine once: under two names or on two sides it has one provider id."""
    total = sum(one.owned() for one in surveys.values())
    # A Node object that lingers after its machine has gone is cordoned or broken; of those there are few.
    lingering = [
        node.provider_id
        for one in surveys.values()
        for kind in (one.cordoned, one.faulty)
        for node in kind.values()
        if node.provider_id
    ]
    if not lingering:
        return total
    again = set(lingering)
    alive: set[str] = set()
    for one in surveys.values():
        for kind in (one.joining, one.whole):
            alive |= again.intersection(map(_PROVIDER_ID, kind.values()))
    return total - sum(provider_id in alive for provider_id in lingering)


def _travelling(moves: tuple[Move, ...], surveys: dict[Side, Survey]) -> int:
    """Moves for which no object stands now: the old Node is gone, the new one not there."""
    missing = 0
    for move in moves:
        if move.stage in AT_HOME or move.stage is Stage.JOINING:
            continue
        source = source_of(move.direction)
        there = surveys[source].find(move.node) is not None
        came = bool(move.arrived) and surveys[source.other].find(move.arrived) is not None
        missing += not there and not came
    return missing
