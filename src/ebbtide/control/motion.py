"""What moves take, which of them still count as motion, and how they change their stage (§6.6, §6.7)."""

from __future__ import annotations

import math
from dataclasses import replace

from ebbtide.control.draft import Draft, why
from ebbtide.control.ledger import Ledger, source_of
from ebbtide.control.memory import AT_HOME, AWAY, Direction, Move, Stage
from ebbtide.control.move_times import learned_p90_s
from ebbtide.control.state import Side
from ebbtide.fleet.pool import Pool


def p90_s(draft: Draft, pool: Pool, direction: Direction, batch: int) -> float:
    """What such a move takes: the longer of the Fleet's time and the measured P90."""
    key = (pool.name, direction, batch)
    known_s = draft.p90s_s.get(key)
    if known_s is None:
        told_s = pool.yield_time_s if direction is Direction.YIELD else pool.reclaim_time_s
        finished = draft.state.memory.finished
        learned_s = learned_p90_s(finished, pool=pool.name, direction=direction, batch=batch, at_s=draft.at_s)
        known_s = draft.p90s_s[key] = told_s if learned_s is None else max(told_s, learned_s)
    return known_s


def rule_of(direction: Direction) -> str:
    """The rule that a step of a move follows."""
    return "6.2" if direction is Direction.RECLAIM else "6.3"


def late_at_s(draft: Draft, move: Move) -> float:
    """When a step of a move that is past recall has taken too long."""
    known_s = draft.p90s_s.get((move.pool, move.direction, move.batch))
    if known_s is None:
        known_s = p90_s(draft, draft.plan.fleet.pool(move.pool), move.direction, move.batch)
    return move.since_s + draft.limits.late_factor * known_s


def mark_late(draft: Draft, pool: str) -> None:
    """A move that stalls is late, and stays so: were it to count again, more than may would be in motion."""
    for move in list(draft.moves.values()):
        if move.pool == pool and move.stage in AWAY and not move.late and draft.at_s >= late_at_s(draft, move):
            draft.moves[move.id] = replace(move, late=True)


def in_motion(draft: Draft, pool: str) -> int:
    """Moves of a pool that count against moves at once."""
    return sum(move.pool == pool and not move.late for move in draft.moves.values())


def inbound(draft: Draft, pool: str, side: Side) -> int:
    """Moves that will bring a node to a side, late ones left out."""
    return sum(
        move.pool == pool
        and source_of(move.direction) is not side
        and move.stage is not Stage.RETURNING
        and not move.late
        for move in draft.moves.values()
    )


def returning(draft: Draft, pool: str, side: Side) -> int:
    """Moves given up whose node is about to be usable again on its old side."""
    return sum(
        move.pool == pool and source_of(move.direction) is side and move.stage is Stage.RETURNING
        for move in draft.moves.values()
    )


def at_home(draft: Draft, book: Ledger, direction: Direction) -> list[Move]:
    """Moves that can still be given up, the latest begun first."""
    return sorted(
        (
            move
            for move in draft.moves.values()
            if move.pool == book.pool.name and move.direction is direction and move.stage in AT_HOME - {Stage.RETURNING}
        ),
        key=lambda move: (-move.begun_s, move.id),
    )


def to_stage(draft: Draft, move: Move, stage: Stage) -> Move:
    """The move at its next stage, since now."""
    draft.moves[move.id] = replace(move, stage=stage, since_s=draft.at_s, asked_s=-math.inf)
    return draft.moves[move.id]


def turn_back(draft: Draft, move: Move, rule: str, text: str, *, spare: bool = False) -> None:
    """Give a move up before removal; ``spare`` the node for a while where it is the node that will not go."""
    to_stage(draft, move, Stage.RETURNING)
    if spare:
        draft.spared[move.node] = draft.at_s + draft.limits.leave_for_s
    draft.withhold(f"{move.direction} of {move.node}", why(rule, text, move=move.id, node=move.node))
