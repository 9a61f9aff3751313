"""What the provider is asked for: named nodes taken out, pools grown, each to an absolute size (§6.1).

A removal's size is what the pool has now (the nodes that stand, where those are more) less the named nodes that are
not marked as leaving yet: asked again after a crash it is the same, whatever strangers did to the size meanwhile. A
growth's size is worked out once, when a move begins to travel, and recorded before it is asked for: of nodes on their
way nothing can be seen.
"""

from __future__ import annotations

import math

from ebbtide.control.actions import GrowPool, RemoveNodes
from ebbtide.control.draft import Draft, why
from ebbtide.control.ledger import Ledger, source_of
from ebbtide.control.memory import Move, Stage
from ebbtide.control.state import Side


def ask_provider(draft: Draft, book: Ledger) -> None:
    """Ask for what was decided and is not seen yet."""
    for side in Side:
        if draft.fresh(side):
            removed = _remove(draft, book, side)
            _grow(draft, book, side, removed)


def _remove(draft: Draft, book: Ledger, side: Side) -> int:
    """Ask for the removal of what is to go now: how many nodes."""
    going: list[Move] = []
    for move in _stage(draft, book, Stage.REMOVING):
        node = book.node_at_source(move) if source_of(move.direction) is side else None
        if node is not None and not node.leaving:
            going.append(move)
    fresh = sum(move.asked_s == -math.inf for move in going)
    if not draft.ask(going):
        return 0
    key = size_key(side, book)
    if key in draft.sizes:
        draft.sizes[key] -= fresh
    # Where more stand than the size says (brought twice), a smaller size takes one that nobody named besides.
    size = max(_size_now(book, side), _standing(book, side)) - len(going)
    reason = why(
        "6.2" if side is Side.RESEARCH else "6.3", "emptied: they go to the other side", nodes=len(going), size=size
    )
    nodes, ids = tuple(move.node for move in going), tuple(move.id for move in going)
    draft.do(RemoveNodes(side=side, pool=book.pool.name, nodes=nodes, size=size, moves=ids, why=reason))
    return len(going)


def _grow(draft: Draft, book: Ledger, side: Side, removed: int) -> None:
    """Ask for room for what travels: never for less than is there by then, which would take a node that nobody named.

    Somebody else may have added nodes that the size counts: then nothing comes for a move, and once it is late the
    size is what stands and all that are to come.
    """
    coming = [move for move in _stage(draft, book, Stage.TRAVELLING) if source_of(move.direction) is not side]
    key = size_key(side, book)
    if not coming:
        draft.sizes.pop(key, None)
        return
    now = book.seen[side].size
    fresh = sum(move.asked_s == -math.inf for move in coming)
    if fresh:
        there = _size_now(book, side) - removed
        draft.sizes[key] = max(draft.sizes.get(key, there) + fresh, there)
    if any(move.late for move in coming):
        draft.sizes[key] = max(draft.sizes.get(key, 0), _standing(book, side) + len(coming))
    size = draft.sizes.get(key, 0)
    if (fresh or now is None or now < size) and draft.ask(coming):
        reason = why(
            "6.2" if side is Side.PRODUCTION else "6.3",
            "to take those that left the other side",
            nodes=len(coming),
            size=size,
        )
        ids = tuple(move.id for move in coming)
        draft.do(GrowPool(side=side, pool=book.pool.name, size=size, moves=ids, why=reason))


def size_key(side: Side, book: Ledger) -> str:
    """How memory names the size of a pool on a side."""
    return f"{side}/{book.pool.name}"


def _stage(draft: Draft, book: Ledger, stage: Stage) -> list[Move]:
    return [move for move in draft.moves.values() if move.pool == book.pool.name and move.stage is stage]


def _standing(book: Ledger, side: Side) -> int:
    return sum(not node.leaving for node in book.seen[side].nodes)


def _size_now(book: Ledger, side: Side) -> int:
    """The size that the provider was asked for; where it has none, the nodes that stand there."""
    size = book.seen[side].size
    return len(book.seen[side].nodes) if size is None else size
