"""Moves between windows (§5.9): which window follows which, what a moving node costs, and when moves must begin.

What belongs here: the order of windows over one closed cycle, prices and leads. What doesn't: how many nodes stand
where (``cycle``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ebbtide.errors import InputError
from ebbtide.fleet.horizon import WEEK, Window, minute_of
from ebbtide.fleet.pool import Pool, Research
from ebbtide.units import SECONDS_PER_HOUR

Transition = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """The windows of one closed cycle in their order: a day where all windows share their days, else a week.

    ``track`` holds indices into ``windows``, one per occurrence; after its last comes its first.
    """

    windows: tuple[Window, ...]
    track: tuple[int, ...]
    days: int

    @cached_property
    def occurrences(self) -> tuple[int, ...]:
        """How often each window comes in a cycle."""
        return tuple(self.track.count(k) for k in range(len(self.windows)))

    @cached_property
    def transitions(self) -> Mapping[Transition, int]:
        """How often a window (first) is followed by another (second) in a cycle."""
        counts: dict[Transition, int] = {}
        for before, after in zip(self.track, self.track[1:] + self.track[:1], strict=True):
            if before != after:
                counts[before, after] = counts.get((before, after), 0) + 1
        return counts

    @cached_property
    def hours_per_cycle(self) -> tuple[float, ...]:
        """Hours of each window in a cycle of 24-hour days."""
        return tuple(n * window.nominal_hours for n, window in zip(self.occurrences, self.windows, strict=True))

    def moved(self, nodes: Sequence[int]) -> int:
        """Nodes reclaimed in a cycle; as many are yielded, for a cycle is closed."""
        return sum(count * max(0, nodes[after] - nodes[before]) for (before, after), count in self.transitions.items())


def timeline_of(windows: Sequence[Window]) -> Timeline:
    """The order of windows; ``InputError`` by name where they leave a gap or overlap (§5.1).

    >>> from whenever import Time
    >>> from ebbtide.fleet.horizon import DayPattern, windows_of
    >>> week = DayPattern(days=WEEK[:5], starts=(Time(0), Time(8))), DayPattern(days=WEEK[5:], starts=(Time(0),))
    >>> timeline = timeline_of([window for pattern in week for window in windows_of(pattern)])
    >>> timeline.track, timeline.transitions[1, 0], timeline.transitions[1, 2]
    ((0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 2, 2), 4, 1)
    """
    days = [day for day in WEEK if any(day in window.days for window in windows)]
    one_pattern = all(set(window.days) == set(days) for window in windows)
    track: list[int] = []
    for day in days[:1] if one_pattern else days:
        ours = [k for k, window in enumerate(windows) if day in window.days]
        track += sorted(ours, key=lambda k: minute_of(windows[k].start))
    for before, after in zip(track, track[1:] + track[:1], strict=True):
        _refuse_unless_adjacent(windows[before], windows[after])
    return Timeline(windows=tuple(windows), track=tuple(track), days=1 if one_pattern else len(days))


def _refuse_unless_adjacent(before: Window, after: Window) -> None:
    if before.end == after.start:
        return
    overlap = minute_of(before.start) < minute_of(after.start) < minute_of(before.end)
    word = "overlaps" if overlap else "leaves a gap before"
    raise InputError(
        f"window {before.name} ({before.span}) {word} {after.name} ({after.span})",
        kind="windows_overlap" if overlap else "windows_gap",
        hint="windows follow each other from start to start; patterns of several days begin at the same time",
    )


def move_cost_usd(pool: Pool, research: Research) -> float:
    """What one node costs per step up or down, USD: half of a whole turn, yield and reclaim (§5.9).

    A closed cycle yields as often as it reclaims, so each step may carry the mean. A yield takes the node out for its
    yield time; a reclaim for its reclaim time, and half a checkpoint interval of research's work is lost.

    >>> move_cost_usd(Pool(name="h100", gpus_per_node=8, nodes=4), Research())
    8.0
    """
    lost_h = (pool.yield_time_s + pool.reclaim_time_s + research.checkpoint_interval_s / 2.0) / SECONDS_PER_HOUR
    return lost_h * pool.gpus_per_node * research.value_usd_per_gpu_h / 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What one window holds of a pool: nodes in production and replicas per workload with their start-up times."""

    nodes: int
    replicas: tuple[int, ...]


def lead_s(pool: Pool, startup_s: Sequence[float], before: Holding, after: Holding) -> float:
    """How long before ``after`` starts its moves must begin (§5.9), seconds; 0 where no node is reclaimed.

    >>> pool = Pool(name="h100", gpus_per_node=8, nodes=40, reclaim_time_s=2700, moves_at_once=8)
    >>> lead_s(pool, [300.0], Holding(nodes=11, replicas=(13,)), Holding(nodes=25, replicas=(36,))) / 60
    95.0
    """
    reclaimed = after.nodes - before.nodes
    if reclaimed <= 0:
        return 0.0
    growing = [
        seconds for seconds, old, new in zip(startup_s, before.replicas, after.replicas, strict=True) if new > old
    ]
    return math.ceil(reclaimed / pool.moves_at_once) * pool.reclaim_time_s + max(growing, default=0.0)


def leads_s(
    pool: Pool,
    startup_s: Sequence[float],
    holdings: Sequence[Holding],
    transitions: Sequence[Transition],
) -> tuple[float, ...]:
    """The lead of every window, the longest over the windows that it may follow, seconds.

    A lead that is longer than the windows before it spans them: its moves begin in an earlier one.
    """
    leads = [0.0] * len(holdings)
    for before, after in transitions:
        leads[after] = max(leads[after], lead_s(pool, startup_s, holdings[before], holdings[after]))
    return tuple(leads)
