"""What to do now: a function of fleet, schedule, clock and observed state alone (§6.1).

Order within one decision: the record first; then each pool's moves, requests to its provider, quota; then replicas,
so that nothing is scaled down before its leaving pods are known, and nothing up before its nodes are usable.
"""

from __future__ import annotations

import math

from ebbtide.control.actions import Action, Decision, Withheld
from ebbtide.control.advance import advance, cordon_key
from ebbtide.control.arrivals import match_arrivals, write_off
from ebbtide.control.begin import begin_moves
from ebbtide.control.broken import see_to_broken, write_down_missing
from ebbtide.control.draft import Draft, draft_of, why
from ebbtide.control.ledger import Ledger, Stand, counted, stand_of
from ebbtide.control.limits import Limits
from ebbtide.control.memory import Direction, Stage
from ebbtide.control.motion import mark_late
from ebbtide.control.plan import plan_of
from ebbtide.control.provider import ask_provider
from ebbtide.control.quota import activate_gone, set_quota
from ebbtide.control.reverts import forget
from ebbtide.control.scaling import scale
from ebbtide.control.state import OverrideKind, Side, State
from ebbtide.control.wants import wants
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.pool import Pool
from ebbtide.fleet.schedule import Schedule

DEFAULT_LIMITS = Limits()


def decide(state: State, fleet: Fleet, schedule: Schedule, at_s: float, limits: Limits = DEFAULT_LIMITS) -> Decision:
    """Actions in order, what is withheld, and when to look again; the same arguments, the same decision.

    A schedule made for another Fleet, by digest, moves nothing: the decision is empty and its phase ``Blocked`` (§3).
    """
    plan = plan_of(fleet, schedule)
    if not plan.made_for_this_fleet:
        reason = why("3", "made for another Fleet", schedule=schedule.fleet_digest, fleet=fleet.digest)
        return _idle(at_s, limits, "Blocked", Withheld(what="everything", why=reason))
    if state.paused:
        return _idle(
            at_s,
            limits,
            "Paused",
            Withheld(what="everything", why=why("6.9", "the Schedule is paused", moves=len(state.memory.moves))),
        )
    draft = draft_of(state, plan, wants(state, plan, at_s, limits), at_s, limits)
    _say(draft)
    for pool, _ in plan.pools:
        _decide_pool(draft, pool)
    activate_gone(draft)
    _forget_cordons(draft)
    return _decision(draft)


def _say(draft: Draft) -> None:
    """What is off, and which wishes mean nothing here."""
    unobserved = draft.wants.unobserved
    if unobserved:
        text = "live demand is not observed: the guard is off"
        draft.withhold("live guard", why("6.7", text, workloads=len(unobserved), first=unobserved[0]))
    for one in draft.wants.void:
        text = f"no {'window' if one.kind is OverrideKind.WINDOW else 'workload'} has that name"
        draft.withhold(f"override {one.name}", why("6.9", text, what=one.what))


def _decide_pool(draft: Draft, pool: Pool) -> None:
    stand = stand_of(draft.state, pool, draft.at_s, draft.limits)
    book = _book(draft, stand)
    write_down_missing(draft, book)
    book = _book(draft, stand, book)
    _count_ticks(draft, book)
    mark_late(draft, pool.name)
    match_arrivals(draft, book)
    write_off(draft, book)
    for move in list(draft.moves.values()):
        if move.pool == pool.name:
            advance(draft, book, draft.moves[move.id])
    book = _book(draft, stand, book)
    see_to_broken(draft, book)
    book = _book(draft, stand, book)
    begin_moves(draft, book)
    book = _book(draft, stand, book)
    for move in list(draft.moves.values()):  # those begun now are cordoned now
        if move.pool == pool.name and move.begun_s == draft.at_s and move.stage is Stage.EMPTYING:
            advance(draft, book, move)
    book = _book(draft, stand, book)
    short = draft.wants.pools[pool.name].settled - book.usable[Side.PRODUCTION]
    if short > 0:
        draft.shortages[pool.name] = short
    ask_provider(draft, book)
    set_quota(draft, book)
    scale(draft, book)
    draft.look(book.stable_s)


def _book(draft: Draft, stand: Stand, last: Ledger | None = None) -> Ledger:
    """The pool counted with the moves as they are decided by now: as ``last``, where nothing was decided since."""
    name = stand.pool.name
    moves = tuple([move for move in draft.moves.values() if move.pool == name])
    if last is not None and last.moves == moves and last.quarantined == draft.quarantined.keys():
        missing = draft.missing.get(name)
        if last.lost == (0 if missing is None else missing.lost):
            return last
    return counted(stand, moves, draft.quarantined, draft.missing)


def _count_ticks(draft: Draft, book: Ledger) -> None:
    """How long nodes have not added up; a cluster that is not seen says nothing new (§6.6)."""
    if not all(draft.fresh(side) for side in Side):
        return
    name, ticks = book.pool.name, draft.difference_ticks.get(book.pool.name, 0)
    if book.difference == 0:
        draft.difference_ticks.pop(name, None)
    else:
        draft.difference_ticks[name] = min(ticks + 1, draft.limits.difference_ticks + 1)


def _forget_cordons(draft: Draft) -> None:
    """A node that no move holds has no cordon of ours to be kept up."""
    kept = {cordon_key(move.node) for move in draft.moves.values()}
    for key in [key for key in draft.written if key.startswith("node/") and key not in kept]:
        forget(draft, key)


def _decision(draft: Draft) -> Decision:
    record = draft.record()
    actions: tuple[Action, ...] = (record, *draft.actions) if record is not None else tuple(draft.actions)
    if actions:
        draft.look(draft.at_s + draft.limits.follow_up_s)
    draft.look(draft.wants.next_change_s)
    draft.look(draft.plan.valid_until_s)
    phase = "Holding"
    for move in draft.moves.values():
        if move.stage is not Stage.RETURNING:
            phase = "Reclaiming" if move.direction is Direction.RECLAIM else "Yielding"
            if phase == "Reclaiming":
                break
    return Decision(
        actions=actions,
        withheld=tuple(draft.withheld),
        next_look_s=min(draft.looks_s, default=math.inf),
        window=draft.plan.schedule.windows[draft.wants.window].name,
        phase=phase,
        shortages=draft.shortages,
    )


def _idle(at_s: float, limits: Limits, phase: str, withheld: Withheld) -> Decision:
    next_s = at_s + limits.retry_s
    return Decision(actions=(), withheld=(withheld,), next_look_s=next_s, window="", phase=phase)
