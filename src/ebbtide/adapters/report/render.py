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
from ebbtide.adapters.report.figures import percent, small_percent, whole
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number of the headline with its unit and its remark."""

    name: str
    value: str
    unit: str
    remark: str = ""
    look: str = ""


def render_report(report: ReportInput) -> str:
    """The whole page as text: one file, no address in it, nothing to load; the same bytes for the same plan."""
    environment = _environment()
    script, style = _source("report.js"), _source("report.css")
    fleet, schedule, explanation = report.fleet, report.schedule, report.explanation
    heads = headings(schedule.windows)
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
        whys=tuple(why_tables(fleet, schedule, explanation)),
        targets={workload.name: target_text(workload) for workload in fleet.workloads},
        shortages=tuple((short.workload, shortage_text(short, schedule)) for short in explanation.shortages),
        money=money_unit(fleet),
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("ebbtide.adapters.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"whole": whole, "percent": percent, "small_percent": small_percent}
    return environment


def _source(name: str) -> str:
    environment = _environment()
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


def _total_gpus(report: ReportInput) -> int:
    return sum(pool.nodes * pool.gpus_per_node for pool in report.fleet.pools)


def _figures(report: ReportInput) -> Iterator[Figure]:
    hours, bound = report.explanation.gpu_hours_per_day, report.explanation.bound
    total = 24.0 * _total_gpus(report)
    for name, value in (("production", hours.production), ("moving", hours.moving), ("research", hours.research)):
        remark = f"{share_of(value, total)} of the fleet"
        yield Figure(name=name, value=whole(value), unit="GPU-h a day", remark=remark, look=name)
    against = f"against static peak, {whole(hours.static_nodes)} nodes"
    yield Figure(name="freed", value=whole(hours.freed), unit="GPU-h a day", remark=against)
    few = "" if bound.few_windows is None else f"; few windows cost {small_percent(bound.few_windows)}"
    yield Figure(name="gap to bound", value=small_percent(bound.gap), unit="", remark=f"of the plan's cost{few}")
    short = len(report.explanation.shortages)
    if short:
        yield Figure(name="shortages", value=whole(short), unit="", remark="targets that cannot hold", look="alarm")
    else:
        yield Figure(name="shortages", value="none", unit="", remark="every target holds in every window")


def _bar(report: ReportInput) -> tuple[tuple[str, float], ...]:
    """The fleet's day in three parts, in percent of its GPU-hours."""
    hours, total = report.explanation.gpu_hours_per_day, 24.0 * max(_total_gpus(report), 1)
    parts = (("production", hours.production), ("moving", hours.moving), ("research", hours.research))
    return tuple((name, round(100.0 * value / total, 3)) for name, value in parts)


def _charts(report: ReportInput) -> Iterator[TideChart]:
    for column in report.schedule.pools:
        members = {workload.name for workload in report.fleet.workloads_of(column.name)}
        wave = wave_of([profile for profile in report.profiles if profile.workload in members])
        tide = tide_of(report.schedule, column, report.fleet.pool(column.name))
        yield tide_chart(tide, wave, report.schedule.windows)
