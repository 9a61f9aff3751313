"""What the page of a batch plan says, from the plan and the hollows that it was made in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import version

import numpy as np
from whenever import Instant, Time

from ebbtide.adapters.documents.batch_plan import PlanDocument
from ebbtide.adapters.report.figures import small_percent, whole
from ebbtide.adapters.report.jobs import HollowUse, JobBar, JobRow, JobsPage
from ebbtide.adapters.report.render import Figure
from ebbtide.batch.hollows import Hollow
from ebbtide.batch.plan import BatchPlan, PlannedJob
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.horizon import Weekday
from ebbtide.workflows.job_words import moment, relief_text, rough, share, why_text

MOST_BARS = 150  # more rows are not told apart; the table has them all
MOST_ROWS = 5_000
_MIDNIGHT = Time(0)


def jobs_page(document: PlanDocument, hollows: Sequence[Hollow], remarks: Sequence[str]) -> JobsPage:
    """The page's values: texts in the schedule's zone, instants as seconds since the epoch."""
    plan, zone = document.plan, document.time_zone
    listed = sorted(plan.jobs, key=_key)
    placed = [one for one in listed if one.place is not None]
    end_s = _end_s(plan, placed)
    return JobsPage(
        version=version("ebbtide"),
        schedule=document.schedule_name,
        time_zone=zone,
        headline=_headline(plan),
        lede=f"{len(plan.jobs):,} jobs planned from {moment(plan.at_s, zone, dated=True)} on. A job's planned length "
        f"covers {100 * plan.confidence:g} % of its runs.",
        figures=tuple(_figures(plan)),
        remarks=tuple(remarks),
        reliefs=tuple(relief_text(one, zone) for one in plan.reliefs),
        start_s=plan.at_s,
        end_s=end_s,
        days=tuple(_days(plan.at_s, end_s, zone)),
        uses=tuple(_use(one, plan, end_s) for one in hollows),
        bars=tuple(_bar(one, zone) for one in placed[:MOST_BARS]),
        rows=tuple(_row(one, zone) for one in listed[:MOST_ROWS]),
        undrawn=max(len(placed) - MOST_BARS, 0),
    )


def _key(one: PlannedJob) -> tuple[float, str]:
    return (one.place.start_s if one.place is not None else float("inf"), one.job.name)


def _end_s(plan: BatchPlan, placed: Sequence[PlannedJob]) -> float:
    """The end of what is drawn: the last job's, or the last deadline's where that is not far beyond."""
    last_s = max((one.place.finish_s for one in placed if one.place is not None), default=plan.until_s)
    deadlines = [one.job.deadline_s for one in placed if one.job.deadline_s is not None]
    near = [at_s for at_s in deadlines if at_s <= plan.at_s + 1.5 * (last_s - plan.at_s)]
    return max([last_s, *near])


def _headline(plan: BatchPlan) -> str:
    deadlines = sum(one.job.deadline_s is not None for one in plan.jobs)
    if not deadlines:
        return f"{len(plan.jobs):,} jobs, none with a deadline"
    if not plan.missed:
        return f"All {deadlines:,} deadlines hold" if deadlines > 1 else "The deadline holds"
    return f"{len(plan.missed):,} of {deadlines:,} deadlines cannot hold"


def _figures(plan: BatchPlan) -> Iterator[Figure]:
    deadlines = [one for one in plan.jobs if one.job.deadline_s is not None]
    held = len(deadlines) - len(plan.missed)
    look = "alarm" if plan.missed else ""
    yield Figure(name="deadlines that hold", value=f"{held:,}", remark=f"of {len(deadlines):,}", look=look)
    chances = [one.probability for one in deadlines if one.probability is not None and one.in_time]
    if chances:
        yield Figure(name="least sure", value=share(min(chances)), remark="of those that hold, if the plan is followed")
    placed = sum(one.place is not None for one in plan.jobs)
    yield Figure(name="jobs with a place", value=f"{placed:,}", remark=f"of {len(plan.jobs):,}")
    if plan.bound.bound_usd > 0:
        yield Figure(name="value in time", value=whole(plan.value_usd), remark="USD")
        remark = f"of at most {whole(plan.bound.bound_usd)} USD: {plan.bound.method}"
        yield Figure(name="gap to bound", value=small_percent(plan.bound.gap), remark=remark)


def _days(start_s: float, end_s: float, zone: str) -> Iterator[tuple[float, str]]:
    date = Instant.from_timestamp(int(start_s)).to_tz(zone).date()
    while (at_s := date.at(_MIDNIGHT).assume_tz(zone).timestamp()) <= end_s:
        if at_s >= start_s:
            yield float(at_s), f"{Weekday.of(date).value} {date.month:02}-{date.day:02}"
        date = date.add(days=1)


def _use(hollow: Hollow, plan: BatchPlan, end_s: float) -> HollowUse:
    runs = [
        (run.start_s, run.end_s, one.place.gpus)
        for one in plan.jobs
        if one.place is not None and (one.place.pool, one.place.tenure) == (hollow.pool, hollow.tenure)
        for run in one.place.runs
    ]
    marks = {at_s for start, end, _ in runs for at_s in (start, end)} | set(hollow.edges_s)
    edges = np.array(sorted({at_s for at_s in marks if plan.at_s < at_s < end_s} | {plan.at_s, end_s}))
    held: Floats = np.zeros(len(edges) - 1)
    for start, end, gpus in runs:
        held[np.searchsorted(edges, start) : np.searchsorted(edges, end)] += gpus
    there = np.array([float(hollow.nodes_at(at_s) * hollow.gpus_per_node) for at_s in edges[:-1]])
    name = f"{hollow.pool}, {hollow.tenure.value} nodes"
    return HollowUse(name=name, tenure=hollow.tenure.value, edges_s=edges, gpus=there, held=held)


def _bar(one: PlannedJob, zone: str) -> JobBar:
    place = one.place
    assert place is not None  # only those that have one are drawn
    return JobBar(
        name=one.job.name,
        runs_s=tuple((run.start_s, run.end_s) for run in place.runs),
        tenure=place.tenure.value,
        deadline_s=one.job.deadline_s,
        in_time=one.in_time,
        text=f"{one.job.name}: {place.gpus} GPUs, {moment(place.start_s, zone)} to {moment(place.finish_s, zone)}",
    )


def _row(one: PlannedJob, zone: str) -> JobRow:
    job, place = one.job, one.place
    late = job.deadline_s is not None and not one.in_time
    slack_s = one.slack_s
    cells = (
        job.name,
        str(place.gpus if place is not None else job.gpus),
        "nowhere" if place is None else f"{place.pool}, {place.tenure.value}",
        "–" if place is None else moment(place.start_s, zone, dated=True),
        "–" if place is None else moment(place.finish_s, zone, dated=True),
        "–" if job.deadline_s is None else moment(job.deadline_s, zone, dated=True),
        "–" if slack_s is None else ("−" if slack_s < 0 else "") + rough(abs(slack_s)),
        "–" if one.probability is None else share(one.probability),
    )
    return JobRow(cells=cells, why=why_text(one, zone), look="missed" if late else "")
