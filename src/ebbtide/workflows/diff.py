"""``ebbtide diff``: what changed between two schedules, window by window, in what the controller obeys."""

from __future__ import annotations

from pathlib import Path

from ebbtide.fleet.horizon import WEEK, Window
from ebbtide.fleet.schedule import Schedule
from ebbtide.workflows.changes import Changes, FieldChange, How, PoolChange, Step, Totals, WindowChange, WorkloadChange
from ebbtide.workflows.windows import week_minutes, window_minutes


def diff(old: Path | str, new: Path | str) -> Changes:
    """Read two schedules and compare them."""
    from ebbtide.adapters.documents.schedule import read_schedule

    return diff_schedules(read_schedule(old, explained=False)[0], read_schedule(new, explained=False)[0])


def diff_schedules(old: Schedule, new: Schedule) -> Changes:
    """What changed from one schedule to another. Windows are the same if their days, hours and dates are."""
    before = {_key(window): index for index, window in enumerate(old.windows)}
    after = {_key(window): index for index, window in enumerate(new.windows)}
    changes = [_window_change(old, new, before.get(key), index) for key, index in after.items()]
    changes += [_window_change(old, new, index, None) for key, index in before.items() if key not in after]
    found = tuple(change for change in changes if change.how is not How.CHANGED or change.workloads or change.pools)
    counts = {how: sum(change.how is how for change in found) for how in How}
    names = dict.fromkeys([column.name for column in (*new.workloads, *old.workloads)])
    totals = Totals(
        windows=len(new.windows),
        windows_changed=counts[How.CHANGED],
        windows_added=counts[How.ADDED],
        windows_removed=counts[How.REMOVED],
        workloads=len(names),
        workloads_changed=len(_changed_workloads(old, new, before, after)),
        ephemeral_gpu_h_per_day=Step(before=_research(old), after=_research(new)),
    )
    return Changes(fields=_fields(old, new), windows=found, totals=totals)


def _key(window: Window) -> tuple[object, ...]:
    return (window.days, window.start, window.end, window.valid_from, window.valid_until)


def _fields(old: Schedule, new: Schedule) -> tuple[FieldChange, ...]:
    pairs = {
        "name": (old.name, new.name),
        "fleet.name": (old.fleet_name, new.fleet_name),
        "fleet.digest": (old.fleet_digest, new.fleet_digest),
        "timeZone": (old.time_zone, new.time_zone),
        "validUntil": (str(old.valid_until), str(new.valid_until)),
    }
    return tuple(FieldChange(field=field, before=a, after=b) for field, (a, b) in pairs.items() if a != b)


def _window_change(old: Schedule, new: Schedule, before: int | None, after: int | None) -> WindowChange:
    if after is None:
        assert before is not None  # a window is in one of the two schedules
        how, window = How.REMOVED, old.windows[before]
    else:
        how, window = How.CHANGED if before is not None else How.ADDED, new.windows[after]
    return WindowChange(
        how=how,
        window=window,
        workloads=_workload_changes(old, new, before, after),
        pools=_pool_changes(old, new, before, after),
    )


def _workload_changes(
    old: Schedule, new: Schedule, before: int | None, after: int | None
) -> tuple[WorkloadChange, ...]:
    olds = {column.name: column for column in old.workloads}
    news = {column.name: column for column in new.workloads}
    changes = []
    for name in dict.fromkeys((*news, *olds)):
        a, b = olds.get(name), news.get(name)
        change = WorkloadChange(
            name=name,
            replicas=_step("replicas", a, b, before, after),
            holds_rps=_step("holds_rps", a, b, before, after),
        )
        if change.replicas.differs or change.holds_rps.differs:
            changes.append(change)
    return tuple(changes)


def _pool_changes(old: Schedule, new: Schedule, before: int | None, after: int | None) -> tuple[PoolChange, ...]:
    olds = {column.name: column for column in old.pools}
    news = {column.name: column for column in new.pools}
    changes = []
    for name in dict.fromkeys((*news, *olds)):
        a, b = olds.get(name), news.get(name)
        change = PoolChange(
            name=name,
            production_nodes=_step("production_nodes", a, b, before, after),
            ephemeral_nodes=_step("ephemeral_nodes", a, b, before, after),
            ephemeral_quota_gpus=_step("ephemeral_quota_gpus", a, b, before, after),
            lead_s=_step("lead_s", a, b, before, after),
        )
        if any(step.differs for step in change.steps):
            changes.append(change)
    return tuple(changes)


def _step(name: str, old: object | None, new: object | None, before: int | None, after: int | None) -> Step:
    """One column's number before and after; ``old`` and ``new`` are a workload's or pool's columns."""
    return Step(
        before=None if old is None or before is None else getattr(old, name)[before],
        after=None if new is None or after is None else getattr(new, name)[after],
    )


def _changed_workloads(
    old: Schedule, new: Schedule, before: dict[tuple[object, ...], int], after: dict[tuple[object, ...], int]
) -> set[str]:
    """Workloads whose replicas differ at any minute of the week, or on the dates of a dated window."""
    old_week, new_week = week_minutes(old), week_minutes(new)
    pairs = set(zip(old_week, new_week, strict=True))
    pairs |= {(before[key], after[key]) for key in before if key in after}
    # A dated window that only one of them has stands against what the other does in the same hours.
    for key, index in before.items():
        if old.windows[index].valid_from is not None and key not in after:
            pairs |= {(index, new_week[minute]) for minute in window_minutes(old.windows[index])}
    for key, index in after.items():
        if new.windows[index].valid_from is not None and key not in before:
            pairs |= {(old_week[minute], index) for minute in window_minutes(new.windows[index])}
    olds = {column.name: column.replicas for column in old.workloads}
    news = {column.name: column.replicas for column in new.workloads}
    both = olds.keys() & news.keys()
    changed = {name for name in both for a, b in pairs if _at(olds[name], a) != _at(news[name], b)}
    return changed | (olds.keys() ^ news.keys())


def _at(column: tuple[int, ...], index: int | None) -> int | None:
    return None if index is None else column[index]


def _research(schedule: Schedule) -> float:
    hours = [
        window.nominal_hours * len(window.days) if window.valid_from is None else 0.0 for window in schedule.windows
    ]
    return sum(
        gpus * length / len(WEEK)
        for pool in schedule.pools
        for gpus, length in zip(pool.ephemeral_quota_gpus, hours, strict=True)
    )
