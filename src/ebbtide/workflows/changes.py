"""What ``diff`` answers: the values, and their form for scripts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ebbtide.fleet.horizon import Window, clock


class How(StrEnum):
    """What happened to a window."""

    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One number before and after; None where there was, or is, none."""

    before: float | None
    after: float | None

    @property
    def differs(self) -> bool:
        """Whether anything changed."""
        return self.before != self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadChange:
    """A workload in a window: its replicas, and the rate that they hold."""

    name: str
    replicas: Step
    holds_rps: Step


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolChange:
    """A pool in a window."""

    name: str
    production_nodes: Step
    ephemeral_nodes: Step
    ephemeral_quota_gpus: Step
    lead_s: Step

    @property
    def steps(self) -> tuple[Step, ...]:
        """All four."""
        return self.production_nodes, self.ephemeral_nodes, self.ephemeral_quota_gpus, self.lead_s


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowChange:
    """A window that changed, came or went, with what changed in it (all of it where it came or went)."""

    how: How
    window: Window
    workloads: tuple[WorkloadChange, ...]
    pools: tuple[PoolChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """A field of the schedule as a whole."""

    field: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Counts, and GPU-hours a day on movable nodes: a mean over the week's undated windows, leads not counted."""

    windows: int
    windows_changed: int
    windows_added: int
    windows_removed: int
    workloads: int
    workloads_changed: int
    ephemeral_gpu_h_per_day: Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What ``diff`` answers."""

    fields: tuple[FieldChange, ...]
    windows: tuple[WindowChange, ...]
    totals: Totals

    @property
    def differ(self) -> bool:
        """Whether anything that the controller obeys is different."""
        return bool(self.fields or self.windows)

    def as_json(self) -> dict[str, object]:
        """``changes`` and ``totals`` (DOCUMENTS §5), snake_case with units."""
        totals = self.totals
        before, after = totals.ephemeral_gpu_h_per_day.before or 0.0, totals.ephemeral_gpu_h_per_day.after or 0.0
        fields = [{"field": one.field, "before": one.before, "after": one.after} for one in self.fields]
        return {
            "changes": [*fields, *(_window_json(change) for change in self.windows)],
            "totals": {
                "windows": totals.windows,
                "windows_changed": totals.windows_changed,
                "windows_added": totals.windows_added,
                "windows_removed": totals.windows_removed,
                "workloads": totals.workloads,
                "workloads_changed": totals.workloads_changed,
                "ephemeral_gpu_h_per_day": {"before": before, "after": after, "change": after - before},
            },
        }


def _step_json(step: Step) -> dict[str, float | None]:
    return {"before": step.before, "after": step.after}


def _window_json(change: WindowChange) -> dict[str, object]:
    window = change.window
    return {
        "change": change.how.value,
        "window": window.name,
        "days": [day.value for day in window.days],
        "start": clock(window.start),
        "end": clock(window.end),
        "workloads": [
            {"name": one.name, "replicas": _step_json(one.replicas), "holds_rps": _step_json(one.holds_rps)}
            for one in change.workloads
        ],
        "pools": [
            {
                "name": one.name,
                "production_nodes": _step_json(one.production_nodes),
                "ephemeral_nodes": _step_json(one.ephemeral_nodes),
                "ephemeral_quota_gpus": _step_json(one.ephemeral_quota_gpus),
                "lead_s": _step_json(one.lead_s),
            }
            for one in change.pools
        ],
    }
