"""Nodes that come: each belongs to the move that has waited longest for one (§6.1, §6.6)."""

from __future__ import annotations

from dataclasses import replace

from ebbtide.control.draft import Draft
from ebbtide.control.ledger import Ledger, source_of
from ebbtide.control.memory import Stage
from ebbtide.control.state import Side


def match_arrivals(draft: Draft, book: Ledger) -> None:
    """Give every joining node that no move knows, and that is not known to be broken, to the oldest move that waits.

    By order of move and name of node: looked at again after a crash, the answer is the same.
    """
    known = {move.arrived for move in draft.moves.values() if move.arrived} | draft.quarantined.keys()
    for side in Side:
        fresh = sorted(name for name in book.surveys[side].joining if name not in known) if draft.fresh(side) else []
        waiting = [
            move
            for move in draft.moves.values()
            if move.pool == book.pool.name and move.stage is Stage.TRAVELLING and source_of(move.direction) is not side
        ]
        for move, name in zip(sorted(waiting, key=lambda one: (one.since_s, one.id)), fresh, strict=False):
            draft.moves[move.id] = replace(move, stage=Stage.JOINING, since_s=draft.at_s, arrived=name)
