"""The tide of one pool as a chart: the wave, the allocation above it, what research gets between it and the fleet."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ebbtide.adapters.report.figures import figure, minutes, whole
from ebbtide.adapters.report.paths import Plot, steps_area, steps_line, wave_area, wave_line
from ebbtide.adapters.report.tide import Spell, Tide, split
from ebbtide.adapters.report.wave import Wave
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.horizon import DAY_MINUTES, WEEK, Window

# Demand beyond the fleet is drawn up to this share of it, and cut there: one wild day must not flatten all others.
_MOST_OVER = 1.5
_CHARACTER_PX = 6.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """How large a chart is drawn: a wide one for pages, a narrow one for phones (the text keeps its size).

    ``left`` is the least margin; wide numbers on the axis take more.
    """

    name: str
    width: int
    height: int
    left: int
    right: int


WIDE = Frame(name="wide", width=1000, height=400, left=44, right=20)
NARROW = Frame(name="narrow", width=340, height=300, left=30, right=18)
_TOP, _BOTTOM = 26, 40


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A pool's tide at one size; path data and places in pixels."""

    frame: Frame
    plot: Plot
    production: str
    production_line: str
    research: str
    reserved: str
    moving: str
    wave_band: str
    wave_median: str
    fleet_y: float
    x_ticks: tuple[Mark, ...]
    y_ticks: tuple[Mark, ...]
    boundaries: tuple[float, ...]
    labels: tuple[Mark, ...]
    names: tuple[AreaName, ...]
    leads: tuple[Box, ...]
    windows: tuple[Box, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TideChart:
    """What the template needs for one pool."""

    pool: str
    drawings: tuple[Drawing, ...]
    description: str
    readout: str
    turns: int
    weekly: bool
    research_gpu_hours: float
    production_gpu_hours: float
    moving_gpu_hours: float
    reserved: int
    has_moves: bool
    has_leads: bool
    cut: bool


def tide_chart(
    tide: Tide, wave: Wave | None, windows: tuple[Window, ...], missing_gpus: Mapping[int, int]
) -> TideChart:
    """The chart of one pool; ``wave`` None: the demand was not observed, and only the allocation is drawn.

    ``missing_gpus`` are the GPUs that a window (by its number) lacks; windows without shortage are not in it.
    """
    fleet = tide.pool.nodes * tide.pool.gpus_per_node
    highest = float(np.nanmax(wave.high_gpus)) if wave is not None and not np.isnan(wave.high_gpus).all() else 0.0
    most = max(fleet, min(highest, fleet * _MOST_OVER))
    moving = tide.reclaiming + tide.yielding
    research = tide.gpu_hours_per_day(tide.research) + 24.0 * tide.reserved
    return TideChart(
        pool=tide.pool.name,
        drawings=tuple(_drawing(frame, tide, wave, (windows, missing_gpus), most) for frame in (WIDE, NARROW)),
        description=_description(tide, wave),
        readout=_readout(tide, wave),
        turns=wave.turns if wave is not None else 0,
        weekly=tide.days > 1,
        research_gpu_hours=research,
        production_gpu_hours=tide.gpu_hours_per_day(tide.production),
        moving_gpu_hours=tide.gpu_hours_per_day(moving),
        reserved=tide.reserved,
        has_moves=bool((moving > 0).any()),
        has_leads=bool(tide.leads),
        cut=highest > most,
    )


def _drawing(
    frame: Frame, tide: Tide, wave: Wave | None, plan: tuple[tuple[Window, ...], Mapping[int, int]], most: float
) -> Drawing:
    windows, missing_gpus = plan
    plot = Plot(
        left=max(frame.left, len(whole(most)) * _CHARACTER_PX + 14),
        right=frame.width - frame.right,
        top=_TOP,
        bottom=frame.height - _BOTTOM,
        cycle=tide.cycle,
        most=most,
    )
    fleet = float(tide.pool.nodes * tide.pool.gpus_per_node)
    floor, moved = np.zeros(len(tide.production)), tide.production + tide.reclaiming + tide.yielding
    ceiling = np.full(len(moved), fleet - tide.reserved)
    return Drawing(
        frame=frame,
        plot=plot,
        production=steps_area(plot, tide.edges, floor, tide.production),
        production_line=steps_line(plot, tide.edges, tide.production),
        research=steps_area(plot, tide.edges, ceiling - tide.research, ceiling),
        reserved=steps_area(plot, tide.edges, ceiling, np.full(len(moved), fleet)),
        moving=steps_area(plot, tide.edges, tide.production, moved),
        wave_band=wave_area(plot, wave, wave.low_gpus, wave.high_gpus) if wave else "",
        wave_median=wave_line(plot, wave, wave.median_gpus) if wave else "",
        fleet_y=plot.y(fleet),
        x_ticks=tuple(_week_ticks(plot) if tide.days > 1 else _day_ticks(plot, tide)),
        y_ticks=tuple(_y_ticks(plot, fleet)),
        boundaries=_boundaries(plot, tide),
        labels=tuple(_labels(plot, tide, missing_gpus)),
        names=tuple(_names(plot, tide, ceiling)),
        leads=tuple(_leads(plot, tide)),
        windows=tuple(_windows(plot, tide, windows)),
    )


def _boundaries(plot: Plot, tide: Tide) -> tuple[float, ...]:
    """Where windows start, unless there are so many that the lines would hide the wave."""
    few = len(tide.spells) <= (plot.right - plot.left) / 14
    return tuple(plot.x(spell.start) for spell in tide.spells) if few else ()


def _day_ticks(plot: Plot, tide: Tide) -> Iterator[Mark]:
    """Clock times: the windows' starts where they can be told apart, else every few hours; a small tick every hour."""
    step = 180 if plot.right - plot.left > 500 else 360
    starts = sorted({spell.start for spell in tide.spells} | {0, DAY_MINUTES})
    if len(starts) > (plot.right - plot.left) / 60:
        starts = list(range(0, DAY_MINUTES + 1, step))
    last = -math.inf
    for minute in starts:
        x = plot.x(minute)
        crowded = x - last < 40 or (minute < DAY_MINUTES and plot.right - x < 40)
        yield Mark(x=x, y=plot.bottom, text="" if crowded else _clock(minute), kind="major")
        last = last if crowded else x
    for hour in range(1, 24):
        yield Mark(x=plot.x(hour * 60), y=plot.bottom, text="", kind="minor")


def _week_ticks(plot: Plot) -> Iterator[Mark]:
    for day, name in enumerate(WEEK):
        yield Mark(x=plot.x(day * DAY_MINUTES), y=plot.bottom, text="", kind="major")
        yield Mark(x=plot.x((day + 0.5) * DAY_MINUTES), y=plot.bottom, text=name.value, kind="minor")
    yield Mark(x=plot.right, y=plot.bottom, text="", kind="major")


def _clock(minute: float) -> str:
    return f"{int(minute) // 60:02}:{int(minute) % 60:02}"


def _y_ticks(plot: Plot, fleet: float) -> Iterator[Mark]:
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


def _labels(plot: Plot, tide: Tide, missing_gpus: Mapping[int, int]) -> Iterator[Mark]:
    """Nodes above every step that is wide enough; below it what is missing where targets cannot be met."""
    widest = max(spell.end - spell.start for spell in tide.spells)
    for spell, start, end in _stretches(tide):
        gpus = _at(tide, tide.production, start, end)
        x, y, width = plot.x((start + end) / 2), plot.y(gpus), plot.x(end) - plot.x(start)
        nodes = whole(gpus / tide.pool.gpus_per_node)
        text = f"{nodes} nodes" if end - start == widest else nodes
        if _fits(text, width):
            yield Mark(x=x, y=y - 6, text=text, kind="nodes")
        if short := missing_gpus.get(spell.window, 0):
            said = f"▲ {whole(short)} GPUs short"
            yield Mark(x=x, y=min(y + 15, plot.bottom - 4), text=said if _fits(said, width) else "▲", kind="short")


def _fits(text: str, width: float) -> bool:
    return (len(text) + 1) * _CHARACTER_PX <= width


def _stretches(tide: Tide) -> Iterator[tuple[Spell, float, float]]:
    """Every window's stretches of the cycle."""
    for spell in tide.spells:
        for start, end in split(spell.start, spell.end, tide.cycle):
            if end > start:
                yield spell, start, end


def _at(tide: Tide, band: Floats, start: float, end: float) -> float:
    """A band in the middle of a stretch."""
    return float(band[int(np.searchsorted(tide.edges, (start + end) / 2, side="right")) - 1])


def _names(plot: Plot, tide: Tide, ceiling: Floats) -> Iterator[AreaName]:
    yield from _area_name(plot, tide.edges, (ceiling - tide.research, ceiling), ("yielded", "to research"), 22)
    top = np.full(len(ceiling), float(tide.pool.nodes * tide.pool.gpus_per_node))
    name = f"reserved for research, {whole(tide.pool.reserved_nodes)} nodes"
    yield from _area_name(plot, tide.edges, (ceiling, top), (name,), 0)


def _area_name(
    plot: Plot, edges: Floats, lines: tuple[Floats, Floats], text: tuple[str, ...], below_px: float
) -> Iterator[AreaName]:
    """A name where the area between two lines leaves it the most room; ``below_px`` are taken at the area's foot."""
    low, high = lines
    need_width, need_height = max(map(len, text)) * _CHARACTER_PX * 1.1, 17.0 * len(text)
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


def _leads(plot: Plot, tide: Tide) -> Iterator[Box]:
    for start, end in tide.leads:
        for first, last in split(start, end, tide.cycle):
            width = plot.x(last) - plot.x(first)
            text = f"lead {minutes((end - start) * 60)} before {_clock(end % DAY_MINUTES)}"
            yield Box(x=plot.x(first), y=plot.bottom + 1, width=round(width, 2), height=4, text=text)


def _windows(plot: Plot, tide: Tide, windows: tuple[Window, ...]) -> Iterator[Box]:
    """A box per window that says its numbers to the pointer, with no script."""
    for spell, start, end in _stretches(tide):
        held, free = _at(tide, tide.production, start, end), _at(tide, tide.research, start, end) + tide.reserved
        days = _days(spell.start, tide)
        text = f"{days}{windows[spell.window].span}: production {whole(held)} GPUs, research {whole(free)} GPUs"
        x = plot.x(start)
        yield Box(x=x, y=plot.top, width=round(plot.x(end) - x, 2), height=plot.bottom - plot.top, text=text)


def _days(minute: int, tide: Tide) -> str:
    return f"{WEEK[minute // DAY_MINUTES].value} " if tide.days > 1 else ""


def _description(tide: Tide, wave: Wave | None) -> str:
    low, high = float(tide.production.min()), float(tide.production.max())
    free = tide.research + tide.reserved
    text = (
        f"Of {whole(tide.pool.nodes * tide.pool.gpus_per_node)} GPUs, production holds {whole(low)} to {whole(high)}, "
        f"research {whole(float(free.min()))} to {whole(float(free.max()))}"
        + (f", {whole(tide.reserved)} of them reserved." if tide.reserved else ".")
    )
    if wave is None or np.isnan(wave.median_gpus).all():
        return text
    least, most = float(np.nanmin(wave.median_gpus)), float(np.nanmax(wave.median_gpus))
    peak = _clock(float(wave.minutes[int(np.nanargmax(wave.median_gpus))]) % DAY_MINUTES)
    return f"{text} Requests keep {figure(least)} to {figure(most)} GPUs busy at the median, most at {peak}."


def _readout(tide: Tide, wave: Wave | None) -> str:
    """The numbers behind the chart, for the script that reads them out under the pointer."""
    data: dict[str, object] = {
        "cycle": tide.cycle,
        "edges": tide.edges.tolist(),
        "production": tide.production.tolist(),
        "moving": (tide.reclaiming + tide.yielding).tolist(),
        "research": tide.research.tolist(),
        "reserved": tide.reserved,
        "days": [day.value for day in WEEK] if tide.days > 1 else [],
    }
    if wave is not None:
        data["bin"] = wave.bin_minutes
        data["low"], data["median"], data["high"] = map(_rounded, (wave.low_gpus, wave.median_gpus, wave.high_gpus))
    return json.dumps(data, separators=(",", ":"))


def _rounded(values: Floats) -> Sequence[float | None]:
    return [None if math.isnan(value) else round(value, 1) for value in values.tolist()]
