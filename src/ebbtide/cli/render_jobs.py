"""The answer of ``ebbtide jobs plan`` as text of at most 80 columns: a table, a timeline, and why jobs wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ebbtide.batch.plan import BatchPlan, PlannedJob
from ebbtide.cli.columns import WIDTH, Column, elided, filled, lines_of
from ebbtide.units import DAY_S
from ebbtide.workflows.job_words import moment, relief_text, rough, share, why_text
from ebbtide.workflows.jobs import PlannedJobs

MOST_ROWS = 60  # more is not read line by line: the document and --json hold all
_NAME_WIDTH = 20


def planned_text(done: PlannedJobs, *, width: int = WIDTH) -> str:
    """The whole answer."""
    plan, zone = done.document.plan, done.document.time_zone
    shown = sorted(plan.jobs, key=_key)[:MOST_ROWS]
    lines = _table(shown, plan, zone)
    if len(plan.jobs) > len(shown):
        lines.append(f"and {len(plan.jobs) - len(shown):,} more: see plan.yaml (-o) or --json")
    lines += ["", *_timeline([one for one in shown if one.place is not None], zone, width)]
    whys = [line for one in shown for line in _why(one, zone, width)]
    lines += ["", *whys] if whys else []
    helps = [line for one in plan.reliefs for line in filled(f"- {relief_text(one, zone)}", width)]
    lines += ["", "Any one of these would make all deadlines hold:", *helps] if helps else []
    lines += ["", *_totals(plan, width)]
    return "\n".join(lines) + "\n"


def _key(one: PlannedJob) -> tuple[float, str]:
    return (one.place.start_s if one.place is not None else float("inf"), one.job.name)


def _table(jobs: Sequence[PlannedJob], plan: BatchPlan, zone: str) -> list[str]:
    names = elided([one.job.name for one in jobs], _NAME_WIDTH)
    far = any(one.place is not None and one.place.finish_s - plan.at_s > 6 * DAY_S for one in jobs)
    columns = (
        Column(heading="JOB", cells=names, gap=0, left=True),
        Column(heading="GPUS", cells=tuple(_gpus(one) for one in jobs)),
        Column(heading="WHERE", cells=tuple(_where(one) for one in jobs), gap=2, left=True),
        Column(heading="START", cells=tuple(_start(one, zone, far) for one in jobs), gap=2, left=True),
        Column(heading="DONE BY", cells=tuple(_finish(one, zone, far) for one in jobs), gap=2, left=True),
        Column(heading="SLACK", cells=tuple(_slack(one) for one in jobs), gap=2),
        Column(heading="SURE", cells=tuple(_sure(one) for one in jobs), gap=2),
    )
    return lines_of(columns)


def _gpus(one: PlannedJob) -> str:
    return str(one.place.gpus if one.place is not None else one.job.gpus)


def _where(one: PlannedJob) -> str:
    if one.place is None:
        return "nowhere"
    return f"{elided([one.place.pool], 12)[0]} {one.place.tenure.value[:3]}"


def _start(one: PlannedJob, zone: str, far: bool) -> str:
    return "-" if one.place is None else moment(one.place.start_s, zone, dated=far)


def _finish(one: PlannedJob, zone: str, far: bool) -> str:
    return "-" if one.place is None else moment(one.place.finish_s, zone, dated=far)


def _slack(one: PlannedJob) -> str:
    slack_s = one.slack_s
    if slack_s is None:
        return "-" if one.job.deadline_s is None else "missed"
    return ("-" if slack_s < 0 else "") + rough(abs(slack_s))


def _sure(one: PlannedJob) -> str:
    if one.probability is None or (one.job.deadline_s is None and one.place is None):
        return "-"
    return share(one.probability)


def _timeline(jobs: Sequence[PlannedJob], zone: str, width: int) -> list[str]:
    """A bar for every run; the deadline is the mark |."""
    if not jobs:
        return []
    places = [one.place for one in jobs if one.place is not None]
    start_s = min(place.start_s for place in places)
    deadlines = [one.job.deadline_s for one in jobs if one.job.deadline_s is not None]
    last_s = max(place.finish_s for place in places)
    end_s = max([last_s, *(one for one in deadlines if one <= start_s + 2 * (last_s - start_s))])
    names = elided([one.job.name for one in jobs], _NAME_WIDTH)
    left = max(map(len, names)) + 1
    room = width - left - 1
    scale = room / max(end_s - start_s, 1.0)
    lines = []
    for name, one in zip(names, jobs, strict=True):
        cells = [" "] * (room + 1)
        for run in one.place.runs if one.place is not None else ():
            first, last = round((run.start_s - start_s) * scale), round((run.end_s - start_s) * scale)
            for cell in range(first, max(last, first + 1)):
                cells[min(cell, room)] = "█" if one.place is not None and one.place.tenure == "reserved" else "▒"
        if one.job.deadline_s is not None and start_s <= one.job.deadline_s <= end_s:
            mark = round((one.job.deadline_s - start_s) * scale)
            cells[mark] = "|" if cells[mark] == " " else cells[mark]
        lines.append((name.ljust(left) + "".join(cells)).rstrip())
    from_text, to_text = moment(start_s, zone), moment(end_s, zone)
    head = " " * left + from_text + to_text.rjust(room + 1 - len(from_text))
    key = "█ reserved nodes, ▒ ephemeral ones, | deadline"
    return [head, *lines, key]


def _why(one: PlannedJob, zone: str, width: int) -> Iterator[str]:
    text = why_text(one, zone)
    if text:
        yield from filled(f"{one.job.name}: {text}", width)


def _totals(plan: BatchPlan, width: int) -> Iterator[str]:
    deadlines = [one for one in plan.jobs if one.job.deadline_s is not None]
    held = len(deadlines) - len(plan.missed)
    parts = [f"{held:,} of {len(deadlines):,} deadlines hold"] if deadlines else [f"{len(plan.jobs):,} jobs"]
    if plan.bound.bound_usd > 0:
        parts.append(
            f"value {plan.value_usd:,.0f} USD, no plan has more than {plan.bound.bound_usd:,.0f} "
            f"(gap {100 * plan.bound.gap:.1f} %)"
        )
    yield from filled("; ".join(parts), width)
    yield from filled(
        f"DONE BY: planned with the time that {100 * plan.confidence:g} % of a job's runs need; SURE: its deadline "
        "holds if the plan is followed",
        width,
    )
