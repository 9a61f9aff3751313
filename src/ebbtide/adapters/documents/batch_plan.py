"""Write and read a BatchPlan document (DOCUMENTS §3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from whenever import Instant

from ebbtide.adapters.documents.emit import block
from ebbtide.adapters.documents.files import MARK, Output
from ebbtide.adapters.documents.model import API_VERSION
from ebbtide.adapters.documents.plan_models import (
    BatchPlanForm,
    PlaceSpec,
    PlannedJobSpec,
    PromiseSpec,
    ReliefSpec,
    RunSpec,
)
from ebbtide.adapters.documents.problems import Problem, document_errors, raise_errors
from ebbtide.adapters.documents.quantities import duration_text
from ebbtide.adapters.documents.reading import read_document
from ebbtide.batch.durations import Duration
from ebbtide.batch.hollows import Tenure
from ebbtide.batch.job import Job, Width
from ebbtide.batch.plan import BatchPlan, Bound, Cause, Place, PlannedJob, Promise, Reason, Relief, ReliefKind, Run

_OPEN = frozenset({"spec"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDocument:
    """A plan and what it was made for."""

    name: str
    schedule_name: str
    fleet_digest: str
    time_zone: str
    plan: BatchPlan


def plan_output(path: Path | str, document: PlanDocument) -> Output:
    """The file of a plan, for ``files.write_together``."""
    head = f"# {MARK.decode()} {version('ebbtide')} for schedule {document.schedule_name}: edit with care\n"
    return Output(path=Path(path), content=(head + block(plan_plain(document), open_keys=_OPEN)).encode())


def plan_plain(document: PlanDocument) -> dict[str, Any]:
    """The document as plain values."""
    plan, zone = document.plan, document.time_zone
    return {
        "apiVersion": API_VERSION,
        "kind": "BatchPlan",
        "metadata": {"name": document.name},
        "spec": {
            "schedule": {"name": document.schedule_name, "fleetDigest": document.fleet_digest},
            "timeZone": zone,
            "at": instant_text(plan.at_s, zone),
            "until": instant_text(plan.until_s, zone),
            "confidence": plan.confidence,
            "rule": plan.rule,
            "bound": {
                "valueUsd": plan.bound.value_usd,
                "boundUsd": plan.bound.bound_usd,
                "method": plan.bound.method,
            },
            "jobs": [_job_plain(one, zone) for one in plan.jobs],
            **({"reliefs": [_relief_plain(one, zone) for one in plan.reliefs]} if plan.reliefs else {}),
        },
    }


def read_plan(path: Path | str, *, content: bytes | None = None) -> PlanDocument:
    """The plan in a file. Raises ``DocumentError`` where it is wrong, ``InputError`` where there is no such file."""
    read = read_document(Path(path), BatchPlanForm, kind="BatchPlan", content=content)
    raise_errors(read.errors)
    assert read.form is not None  # without errors there is a form
    raise_errors(document_errors(_problems(read.form), read.tree, read.file))
    spec = read.form.spec
    bound = Bound(value_usd=spec.bound.value_usd, bound_usd=spec.bound.bound_usd, method=spec.bound.method)
    plan = BatchPlan(
        at_s=spec.at.timestamp(),
        until_s=spec.until.timestamp(),
        confidence=spec.confidence,
        jobs=tuple(_planned(one) for one in spec.jobs),
        bound=bound,
        rule=spec.rule,
        reliefs=tuple(_relief(one) for one in spec.reliefs),
    )
    return PlanDocument(
        name=read.form.metadata.name,
        schedule_name=spec.schedule.name,
        fleet_digest=spec.schedule.fleet_digest,
        time_zone=spec.time_zone,
        plan=plan,
    )


def instant_text(at_s: float, time_zone: str) -> str:
    """An instant as documents write it, with the zone's offset then; a part of a second is left out.

    >>> instant_text(1789012800.0, "Asia/Shanghai")
    '2026-09-10T12:00:00+08:00'
    """
    return Instant.from_timestamp(math.floor(at_s)).to_tz(time_zone).to_fixed_offset().format_iso()


def _job_plain(one: PlannedJob, zone: str) -> dict[str, Any]:
    job, place = one.job, one.place
    found: dict[str, Any] = {"name": job.name}
    if place is not None:
        found |= {"start": instant_text(place.start_s, zone), "finish": instant_text(place.finish_s, zone)}
    if job.deadline_s is not None:
        found["deadline"] = instant_text(job.deadline_s, zone)
    found["inTime"] = one.in_time
    if one.probability is not None:
        found["probability"] = math.floor(1000 * one.probability) / 1000  # rounded, 0.9996 would be sure
    found["cause"] = one.reason.cause.value
    if one.reason.jobs:
        found["waitsFor"] = list(one.reason.jobs)
    if place is not None:
        found["place"] = _place_plain(place, zone)
    if one.promise is not None:
        found["promise"] = _promise_plain(one.promise, zone)
    found |= {"pods": job.pods, "gpusPerPod": job.gpus_per_pod}
    found["duration"] = {
        "expected": duration_text(_millis(job.duration.expected_s)),
        "p90": duration_text(_millis(job.duration.p90_s)),
    }
    found["earliestStart"] = instant_text(job.earliest_start_s, zone)
    optional = {
        "valueUsd": job.value_usd,
        "checkpointInterval": None if job.checkpoint_interval_s is None else duration_text(job.checkpoint_interval_s),
        "after": list(job.after),
        "widths": [{"pods": width.pods, "speedup": width.speedup} for width in job.widths],
        "pools": list(job.pools),
    }
    return found | {name: value for name, value in optional.items() if value}


def _millis(seconds: float) -> float:
    return max(round(seconds, 3), 0.001)


def _place_plain(place: Place, zone: str) -> dict[str, Any]:
    return {
        "pool": place.pool,
        "tenure": place.tenure.value,
        "pods": place.pods,
        "runs": [
            {
                "start": instant_text(run.start_s, zone),
                "finish": instant_text(run.end_s, zone),
                "nodes": [node for node, pods in run.nodes for _ in range(pods)],
            }
            for run in place.runs
        ],
    }


def _planned(spec: PlannedJobSpec) -> PlannedJob:
    job = Job(
        name=spec.name,
        pods=spec.pods,
        gpus_per_pod=spec.gpus_per_pod,
        duration=Duration(expected_s=spec.duration.expected, p90_s=spec.duration.p90),
        earliest_start_s=spec.earliest_start.timestamp(),
        deadline_s=None if spec.deadline is None else spec.deadline.timestamp(),
        value_usd=spec.value_usd,
        checkpoint_interval_s=spec.checkpoint_interval,
        after=tuple(spec.after),
        widths=tuple(Width(pods=one.pods, speedup=one.speedup) for one in spec.widths),
        pools=tuple(spec.pools),
    )
    place = None if spec.place is None else _place(spec.place, spec.gpus_per_pod)
    reason = Reason(cause=Cause(spec.cause), jobs=tuple(spec.waits_for))
    promise = None if spec.promise is None else _promise(spec.promise)
    return PlannedJob(job=job, place=place, reason=reason, probability=spec.probability, promise=promise)


def _place(spec: PlaceSpec, gpus_per_pod: int) -> Place:
    return Place(
        pool=spec.pool,
        tenure=Tenure(spec.tenure),
        pods=spec.pods,
        gpus_per_pod=gpus_per_pod,
        runs=tuple(_run(one) for one in spec.runs),
    )


def _run(spec: RunSpec) -> Run:
    nodes = tuple((node, spec.nodes.count(node)) for node in sorted(set(spec.nodes)))
    return Run(start_s=spec.start.timestamp(), end_s=spec.finish.timestamp(), nodes=nodes)


def _promise_plain(one: Promise, zone: str) -> dict[str, Any]:
    found = {"start": instant_text(one.start_s, zone), "given": instant_text(one.given_s, zone)}
    if one.moved_s is None:
        return found
    return found | {"moved": instant_text(one.moved_s, zone), "reason": one.reason}


def _promise(spec: PromiseSpec) -> Promise:
    return Promise(
        start_s=spec.start.timestamp(),
        given_s=spec.given.timestamp(),
        moved_s=None if spec.moved is None else spec.moved.timestamp(),
        reason=spec.reason,
    )


def _relief_plain(one: Relief, zone: str) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": one.kind.value}
    if one.deadlines_s:
        found["deadlines"] = [{"job": name, "deadline": instant_text(at_s, zone)} for name, at_s in one.deadlines_s]
    if one.nodes:
        found |= {"pool": one.pool, "nodes": one.nodes, "gpus": one.gpus}
        found |= {"from": instant_text(one.from_s, zone), "until": instant_text(one.until_s, zone)}
    return found | {"proven": one.proven}


def _relief(spec: ReliefSpec) -> Relief:
    from_s = 0.0 if spec.from_ is None else float(spec.from_.timestamp())
    until_s = 0.0 if spec.until is None else float(spec.until.timestamp())
    return Relief(
        kind=ReliefKind(spec.kind),
        deadlines_s=tuple((one.job, float(one.deadline.timestamp())) for one in spec.deadlines),
        pool=spec.pool or "",
        nodes=spec.nodes,
        gpus=spec.gpus,
        from_s=from_s,
        until_s=until_s,
        gpu_hours=spec.gpus * (until_s - from_s) / 3600.0,
        proven=spec.proven,
    )


def _problems(form: BatchPlanForm) -> list[Problem]:
    problems = []
    seen: set[str] = set()
    for index, job in enumerate(form.spec.jobs):
        if job.name in seen:
            message = f'the name "{job.name}" is given twice'
            problems.append(Problem(path=("spec", "jobs", index, "name"), kind="duplicate_name", message=message))
        seen.add(job.name)
        if job.duration.p90 < job.duration.expected:
            problems.append(
                Problem(
                    path=("spec", "jobs", index, "duration", "p90"),
                    kind="out_of_range",
                    message="is below the expected duration",
                )
            )
    return problems
