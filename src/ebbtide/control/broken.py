"""Nodes that no move speaks of: broken ones are named, missing ones written down, unasked ones adopted (§6.4, §6.6)."""

from __future__ import annotations

from ebbtide.control.actions import Admit, Quarantine, Uncordon
from ebbtide.control.draft import Draft, why
from ebbtide.control.ledger import Ledger, source_of
from ebbtide.control.memory import Broken, Direction, Missing, Stage
from ebbtide.control.motion import p90_s
from ebbtide.control.state import Node, Side, Tenure
from ebbtide.control.usable import Survey, fault_of


def see_to_broken(draft: Draft, book: Ledger) -> None:
    """Name nodes that stay broken; take back those that are whole again; adopt joining ones that nobody waits for."""
    taken = {name for move in draft.moves.values() for name in (move.node, move.arrived)}
    for side in Side:
        if not draft.fresh(side):
            continue
        survey = book.surveys[side]
        found = [survey.faulty.get(name) or survey.joining[name] for name in _suspects(survey)]
        broken = [node for node in found if node.name not in taken and node.name not in draft.quarantined]
        _name_broken(draft, book, side, [node for node in broken if _is_broken(draft, book, node)])
        for name in [name for name in draft.quarantined if name not in taken]:
            _take_back(draft, book, side, survey, name)
        for name in sorted(survey.joining):
            if name not in taken and name not in draft.quarantined and not _expected(draft, book, side):
                _adopt(draft, book, side, survey.joining[name])
    if all(draft.fresh(side) for side in Side):
        for name in book.repaired:
            draft.quarantined.pop(name, None)


def write_down_missing(draft: Draft, book: Ledger) -> None:
    """Count the nodes that are missing; after a while few of them are lost, and explain a difference from then on.

    A node that is lost for good would stop the pool's yields for good. Should one come back, it is lost no more.
    """
    name, at_s, limits = book.pool.name, draft.at_s, draft.limits
    if not all(draft.fresh(side) for side in Side):
        return
    if book.missing == 0:
        draft.missing.pop(name, None)
        return
    known = draft.missing.get(name)
    since_s = at_s if known is None or book.missing > known.nodes else known.since_s
    lost = 0 if known is None else min(known.lost, book.missing)
    lost_at_s = since_s + max(limits.lost_after_s, limits.late_factor * _slower_p90_s(draft, book))
    most = max(int(limits.lost_share * book.pool.nodes), 1)
    numbers = {"missing": book.missing, "at_most": most, "since_s": since_s}
    if lost < book.missing and at_s < lost_at_s:
        draft.look(lost_at_s)
    elif book.missing <= most:
        lost = book.missing
        draft.withhold(f"lost nodes of {name}", why("6.6", "missing for long: the Fleet has fewer nodes", **numbers))
    else:
        text = "too many are missing to be written down as lost: look for their labels, or correct the Fleet's nodes"
        draft.withhold(f"lost nodes of {name}", why("6.6", text, **numbers))
    draft.missing[name] = Missing(nodes=book.missing, since_s=since_s, lost=lost)


def _slower_p90_s(draft: Draft, book: Ledger) -> float:
    return max(p90_s(draft, book.pool, direction, 1) for direction in Direction)


def _expected(draft: Draft, book: Ledger, side: Side) -> bool:
    """Whether a move is about to wait for a node on a side: one that is there already may be its own."""
    return any(
        move.pool == book.pool.name and move.stage is Stage.REMOVING and source_of(move.direction) is not side
        for move in draft.moves.values()
    )


def _whole(draft: Draft, book: Ledger, node: Node) -> bool:
    stable_s = node.since_s + draft.limits.stable_s
    draft.look(stable_s)
    return not fault_of(node, book.pool) and draft.at_s >= stable_s


def _suspects(survey: Survey) -> list[str]:
    return [*sorted(survey.faulty), *sorted(survey.joining)]


def _is_broken(draft: Draft, book: Ledger, node: Node) -> bool:
    """Whether a node has had a fault for so long that it is named."""
    if not fault_of(node, book.pool):
        return False
    broken_at_s = node.since_s + draft.limits.broken_after_s
    draft.look(broken_at_s)
    return draft.at_s >= broken_at_s


def _name_broken(draft: Draft, book: Ledger, side: Side, nodes: list[Node]) -> None:
    """Name them, unless so many are broken at once that the cause is a common one: to cordon all would end production.

    They do not count as usable, named or not.
    """
    name, pool = book.pool.name, book.pool
    known = sum(one.pool == name for one in draft.quarantined.values())
    most = max(int(draft.limits.broken_share * pool.nodes), pool.moves_at_once)
    if nodes and known + len(nodes) > most:
        text = "so many nodes look broken at once that the cause is a common one: none is cordoned"
        reason = why("6.6", text, broken=len(nodes), known=known, at_most=most, first=nodes[0].name)
        draft.withhold(f"quarantine of {len(nodes)} nodes of {name}", reason)
        return
    for node in nodes:
        draft.quarantined[node.name] = Broken(pool=name, since_s=draft.at_s)
        reason = why("6.6", fault_of(node, pool), since_s=node.since_s)
        draft.do(Quarantine(side=side, node=node.name, why=reason))


def _take_back(draft: Draft, book: Ledger, side: Side, survey: Survey, name: str) -> None:
    """A node that is whole again gets its cordon and its joining taint taken away, then it counts."""
    node = survey.find(name)
    if node is None:
        return
    fault = fault_of(node, book.pool)
    if fault and not node.cordoned and draft.quarantined[name].since_s < draft.at_s:
        draft.do(Quarantine(side=side, node=name, why=why("6.6", fault, since_s=node.since_s)))  # asked again
    if not _whole(draft, book, node):
        return
    reason = why("6.6", "whole again", since_s=node.since_s)
    if node.cordoned_by_us:
        draft.do(Uncordon(side=side, node=name, why=reason))
    if node.joining:
        draft.do(Admit(side=side, node=name, tenure=Tenure.EPHEMERAL, why=reason))
    if not node.cordoned_by_us and not node.joining:
        del draft.quarantined[name]


def _adopt(draft: Draft, book: Ledger, side: Side, node: Node) -> None:
    """A node that came although no move waits for one: a late or replaced one is the Fleet's, one too many is not."""
    if book.difference > 0:
        what = f"admission of {node.name}"
        draft.withhold(what, why("6.6", "more nodes than the Fleet has", difference=book.difference))
    elif _whole(draft, book, node):
        reason = why("6.4", "usable, and the Fleet's: it came late or in another's place", difference=book.difference)
        draft.do(Admit(side=side, node=node.name, tenure=Tenure.EPHEMERAL, why=reason))
