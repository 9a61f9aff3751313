"""One step of every move, from what is seen of its node (§6.2, §6.3, §6.5).

A step is taken when it is seen to be done, asked for again while it is not, and given up or gone past when its time
is over. Up to removal a move can turn back; after it, it goes on.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ebbtide.control.actions import Admit, Cordon, DeletePods, Drain, Park, Quarantine, Uncordon
from ebbtide.control.begin import no_yield, production_to_be
from ebbtide.control.draft import Draft, why
from ebbtide.control.ledger import Ledger, source_of
from ebbtide.control.memory import AT_HOME, Direction, FinishedMove, Move, Stage
from ebbtide.control.motion import late_at_s, p90_s
from ebbtide.control.reverts import left_alone, may_write
from ebbtide.control.state import Node, ResearchWork, Side, Tenure
from ebbtide.control.usable import fault_of

CORDONED = "cordoned"


def match_arrivals(draft: Draft, book: Ledger) -> None:
    """Give every joining node that no move knows to the oldest move that waits for one (§6.1).

    By order of move and name of node: looked at again after a crash, the answer is the same.
    """
    known = {move.arrived for move in draft.moves.values() if move.arrived}
    for side in Side:
        fresh = sorted(name for name in book.surveys[side].joining if name not in known)
        waiting = [
            move
            for move in draft.moves.values()
            if move.pool == book.pool.name and move.stage is Stage.TRAVELLING and source_of(move.direction) is not side
        ]
        for move, name in zip(sorted(waiting, key=lambda one: (one.since_s, one.id)), fresh, strict=False):
            draft.moves[move.id] = replace(move, stage=Stage.JOINING, since_s=draft.at_s, arrived=name)


def advance(draft: Draft, book: Ledger, move: Move) -> None:
    """Take, ask for, or give up the step that a move stands at."""
    side = source_of(move.direction)
    acts_on = side if move.stage in AT_HOME or move.stage is Stage.REMOVING else side.other
    if not draft.fresh(acts_on):
        draft.withhold(
            f"{move.stage} of {move.node or move.id}",
            why("6.6", f"the {acts_on} cluster is not seen", move=move.id),
        )
        return
    _STEPS[move.stage](draft, book, move)


def _to(draft: Draft, move: Move, stage: Stage) -> Move:
    draft.moves[move.id] = replace(move, stage=stage, since_s=draft.at_s, asked_s=-math.inf)
    return draft.moves[move.id]


def _turn_back(draft: Draft, move: Move, rule: str, text: str, *, spare: bool = False) -> None:
    """Give a move up before removal; ``spare`` the node for a while where it is the node that will not go."""
    _to(draft, move, Stage.RETURNING)
    if spare:
        draft.spared[move.node] = draft.at_s + draft.limits.leave_for_s
    draft.withhold(f"{move.direction} of {move.node}", why(rule, text, move=move.id, node=move.node))


def _emptying(draft: Draft, book: Ledger, move: Move) -> None:
    node = book.node_at_source(move)
    if node is None:
        _vanished(draft, move)
    elif draft.wants.held_by:
        _turn_back(draft, move, "6.9", "held by an override")
    elif _cordon(draft, move, node):
        if move.direction is Direction.RECLAIM:
            _end_work(draft, book, move, node)
        else:
            _let_replicas_leave(draft, move, node)


def _cordon(draft: Draft, move: Move, node: Node) -> bool:
    """Whether the node is cordoned in our name; asked for where not, unless somebody takes it away again and again."""
    key = cordon_key(node.name)
    observed = CORDONED if node.cordoned and node.cordoned_by_us else ""
    if may_write(draft, key, observed=observed, wanted=CORDONED):
        reason = why("6.2", move.reason or "leaving", move=move.id)
        draft.do(Cordon(side=source_of(move.direction), node=node.name, why=reason))
        draft.look(draft.at_s + draft.limits.retry_s)
        return False
    if left_alone(draft, key):
        _turn_back(draft, move, "6.8", "somebody else uncordons it", spare=True)
        return False
    return True


def cordon_key(node: str) -> str:
    """The field of a node's cordon, as memory names it."""
    return f"node/{node}:cordon"


def reclaim_by_s(draft: Draft, book: Ledger, move: Move) -> float:
    """When production wins: the window's start less what the remaining steps take, never before the grace (§6.5)."""
    rest_s = p90_s(draft, book.pool, move.direction, move.batch)
    return max(move.begun_s, move.due_s - rest_s) + draft.limits.research_grace_s


def _end_work(draft: Draft, book: Ledger, move: Move, node: Node) -> None:
    """End the Workloads on a node; go on when none has a pod there (§6.2, §7.5)."""
    here = [one for one in draft.state.research.work if node.name in one.nodes]
    if not here:
        _draining(draft, book, _to(draft, move, Stage.DRAINING))
        return
    by_s = reclaim_by_s(draft, book, move)
    draft.look(by_s)
    for one in here:
        if one.parked_by_us or not one.active:
            continue
        if one.preemptible or (draft.at_s >= by_s and draft.limits.end_overrunning_work):
            lost = round(one.gpus * max(draft.at_s - one.checkpointed_s, 0.0))
            draft.park(Park(work=one.name, why=why("7.5", "its nodes go back", move=move.id, lost_gpu_s=lost)))
        elif draft.at_s >= by_s or not one.managed:
            _turn_back(draft, move, "6.5", f"{one.name} must not be interrupted", spare=True)
            return
        else:
            draft.withhold(f"reclaim of {node.name}", why("6.5", f"{one.name} ends first", by_s=by_s))
    if draft.at_s >= by_s:
        _production_wins(draft, move, node, here)


def _production_wins(draft: Draft, move: Move, node: Node, here: list[ResearchWork]) -> None:
    """The grace is over: what is left on the node is deleted, and its loss said."""
    lost = round(sum(one.gpus * max(draft.at_s - one.checkpointed_s, 0.0) for one in here))
    reason = why("6.5", "grace and time are over: production wins", move=move.id, lost_gpu_s=lost)
    if draft.ask([move]):
        draft.do(DeletePods(side=source_of(move.direction), node=node.name, why=reason))
    if draft.at_s >= move.since_s + draft.limits.drain_grace_s + draft.limits.research_grace_s:
        _to(draft, move, Stage.DRAINING)
    draft.look(draft.at_s + draft.limits.retry_s)


def _let_replicas_leave(draft: Draft, move: Move, node: Node) -> None:
    """Scaling down empties the node (``scaling``); the rest is drained when the grace is over."""
    standing = [one for one in draft.state.production.replicas.values() if one.on.get(node.name, 0) > 0]
    if not standing or draft.at_s >= move.since_s + draft.limits.drain_grace_s:
        _to(draft, move, Stage.DRAINING)
    draft.look(move.since_s + draft.limits.drain_grace_s)


def _draining(draft: Draft, book: Ledger, move: Move) -> None:
    node = book.node_at_source(move)
    if node is None:
        _vanished(draft, move)
    elif draft.wants.held_by:
        _turn_back(draft, move, "6.9", "held by an override")
    elif node.pods == 0:
        _remove(draft, book, move)
    elif _cordon(draft, move, node):
        over = draft.at_s >= move.since_s + draft.limits.drain_grace_s
        if over and move.direction is Direction.YIELD:
            _turn_back(draft, move, "6.3", "its pods do not go", spare=True)
        elif over and draft.at_s >= move.since_s + 2 * draft.limits.drain_grace_s:
            _remove(draft, book, move)
        else:
            act = DeletePods if over else Drain
            reason = why("6.2", "grace is over" if over else "the rest is drained", move=move.id, pods=node.pods)
            if draft.ask([move]):
                draft.do(act(side=source_of(move.direction), node=node.name, why=reason))
            draft.look(move.since_s + draft.limits.drain_grace_s)


def _remove(draft: Draft, book: Ledger, move: Move) -> None:
    """The last look before the point of no return."""
    if move.direction is Direction.YIELD:
        refused = no_yield(draft, book)
        want = draft.wants.pools[book.pool.name].nodes
        if refused is not None or production_to_be(draft, book) < want:
            _turn_back(draft, move, "6.3", refused.text if refused is not None else "production wants it")
            return
    _to(draft, move, Stage.REMOVING)


def _vanished(draft: Draft, move: Move) -> None:
    """Somebody else took the node: nothing to go on with; the ledger shows what is missing."""
    del draft.moves[move.id]
    draft.withhold(
        f"{move.direction} of {move.node}", why("6.6", "its Node is gone, and not by us", move=move.id, node=move.node)
    )


def _removing(draft: Draft, book: Ledger, move: Move) -> None:
    if book.node_at_source(move) is None:
        _to(draft, move, Stage.TRAVELLING)
    else:
        draft.look(draft.at_s + draft.limits.retry_s)
        draft.look(late_at_s(draft, move))


def _travelling(draft: Draft, book: Ledger, move: Move) -> None:
    late_s = late_at_s(draft, move)
    draft.look(late_s)
    if draft.at_s >= late_s:
        stock_out_s = book.seen[source_of(move.direction).other].stock_out_s
        text = "has not come" if stock_out_s is None else "has not come: the provider has no capacity"
        draft.withhold(f"arrival for {move.id}", why("6.7", text, waited_s=round(draft.at_s - move.since_s)))


def _joining(draft: Draft, book: Ledger, move: Move) -> None:
    node = book.node_arrived(move)
    side = source_of(move.direction).other
    late_s = late_at_s(draft, move)
    draft.look(late_s)
    if node is None:
        # It came and went: its provider still owes it, so nothing is asked for anew.
        gone = replace(move, stage=Stage.TRAVELLING, since_s=draft.at_s, asked_s=draft.at_s, arrived="")
        draft.moves[move.id] = gone
    elif not node.joining:
        _finish(draft, move)
    elif not fault_of(node, book.pool) and draft.at_s >= node.since_s + draft.limits.stable_s:
        reason = why("6.4", "usable", move=move.id, took_s=round(draft.at_s - move.begun_s))
        draft.do(Admit(side=side, node=node.name, tenure=Tenure.EPHEMERAL, why=reason))
    elif draft.at_s >= late_s:
        fault = fault_of(node, book.pool) or "not stable"
        draft.quarantined[node.name] = draft.at_s
        draft.do(Quarantine(side=side, node=node.name, why=why("6.6", f"came broken: {fault}", move=move.id)))
        del draft.moves[move.id]
    else:
        draft.look(node.since_s + draft.limits.stable_s)


def _finish(draft: Draft, move: Move) -> None:
    del draft.moves[move.id]
    took_s = draft.at_s - move.begun_s
    if took_s > 0.0:  # a clock that was set back teaches nothing
        draft.finished.append(
            FinishedMove(
                pool=move.pool, direction=move.direction, batch=move.batch, took_s=took_s, finished_s=draft.at_s
            )
        )


def _returning(draft: Draft, book: Ledger, move: Move) -> None:
    node = book.node_at_source(move)
    if node is None:
        _vanished(draft, move)
    elif node.cordoned_by_us:
        side = source_of(move.direction)
        draft.do(Uncordon(side=side, node=node.name, why=why("6.5", "given up before removal", move=move.id)))
        draft.look(draft.at_s + draft.limits.retry_s)
    else:
        del draft.moves[move.id]


_STEPS = {
    Stage.EMPTYING: _emptying,
    Stage.DRAINING: _draining,
    Stage.REMOVING: _removing,
    Stage.TRAVELLING: _travelling,
    Stage.JOINING: _joining,
    Stage.RETURNING: _returning,
}
