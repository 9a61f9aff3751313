"""How long moves take, learned from finished ones: the P90 by pool, direction and size of the batch (§6.2, §5.9).

A hundred nodes that pull their weights at once are slower than four: batches are compared with their like, by powers
of two. Old moves count less: half after two weeks.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise

from ebbtide.control.memory import Direction, FinishedMove
from ebbtide.units import DAY_S

HALF_LIFE_S = 14 * DAY_S
LEAST_MOVES = 5  # the P90 of fewer is their longest or shorter: the Fleet's own figure is no worse
KEPT = 256  # newest of a pool and direction: at half weight after two weeks older ones hardly count
PERCENTILE = 0.9


def learned_p90_s(
    finished: Iterable[FinishedMove], *, pool: str, direction: Direction, batch: int, at_s: float
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
    known = _store(tuple(finished)).known.get((pool, direction))
    if known is None:
        return None
    size = _power(batch)
    if known.latest_s > at_s:  # of a clock that was ahead: it weighs as much as today's, so weights are worked out anew
        return _p90_s(_known(known.moves, at_s, at_s).entries, size)
    if size not in known.p90_s:
        known.p90_s[size] = _p90_s(known.entries, size)
    return known.p90_s[size]


def with_finished(kept: tuple[FinishedMove, ...], more: Iterable[FinishedMove]) -> tuple[FinishedMove, ...]:
    """The store with more moves: the newest of every pool and direction."""
    new = sorted(more, key=lambda move: move.finished_s)
    store = _store(kept)
    if new and store.ordered and store.latest_s <= new[0].finished_s <= new[-1].finished_s < store.good_until_s:
        return _appended(store, new)
    counts: dict[tuple[str, Direction], int] = {}
    found: list[FinishedMove] = []
    ordered = sorted((*kept, *new), key=lambda move: move.finished_s)
    for move in reversed(ordered):
        key = (move.pool, move.direction)
        counts[key] = counts.get(key, 0) + 1
        if counts[key] <= KEPT:
            found.append(move)
    return tuple(reversed(found))


@dataclass(slots=True)
class _Known:
    """The moves of one pool and direction in order of their end; ``entries``: (time taken, power of the batch, weight)
    in order of the time. Weights are relative to one instant: of their ratios the P90 is made, and time keeps them.
    """

    moves: tuple[FinishedMove, ...]
    entries: list[tuple[float, int, float]]
    latest_s: float
    p90_s: dict[int, float | None] = field(default_factory=dict)  # by power of the batch, when first asked for


@dataclass(slots=True)
class _Store:
    """A store made ready to be asked: it is asked many times at every tick, and changes when a move has finished."""

    finished: tuple[FinishedMove, ...]
    known: dict[tuple[str, Direction], _Known]
    latest_s: float
    weighed_at_s: float
    ordered: bool

    @property
    def good_until_s(self) -> float:
        """Weights double every half-life: of much newer moves they would be beyond any number."""
        return self.weighed_at_s + 100 * HALF_LIFE_S


_kept: list[_Store] = []


def _store(finished: tuple[FinishedMove, ...]) -> _Store:
    """By identity, the last ones that were asked for."""
    for store in _kept:
        if store.finished is finished:
            return store
    return _keep(_made(finished))


def _keep(store: _Store) -> _Store:
    _kept[:] = [store, *_kept[:3]]
    return store


def _made(finished: tuple[FinishedMove, ...]) -> _Store:
    by_key: dict[tuple[str, Direction], list[FinishedMove]] = {}
    for move in finished:
        by_key.setdefault((move.pool, move.direction), []).append(move)
    latest_s = max((move.finished_s for move in finished), default=-math.inf)
    return _Store(
        finished=finished,
        known={key: _known(tuple(moves), latest_s) for key, moves in by_key.items()},
        latest_s=latest_s,
        weighed_at_s=latest_s,
        ordered=all(one.finished_s <= other.finished_s for one, other in pairwise(finished)),
    )


def _known(moves: tuple[FinishedMove, ...], at_s: float, not_after_s: float = math.inf) -> _Known:
    entries = sorted(_entry(move, at_s, not_after_s) for move in moves)
    return _Known(moves=moves, entries=entries, latest_s=max(move.finished_s for move in moves))


def _entry(move: FinishedMove, at_s: float, not_after_s: float = math.inf) -> tuple[float, int, float]:
    weight = 0.5 ** ((at_s - min(move.finished_s, not_after_s)) / HALF_LIFE_S)
    return move.took_s, _power(move.batch), weight


def _appended(store: _Store, new: list[FinishedMove]) -> tuple[FinishedMove, ...]:
    """The store with newer moves than all it has: only what changes of it is made anew."""
    known, finished = store.known.copy(), list(store.finished)
    for move in new:
        key = (move.pool, move.direction)
        before = known.get(key, _NOTHING)
        entries = before.entries.copy()
        insort(entries, _entry(move, store.weighed_at_s))
        if len(before.moves) == KEPT:
            oldest = before.moves[0]
            finished.remove(oldest)
            entries.remove(_entry(oldest, store.weighed_at_s))
        moves = (*before.moves, move)[-KEPT:]
        known[key] = _Known(moves=moves, entries=entries, latest_s=move.finished_s)
        finished.append(move)
    after = replace(store, finished=tuple(finished), known=known, latest_s=new[-1].finished_s)
    return _keep(after).finished


_NOTHING = _Known(moves=(), entries=[], latest_s=-math.inf)


def _power(batch: int) -> int:
    return max(batch, 1).bit_length()


def _p90_s(entries: list[tuple[float, int, float]], size: int) -> float | None:
    for chosen in (
        [entry for entry in entries if entry[1] == size],
        [entry for entry in entries if entry[1] >= size],
        entries,
    ):
        if len(chosen) >= LEAST_MOVES:
            return _weighted_quantile(chosen)
    return None


def _weighted_quantile(entries: list[tuple[float, int, float]]) -> float:
    reached = list(accumulate(weight for _, _, weight in entries))
    if reached[-1] == 0.0:
        return entries[-1][0]  # all are years old: their weights are below any number
    first = bisect_left(reached, PERCENTILE * reached[-1] * (1 - 1e-9))
    return entries[first][0]
