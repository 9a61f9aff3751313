"""The report's tables as cells of text: waits against targets, replicas and nodes, the why."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ebbtide.adapters.report.figures import figure, minutes, percent, percent_pair, target_share, wait, whole
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import WEEK, Window, clock, day_label
from ebbtide.fleet.schedule import Explanation, Schedule, Shortage, Standing, WorkloadReason
from ebbtide.fleet.workload import Workload

_SHADES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A window at a column's head: its group (days or dates) and its hours."""

    group: str
    start: str
    end: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Neighbouring windows of the same days."""

    label: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell's text and the name of its look."""

    text: str
    look: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row with its head."""

    head: str
    cells: tuple[Cell, ...]
    look: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """One workload's reasons, a row per window."""

    workload: str
    target: str
    rows: tuple[Row, ...]


def headings(windows: tuple[Window, ...]) -> tuple[Heading, ...]:
    """The columns' heads in the schedule's order."""
    return tuple(Heading(group=_group(window), start=clock(window.start), end=clock(window.end)) for window in windows)


def groups(heads: tuple[Heading, ...]) -> tuple[Group, ...]:
    """Runs of the same days.

    >>> [g.count for g in groups(tuple(Heading(group=day, start="00:00", end="00:00") for day in "aab"))]
    [2, 1]
    """
    found: list[Group] = []
    for head in heads:
        if found and found[-1].label == head.group:
            found[-1] = Group(label=head.group, count=found[-1].count + 1)
        else:
            found.append(Group(label=head.group, count=1))
    return tuple(found)


def _group(window: Window) -> str:
    days = "every day" if window.days == WEEK else "+".join(_title(part) for part in day_label(window.days).split("+"))
    if window.valid_from is None or window.valid_until is None:
        return days
    return f"{window.valid_from} to {window.valid_until.subtract(days=1)}"


def _title(days: str) -> str:
    return "–".join(day.capitalize() for day in days.split("-"))


def wait_rows(schedule: Schedule, explanation: Explanation) -> tuple[Row, ...]:
    """Per workload and window the wait as a share of its target."""
    return tuple(
        Row(head=column.name, cells=tuple(_share_cell(reason) for reason in explanation.reasons[column.name]))
        for column in schedule.workloads
        if column.name in explanation.reasons
    )


def _share_cell(reason: WorkloadReason) -> Cell:
    share = reason.target_share
    if math.isnan(share):
        return Cell(text="–", look="none")
    if share > 1:
        return Cell(text=target_share(share), look="miss")
    return Cell(text=target_share(share).removesuffix("%"), look=f"s{min(int(share * _SHADES), _SHADES - 1)}")


def replica_rows(schedule: Schedule) -> tuple[Row, ...]:
    """Per workload the replicas in every window; a count that differs from the window before is marked."""
    return tuple(Row(head=column.name, cells=_changing(column.replicas)) for column in schedule.workloads)


def _changing(counts: tuple[int, ...]) -> tuple[Cell, ...]:
    before = counts[-1:] + counts[:-1]
    looks = ["up" if now > then else "down" if now < then else "same" for now, then in zip(counts, before, strict=True)]
    return tuple(Cell(text=whole(count), look=look) for count, look in zip(counts, looks, strict=True))


def node_rows(schedule: Schedule) -> tuple[Row, ...]:
    """Per pool: nodes in production, movable nodes in research, the lead."""
    rows: list[Row] = []
    for pool in schedule.pools:
        leads = tuple(Cell(text=minutes(lead).replace("-", "–")) for lead in pool.lead_s)
        rows += [
            Row(head=f"{pool.name}: nodes in production", cells=_changing(pool.production_nodes), look="first"),
            Row(head=f"{pool.name}: nodes yielded", cells=_changing(pool.ephemeral_nodes)),
            Row(head=f"{pool.name}: lead", cells=leads),
        ]
    return tuple(rows)


def why_tables(fleet: Fleet, schedule: Schedule, explanation: Explanation, *, most_rows: int) -> Iterator[Why]:
    """Per workload: demand, what held the number, and the standing at the floor, as given, and one refused.

    In the schedule's order; of the workloads with the most GPUs where all would make more than ``most_rows`` rows.
    """
    gpus = {workload.name: workload.gpus_per_replica for workload in fleet.workloads}
    largest = sorted(schedule.workloads, key=lambda column: -sum(column.replicas) * gpus[column.name])
    chosen = {column.name for column in largest[: max(1, most_rows // max(1, len(schedule.windows)))]}
    heads = _row_heads(schedule.windows)
    for column in schedule.workloads:
        reasons = explanation.reasons.get(column.name)
        if reasons is None or column.name not in chosen:
            continue
        has_floor = fleet.workload(column.name).service.claim is None  # a claim knows no stability
        rows = tuple(
            Row(head=head, cells=tuple(_why_cells(reason, holds, has_floor=has_floor)), look=_look(reason))
            for head, reason, holds in zip(heads, reasons, column.holds_rps, strict=True)
        )
        yield Why(workload=column.name, target=target_text(fleet.workload(column.name)), rows=rows)


def _row_heads(windows: tuple[Window, ...]) -> list[str]:
    """Windows as heads of rows: their hours, days before them only where days differ."""
    named = [(head.group, f"{head.start}–{head.end}") for head in headings(windows)]
    return [hours if group == "every day" else f"{group} {hours}" for group, hours in named]


def _look(reason: WorkloadReason) -> str:
    return "miss" if reason.target_share > 1 or reason.bound == "shortage" else ""


def _why_cells(reason: WorkloadReason, holds_rps: float, *, has_floor: bool) -> Iterator[Cell]:
    yield Cell(text=figure(reason.rate_rps))
    yield Cell(text=figure(reason.peak_rps))
    yield Cell(text=figure(holds_rps))
    for standing in (reason.floor if has_floor else None, reason.given, reason.refused):
        yield from _standing_cells(standing)
    if reason.refused is None:
        yield from (Cell(text="–"), Cell(text="–"))
    else:
        yield Cell(text=_gain(reason.refused.gain_usd_per_h))
        yield Cell(text=figure(reason.cost_usd_per_h))
    yield Cell(text=reason.bound)


def _gain(usd_per_h: float) -> str:
    """A gain in three digits; below a thousandth it decides nothing any more."""
    return "<0.001" if 0 < usd_per_h < 0.001 else figure(usd_per_h)


def _standing_cells(standing: Standing | None) -> Iterator[Cell]:
    if standing is None:
        yield from (Cell(text="–"), Cell(text="–"))
        return
    yield Cell(text=whole(standing.replicas))
    yield Cell(text=wait(standing.wait_s))


def money_unit(fleet: Fleet) -> str:
    """What gains are counted in; without a value of research the unit of money is a GPU-hour."""
    return "USD/h" if fleet.research.value_given else "GPU-h/h"


def target_text(workload: Workload) -> str:
    """All targets of a workload in words: ``P95 wait 5s``."""
    return ", ".join(f"P{t.percentile * 100:.6g} {t.kind.value} {t.bound_s:,.6g} s" for t in workload.targets)


def shortage_text(shortage: Shortage, schedule: Schedule) -> str:
    """Who goes short, when and by how much, as a sentence."""
    names = [window.name for window in schedule.windows]
    where = dict(zip(names, _row_heads(schedule.windows), strict=True)).get(shortage.window, shortage.window)
    got, asked = percent_pair(shortage.attainment, shortage.required)
    missing = _missing_text(shortage.missing_gpus)
    if math.isnan(shortage.wait_s):  # planned on a claim
        return f"{where}: {missing}; {got} within target by its claim, asked {asked}"
    waits = f"the wait is {wait(shortage.wait_s)}" if math.isfinite(shortage.wait_s) else "the queue grows"
    return f"{where}: {missing}; {got} within target, asked {asked}; {waits}"


def _missing_text(gpus: int | None) -> str:
    if gpus is None:
        return "no number of GPUs is enough"
    return "1 GPU short" if gpus == 1 else f"{whole(gpus)} GPUs short"


def share_of(part: float, total: float) -> str:
    """A part of a total in whole percent; a dash of nothing."""
    return percent(part / total) if total > 0 else "–"
