"""The answers of ``ebbtide jobs`` for scripts (DOCUMENTS §5): snake_case, units in the names."""

from __future__ import annotations

from ebbtide.adapters.documents.batch_plan import plan_plain
from ebbtide.workflows.jobs import PlannedJobs


def planned_json(done: PlannedJobs) -> dict[str, object]:
    """``plan`` is the document (camelCase); ``totals``, ``bound``, ``missed``, ``warnings``, ``written``."""
    plan = done.document.plan
    deadlines = sum(one.job.deadline_s is not None for one in plan.jobs)
    return {
        "plan": plan_plain(done.document),
        "totals": {
            "jobs": len(plan.jobs),
            "placed": sum(one.place is not None for one in plan.jobs),
            "deadlines": deadlines,
            "deadlines_held": deadlines - len(plan.missed),
            "value_usd": plan.value_usd,
        },
        "bound": {"bound_usd": plan.bound.bound_usd, "gap": plan.bound.gap, "method": plan.bound.method},
        "missed": [one.job.name for one in plan.missed],
        "warnings": list(done.talk),
        "written": [str(path) for path in done.written],
    }
