"""The answers of ``ebbtide jobs`` for scripts (DOCUMENTS §5): snake_case, units in the names."""

from __future__ import annotations

from ebbtide.adapters.documents.batch_plan import plan_plain
from ebbtide.batch.plan import PlannedJob, Relief
from ebbtide.workflows.job_offer import Offered
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
        "reliefs": [relief_json(one) for one in plan.reliefs],
        "warnings": list(done.talk),
        "written": [str(path) for path in done.written],
    }


def relief_json(one: Relief) -> dict[str, object]:
    """What would make the missed deadlines hold."""
    return {
        "kind": one.kind.value,
        "deadlines": [{"job": name, "deadline_s": at_s} for name, at_s in one.deadlines_s],
        "pool": one.pool or None,
        "nodes": one.nodes,
        "gpus": one.gpus,
        "from_s": one.from_s if one.nodes else None,
        "until_s": one.until_s if one.nodes else None,
        "gpu_hours": one.gpu_hours,
        "proven": one.proven,
    }


def offered_json(found: Offered) -> dict[str, object]:
    """The job's ``start_s, finish_s``, …; what blocks it; ``changes`` and ``reliefs``, the cheapest first."""
    return {
        **_offered(found.offer.planned),
        "changes": [
            {"preemptible": one.preemptible, "moved": list(one.moved), **_offered(one.planned)}
            for one in found.offer.changes
        ],
        "reliefs": [relief_json(one) for one in found.offer.reliefs],
        "lost": list(found.offer.lost),
        "warnings": list(found.talk),
    }


def _offered(planned: PlannedJob) -> dict[str, object]:
    place = planned.place
    return {
        "start_s": None if place is None else place.start_s,
        "finish_s": None if place is None else place.finish_s,
        "pool": None if place is None else place.pool,
        "tenure": None if place is None else place.tenure.value,
        "in_time": planned.in_time,
        "slack_s": planned.slack_s,
        "probability": planned.probability,
        "cause": planned.reason.cause.value,
        "waits_for": list(planned.reason.jobs),
    }
