"""Rules between a Schedule's fields: equal columns, conserved nodes, windows that cover the cycle once (§5.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ebbtide.adapters.documents.dated_overlaps import overlaps
from ebbtide.adapters.documents.memory_document import memory_problems
from ebbtide.adapters.documents.problems import Problem, one_of, unknown
from ebbtide.adapters.documents.schedule_models import (
    ReasonColumnsSpec,
    ScheduleForm,
    SchedulePoolSpec,
    ScheduleSpec,
    WindowSpec,
)
from ebbtide.adapters.documents.yaml_text import Path
from ebbtide.fleet.horizon import DAY_MINUTES, WEEK, minute_of

_WEEK_MINUTES = DAY_MINUTES * len(WEEK)


def schedule_problems(form: ScheduleForm) -> list[Problem]:
    """Everything that is wrong between the fields of a Schedule."""
    spec = form.spec
    problems = [
        *_names(spec.windows, ("spec", "windows")),
        *_names(spec.workloads, ("spec", "workloads")),
        *_names(spec.pools, ("spec", "pools")),
        *_columns(spec),
        *_dates(spec.windows),
        *_names(spec.overrides, ("spec", "overrides")),
        *_overrides(spec),
    ]
    if not problems:
        problems = [*_conserved(spec), *_cover(spec.windows), *overlaps(spec.windows)]
    if form.explanation is not None:
        problems += reasons_problems(form.explanation.workloads, len(spec.windows), ("explanation", "workloads"))
    if form.status is not None and form.status.memory is not None:
        problems += memory_problems(form.status.memory, ("status", "memory"))
    return problems


def _overrides(spec: ScheduleSpec) -> Iterator[Problem]:
    windows, workloads = ([item.name for item in items] for items in (spec.windows, spec.workloads))
    for index, one in enumerate(spec.overrides):
        path: Path = ("spec", "overrides", index)
        yield from one_of(path, {"hold": one.hold, "window": one.window, "release": one.release})
        for field, name, known in (("window", one.window, windows), ("release", one.release, workloads)):
            if name is not None and name not in known:
                what = {"window": "window", "release": "workload"}[field]
                yield unknown(
                    (*path, field), kind=f"unknown_{what}", word=name, known=known, what=f"no {what} is named"
                )


def reasons_problems(columns: Sequence[ReasonColumnsSpec], windows: int, root: Path) -> list[Problem]:
    """Columns of the explanation that have not one entry per window, names given twice, targets of no kind."""
    problems = list(_names(columns, root))
    for index, workload in enumerate(columns):
        problems += _lengths(workload, windows, (*root, index))
        for number, target in enumerate(workload.targets):
            problems += one_of((*root, index, "targets", number), target.bounds)
    return problems


def _names(items: Sequence[Any], root: Path) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        if item.name in seen:
            message = f'the name "{item.name}" is given twice'
            yield Problem(path=(*root, index, "name"), kind="duplicate_name", message=message)
        seen.add(item.name)


def _columns(spec: ScheduleSpec) -> Iterator[Problem]:
    for root, items in (("workloads", spec.workloads), ("pools", spec.pools)):
        for index, item in enumerate(items):
            yield from _lengths(item, len(spec.windows), ("spec", root, index))


def _lengths(item: Any, windows: int, path: Path) -> Iterator[Problem]:
    for name, info in type(item).model_fields.items():
        column = getattr(item, name)
        if isinstance(column, list) and name != "targets" and len(column) != windows:
            yield Problem(
                path=(*path, info.alias or name),
                kind="column_length",
                message=f"has {len(column)} entries, but there are {windows} windows",
            )


def _conserved(spec: ScheduleSpec) -> Iterator[Problem]:
    """Pools whose production and ephemeral nodes do not add up to the same in every window.

    Nodes move between the two sides and go nowhere else (reserved ones stand in neither column), so another sum is a
    slip of an editor: the controller would look for nodes that aren't there, or leave some in no window's plan.
    """
    for index, pool in enumerate(spec.pools):
        sums = [a + b for a, b in zip(pool.production_nodes, pool.ephemeral_nodes, strict=True)]
        usual = Counter(sums).most_common(1)[0][0]
        for window, nodes in enumerate(sums):
            if nodes == usual:
                continue
            here, there = (_sides(spec, pool, number) for number in (window, sums.index(usual)))
            yield Problem(
                path=("spec", "pools", index),
                kind="nodes_not_conserved",
                message=f"has {here}, but {there}",
                hint="what production gains, research gives: both columns add up to the same in every window",
            )
            break


def _sides(spec: ScheduleSpec, pool: SchedulePoolSpec, window: int) -> str:
    production, ephemeral = pool.production_nodes[window], pool.ephemeral_nodes[window]
    return f"{production} + {ephemeral} = {production + ephemeral} nodes in window {spec.windows[window].name}"


def _dates(windows: Sequence[WindowSpec]) -> Iterator[Problem]:
    for index, window in enumerate(windows):
        path: Path = ("spec", "windows", index)
        if (window.from_ is None) != (window.until is None):
            message = "a dated window has both from and until"
            yield Problem(path=path, kind="missing_field", message=message)
        elif window.from_ is not None and window.until is not None and window.until <= window.from_:
            message = f"is {window.until}, not after {window.from_}; until is the day after the last"
            yield Problem(path=(*path, "until"), kind="out_of_range", message=message)


def _cover(windows: Sequence[WindowSpec]) -> Iterator[Problem]:
    """The first stretch of the week that lies in no undated window, or in two."""
    held: list[str] = [""] * _WEEK_MINUTES
    for index, window in enumerate(windows):
        if window.from_ is not None:
            continue
        for minute in _minutes(window):
            if held[minute]:
                message = f"{_named(minute)} is in two windows, {held[minute]} and {window.name}"
                yield Problem(path=("spec", "windows", index), kind="window_overlap", message=message)
                return
            held[minute] = window.name
    if "" in held:
        first = held.index("")
        last = next((m for m in range(first, _WEEK_MINUTES) if held[m]), _WEEK_MINUTES)
        message = f"{_named(first)} to {_named(last % _WEEK_MINUTES)} is in no window"
        yield Problem(path=("spec", "windows"), kind="window_gap", message=message)


def _minutes(window: WindowSpec) -> Iterator[int]:
    """The minutes of the week that a window covers, Monday 00:00 being 0."""
    start = minute_of(window.start)
    length = (minute_of(window.end) - start) % DAY_MINUTES or DAY_MINUTES
    for number, day in enumerate(WEEK):
        if day.value in window.days:
            for minute in range(length):
                yield (number * DAY_MINUTES + start + minute) % _WEEK_MINUTES


def _named(minute: int) -> str:
    day, rest = divmod(minute, DAY_MINUTES)
    return f"{WEEK[day]} {rest // 60:02}:{rest % 60:02}"
