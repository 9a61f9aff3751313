"""A decision while it is being made: what was decided so far, and the memory as it will be.

Mutable, and never seen outside ``decide``: each rule adds its actions in the order in which they are to be done.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ebbtide.control.actions import Action, Park, Record, Why, Withheld
from ebbtide.control.limits import Limits
from ebbtide.control.memory import Broken, Direction, FinishedMove, Guard, Memory, Missing, Move, Revert, Written
from ebbtide.control.move_times import with_finished
from ebbtide.control.plan import Plan
from ebbtide.control.state import Replicas, ResearchWork, Side, State
from ebbtide.control.wants import Wants

Number = float | int | str
Value = TypeVar("Value")


def why(rule: str, text: str, **numbers: Number) -> Why:
    """A reason by its rule of §6, with the numbers it stands on.

    >>> why("6.4", "stable for 30 s", node="n1").rule
    '§6.4'
    """
    return Why(rule=f"§{rule}", text=text, numbers=numbers)


@dataclass(slots=True, kw_only=True)
class Draft:
    """What is known and what was decided so far."""

    state: State
    plan: Plan
    wants: Wants
    at_s: float
    limits: Limits
    actions: list[Action] = field(default_factory=list)
    withheld: list[Withheld] = field(default_factory=list)
    moves: dict[str, Move] = field(default_factory=dict)
    finished: list[FinishedMove] = field(default_factory=list)
    quarantined: dict[str, Broken] = field(default_factory=dict)
    difference_ticks: dict[str, int] = field(default_factory=dict)
    missing: dict[str, Missing] = field(default_factory=dict)
    written: dict[str, Written] = field(default_factory=dict)
    reverts: dict[str, Revert] = field(default_factory=dict)
    spared: dict[str, float] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    guards: dict[str, Guard] = field(default_factory=dict)
    next_move: int = 1
    parked: set[str] = field(default_factory=set)
    work_by_node: dict[str, list[ResearchWork]] | None = None  # both made when first asked for
    replicas_by_node: dict[str, list[Replicas]] | None = None
    p90s_s: dict[tuple[str, Direction, int], float] = field(
        default_factory=dict
    )  # what moves take, when first asked for
    looks_s: list[float] = field(default_factory=list)
    shortages: dict[str, int] = field(default_factory=dict)

    def work_on(self, node: str) -> list[ResearchWork]:
        """Research Workloads with a pod on a node."""
        if self.work_by_node is None:
            self.work_by_node = {}
            for one in self.state.research.work:
                for name in set(one.nodes):
                    self.work_by_node.setdefault(name, []).append(one)
        return self.work_by_node.get(node, [])

    def replicas_on(self, node: str) -> list[Replicas]:
        """Production workloads with a pod on a node."""
        if self.replicas_by_node is None:
            self.replicas_by_node = {}
            for one in self.state.production.replicas.values():
                for name, pods in one.on.items():
                    if pods > 0:
                        self.replicas_by_node.setdefault(name, []).append(one)
        return self.replicas_by_node.get(node, [])

    def do(self, action: Action) -> None:
        """Add an action after those decided before."""
        self.actions.append(action)

    def park(self, action: Park) -> None:
        """End a Workload once, however many of its nodes go."""
        if action.work not in self.parked:
            self.parked.add(action.work)
            self.do(action)

    def withhold(self, what: str, reason: Why) -> None:
        """Say what is not done."""
        self.withheld.append(Withheld(what=what, why=reason))

    def look(self, at_s: float) -> None:
        """Look again at that instant, if it is still to come."""
        if at_s > self.at_s:
            self.looks_s.append(at_s)

    def ask(self, moves: Iterable[Move]) -> bool:
        """Whether to ask for what these moves wait for: not all were asked for within the time of a retry.

        Then all of them are asked for now.
        """
        waiting = [self.moves[move.id] for move in moves]
        due_s = min((move.asked_s for move in waiting), default=math.inf) + self.limits.retry_s
        if self.at_s < due_s:
            self.look(due_s)
            return False
        for move in waiting:
            self.moves[move.id] = replace(move, asked_s=self.at_s)
        self.look(self.at_s + self.limits.retry_s)
        return bool(waiting)

    def fresh(self, side: Side) -> bool:
        """Whether a cluster was seen recently enough to act on; a sight from the future is a jumped clock's (§6.6)."""
        age_s = self.at_s - self.state.sight(side).seen_at_s
        return -self.limits.stale_after_s <= age_s <= self.limits.stale_after_s

    def record(self) -> Record | None:
        """The memory as it will be, to be written before anything is done; None where it is as it was."""
        before = self.state.memory
        after = replace(
            before,
            moves=tuple(self.moves.values()),
            finished=with_finished(before.finished, self.finished) if self.finished else before.finished,
            quarantined=_kept(before.quarantined, self.quarantined),
            difference_ticks=_kept(before.difference_ticks, self.difference_ticks),
            missing=_kept(before.missing, self.missing),
            written=_kept(before.written, self.written),
            reverts=_kept(before.reverts, self.reverts),
            spared=_kept(before.spared, self.spared),
            sizes=_kept(before.sizes, self.sizes),
            guards=_kept(before.guards, self.guards),
            next_move=self.next_move,
        )
        if after == before:
            return None
        return Record(memory=after, why=why("6.1", "written before the act", moves=len(after.moves)))


def _not_ahead(memory: Memory, at_s: float, limits: Limits) -> Memory:
    """What is remembered from the future counts from now: the clock was set back, and nothing is to wait for it."""
    moves = memory.moves
    if any(move.begun_s > at_s or move.since_s > at_s or move.asked_s > at_s for move in moves):
        moves = tuple(
            replace(
                move,
                begun_s=min(move.begun_s, at_s),
                since_s=min(move.since_s, at_s),
                asked_s=move.asked_s if move.asked_s <= at_s else at_s - limits.retry_s,
            )
            for move in moves
        )
    reverts = {
        key: replace(known, seen_s=tuple(min(seen_s, at_s) for seen_s in known.seen_s))
        if known.seen_s[-1] > at_s
        else known
        for key, known in memory.reverts.items()
    }
    latest_s = at_s + limits.leave_for_s
    spared = {name: min(until_s, latest_s) for name, until_s in memory.spared.items() if until_s > at_s}
    missing = {pool: replace(one, since_s=at_s) if one.since_s > at_s else one for pool, one in memory.missing.items()}
    return replace(memory, moves=moves, reverts=reverts, spared=spared, missing=missing)


def draft_of(state: State, plan: Plan, wanted: Wants, at_s: float, limits: Limits) -> Draft:
    """An empty draft on the memory as it is."""
    memory = _not_ahead(state.memory, at_s, limits)
    return Draft(
        state=state,
        plan=plan,
        wants=wanted,
        at_s=at_s,
        limits=limits,
        moves={move.id: move for move in memory.moves},
        quarantined=dict(memory.quarantined),
        difference_ticks=dict(memory.difference_ticks),
        missing=dict(memory.missing),
        written=dict(memory.written),
        reverts=dict(memory.reverts),
        spared=dict(memory.spared),
        sizes=dict(memory.sizes),
        guards=dict(wanted.guards),
        next_move=memory.next_move,
    )


def _kept(before: Mapping[str, Value], after: dict[str, Value]) -> Mapping[str, Value]:
    return before if before == after else after
