"""From a backtest to ``backtest.html``: the scores, and the timeline of every stretch that was replayed."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from ebbtide.adapters.report.render import page_environment, page_source
from ebbtide.adapters.report.timeline import StretchTimeline, drawings


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTable:
    """A table: its caption, headings and rows; the first cell of a row is its head, one row may be ebbtide's."""

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BacktestPage:
    """What the page says: a headline, remarks, the policies' table, one per workload, and the stretches."""

    version: str
    fleet: str
    time_zone: str
    headline: str
    lede: str
    remarks: tuple[str, ...]
    policies: ScoreTable
    notes: tuple[tuple[str, str], ...]
    workloads: tuple[ScoreTable, ...]
    stretches: tuple[StretchTimeline, ...]


def render_backtest_page(page: BacktestPage) -> str:
    """The whole page as text: one file without script or address; the same bytes for the same run."""
    return (
        page_environment()
        .get_template("backtest.html")
        .render(
            page=page,
            style=Markup(page_source("report.css") + page_source("backtest.css")),  # our own files, no input in them
            stretches=[(one, *drawings(one)) for one in page.stretches],
        )
    )
