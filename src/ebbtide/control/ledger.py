"""Every node counted once: what stands where, what is in motion, what is missing (§6.6).

A pool's nodes add up when those that are there (both sides, one machine once) and those that travel are as many as
the Fleet says. What is missing or too many is a difference: explained by nothing, it stops yields, removals and quota
raises of that pool after a few ticks, and never reclaims that have begun.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter

from ebbtide.control.limits import Limits
from ebbtide.control.memory import AT_HOME, Broken, Direction, Missing, Move, Stage
from ebbtide.control.state import Node, PoolSeen, Side, State
from ebbtide.control.usable import Survey, survey
from ebbtide.fleet.pool import Pool


def source_of(direction: Direction) -> Side:
    """The side that a move leaves."""
    return Side.PRODUCTION if direction is Direction.YIELD else Side.RESEARCH


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """One pool's nodes. ``usable``: by side, those that can be counted on, in motion or not yet stable ones left out.

    ``missing``: the Fleet's nodes that are not there and do not travel, less those that quarantine explains: a broken
    node whose Node object is gone is being repaired. ``lost`` of them are written down. ``difference``: nodes that are
    there and travel, less the Fleet's, where neither explains it. ``repaired``: broken ones that are back, under
    another name.
    ``stable_s``: when the next node becomes stable.
    """

    pool: Pool
    surveys: dict[Side, Survey]
    seen: dict[Side, PoolSeen]
    moves: tuple[Move, ...]
    usable: dict[Side, int]
    unstable: frozenset[str]
    quarantined: frozenset[str]
    missing: int
    lost: int
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """One pool as it was seen, whatever is decided: its nodes by side, how many are there, and which are unstable."""

    pool: Pool
    seen: dict[Side, PoolSeen]
    surveys: dict[Side, Survey]
    there: int
    young: frozenset[str]
    stable_s: dict[str, float]


def stand_of(state: State, pool: Pool, at_s: float, limits: Limits) -> Stand:
    """Count what stands of one pool."""
    seen = {side: state.sight(side).pool(pool.name) for side in Side}
    surveys = {side: survey(seen[side], pool, side) for side in Side}
    stable_s = {
        node.name: node.since_s + limits.stable_s
        for one in surveys.values()
        if one.latest_s > at_s - limits.stable_s
        for node in one.whole.values()
        if node.since_s > at_s - limits.stable_s
    }
    return Stand(
        pool=pool,
        seen=seen,
        surveys=surveys,
        there=_there(surveys),
        young=frozenset(stable_s),
        stable_s=stable_s,
    )


def ledger(state: State, pool: Pool, at_s: float, limits: Limits) -> Ledger:
    """Count one pool."""
    memory = state.memory
    moves = tuple(move for move in memory.moves if move.pool == pool.name)
    return counted(stand_of(state, pool, at_s, limits), moves, memory.quarantined, memory.missing)


def counted(
    stand: Stand, moves: tuple[Move, ...], quarantined: Mapping[str, Broken], missing: Mapping[str, Missing]
) -> Ledger:
    """A pool's ledger, from what stands and what is known of the rest."""
    pool, surveys = stand.pool, stand.surveys
    taken = {name for move in moves for name in (move.node, move.arrived)} | quarantined.keys()
    unstable = stand.young - taken
    not_counted = taken | unstable
    difference = stand.there + _travelling(moves, surveys) - pool.nodes
    gone = max(-difference, 0)
    away = _away(pool, quarantined, surveys)
    absent = max(gone - len(away), 0)
    lost = min(missing[pool.name].lost, absent) if pool.name in missing else 0
    return Ledger(
        pool=pool,
        surveys=surveys,
        seen=stand.seen,
        moves=moves,
        usable={side: len(one.whole) - len(one.whole.keys() & not_counted) for side, one in surveys.items()},
        unstable=unstable,
        quarantined=frozenset(quarantined),
        missing=absent,
        lost=lost,
        difference=-(absent - lost) if gone else difference,
        repaired=tuple(away[: len(away) - gone]) if len(away) > gone else (),
        stable_s=min((stand.stable_s[name] for name in unstable), default=float("inf")),
    )


def _away(pool: Pool, quarantined: Mapping[str, Broken], surveys: dict[Side, Survey]) -> list[str]:
    """Broken nodes whose Node object is gone, the longest known first."""
    return [
        name
        for name, one in sorted(quarantined.items(), key=lambda item: item[1].since_s)
        if one.pool == pool.name and not any(each.stands(name) for each in surveys.values())
    ]


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
