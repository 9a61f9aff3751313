"""How long moves take, learned from finished ones: the P90 by pool, direction and size of the batch (§6.2, §5.9).

A hundred nodes that pull their weights at once are slower than four: batches are compared with their like, by powers
of two. Old moves count less: half after two weeks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ebbtide.control.memory import Direction, FinishedMove
from ebbtide.units import DAY_S

HALF_LIFE_S = 14 * DAY_S
LEAST_MOVES = 5  # the P90 of fewer is their longest or shorter: the Fleet's own figure is no worse
KEPT = 256  # newest of a pool and direction: at half weight after two weeks older ones hardly count
PERCENTILE = 0.9


def learned_p90_s(
    finished: Sequence[FinishedMove], *, pool: str, direction: Direction, batch: int, at_s: float
) -> float | None:
    """The P90 of what such moves took; None where fewer than five are known.

    Of batches of a like size (the same power of two) where there are five, else of those at least as large, else of
    all: a large batch tells of a smaller one on the safe side. Weights halve every two weeks.

    >>> moves = [
    ...     FinishedMove(pool="h100", direction=Direction.YIELD, batch=1, took_s=60.0 * k, finished_s=0.0)
    ...     for k in range(1, 11)
    ... ]
    >>> learned_p90_s(moves, pool="h100", direction=Direction.YIELD, batch=1, at_s=0.0)
    540.0
    """
    if not (_kept and _kept[0] is finished and _kept[1] == at_s):
        _kept[:] = [finished, at_s, {}]
    known: dict[tuple[str, Direction, int], float | None] = _kept[2]
    key = (pool, direction, _power(batch))
    if key not in known:
        known[key] = _learned_s(finished, pool=pool, direction=direction, batch=batch, at_s=at_s)
    return known[key]


_kept: list[Any] = []  # the moves and the instant last asked about, and the answers: every move in motion asks


def _learned_s(
    finished: Sequence[FinishedMove], *, pool: str, direction: Direction, batch: int, at_s: float
) -> float | None:
    like = [move for move in finished if move.pool == pool and move.direction is direction]
    size = _power(batch)
    for chosen in (
        [move for move in like if _power(move.batch) == size],
        [move for move in like if _power(move.batch) >= size],
        like,
    ):
        if len(chosen) >= LEAST_MOVES:
            return _weighted_quantile(chosen, at_s)
    return None


def with_finished(kept: tuple[FinishedMove, ...], more: Iterable[FinishedMove]) -> tuple[FinishedMove, ...]:
    """The store with more moves: the newest of every pool and direction."""
    counts: dict[tuple[str, Direction], int] = {}
    found: list[FinishedMove] = []
    for move in sorted((*kept, *more), key=lambda move: -move.finished_s):
        key = (move.pool, move.direction)
        counts[key] = counts.get(key, 0) + 1
        if counts[key] <= KEPT:
            found.append(move)
    return tuple(reversed(found))


def _power(batch: int) -> int:
    return max(batch, 1).bit_length()


def _weighted_quantile(moves: list[FinishedMove], at_s: float) -> float:
    ordered = sorted(moves, key=lambda move: move.took_s)
    weights = [0.5 ** (max(at_s - move.finished_s, 0.0) / HALF_LIFE_S) for move in ordered]
    total = math.fsum(weights)
    if total == 0.0:
        return ordered[-1].took_s  # all are years old: their weights are below any number
    reached = 0.0
    for move, weight in zip(ordered, weights, strict=True):
        reached += weight
        if reached >= PERCENTILE * total * (1 - 1e-9):
            return move.took_s
    return ordered[-1].took_s
