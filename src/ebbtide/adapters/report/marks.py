"""What is written on a chart of the tide: ticks, nodes over steps, names of areas, leads, texts for the pointer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ebbtide.adapters.report.figures import minutes, whole
from ebbtide.adapters.report.paths import Plot
from ebbtide.adapters.report.tide import Spell, Tide, split
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.horizon import DAY_MINUTES, WEEK, Window

CHARACTER_PX = 6.4  # of the chart's 12 px text, on the wide side


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A text at a place, or a line's place with its text (empty: only the line)."""

    x: float
    y: float
    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A rectangle with a text for the pointer."""

    x: float
    y: float
    width: float
    height: float
    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AreaName:
    """An area's name, a line each with its place."""

    x: float
    lines: tuple[tuple[float, str], ...]


def boundaries(plot: Plot, tide: Tide) -> tuple[float, ...]:
    """Where windows start, unless there are so many that the lines would hide the wave."""
    few = len(tide.spells) <= (plot.right - plot.left) / 14
    return tuple(plot.x(spell.start) for spell in tide.spells) if few else ()


def day_ticks(plot: Plot, tide: Tide) -> Iterator[Mark]:
    """Clock times: the windows' starts where they can be told apart, else every few hours; a small tick every hour."""
    step = 180 if plot.right - plot.left > 500 else 360
    starts = sorted({spell.start for spell in tide.spells} | {0, DAY_MINUTES})
    if len(starts) > (plot.right - plot.left) / 60:
        starts = list(range(0, DAY_MINUTES + 1, step))
    last = -math.inf
    for minute in starts:
        x = plot.x(minute)
        crowded = x - last < 40 or (minute < DAY_MINUTES and plot.right - x < 40)
        yield Mark(x=x, y=plot.bottom, text="" if crowded else clock_of(minute), kind="major")
        last = last if crowded else x
    for hour in range(1, 24):
        yield Mark(x=plot.x(hour * 60), y=plot.bottom, text="", kind="minor")


def week_ticks(plot: Plot) -> Iterator[Mark]:
    """Days by their names, between ticks at their midnights."""
    for day, name in enumerate(WEEK):
        yield Mark(x=plot.x(day * DAY_MINUTES), y=plot.bottom, text="", kind="major")
        yield Mark(x=plot.x((day + 0.5) * DAY_MINUTES), y=plot.bottom, text=name.value, kind="minor")
    yield Mark(x=plot.right, y=plot.bottom, text="", kind="major")


def clock_of(minute: float) -> str:
    """``07:30`` of minutes since midnight."""
    return f"{int(minute) // 60:02}:{int(minute) % 60:02}"


def y_ticks(plot: Plot, fleet: float) -> Iterator[Mark]:
    """Round numbers of GPUs, and the fleet's own number."""
    step = _round_step(plot.most / 4.5)
    value = 0.0
    while value <= plot.most:
        near_fleet = abs(plot.y(value) - plot.y(fleet)) < 26 and value != fleet
        if not near_fleet:
            yield Mark(x=plot.left, y=plot.y(value), text=whole(value))
        value += step
    if fleet % step:
        yield Mark(x=plot.left, y=plot.y(fleet), text=whole(fleet))


def _round_step(least: float) -> float:
    """The least of 1, 2, 5, 10, 20, … that is not below.

    >>> _round_step(71.1), _round_step(0.4)
    (100.0, 1.0)
    """
    power = 10.0 ** math.floor(math.log10(max(least, 1.0)))
    return next(power * factor for factor in (1.0, 2.0, 5.0, 10.0) if power * factor >= least)


def node_labels(plot: Plot, tide: Tide, missing_gpus: Mapping[int, int | None]) -> Iterator[Mark]:
    """Nodes above every step that is wide enough; below it what is missing where targets cannot be met."""
    widest = max(spell.end - spell.start for spell in tide.spells)
    for spell, start, end in _stretches(tide):
        gpus = _at(tide, tide.production, start, end)
        x, y, width = plot.x((start + end) / 2), plot.y(gpus), plot.x(end) - plot.x(start)
        nodes = whole(gpus / tide.pool.gpus_per_node)
        text = f"{nodes} nodes" if end - start == widest else nodes
        if _fits(text, width):
            yield Mark(x=x, y=y - 6, text=text, kind="nodes")
        short = missing_gpus.get(spell.window, 0)
        if short != 0:
            said = "▲ no GPUs are enough" if short is None else f"▲ {whole(short)} GPUs short"
            yield Mark(x=x, y=min(y + 15, plot.bottom - 4), text=said if _fits(said, width) else "▲", kind="short")


def _fits(text: str, width: float) -> bool:
    return (len(text) + 1) * CHARACTER_PX <= width


def _stretches(tide: Tide) -> Iterator[tuple[Spell, float, float]]:
    """Every window's stretches of the cycle."""
    for spell in tide.spells:
        for start, end in split(spell.start, spell.end, tide.cycle):
            if end > start:
                yield spell, start, end


def _at(tide: Tide, band: Floats, start: float, end: float) -> float:
    """A band in the middle of a stretch."""
    return float(band[int(np.searchsorted(tide.edges, (start + end) / 2, side="right")) - 1])


def area_names(plot: Plot, tide: Tide, ceiling: Floats) -> Iterator[AreaName]:
    """The names of research's two areas, where they have room."""
    yield from _area_name(plot, tide.edges, (ceiling - tide.research, ceiling), ("yielded", "to research"), 22)
    top = np.full(len(ceiling), float(tide.pool.nodes * tide.pool.gpus_per_node))
    name = f"reserved for research, {whole(tide.pool.reserved_nodes)} nodes"
    yield from _area_name(plot, tide.edges, (ceiling, top), (name,), 0)


def _area_name(
    plot: Plot, edges: Floats, lines: tuple[Floats, Floats], text: tuple[str, ...], below_px: float
) -> Iterator[AreaName]:
    """A name where the area between two lines leaves it the most room; ``below_px`` are taken at the area's foot."""
    low, high = lines
    need_width, need_height = max(map(len, text)) * CHARACTER_PX * 1.1, 17.0 * len(text)
    best: tuple[float, AreaName] | None = None
    for first, last in _merged(low, high):
        left, right = plot.x(edges[first]), plot.x(edges[last])
        top, bottom = plot.y(high[first]), plot.y(low[first]) - below_px
        room = min((right - left) / need_width, (bottom - top) / need_height)
        if room > 1 and (best is None or room > best[0]):
            y = (top + bottom) / 2 - need_height / 2 + 13
            placed = tuple((round(y + 17.0 * number, 1), line) for number, line in enumerate(text))
            best = room, AreaName(x=round((left + right) / 2, 1), lines=placed)
    if best is not None:
        yield best[1]


def _merged(low: Floats, high: Floats) -> list[tuple[int, int]]:
    """Runs ``[first, last)`` of intervals in which neither line moves."""
    cuts = np.flatnonzero((np.diff(low) != 0) | (np.diff(high) != 0)) + 1
    marks = [0, *(int(cut) for cut in cuts), len(low)]
    return list(pairwise(marks))


def lead_boxes(plot: Plot, tide: Tide) -> Iterator[Box]:
    """A bar on the axis for every lead."""
    for start, end in tide.leads:
        for first, last in split(start, end, tide.cycle):
            width = plot.x(last) - plot.x(first)
            text = f"lead {minutes((end - start) * 60)} before {clock_of(end % DAY_MINUTES)}"
            yield Box(x=plot.x(first), y=plot.bottom + 1, width=round(width, 2), height=4, text=text)


def window_boxes(plot: Plot, tide: Tide, windows: tuple[Window, ...]) -> Iterator[Box]:
    """A box per window that says its numbers to the pointer, with no script."""
    for spell, start, end in _stretches(tide):
        held, free = _at(tide, tide.production, start, end), _at(tide, tide.research, start, end) + tide.reserved
        days = _days(spell.start, tide)
        text = f"{days}{windows[spell.window].span}: production {whole(held)} GPUs, research {whole(free)} GPUs"
        x = plot.x(start)
        yield Box(x=x, y=plot.top, width=round(plot.x(end) - x, 2), height=plot.bottom - plot.top, text=text)


def _days(minute: int, tide: Tide) -> str:
    return f"{WEEK[minute // DAY_MINUTES].value} " if tide.days > 1 else ""
