"""Which moves begin, and which are given up before it is too late (§6.2, §6.3, §6.6, §6.7)."""

from __future__ import annotations

from dataclasses import replace

from ebbtide.control.actions import Why
from ebbtide.control.draft import Draft, why
from ebbtide.control.handover import easiest
from ebbtide.control.least_loss import Losses, least_loss
from ebbtide.control.ledger import Ledger
from ebbtide.control.memory import Direction, Move, Stage
from ebbtide.control.motion import at_home, in_motion, inbound, p90_s, returning
from ebbtide.control.replica_wants import ReplicaWant
from ebbtide.control.state import Node, Side
from ebbtide.control.wants import PoolWant


def begin_moves(draft: Draft, book: Ledger) -> None:
    """Begin or give up moves of one pool until what is there and what comes is what is wanted."""
    want = draft.wants.pools[book.pool.name]
    if not draft.fresh(Side.PRODUCTION):
        draft.withhold(f"moves of {book.pool.name}", dark(draft, Side.PRODUCTION))
        return
    there = production_to_be(draft, book)
    if want.nodes > there:
        missing = want.nodes - there - _give_up(draft, book, Direction.YIELD, want.nodes - there, "production wants it")
        if missing > 0:
            _reclaim(draft, book, want, missing)
    elif want.nodes < there:
        spare = there - want.nodes
        unwanted = max(there - want.soon, 0)
        spare -= _give_up(draft, book, Direction.RECLAIM, unwanted, "production no longer wants it")
        if spare > 0:
            _yield(draft, book, want, spare)


def production_to_be(draft: Draft, book: Ledger) -> int:
    """Production nodes that can be counted on once what is in motion has come, late moves and broken nodes not."""
    side, name = Side.PRODUCTION, book.pool.name
    young = sum(node in book.surveys[side].whole for node in book.unstable)
    return book.usable[side] + young + inbound(draft, name, side) + returning(draft, name, side)


def _give_up(draft: Draft, book: Ledger, direction: Direction, count: int, reason: str) -> int:
    """Turn moves that have not left home back: the newest first. How many."""
    turned = at_home(draft, book, direction)[:count]
    for move in turned:
        draft.moves[move.id] = replace(move, stage=Stage.RETURNING, since_s=draft.at_s)
        draft.withhold(
            f"{direction} of {move.node}",
            why("6.5", f"given up before removal: {reason}", move=move.id, node=move.node),
        )
    return len(turned)


def _reclaim(draft: Draft, book: Ledger, want: PoolWant, missing: int) -> None:
    """Begin reclaims: the nodes whose work loses least; what is still missing is said."""
    name = book.pool.name
    refused = _no_reclaim(draft)
    if refused is not None:
        draft.withhold(f"reclaim of {missing} nodes of {name}", refused)
        return
    room = book.pool.moves_at_once - in_motion(draft, name)
    count = min(missing, max(room, 0))
    batch_p90_s = p90_s(draft, book.pool, Direction.RECLAIM, max(count, 1))
    losses = Losses(
        at_s=draft.at_s,
        due_s=max(want.due_s - batch_p90_s, draft.at_s) + draft.limits.research_grace_s,
        end_overrunning_work=draft.limits.end_overrunning_work,
        doomed=_doomed(draft, book),
    )
    candidates = [node for node in book.movable(Side.RESEARCH) if node.name not in draft.spared]
    work = [one for one in draft.state.research.work if one.pool == name]
    chosen, lost = least_loss(count, candidates, work, losses)
    numbers = {"wanted": want.nodes, "there": want.nodes - missing, "lost_gpu_s": round(lost)}
    text = "live demand is above the plan" if want.guard_nodes else "the window ahead wants more production nodes"
    rule = "6.7" if want.guard_nodes else "6.2"
    _begin(draft, book, Direction.RECLAIM, chosen, want.due_s, why(rule, text, **numbers))
    if len(chosen) < missing:
        text = "moves at once" if count < missing else "no node of research may be taken"
        draft.withhold(
            f"reclaim of {missing - len(chosen)} nodes of {name}",
            why("6.6", text, moves_at_once=book.pool.moves_at_once, in_motion=in_motion(draft, name)),
        )


def _doomed(draft: Draft, book: Ledger) -> frozenset[str]:
    """Workloads that end because of a move that is under way: their other nodes lose nothing more."""
    going = {move.node for move in at_home(draft, book, Direction.RECLAIM)}
    if not going:
        return frozenset()
    work = draft.state.research.work
    return frozenset(one.name for one in work if one.preemptible and not going.isdisjoint(one.nodes))


def dark(draft: Draft, side: Side) -> Why:
    """The reason of everything that is not done because a cluster is not seen."""
    return why("6.6", f"the {side} cluster is not seen", seen_at_s=draft.state.sight(side).seen_at_s)


def _no_reclaim(draft: Draft) -> Why | None:
    """Why no reclaim may begin: a wish of people, or a cluster that is not seen."""
    if draft.wants.held_by:
        return why("6.9", "held by an override", override=draft.wants.held_by)
    return next((dark(draft, side) for side in Side if not draft.fresh(side)), None)


def _yield(draft: Draft, book: Ledger, want: PoolWant, spare: int) -> None:
    """Begin yields of spare nodes: those whose pods leave most easily, never below a minimum."""
    name = book.pool.name
    refused = no_yield(draft, book)
    if refused is not None:
        draft.withhold(f"yield of {spare} nodes of {name}", refused)
        return
    usable = book.usable[Side.PRODUCTION]
    room = book.pool.moves_at_once - in_motion(draft, name)
    least = max(want.nodes, want.soon)  # neither is below the pool's minimum
    count = max(min(spare, room, usable - least), 0)
    movable = [node for node in book.movable(Side.PRODUCTION) if node.name not in draft.spared]
    nodes = easiest(draft, movable, count, (workload for workload, _ in draft.plan.workloads[name]))
    numbers = {"wanted": want.nodes, "there": want.nodes + spare, "usable": usable}
    reason = why("6.3", "the window wants fewer production nodes", **numbers)
    _begin(draft, book, Direction.YIELD, nodes, draft.at_s, reason)
    kept = min(want.soon - want.nodes, spare)
    if kept > 0:
        text = "they would have to come back at once: the gap is shorter than yield and reclaim"
        draft.withhold(f"yield of {kept} nodes of {name}", why("5.9", text, wanted=want.nodes, soon=want.soon))
    if count < spare - kept:
        draft.withhold(
            f"yield of {spare - kept - count} nodes of {name}",
            why("6.6", "moves at once, or the minimum", moves_at_once=book.pool.moves_at_once, least=least),
        )


def no_yield(draft: Draft, book: Ledger) -> Why | None:
    """Why nothing may leave production now; None: it may."""
    limits = draft.limits
    ticks = draft.difference_ticks.get(book.pool.name, 0)
    if ticks > limits.difference_ticks:
        return why("6.6", "nodes do not add up", difference=book.difference, ticks=ticks)
    if draft.at_s >= draft.plan.valid_until_s:
        return why("6.9", "the schedule is no longer valid", valid_until_s=draft.plan.valid_until_s)
    if draft.state.doubt:
        return why("6.9", draft.state.doubt)
    above = _above_plan(draft, book)
    if above is not None:
        name, one = above
        live = "not observed" if one.live_rps is None else one.live_rps
        text = "live demand is, or was just now, above what the plan holds"
        return why("6.7", text, workload=name, live_rps=live, holds_rps=one.holds_rps)
    if draft.wants.held_by:
        return why("6.9", "held by an override", override=draft.wants.held_by)
    return next((dark(draft, side) for side in Side if not draft.fresh(side)), None)


def _above_plan(draft: Draft, book: Ledger) -> tuple[str, ReplicaWant] | None:
    """A workload of this pool whose live guard is on: other pools' yields are no help to it."""
    for workload, _ in draft.plan.workloads[book.pool.name]:
        want = draft.wants.replicas.get(workload.name)
        if want is not None and want.above_plan:
            return workload.name, want
    return None


def _begin(draft: Draft, book: Ledger, direction: Direction, nodes: list[Node], due_s: float, reason: Why) -> None:
    for node in nodes:
        number = f"{book.pool.name}-{draft.next_move}"
        draft.next_move += 1
        draft.moves[number] = Move(
            id=number,
            pool=book.pool.name,
            direction=direction,
            node=node.name,
            stage=Stage.EMPTYING,
            begun_s=draft.at_s,
            since_s=draft.at_s,
            due_s=due_s,
            batch=len(nodes),
            reason=reason.text,
        )
