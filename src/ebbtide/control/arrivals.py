"""Nodes that come: each belongs to the move that has waited longest for one (§6.1, §6.6)."""

from __future__ import annotations

from dataclasses import replace

from ebbtide.control.draft import Draft, why
from ebbtide.control.ledger import Ledger, source_of
from ebbtide.control.memory import Stage
from ebbtide.control.state import Side


def match_arrivals(draft: Draft, book: Ledger) -> None:
    """Give every joining node that no move knows, and that is not known to be broken, to the oldest move that waits.

    By order of move and name of node: looked at again after a crash, the answer is the same.
    """
    known = {move.arrived for move in draft.moves.values() if move.arrived} | draft.quarantined.keys()
    for side in Side:
        fresh = sorted(book.surveys[side].joining.keys() - known) if draft.fresh(side) else []
        if not fresh:
            continue
        waiting = [
            move
            for move in draft.moves.values()
            if move.pool == book.pool.name and move.stage is Stage.TRAVELLING and source_of(move.direction) is not side
        ]
        for move, name in zip(sorted(waiting, key=lambda one: (one.since_s, one.id)), fresh, strict=False):
            draft.moves[move.id] = replace(move, stage=Stage.JOINING, since_s=draft.at_s, arrived=name)


def write_off(draft: Draft, book: Ledger) -> None:
    """Drop late moves that nothing is missing for: the Fleet's nodes are all there without them (§6.6).

    The provider gave the machine to somebody else's order, or one came under another name. Were such a move kept, its
    node would be counted twice for good. Only on a difference that has stood for a few ticks, on both clusters' sight.
    """
    settled = draft.difference_ticks.get(book.pool.name, 0) > draft.limits.difference_ticks
    if book.difference <= 0 or not settled or not all(draft.fresh(side) for side in Side):
        return
    late = [
        move
        for move in draft.moves.values()
        if move.pool == book.pool.name and move.late and move.stage is Stage.TRAVELLING
    ]
    for move in sorted(late, key=lambda one: (one.since_s, one.id))[: book.difference]:
        del draft.moves[move.id]
        text = "given up: all of the Fleet's nodes are there without it"
        draft.withhold(f"arrival for {move.id}", why("6.6", text, difference=book.difference))
