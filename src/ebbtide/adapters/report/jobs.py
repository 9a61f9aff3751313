"""From a batch plan to ``jobs.html``: research's GPUs over time and who holds them, a bar for every job, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from ebbtide.adapters.report.figures import whole
from ebbtide.adapters.report.paths import Plot, steps_area, steps_line
from ebbtide.adapters.report.render import Figure, page_environment, page_source
from ebbtide.fleet.demand import Floats

_LEFT, _RIGHT = 170.0, 990.0
_ROW = 20.0
_CHART = 130.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HollowUse:
    """One pool's nodes of one tenure: from each of ``edges_s`` on, the GPUs that are there and those that jobs hold."""

    name: str
    tenure: str
    edges_s: Floats
    gpus: Floats
    held: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class JobBar:
    """One job's bar: its runs, whether on reserved nodes, its deadline (None: none), and what the pointer is told."""

    name: str
    runs_s: tuple[tuple[float, float], ...]
    tenure: str
    deadline_s: float | None
    in_time: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """One job's row of the table, every cell as text; ``look`` is empty or ``missed``."""

    cells: tuple[str, ...]
    why: str
    look: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobsPage:
    """What the page says. ``days``: where a day begins, and its name; ``start_s`` to ``end_s`` is what is drawn."""

    version: str
    schedule: str
    time_zone: str
    headline: str
    lede: str
    figures: tuple[Figure, ...]
    remarks: tuple[str, ...]
    reliefs: tuple[str, ...]
    start_s: float
    end_s: float
    days: tuple[tuple[float, str], ...]
    uses: tuple[HollowUse, ...]
    bars: tuple[JobBar, ...]
    rows: tuple[JobRow, ...]
    undrawn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Use:
    name: str
    text: str
    plot: Plot
    there: str
    held: str
    line: str
    ticks: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bar:
    name: str
    text: str
    y: float
    runs: tuple[tuple[float, float], ...]
    look: str
    deadline: float | None


def render_jobs_page(page: JobsPage) -> str:
    """The whole page as text: one file without script or address; the same bytes for the same plan."""
    return (
        page_environment()
        .get_template("jobs.html")
        .render(
            page=page,
            style=Markup(page_source("report.css") + page_source("jobs.css")),  # our own files, no input in them
            uses=tuple(_use(page, one) for one in page.uses),
            bars=tuple(_bars(page)),
            days=tuple((_x(page, at_s), name) for at_s, name in page.days),
            left=_LEFT,
            right=_RIGHT,
            height=_ROW * len(page.bars),
            row=_ROW,
        )
    )


def _x(page: JobsPage, at_s: float) -> float:
    share = (at_s - page.start_s) / max(page.end_s - page.start_s, 1.0)
    return round(_LEFT + (_RIGHT - _LEFT) * min(max(share, 0.0), 1.0), 2)


def _use(page: JobsPage, one: HollowUse) -> _Use:
    most = max(float(one.gpus.max(initial=1.0)), 1.0)
    minutes = (one.edges_s - page.start_s) / 60.0
    cycle = (page.end_s - page.start_s) / 60.0
    plot = Plot(left=_LEFT, right=_RIGHT, top=8.0, bottom=_CHART, cycle=cycle, most=most)
    edges = np.clip(minutes, 0.0, cycle)
    zero = np.zeros(len(one.gpus))
    hours = np.diff(one.edges_s) / 3600.0
    there_h, held_h = float(one.gpus @ hours), float(one.held @ hours)
    share = f"{100 * held_h / there_h:.0f} %" if there_h else "nothing"
    return _Use(
        name=one.name,
        text=f"jobs hold {whole(held_h)} of {whole(there_h)} GPU-hours ({share})",
        plot=plot,
        there=steps_area(plot, edges, zero, one.gpus),
        held=steps_area(plot, edges, zero, one.held),
        line=steps_line(plot, edges, one.gpus),
        ticks=tuple((plot.y(value), whole(value)) for value in (0.0, most)),
    )


def _bars(page: JobsPage) -> Iterator[_Bar]:
    for number, one in enumerate(page.bars):
        runs = tuple(
            (_x(page, start), max(round(_x(page, end) - _x(page, start), 2), 1.5)) for start, end in one.runs_s
        )
        shown = one.deadline_s is not None and page.start_s <= one.deadline_s <= page.end_s
        yield _Bar(
            name=one.name if len(one.name) <= 24 else f"{one.name[:15]}…{one.name[-8:]}",
            text=one.text,
            y=number * _ROW,
            runs=runs,
            look=one.tenure if one.in_time else f"{one.tenure} late",
            deadline=_x(page, one.deadline_s) if shown and one.deadline_s is not None else None,
        )
