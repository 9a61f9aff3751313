"""What people are told at Kueue's door: conditions, the check's messages, Events; in a sentence each."""

from __future__ import annotations

from dataclasses import dataclass

from ebbtide.batch.admission import Admission, Verdict, Why
from ebbtide.batch.door.decide import Note
from ebbtide.batch.plan import PlannedJob
from ebbtide.workflows.job_words import moment, why_text

_WHY = {
    Why.PREEMPTIBLE: "it may be interrupted when its nodes leave",
    Why.ENDS_IN_TIME: "it ends before its nodes leave",
    Why.DUE: "its planned start has come",
    Why.NOT_DUE: "its planned start has not come",
    Why.UNKNOWN_DURATION: "nobody says how long it runs, and it must not be interrupted",
    Why.TIDE_TURNS_FIRST: "its nodes leave before it would be done, and it must not be interrupted",
    Why.NO_NODES: "so many nodes are not there now",
    Why.NO_PLACE: "it has no place in the plan",
    Why.BAD_ANNOTATION: "an annotation cannot be read",
    Why.NOT_OURS: "its flavor is none of the Fleet's",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a Workload's condition says: whether it is planned, one word, a sentence; ``waits_for``: why, in short."""

    planned: bool
    reason: str
    message: str
    waits_for: str = ""


def said(note: Note, zone: str) -> Said:
    """What the condition says of a Workload that waits."""
    if note.problem:
        reason = "BadAnnotation" if note.work.wishes is None else "NotPlanned"
        return Said(planned=False, reason=reason, message=note.problem, waits_for=note.problem)
    planned = note.planned
    if planned is None:
        return Said(planned=False, reason="NotPlanned", message="not planned yet")
    why = why_text(planned, zone)
    if planned.place is None:
        reason = "".join(part.capitalize() for part in planned.reason.cause.split("_"))
        return Said(planned=False, reason=reason, message=why, waits_for=why)
    late = "" if planned.in_time else f"; its deadline, {_at(planned.job.deadline_s, zone)}, would be missed"
    text = (
        f"starts {_at(planned.place.start_s, zone)} on {planned.place.pool}, done {_at(planned.place.finish_s, zone)}"
    )
    return Said(
        planned=True,
        reason="Late" if late else "Planned",
        message=f"{text}{late}{_moved(planned)}" + (f"; {why}" if why else ""),
        waits_for=why,
    )


def _at(at_s: float | None, zone: str) -> str:
    return "" if at_s is None else f"{moment(at_s, zone, dated=True)} ({zone})"


def _moved(planned: PlannedJob) -> str:
    promise = planned.promise
    return "" if promise is None or not promise.reason else f"; moved: {promise.reason}"


def answer_text(admission: Admission, zone: str) -> str:
    """What the check's state says."""
    text = _WHY[admission.why]
    if admission.verdict is Verdict.RETRY and admission.retry_s is not None:
        text += f"; more nodes come {_at(admission.retry_s, zone)}"
    return f"{text} ({admission.why})"
