"""From a plan to ``report.html``."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ebbtide.adapters.report.chart import TideChart, tide_chart
from ebbtide.adapters.report.figures import more_or_less, percent, small_percent, static_nodes, whole
from ebbtide.adapters.report.inputs import ReportInput
from ebbtide.adapters.report.sparks import MOST_SPARKS, sparks
from ebbtide.adapters.report.tables import (
    groups,
    headings,
    money_unit,
    node_rows,
    replica_rows,
    share_of,
    shortage_text,
    target_text,
    wait_rows,
    why_tables,
)
from ebbtide.adapters.report.tide import tide_of
from ebbtide.adapters.report.wave import wave_of

# As many shortages are read one by one; the rest unfolds.
MOST_SHORTAGES = 12
# Rows of reasons in one page: 60 workloads × 168 windows fit; beyond, the page would weigh more than it tells.
MOST_REASONS = 12_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number of the headline; the remark begins with its unit."""

    name: str
    value: str
    remark: str
    look: str = ""


def render_report(report: ReportInput) -> str:
    """The whole page as text: one file, no address in it, nothing to load; the same bytes for the same plan."""
    environment = page_environment()
    script, style = page_source("report.js"), page_source("report.css")
    fleet, schedule, explanation = report.fleet, report.schedule, report.explanation
    heads = headings(schedule.windows)
    whys = tuple(why_tables(fleet, schedule, explanation, most_rows=MOST_REASONS))
    return environment.get_template("report.html").render(
        fleet=fleet,
        schedule=schedule,
        explanation=explanation,
        style=Markup(style),  # our own file, no input in it
        script=Markup(script),  # our own file, no input in it
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        days=max((len(profile.turns) for profile in report.profiles), default=0),
        weekly=len(fleet.patterns) > 1,
        figures=tuple(_figures(report)),
        bar=_bar(report),
        charts=tuple(_charts(report)),
        sparks=sparks(fleet, schedule, {profile.workload: profile for profile in report.profiles}),
        most_sparks=MOST_SPARKS,
        heads=heads,
        groups=groups(heads),
        waits=wait_rows(schedule, explanation),
        replicas=replica_rows(schedule),
        nodes=node_rows(schedule),
        whys=whys,
        unexplained=len(schedule.workloads) - len(whys),
        targets={workload.name: target_text(workload) for workload in fleet.workloads},
        shortages=tuple((short.workload, shortage_text(short, schedule)) for short in explanation.shortages),
        most_shortages=MOST_SHORTAGES,
        money=money_unit(fleet),
    )


@cache
def page_environment() -> Environment:
    """Templates with escaping on, and people's figures as filters."""
    environment = Environment(
        loader=PackageLoader("ebbtide.adapters.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"whole": whole, "percent": percent, "small_percent": small_percent, "tied": tied}
    return environment


def tied(text: str) -> str:
    """The text with its numbers and their percent signs kept on one line.

    >>> tied("asked 95 %") == "asked 95\N{NO-BREAK SPACE}%"
    True
    """
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def page_source(name: str) -> str:
    """One of our own files, as it is."""
    environment = page_environment()
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


def _total_gpus(report: ReportInput) -> int:
    return sum(pool.nodes * pool.gpus_per_node for pool in report.fleet.pools)


def _figures(report: ReportInput) -> Iterator[Figure]:
    hours, bound = report.explanation.gpu_hours_per_day, report.explanation.bound
    total = 24.0 * _total_gpus(report)
    for name, value in (("production", hours.production), ("moving", hours.moving), ("research", hours.research)):
        remark = f"GPU-hours a day, {share_of(value, total)} of the fleet"
        yield Figure(name=name, value=whole(value), remark=remark, look=name)
    nodes = static_nodes(hours.static_nodes, hours.static_missing_nodes)
    against = f"GPU-hours a day, against static peak on {nodes}"
    yield Figure(name="freed", value=whole(hours.freed), remark=against)
    few = "" if bound.few_windows is None else f"; few windows cost {more_or_less(bound.few_windows)}"
    yield Figure(name="gap to bound", value=small_percent(bound.gap), remark=f"of the plan's cost{few}")
    short = len(report.explanation.shortages)
    if short:
        yield Figure(name="shortages", value=whole(short), remark="targets that cannot hold", look="alarm")
    else:
        yield Figure(name="shortages", value="none", remark="every target holds in every window")


def _bar(report: ReportInput) -> tuple[tuple[str, float], ...]:
    """The fleet's day in three parts, in percent of its GPU-hours."""
    hours, total = report.explanation.gpu_hours_per_day, 24.0 * max(_total_gpus(report), 1)
    parts = (("production", hours.production), ("moving", hours.moving), ("research", hours.research))
    return tuple((name, round(100.0 * value / total, 3)) for name, value in parts)


def _charts(report: ReportInput) -> Iterator[TideChart]:
    numbers = {window.name: index for index, window in enumerate(report.schedule.windows)}
    for column in report.schedule.pools:
        members = {workload.name for workload in report.fleet.workloads_of(column.name)}
        wave = wave_of([profile for profile in report.profiles if profile.workload in members])
        tide = tide_of(report.schedule, column, report.fleet.pool(column.name))
        missing: dict[int, int | None] = {}
        for short in report.explanation.shortages:
            if short.workload in members and short.window in numbers:
                before = missing.get(numbers[short.window], 0)
                more = short.missing_gpus
                missing[numbers[short.window]] = None if before is None or more is None else before + more
        yield tide_chart(tide, wave, report.schedule.windows, missing)
