"""One pool over the cycle as bands of GPUs: production, nodes in motion, yielded to research, reserved.

Every band is constant between ``edges``; the four sum to the pool's GPUs at every minute. Nodes in motion are drawn
where the plan counts them (§5.9): a reclaim just before the window that needs the node, a yield from the start of the
window that gives it, each for its move time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.horizon import DAY_MINUTES, WEEK, Window, minute_of
from ebbtide.fleet.pool import Pool
from ebbtide.fleet.schedule import PoolColumn, Schedule

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spell:
    """One occurrence of a window in the cycle: ``[start, end)`` in minutes; ``end`` may lie beyond the cycle's."""

    window: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Motion:
    """Nodes that travel together, in minutes of the cycle; ``reclaim`` False: they yield."""

    start: float
    end: float
    gpus: int
    reclaim: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tide:
    """A pool's bands in GPUs over ``[edges[i], edges[i+1])`` minutes of a cycle of ``cycle`` minutes."""

    pool: Pool
    cycle: int
    spells: tuple[Spell, ...]
    motions: tuple[Motion, ...]
    leads: tuple[tuple[float, float], ...]
    edges: Floats
    production: Floats
    reclaiming: Floats
    yielding: Floats
    research: Floats
    reserved: int

    @property
    def days(self) -> int:
        """Days in a cycle: 1 or 7."""
        return self.cycle // DAY_MINUTES

    def gpu_hours_per_day(self, band: Floats) -> float:
        """A band's area, a mean over the cycle's days."""
        return float((band * np.diff(self.edges)).sum()) / 60.0 / self.days


def is_weekly(windows: tuple[Window, ...]) -> bool:
    """Whether the cycle is a week: some undated window is not for every day."""
    return any(window.days != WEEK for window in windows if window.valid_from is None)


def spells_of(windows: tuple[Window, ...]) -> tuple[Spell, ...]:
    """Where the undated windows lie in the cycle, by start.

    >>> from ebbtide.fleet.horizon import DayPattern, windows_of
    >>> from whenever import Time
    >>> [(s.window, s.start, s.end) for s in spells_of(windows_of(DayPattern(days=WEEK, starts=(Time(7), Time(19)))))]
    [(0, 420, 1140), (1, 1140, 1860)]
    """
    weekly = is_weekly(windows)
    spells = [
        Spell(window=index, start=day + minute_of(window.start), end=day + minute_of(window.start) + length)
        for index, window in enumerate(windows)
        if window.valid_from is None
        for length in (round(window.nominal_hours * 60),)
        for day in ([WEEK.index(name) * DAY_MINUTES for name in window.days] if weekly else [0])
    ]
    return tuple(sorted(spells, key=lambda spell: spell.start))


def tide_of(schedule: Schedule, column: PoolColumn, pool: Pool) -> Tide:
    """The bands of one pool under a schedule."""
    cycle = DAY_MINUTES * (7 if is_weekly(schedule.windows) else 1)
    spells = spells_of(schedule.windows)
    motions = _motions(spells, column, pool)
    edges = _edges(spells, motions, cycle)
    mid = (edges[:-1] + edges[1:]) / 2
    production = np.zeros(len(mid))
    for spell in spells:
        production[_inside(mid, spell.start, spell.end, cycle)] = column.production_nodes[spell.window]
    production *= pool.gpus_per_node
    reclaiming = _moving(mid, motions, cycle, reclaim=True)
    yielding = _moving(mid, motions, cycle, reclaim=False)
    reserved = pool.reserved_nodes * pool.gpus_per_node
    free = pool.nodes * pool.gpus_per_node - reserved - production - reclaiming - yielding
    return Tide(
        pool=pool,
        cycle=cycle,
        spells=spells,
        motions=motions,
        leads=_leads(spells, column),
        edges=edges,
        production=production,
        reclaiming=reclaiming,
        yielding=yielding,
        research=np.maximum(free, 0.0),
        reserved=reserved,
    )


def split(start: float, end: float, cycle: int) -> list[tuple[float, float]]:
    """A stretch of the circle as stretches of ``[0, cycle]``: one, or two where it runs over the cycle's end.

    >>> split(-30, 10, 1440), split(1300, 1500, 1440), split(0, 1440, 1440)
    ([(1410, 1440), (0, 10)], [(1300, 1440), (0, 60)], [(0, 1440)])
    """
    if end - start >= cycle:
        return [(0, cycle)]
    turns = start // cycle * cycle
    start, end = start - turns, end - turns
    return [(start, end)] if end <= cycle else [(start, cycle), (0, end - cycle)]


def _inside(mid: Floats, start: float, end: float, cycle: int) -> NDArray[np.bool_]:
    hit = np.zeros(len(mid), dtype=bool)
    for first, last in split(start, end, cycle):
        hit |= (mid >= first) & (mid < last)
    return hit


def _motions(spells: tuple[Spell, ...], column: PoolColumn, pool: Pool) -> tuple[Motion, ...]:
    motions = []
    for before, spell in zip(spells[-1:] + spells[:-1], spells, strict=True):
        more = column.production_nodes[spell.window] - column.production_nodes[before.window]
        if more == 0:
            continue
        start = spell.start - pool.reclaim_time_s / 60 if more > 0 else spell.start
        end = spell.start if more > 0 else spell.start + pool.yield_time_s / 60
        if end > start:
            motions.append(Motion(start=start, end=end, gpus=abs(more) * pool.gpus_per_node, reclaim=more > 0))
    return tuple(motions)


def _leads(spells: tuple[Spell, ...], column: PoolColumn) -> tuple[tuple[float, float], ...]:
    """Where the preparations of a window run: from its lead before its start, to its start."""
    leads = ((spell.start, column.lead_s[spell.window] / 60) for spell in spells)
    return tuple((start - lead, float(start)) for start, lead in leads if lead > 0)


def _edges(spells: tuple[Spell, ...], motions: tuple[Motion, ...], cycle: int) -> Floats:
    marks = {0.0, float(cycle)}
    for start, end in [(spell.start, spell.end) for spell in spells] + [(m.start, m.end) for m in motions]:
        marks |= {float(mark) for stretch in split(start, end, cycle) for mark in stretch}
    return np.array(sorted(marks))


def _moving(mid: Floats, motions: tuple[Motion, ...], cycle: int, *, reclaim: bool) -> Floats:
    band = np.zeros(len(mid))
    for motion in motions:
        if motion.reclaim is reclaim:
            band[_inside(mid, motion.start, motion.end, cycle)] += motion.gpus
    return band
