"""Where the schedule stands, in people's words: what status, conditions and `ebbtide status` show (§6.10).

A function of what was seen and decided; nothing here decides anything.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ebbtide.control.actions import Decision
from ebbtide.control.decide import DEFAULT_LIMITS
from ebbtide.control.memory import Direction, Move
from ebbtide.control.move_times import learned_p90_s
from ebbtide.control.plan import plan_of
from ebbtide.control.state import Mode, Side, State, Tenure
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.pool import Pool
from ebbtide.fleet.schedule import Schedule


class Holds(StrEnum):
    """Whether a condition holds, as Kubernetes says it."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One thing that holds, does not, or is not known: why in one word, and in a sentence."""

    type: str
    holds: Holds
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Motion:
    """One pool's nodes on their way: ``there`` of ``wanted`` stand where they go."""

    pool: str
    direction: Direction
    there: int
    wanted: int
    moving: int
    late: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Short:
    """A workload below its plan now."""

    workload: str
    missing_replicas: int
    missing_gpus: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStanding:
    """One pool's nodes by where they stand; times are measured P90s, None where too few moves are known.

    ``yield_within_s``, ``reclaim_within_s``: what a move is expected to take, the longer of told and measured.
    """

    name: str
    production_nodes: int
    ephemeral_nodes: int
    reserved_nodes: int
    moving_nodes: int
    quarantined_nodes: int
    yield_time_s: float | None
    reclaim_time_s: float | None
    yield_within_s: float
    reclaim_within_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """All of it. ``moves``: each node on its way, for `status`; ``next_change_s`` infinite where none comes.

    ``busiest``: the workload whose observed demand is the largest share of what the plan holds; None: not observed.
    """

    mode: Mode
    phase: str
    window: str
    next_change_s: float
    motion: tuple[Motion, ...]
    moves: tuple[Move, ...]
    shortages: tuple[Short, ...]
    pools: tuple[PoolStanding, ...]
    conditions: tuple[Condition, ...]
    busiest: str = ""
    busiest_share: float | None = None


def standing(
    state: State,
    decision: Decision,
    fleet: Fleet,
    schedule: Schedule,
    at_s: float,
    *,
    blocked: str = "",
    problem: str = "",
) -> Standing:
    """Where it stands at a tick. ``blocked``: why nothing may begin at all; ``problem``: a document that is broken."""
    plan = plan_of(fleet, schedule)
    now = plan.ahead(at_s)[0]
    phase = "Blocked" if blocked else decision.phase
    busiest, share = _busiest(state, schedule, now.window)
    return Standing(
        mode=state.mode,
        phase=phase,
        window=decision.window or schedule.windows[now.window].name,
        next_change_s=now.end_s,
        motion=_motions(state, fleet, schedule, now.window),
        moves=state.memory.moves,
        shortages=_shortages(decision, fleet),
        pools=tuple(_pool(state, pool, at_s) for pool in fleet.pools),
        conditions=_conditions(state, decision, schedule, at_s, blocked, problem),
        busiest=busiest,
        busiest_share=share,
    )


def _busiest(state: State, schedule: Schedule, window: int) -> tuple[str, float | None]:
    shares = {
        one.name: state.live_rps[one.name] / one.holds_rps[window]
        for one in schedule.workloads
        if one.name in state.live_rps and one.holds_rps[window] > 0.0
    }
    if not shares:
        return "", None
    name = max(shares, key=lambda one: (shares[one], one))
    return name, shares[name]


def _motions(state: State, fleet: Fleet, schedule: Schedule, window: int) -> tuple[Motion, ...]:
    columns = {column.name: column for column in schedule.pools}
    found = []
    for pool in fleet.pools:
        for direction in Direction:
            moves = [one for one in state.memory.moves if one.pool == pool.name and one.direction is direction]
            if not moves or pool.name not in columns:
                continue
            column = columns[pool.name]
            side = Side.RESEARCH if direction is Direction.YIELD else Side.PRODUCTION
            planned = column.ephemeral_nodes if side is Side.RESEARCH else column.production_nodes
            there = _stand(state, pool.name, side)
            late = sum(one.late for one in moves)
            wanted = max(planned[window], there + len(moves))
            found.append(
                Motion(pool=pool.name, direction=direction, there=there, wanted=wanted, moving=len(moves), late=late)
            )
    return tuple(found)


def _stand(state: State, pool: str, side: Side) -> int:
    """Ephemeral nodes on a side that are not leaving or joining."""
    gone = {one.node for one in state.memory.moves}
    nodes = state.sight(side).pool(pool).nodes
    return sum(
        node.tenure is Tenure.EPHEMERAL and node.ready and not node.joining and node.name not in gone for node in nodes
    )


def _shortages(decision: Decision, fleet: Fleet) -> tuple[Short, ...]:
    """Workloads alone: a pool's missing nodes are told by its motion."""
    reasons = {one.what.removeprefix("replicas of "): one.why.text for one in decision.withheld}
    return tuple(
        Short(
            workload=one.name,
            missing_replicas=decision.shortages[one.name],
            missing_gpus=decision.shortages[one.name] * one.gpus_per_replica,
            reason=reasons.get(one.name, ""),
        )
        for one in fleet.workloads
        if one.name in decision.shortages
    )


def _pool(state: State, pool: Pool, at_s: float) -> PoolStanding:
    tenures = Counter(node.tenure for node in state.research.pool(pool.name).nodes)
    memory = state.memory

    def p90_s(direction: Direction) -> float | None:
        return learned_p90_s(memory.finished, pool=pool.name, direction=direction, batch=1, at_s=at_s)

    return PoolStanding(
        name=pool.name,
        production_nodes=_stand(state, pool.name, Side.PRODUCTION),
        ephemeral_nodes=_stand(state, pool.name, Side.RESEARCH),
        reserved_nodes=tenures[Tenure.RESERVED],
        moving_nodes=sum(one.pool == pool.name for one in memory.moves),
        quarantined_nodes=sum(one.pool == pool.name for one in memory.quarantined.values()),
        yield_time_s=p90_s(Direction.YIELD),
        reclaim_time_s=p90_s(Direction.RECLAIM),
        yield_within_s=max(pool.yield_time_s, p90_s(Direction.YIELD) or 0.0),
        reclaim_within_s=max(pool.reclaim_time_s, p90_s(Direction.RECLAIM) or 0.0),
    )


def _conditions(
    state: State, decision: Decision, schedule: Schedule, at_s: float, blocked: str, problem: str
) -> tuple[Condition, ...]:
    valid = at_s < schedule.valid_until.timestamp()
    return (
        _condition("DocumentsRead", not (blocked or problem), "Read", "NotReadable", blocked or problem),
        _condition("PlanHolds", not decision.shortages, "AllThere", "Short", _named(decision.shortages)),
        _seen(state, Side.PRODUCTION, at_s),
        _seen(state, Side.RESEARCH, at_s),
        _add_up(state),
        _live(state),
        _condition("Undisturbed", not state.memory.reverts, "Alone", "SetBack", _reverts(state)),
        _condition("Valid", valid, "Valid", "Expired", "plan again: nothing is yielded any more"),
    )


def _condition(name: str, holds: bool, good: str, bad: str, message: str) -> Condition:
    if holds:
        return Condition(type=name, holds=Holds.TRUE, reason=good)
    return Condition(type=name, holds=Holds.FALSE, reason=bad, message=message)


def _seen(state: State, side: Side, at_s: float) -> Condition:
    """A side is not seen once its sight is too old to act on."""
    age_s, name = at_s - state.sight(side).seen_at_s, f"{side.capitalize()}Seen"
    if age_s <= DEFAULT_LIMITS.stale_after_s:
        return Condition(type=name, holds=Holds.TRUE, reason="Seen")
    since = "never" if math.isinf(age_s) else "not since its last answer"
    return Condition(type=name, holds=Holds.FALSE, reason="Dark", message=f"the {side} cluster was seen {since}")


def _add_up(state: State) -> Condition:
    name, memory = "NodesAddUp", state.memory
    if memory.difference_ticks:
        text = f"nodes of {', '.join(sorted(memory.difference_ticks))} are missing or too many"
        return Condition(type=name, holds=Holds.FALSE, reason="Difference", message=text)
    lost = [f"{one.lost} of {pool}" for pool, one in sorted(memory.missing.items()) if one.lost]
    if lost:
        text = f"missing for long, and taken for lost: {', '.join(lost)}; correct the Fleet's nodes"
        return Condition(type=name, holds=Holds.TRUE, reason="Lost", message=text)
    return Condition(type=name, holds=Holds.TRUE, reason="AddUp")


def _live(state: State) -> Condition:
    name = "LiveDemandObserved"
    if math.isinf(state.live_at_s):
        text = "the live guard is off (rule 6.7)"
        return Condition(type=name, holds=Holds.UNKNOWN, reason="NotObserved", message=text)
    missing = sorted(state.production.replicas.keys() - state.live_rps.keys())
    return _condition(name, not missing, "Observed", "Missing", f"not observed: {', '.join(missing[:5])}")


def _reverts(state: State) -> str:
    told = [f"{key} by {one.who or 'somebody'}" for key, one in sorted(state.memory.reverts.items())]
    return "set back: " + "; ".join(told[:5])


def _named(shortages: Mapping[str, int]) -> str:
    told = [f"{name} -{missing}" for name, missing in sorted(shortages.items())]
    return ", ".join(told[:10]) + (f" and {len(told) - 10} more" if len(told) > 10 else "")
