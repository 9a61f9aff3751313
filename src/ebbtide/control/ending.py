"""Ending research's work on a node that goes back, within its grace and the time there is (§6.5, §7.5)."""

from __future__ import annotations

from ebbtide.control.actions import DeletePods, Park
from ebbtide.control.draft import Draft, why
from ebbtide.control.ledger import Ledger, source_of
from ebbtide.control.memory import Direction, Move, Stage
from ebbtide.control.motion import p90_s, to_stage, turn_back
from ebbtide.control.quota import still_too_high
from ebbtide.control.state import Node, ResearchWork


def reclaim_by_s(draft: Draft, book: Ledger, move: Move) -> float:
    """When production wins: the window's start less what the remaining steps take, never before the grace (§6.5)."""
    rest_s = p90_s(draft, book.pool, move.direction, move.batch)
    return max(move.begun_s, move.due_s - rest_s) + draft.limits.research_grace_s


def end_work(draft: Draft, book: Ledger, move: Move, node: Node) -> None:
    """End the Workloads on a node, after its cordon and the quota, before any eviction (§6.2, §7.5)."""
    here = draft.work_on(node.name)
    by_s = reclaim_by_s(draft, book, move)
    draft.look(by_s)
    over, told = draft.at_s >= by_s, draft.at_s >= by_s - draft.limits.research_grace_s
    draft.look(by_s - draft.limits.research_grace_s)
    awake = [one for one in here if one.active and not one.parked_by_us]
    for one in awake:
        if not one.managed or (over and not _may_end(draft, one, told)):
            turn_back(draft, move, "6.5", f"{one.name} must not be interrupted", spare=True)
            return
    if awake and not over and still_too_high(draft, book):
        draft.withhold(f"end of work on {node.name}", why("6.2", "the quota is lowered first", move=move.id, by_s=by_s))
        return
    for one in awake:
        if _may_end(draft, one, told):
            _park(draft, move, one)
        else:
            draft.withhold(f"reclaim of {node.name}", why("6.5", f"{one.name} ends first", move=move.id, by_s=by_s))
    # Work that was told to end has its grace, and the time that telling it takes; no more, however early it was told.
    ended_s = move.since_s + draft.limits.research_grace_s + draft.limits.retry_s
    if over or (not awake and draft.at_s >= ended_s):
        _production_wins(draft, move, node, here)
    elif not awake:
        draft.look(ended_s)


def _may_end(draft: Draft, work: ResearchWork, told: bool) -> bool:
    """Whether work may be ended now: preemptible at any time, other work when it overruns and the Fleet says so."""
    return work.preemptible or (told and draft.limits.end_overrunning_work)


def _park(draft: Draft, move: Move, work: ResearchWork) -> None:
    lost = round(work.gpus * max(draft.at_s - work.checkpointed_s, 0.0))
    text = "its nodes go back" if work.requeues else "its nodes go back, and it does not requeue: its work is lost"
    draft.park(Park(work=work.name, why=why("7.5", text, move=move.id, lost_gpu_s=lost)))


def _production_wins(draft: Draft, move: Move, node: Node, here: list[ResearchWork]) -> None:
    """The grace is over: what is left on the node is deleted, and its loss said."""
    lost = round(sum(one.gpus * max(draft.at_s - one.checkpointed_s, 0.0) for one in here))
    reason = why("6.5", "grace and time are over: production wins", move=move.id, lost_gpu_s=lost)
    if draft.ask([move]):
        draft.do(DeletePods(side=source_of(move.direction), node=node.name, why=reason))
    if draft.at_s >= move.since_s + draft.limits.drain_grace_s + draft.limits.research_grace_s:
        to_stage(draft, move, Stage.DRAINING)
    draft.look(draft.at_s + draft.limits.retry_s)


def came_late(draft: Draft, book: Ledger, move: Move, node: Node) -> bool:
    """Work that came while the cordon was away is ended, not evicted, as long as there is time: eviction fails jobs."""
    if move.direction is Direction.YIELD or draft.at_s >= reclaim_by_s(draft, book, move):
        return False
    return any(one.active and not one.parked_by_us for one in draft.work_on(node.name))
