"""One step of every move, from what is seen of its node (§6.2, §6.3, §6.5).

A step is taken when it is seen to be done, asked for again while it is not, and given up or gone past when its time
is over. Up to removal a move can turn back; after it, it goes on.
"""

from __future__ import annotations

from dataclasses import replace

from ebbtide.control.actions import Admit, Cordon, DeletePods, Drain, Quarantine, Uncordon
from ebbtide.control.begin import no_yield, production_to_be
from ebbtide.control.draft import Draft, why
from ebbtide.control.ending import came_late, end_work
from ebbtide.control.handover import emptied_by_scaling, too_few, yields_by_s
from ebbtide.control.ledger import Ledger, source_of
from ebbtide.control.memory import AT_HOME, Broken, Direction, FinishedMove, Move, Stage
from ebbtide.control.motion import late_at_s, rule_of, to_stage, turn_back
from ebbtide.control.reverts import left_alone, may_write
from ebbtide.control.state import Node, Side, Tenure
from ebbtide.control.usable import fault_of

CORDONED = "cordoned"


def advance(draft: Draft, book: Ledger, move: Move) -> None:
    """Take, ask for, or give up the step that a move stands at."""
    side = source_of(move.direction)
    acts_on = side if move.stage in AT_HOME or move.stage is Stage.REMOVING else side.other
    if not draft.fresh(acts_on):
        draft.withhold(
            f"{move.stage} of {move.node or move.id}",
            why(
                "6.6",
                f"the {acts_on} cluster is not seen",
                move=move.id,
                seen_at_s=draft.state.sight(acts_on).seen_at_s,
            ),
        )
        return
    _STEPS[move.stage](draft, book, move)


def _emptying(draft: Draft, book: Ledger, move: Move) -> None:
    node = book.node_at_source(move)
    if node is None:
        _vanished(draft, book, move)
    elif draft.wants.held_by:
        turn_back(draft, move, "6.9", "held by an override")
    elif _cordon(draft, move, node):
        if move.direction is Direction.RECLAIM and not draft.work_on(node.name):
            _draining(draft, book, to_stage(draft, move, Stage.DRAINING))
        elif move.direction is Direction.RECLAIM:
            end_work(draft, book, move, node)
        else:
            _let_replicas_leave(draft, move, node)


def _cordon(draft: Draft, move: Move, node: Node) -> bool:
    """Whether the node is cordoned in our name; asked for where not, unless somebody takes it away again and again."""
    if node.cordoned and not node.cordoned_by_us:
        turn_back(draft, move, "6.8", "somebody else has cordoned it", spare=True)
        return False
    key = cordon_key(node.name)
    observed = CORDONED if node.cordoned else ""
    if may_write(draft, key, observed=observed, wanted=CORDONED):
        reason = why(rule_of(move.direction), move.reason or "leaving", move=move.id)
        draft.do(Cordon(side=source_of(move.direction), node=node.name, why=reason))
        draft.look(draft.at_s + draft.limits.retry_s)
        return False
    if left_alone(draft, key):
        turn_back(draft, move, "6.8", "somebody else uncordons it", spare=True)
        return False
    return True


def cordon_key(node: str) -> str:
    """The field of a node's cordon, as memory names it."""
    return f"node/{node}:cordon"


def _let_replicas_leave(draft: Draft, move: Move, node: Node) -> None:
    """Scaling empties the node (``scaling``); the rest is drained, once enough are ready elsewhere."""
    by_s = yields_by_s(draft, move)
    draft.look(by_s)
    over = draft.at_s >= by_s
    if not over and any(emptied_by_scaling(draft, one) for one in draft.replicas_on(node.name)):
        return
    refused = too_few(draft, move)
    if refused is None:
        to_stage(draft, move, Stage.DRAINING)
    elif over:
        turn_back(draft, move, "6.3", refused.text, spare=True)
    else:
        draft.withhold(f"drain of {node.name}", refused)


def _draining(draft: Draft, book: Ledger, move: Move) -> None:
    node = book.node_at_source(move)
    if node is None:
        _vanished(draft, book, move)
    elif draft.wants.held_by:
        turn_back(draft, move, "6.9", "held by an override")
    elif not _cordon(draft, move, node):
        return
    elif came_late(draft, book, move, node):
        end_work(draft, book, move, node)
    elif node.pods == 0:
        _remove(draft, book, move)
    else:
        over = draft.at_s >= move.since_s + draft.limits.drain_grace_s
        refused = too_few(draft, move) if move.direction is Direction.YIELD else None
        if over and move.direction is Direction.YIELD:
            turn_back(draft, move, "6.3", "its pods do not go", spare=True)
        elif refused is not None:
            draft.withhold(f"drain of {node.name}", refused)
            draft.look(move.since_s + draft.limits.drain_grace_s)
        elif over and draft.at_s >= move.since_s + 2 * draft.limits.drain_grace_s:
            _remove(draft, book, move)
        else:
            act = DeletePods if over else Drain
            reason = why(
                rule_of(move.direction),
                "grace is over" if over else "the rest is drained",
                move=move.id,
                pods=node.pods,
            )
            if draft.ask([move]):
                draft.do(act(side=source_of(move.direction), node=node.name, why=reason))
            draft.look(move.since_s + draft.limits.drain_grace_s)


def _remove(draft: Draft, book: Ledger, move: Move) -> None:
    """The last look before the point of no return."""
    if move.direction is Direction.YIELD:
        refused = no_yield(draft, book)
        want = draft.wants.pools[book.pool.name].nodes
        if refused is not None or production_to_be(draft, book) < want:
            rule = "6.3" if refused is None else refused.rule.removeprefix("§")
            turn_back(draft, move, rule, "production wants it" if refused is None else refused.text)
            return
        # What is still to come does not count here: it may not come.
        if book.usable[Side.PRODUCTION] < book.pool.min_production_nodes:
            turn_back(draft, move, "6.6", "production would be below its minimum")
            return
    elif production_to_be(draft, book) > draft.wants.pools[book.pool.name].soon:
        turn_back(draft, move, "6.5", "production no longer wants it")
        return
    to_stage(draft, move, Stage.REMOVING)


def _vanished(draft: Draft, book: Ledger, move: Move) -> None:
    """Somebody else took the node: nothing to go on with; the ledger shows what is missing."""
    del draft.moves[move.id]
    there = book.surveys[source_of(move.direction)].stands(move.node)
    text = "its Node is no longer ours to move" if there else "its Node is gone, and not by us"
    draft.withhold(f"{move.direction} of {move.node}", why("6.6", text, move=move.id, node=move.node))


def _removing(draft: Draft, book: Ledger, move: Move) -> None:
    if not book.surveys[source_of(move.direction)].stands(move.node):
        to_stage(draft, move, Stage.TRAVELLING)
    else:
        if book.node_at_source(move) is None:
            draft.withhold(f"removal of {move.node}", why("6.6", "it is no longer ours to remove", move=move.id))
        draft.look(draft.at_s + draft.limits.retry_s)
        draft.look(late_at_s(draft, move))


def _travelling(draft: Draft, book: Ledger, move: Move) -> None:
    late_s = late_at_s(draft, move)
    draft.look(late_s)
    stock_out_s = book.seen[source_of(move.direction).other].stock_out_s
    if draft.at_s >= late_s or stock_out_s is not None:
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
        draft.quarantined[node.name] = Broken(pool=book.pool.name, since_s=draft.at_s)
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
        _vanished(draft, book, move)
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
