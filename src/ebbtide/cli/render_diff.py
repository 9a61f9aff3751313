"""The answer of ``ebbtide diff`` as text of at most 80 columns, or fewer (longer only where a single name is)."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator

from ebbtide.cli.columns import WIDTH
from ebbtide.fleet.horizon import hours_label
from ebbtide.units import format_duration
from ebbtide.workflows.changes import Changes, FieldChange, How, PoolChange, Step, Totals, WindowChange, WorkloadChange

_SIGNS = {How.CHANGED: "~", How.ADDED: "+", How.REMOVED: "-"}


def diff_text(changes: Changes, *, width: int = WIDTH) -> str:
    """A line for each field and window that changed (``~``), came (``+``) or went (``-``), and the totals."""
    lines = [line for field in changes.fields for line in _field(field, width)]
    lines += [line for window in changes.windows for line in _window(window, width)]
    return "\n".join([*lines, *_totals(changes, width)]) + "\n"


def _field(change: FieldChange, width: int) -> list[str]:
    before, after = (text if len(text) <= 40 else f"{text[:19]}…" for text in (change.before, change.after))
    return _wrapped(f"~ {change.field} {before} -> {after}", width)


def _window(change: WindowChange, width: int) -> list[str]:
    workloads = [text for one in change.workloads if (text := _workload(one, change.how))]
    pools = [text for one in change.pools if (text := _pool(one, change.how))]
    said = "; ".join(part for part in (", ".join(workloads), "; ".join(pools)) if part)
    return _wrapped(f"{_SIGNS[change.how]} {hours_label(change.window)}  {said}", width)


def _workload(change: WorkloadChange, how: How) -> str:
    if how is not How.CHANGED:
        return _one(change.replicas, f"{change.name} {{}}", _count)
    if change.replicas.differs:
        return f"{change.name} {_both(change.replicas, _count)}"
    return f"{change.name} holds {_both(change.holds_rps, _rate)} rps"


def _pool(change: PoolChange, how: How) -> str:
    named: list[tuple[Step, str, Callable[[float], str]]] = [
        (change.production_nodes, "production", _count),
        (change.ephemeral_nodes, "ephemeral", _count),
        (change.lead_s, "lead", format_duration),
    ]
    if not change.ephemeral_nodes.differs:  # the quota follows the nodes; alone it was edited
        named.append((change.ephemeral_quota_gpus, "quota GPUs", _count))
    if how is How.CHANGED:
        parts = [f"{name} {_both(step, text)}" for step, name, text in named if step.differs]
    else:
        parts = [part for step, name, text in named[:2] if (part := _one(step, f"{name} {{}}", text))]
    return f"{change.name} {', '.join(parts)}"


def _one(step: Step, form: str, text: Callable[[float], str]) -> str:
    value = step.after if step.after is not None else step.before
    return "" if value is None else form.format(text(value))


def _both(step: Step, text: Callable[[float], str]) -> str:
    before, after = (("none" if value is None else text(value)) for value in (step.before, step.after))
    return f"{before} -> {after}"


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _rate(value: float) -> str:
    return f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"


def _totals(changes: Changes, width: int) -> list[str]:
    if not changes.differ:
        return ["no change"]
    return _wrapped("; ".join(_sentences(changes.totals)), width, indent="  ")


def _sentences(totals: Totals) -> Iterator[str]:
    changed = f"{totals.windows_changed:,} of {_many(totals.windows, 'window')}"
    yield f"{changed}, {totals.workloads_changed:,} of {_many(totals.workloads, 'workload')} changed"
    moved = [
        f"{count:,} {word}"
        for count, word in ((totals.windows_added, "added"), (totals.windows_removed, "removed"))
        if count
    ]
    if moved:
        yield f"windows: {', '.join(moved)}"
    research = (totals.ephemeral_gpu_h_per_day.after or 0.0) - (totals.ephemeral_gpu_h_per_day.before or 0.0)
    change = f"{research:+,.0f}"
    yield "research GPU-hours unchanged" if change in ("+0", "-0") else f"research {change} GPU-hours a day"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def _wrapped(text: str, width: int, *, indent: str = "    ") -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
