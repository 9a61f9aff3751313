"""The answer of ``ebbtide jobs when`` as text of at most 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from ebbtide.batch.offer import Change
from ebbtide.batch.plan import PlannedJob
from ebbtide.cli.columns import WIDTH, filled
from ebbtide.workflows.job_offer import Offered
from ebbtide.workflows.job_words import moment, relief_text, rough, share, why_text


def offered_text(found: Offered, *, width: int = WIDTH) -> str:
    """When it starts and is done, how sure, what blocks it, and what would help, the cheapest first."""
    planned, zone = found.offer.planned, found.time_zone
    lines = [line for text in _sentences(planned, zone, found.at_s) for line in filled(text, width)]
    helps = [*(_change(one, zone, found.at_s) for one in found.offer.changes)]
    helps += [relief_text(one, zone) for one in found.offer.reliefs]
    if helps:
        lines.append("What would help, the cheapest first:")
        lines += [line for text in helps for line in filled(f"- {text}", width)]
    return "\n".join(lines) + "\n"


def _sentences(planned: PlannedJob, zone: str, at_s: float) -> Iterator[str]:
    job, place = planned.job, planned.place
    if place is None:
        yield f"no place for {_gang(planned)} within the days that were looked at"
    else:
        wait = "now" if place.start_s <= at_s else f"in {rough(place.start_s - at_s)}"
        yield f"starts {moment(place.start_s, zone, dated=True)} ({wait}) on {place.pool}, {place.tenure.value} nodes"
        broken = f", in {len(place.runs)} runs" if len(place.runs) > 1 else ""
        yield f"done by {moment(place.finish_s, zone, dated=True)}{broken}"
    if job.deadline_s is not None:
        sure = "" if planned.probability is None else f": {share(planned.probability)} sure"
        slack_s = planned.slack_s
        spare = "" if slack_s is None else f", {rough(abs(slack_s))} {'to spare' if slack_s >= 0 else 'too late'}"
        yield f"deadline {moment(job.deadline_s, zone, dated=True)}{sure}{spare}"
    why = why_text(planned, zone)
    if why:
        yield why


def _gang(planned: PlannedJob) -> str:
    job = planned.job
    return f"{job.gpus} GPUs" if job.pods == 1 else f"{job.pods} pods of {job.gpus_per_pod} GPUs"


def _change(one: Change, zone: str, at_s: float) -> str:
    place = one.planned.place
    assert place is not None  # a change that gives no place is none
    done = f"done by {moment(place.finish_s, zone, dated=True)}"
    start = "now" if place.start_s <= at_s else moment(place.start_s, zone, dated=True)
    if one.preemptible:
        return f"a checkpoint every 30m, so that it may be interrupted (--checkpoint 30m): starts {start}, {done}"
    moved = ", ".join(one.moved[:4]) + (f" and {len(one.moved) - 4} more" if len(one.moved) > 4 else "")
    return f"{moved or 'nothing else'} would start at another time, all their deadlines still held: {done}"
