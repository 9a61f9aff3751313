"""Where a pool's nodes stand while replicas come and go: in production, on the way, or with research (§5.9).

What belongs here: from the nodes that production needs to nodes by side over time, moves and what research loses.
What doesn't: how many nodes replicas need (``allocate.packing``), who decides (``policies``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints
from ebbtide.fleet.pool import Pool, Research
from ebbtide.units import SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Held:
    """A pool's nodes by side on ``[edges_s[i], edges_s[i+1])``; reserved nodes are research's.

    ``reclaimed`` and ``yielded`` are moves, a node each. ``over`` says by how many nodes production's need passed what
    may stand there at most: it is counted as if they were there.
    """

    pool: Pool
    edges_s: Floats
    production: Ints
    moving: Ints
    research: Ints
    reclaimed: int
    yielded: int
    over: int

    @property
    def moves(self) -> int:
        """Nodes moved, either way."""
        return self.reclaimed + self.yielded

    def gpu_h(self, nodes: Ints) -> float:
        """GPU-hours of one side."""
        return float((nodes * np.diff(self.edges_s)).sum()) / SECONDS_PER_HOUR * self.pool.gpus_per_node

    def lost_gpu_h(self, research: Research) -> float:
        """What research loses to reclaims: half a checkpoint interval of every node (§5.9)."""
        hours = research.checkpoint_interval_s / 2.0 / SECONDS_PER_HOUR
        return self.reclaimed * self.pool.gpus_per_node * hours


def held_nodes(pool: Pool, starts_s: Floats, nodes: Ints, *, end_s: float, startup_s: Floats | None = None) -> Held:
    """The pool while production needs ``nodes[i]`` from ``starts_s[i]`` on, the last until ``end_s``.

    Nodes that production gets at a start were reclaimed before it, ``moves_at_once`` at a time, the last of them
    ``startup_s[i]`` before (None: 0); those it gives leave from the start on, as many at a time. Until it leaves, and
    from when it has come, a node is production's; on its way nobody's.

    >>> pool = Pool(name="h100", gpus_per_node=8, nodes=10, yield_time_s=1800, reclaim_time_s=3600, moves_at_once=2)
    >>> held = held_nodes(pool, np.array([0.0, 36000.0]), np.array([4, 7]), end_s=72000.0)
    >>> (held.edges_s / 3600).tolist(), held.production.tolist(), held.moving.tolist()
    ([0.0, 8.0, 9.0, 10.0, 20.0], [4, 4, 5, 7], [0, 1, 2, 0])
    """
    start_s = float(starts_s[0])
    delta = np.diff(nodes)
    startup = np.zeros(len(nodes)) if startup_s is None else startup_s
    own: list[tuple[float, int]] = [(start_s, int(nodes[0]))]
    away: list[tuple[float, int]] = []
    for step in np.flatnonzero(delta).tolist():
        change, at_s = int(delta[step]), float(starts_s[step + 1])
        if change > 0:
            at_s -= float(startup[step + 1])
        for batch, moved in enumerate(_batches(abs(change), pool.moves_at_once)):
            if change > 0:
                come_s = at_s - pool.reclaim_time_s * batch
                own.append((come_s, moved))
                away += [(come_s - pool.reclaim_time_s, moved), (come_s, -moved)]
            else:
                go_s = at_s + pool.yield_time_s * batch
                own.append((go_s, -moved))
                away += [(go_s, moved), (go_s + pool.yield_time_s, -moved)]
    edges = np.unique([min(max(at, start_s), end_s) for at, _ in (*own, *away)] + [start_s, end_s])
    # Moves that overlap (a gap shorter than they take) would count a node twice, but it is in one place.
    needed = nodes[np.searchsorted(starts_s, edges[:-1], side="right") - 1]
    production = np.clip(_level(own, edges), needed, np.maximum(needed, pool.max_production_nodes))
    movable = np.maximum(pool.max_production_nodes - production, 0)
    moving = np.minimum(_level(away, edges), movable)
    return Held(
        pool=pool,
        edges_s=edges,
        production=production,
        moving=moving,
        research=np.maximum(pool.nodes - production - moving, pool.reserved_nodes),
        reclaimed=int(delta.clip(min=0).sum()),
        yielded=int(-delta.clip(max=0).sum()),
        over=max(int(nodes.max()) - pool.max_production_nodes, 0),
    )


def without_short_gaps(starts_s: Floats, nodes: Ints, *, end_s: float, shortest_s: float) -> tuple[Floats, Ints]:
    """The same need where a node stays in production through every pause shorter than ``shortest_s``.

    A gap shorter than yield and reclaim never pays (§5.9). Steps with equal counts become one.

    >>> starts, nodes = np.array([0.0, 10.0, 12.0, 30.0]), np.array([5, 3, 5, 2])
    >>> [part.tolist() for part in without_short_gaps(starts, nodes, end_s=40.0, shortest_s=5.0)]
    [[0.0, 30.0], [5, 2]]
    """
    ends_s = np.append(starts_s[1:], end_s)
    kept = nodes.copy()
    for level in np.unique(nodes)[1:].tolist():
        low = nodes < level
        first = np.flatnonzero(low & ~np.insert(low[:-1], 0, False))
        last = np.flatnonzero(low & ~np.append(low[1:], False))
        short = (first > 0) & (last < len(nodes) - 1) & (ends_s[last] - starts_s[first] < shortest_s)
        filled = np.zeros(len(nodes) + 1, dtype=np.int64)
        filled[first[short]] += 1
        filled[last[short] + 1] -= 1
        kept = np.where(np.cumsum(filled)[:-1] > 0, np.maximum(kept, level), kept)
    new = np.insert(np.diff(kept) != 0, 0, True)
    return starts_s[new], kept[new]


def _batches(nodes: int, at_once: int) -> list[int]:
    """Moves at a time, the first or (reclaiming, seen from the end) the last of them full."""
    count = math.ceil(nodes / at_once)
    return [min(at_once, nodes - batch * at_once) for batch in range(count)]


def _level(changes: list[tuple[float, int]], edges: Floats) -> Ints:
    """What the changes add up to between edges; those before the first edge have happened."""
    at = np.array([at for at, _ in changes])
    by = np.array([by for _, by in changes], dtype=np.int64)
    order = np.argsort(at, kind="stable")
    total = np.concatenate([[0], np.cumsum(by[order])])
    return total[np.searchsorted(at[order], edges[:-1], side="right")]
