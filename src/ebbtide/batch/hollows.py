"""Hollows of the wave: the research capacity of a schedule over dated time, as steps of free whole nodes.

What belongs here: how many nodes of a pool and tenure stand in research at an instant, and when they leave. What
doesn't: who runs on them (``batch.fitting``), how nodes are moved (``control``).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Protocol

from ebbtide.fleet.pool import Pool
from ebbtide.fleet.schedule import PoolColumn, Schedule


class Tenure(StrEnum):
    """How long a node stays in research: for good, or until the tide turns (§2)."""

    RESERVED = "reserved"
    EPHEMERAL = "ephemeral"


class Stretch(Protocol):
    """A stretch of time with one of the schedule's windows in force (``control.timetable.Segment`` is one)."""

    @property
    def start_s(self) -> float: ...
    @property
    def end_s(self) -> float: ...
    @property
    def window(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Hollow:
    """Nodes of one pool and tenure: ``nodes[i]`` of them on ``[edges_s[i], edges_s[i+1])``, none outside.

    The nodes are numbered: node k is there whenever more than k are. So the nodes that came last leave first, and what
    stands on a low number is disturbed least.
    """

    pool: str
    tenure: Tenure
    gpus_per_node: int
    edges_s: tuple[float, ...]
    nodes: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.edges_s) != len(self.nodes) + 1 or any(a >= b for a, b in pairwise(self.edges_s)):
            raise ValueError(f"{self.pool}: {len(self.nodes)} steps need ascending edges, one more than steps")

    @property
    def most_nodes(self) -> int:
        """The most nodes that are ever there."""
        return max(self.nodes, default=0)

    @property
    def gpu_hours(self) -> float:
        """GPU-hours of all its steps."""
        spans = pairwise(self.edges_s)
        return sum((b - a) * n for (a, b), n in zip(spans, self.nodes, strict=True)) * self.gpus_per_node / 3600.0

    def nodes_at(self, at_s: float) -> int:
        """Nodes that stand there at an instant."""
        place = bisect_right(self.edges_s, at_s) - 1
        return self.nodes[place] if 0 <= place < len(self.nodes) else 0

    def stays(self, node: int) -> Iterator[tuple[float, float]]:
        """The stretches of time in which node ``node`` (from 0) is there.

        >>> tide = Hollow(pool="h100", tenure=Tenure.EPHEMERAL, gpus_per_node=8, edges_s=(0, 5, 9, 12), nodes=(2, 1, 2))
        >>> list(tide.stays(0)), list(tide.stays(1))
        ([(0, 12)], [(0, 5), (9, 12)])
        """
        begun: float | None = None
        for edge_s, count in zip(self.edges_s, (*self.nodes, 0), strict=True):
            if count > node and begun is None:
                begun = edge_s
            elif count <= node and begun is not None:
                yield begun, edge_s
                begun = None

    def falls_below(self, nodes: int, at_s: float) -> float:
        """The first instant from ``at_s`` on at which fewer than ``nodes`` are there; its end where that is never.

        >>> tide = Hollow(pool="h100", tenure=Tenure.EPHEMERAL, gpus_per_node=8, edges_s=(0, 5, 9, 12), nodes=(2, 1, 2))
        >>> tide.falls_below(2, 1), tide.falls_below(1, 1)
        (5, 12)
        """
        first = max(bisect_right(self.edges_s, at_s) - 1, 0)
        for place in range(first, len(self.nodes)):
            if self.nodes[place] < nodes:
                return max(self.edges_s[place], at_s)
        return max(self.edges_s[-1], at_s)


def hollows_of(
    schedule: Schedule, pools: Sequence[Pool], stretches: Sequence[Stretch], *, from_s: float, until_s: float
) -> tuple[Hollow, ...]:
    """The research capacity of a schedule in ``[from_s, until_s)``, reserved before ephemeral, pool by pool.

    ``stretches`` follow each other without a gap; they begin before ``from_s`` (so that a node on its way is seen) and
    reach beyond ``until_s`` by the longest lead (so that a reclaim that begins before is seen). Nodes leave when the
    lead of the window that wants them back begins, all at once, and may be wanted by a window after the next; they come
    in batches of the pool's moves at once, one yield time after the other, from their window's start on (§5.9). After
    the schedule's ``valid_until`` none come any more (§6.9). Pools without a node in research have no hollow.
    """
    columns = {column.name: column for column in schedule.pools}
    found = []
    for pool in pools:
        if pool.reserved_nodes:
            found.append(_hollow(pool, Tenure.RESERVED, [(from_s, pool.reserved_nodes)], from_s, until_s))
        if pool.name in columns:
            steps = _Tide(pool, columns[pool.name], stretches, schedule.valid_until.timestamp()).steps()
            found.append(_hollow(pool, Tenure.EPHEMERAL, steps, from_s, until_s))
    return tuple(one for one in found if one.most_nodes)


def _hollow(pool: Pool, tenure: Tenure, steps: Sequence[tuple[float, int]], from_s: float, until_s: float) -> Hollow:
    """The steps (from when on how many) cut to a span, equal neighbours joined."""
    begun = [count for at_s, count in steps if at_s <= from_s]
    edges_s, nodes = [from_s], [begun[-1] if begun else 0]
    for at_s, count in steps:
        if from_s < at_s < until_s:
            if at_s == edges_s[-1]:
                nodes[-1] = count
            elif count != nodes[-1]:
                edges_s.append(at_s)
                nodes.append(count)
    return Hollow(
        pool=pool.name,
        tenure=tenure,
        gpus_per_node=pool.gpus_per_node,
        edges_s=(*edges_s, until_s),
        nodes=tuple(nodes),
    )


class _Tide:
    """Ephemeral nodes over time: down when a lead begins, up as they arrive."""

    def __init__(self, pool: Pool, column: PoolColumn, stretches: Sequence[Stretch], valid_until_s: float) -> None:
        self._pool, self._column, self._stretches = pool, column, stretches
        self._valid_until_s = valid_until_s
        self._coming: list[tuple[float, int]] = []

    def steps(self) -> list[tuple[float, int]]:
        """From when on how many nodes are there, in order."""
        if not self._stretches:
            return []
        marks_s = sorted({mark for one in self._stretches for mark in (one.start_s, self._lead_begins_s(one))})
        marks_s = [mark for mark in marks_s if mark >= self._stretches[0].start_s]
        here = self._cap(marks_s[0])
        steps = [(marks_s[0], here)]
        for mark_s in marks_s[1:]:
            here = self._turned(self._arrived(steps, here, before_s=mark_s), mark_s)
            steps.append((mark_s, here))
        self._arrived(steps, here, before_s=math.inf)
        return steps

    def _arrived(self, steps: list[tuple[float, int]], here: int, *, before_s: float) -> int:
        while self._coming and self._coming[0][0] < before_s:
            at_s, count = self._coming.pop(0)
            here += count
            steps.append((at_s, here))
        return here

    def _turned(self, here: int, at_s: float) -> int:
        """What stays at a mark; more are sent for, or those on their way called back."""
        cap = self._cap(at_s)
        on_the_way = sum(count for _, count in self._coming)
        while self._coming and here + on_the_way > cap:
            arrives_s, count = self._coming.pop()
            kept = max(min(count, cap - here - (on_the_way - count)), 0)
            on_the_way -= count - kept
            if kept:
                self._coming.append((arrives_s, kept))
                break
        if here + on_the_way < cap and at_s < self._valid_until_s:
            self._send_for(cap - here - on_the_way, at_s)
            here = self._arrived([], here, before_s=at_s + 1e-9)
        return min(here, cap)

    def _send_for(self, count: int, at_s: float) -> None:
        pool, batch = self._pool, 1
        while count > 0:
            size = min(count, pool.moves_at_once)
            self._coming.append((at_s + batch * pool.yield_time_s, size))
            count, batch = count - size, batch + 1
        self._coming.sort()

    def _cap(self, at_s: float) -> int:
        """What the window in force leaves, and every window ahead whose lead has begun."""
        counts = [
            self._column.ephemeral_nodes[one.window]
            for one in self._stretches
            if one.start_s <= at_s < one.end_s or self._lead_begins_s(one) <= at_s < one.start_s
        ]
        return min(counts, default=0)

    def _lead_begins_s(self, one: Stretch) -> float:
        return one.start_s - self._column.lead_s[one.window]
