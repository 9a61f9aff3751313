"""The tide of one pool as a chart: the wave, the allocation above it, what research gets between it and the fleet."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ebbtide.adapters.report.figures import figure, whole
from ebbtide.adapters.report.marks import (
    CHARACTER_PX,
    AreaName,
    Box,
    Mark,
    area_names,
    boundaries,
    clock_of,
    day_ticks,
    lead_boxes,
    node_labels,
    week_ticks,
    window_boxes,
    y_ticks,
)
from ebbtide.adapters.report.paths import Plot, steps_area, steps_line, wave_area, wave_line
from ebbtide.adapters.report.tide import Tide
from ebbtide.adapters.report.wave import Wave
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.horizon import DAY_MINUTES, WEEK, Window

# Demand beyond the fleet is drawn up to this share of it, and cut there: one wild day must not flatten all others.
_MOST_OVER = 1.5


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
    tide: Tide, wave: Wave | None, windows: tuple[Window, ...], missing_gpus: Mapping[int, int | None]
) -> TideChart:
    """The chart of one pool; ``wave`` None: the demand was not observed, and only the allocation is drawn.

    ``missing_gpus`` are the GPUs that a window (by its number) lacks (None: no number is enough); windows without
    shortage are not in it.
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
    frame: Frame, tide: Tide, wave: Wave | None, plan: tuple[tuple[Window, ...], Mapping[int, int | None]], most: float
) -> Drawing:
    windows, missing_gpus = plan
    plot = Plot(
        left=max(frame.left, len(whole(most)) * CHARACTER_PX + 14),
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
        x_ticks=tuple(week_ticks(plot) if tide.days > 1 else day_ticks(plot, tide)),
        y_ticks=tuple(y_ticks(plot, fleet)),
        boundaries=boundaries(plot, tide),
        labels=tuple(node_labels(plot, tide, missing_gpus)),
        names=tuple(area_names(plot, tide, ceiling)),
        leads=tuple(lead_boxes(plot, tide)),
        windows=tuple(window_boxes(plot, tide, windows)),
    )


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
    peak = clock_of(float(wave.minutes[int(np.nanargmax(wave.median_gpus))]) % DAY_MINUTES)
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
