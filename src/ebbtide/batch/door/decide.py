"""What follows from the plan and what is seen: who moves now, what the check answers, what is said (§7.4, §7.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ebbtide.batch.admission import Admission, Held, Verdict, Why, may_start
from ebbtide.batch.door.following import Following
from ebbtide.batch.door.work import Stage, Work
from ebbtide.batch.hollows import Hollow
from ebbtide.batch.plan import PlannedJob

ON_THE_WAY_S = 120.0  # from its planned start through Kueue to our answer, at worst: what was planned is not refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A Workload to be moved to its live queue, or back to the held one."""

    work: Work
    to_live: bool
    why: Why


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the check says of a Workload that holds quota on an ephemeral flavor."""

    work: Work
    admission: Admission


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What a held Workload is to be told: what is planned for it, or why nothing is (``problem``)."""

    work: Work
    planned: PlannedJob | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """All that is to be done, in this order. ``next_s``: when time alone will bring something new; None: never."""

    answers: tuple[Answer, ...] = ()
    moves: tuple[Move, ...] = ()
    notes: tuple[Note, ...] = ()
    next_s: float | None = None


def decide(following: Following, works: Sequence[Work], hollows: Sequence[Hollow], *, at_s: float) -> Decision:
    """What to do now. ``hollows`` are named by flavor."""
    answers = [_answer(work, works, following, hollows, at_s) for work in works if work.stage is Stage.CHECKING]
    moves = [
        Move(work=one.work, to_live=False, why=one.admission.why)
        for one in answers
        if one.admission.verdict is Verdict.RETRY and one.work.can_be_held
    ]
    plan = following.plan.by_name
    held = [work for work in works if work.stage is Stage.HELD]
    due = [work for work in held if _is_due(work, plan.get(work.name), at_s)]
    due.sort(key=lambda work: _order(work, plan.get(work.name)))
    moves += [Move(work=work, to_live=True, why=Why.DUE) for work in due]
    notes = [
        Note(work=work, planned=plan.get(work.name), problem=following.problems.get(work.name, ""))
        for work in held
        if work.gpus
    ]
    return Decision(answers=tuple(answers), moves=tuple(moves), notes=tuple(notes), next_s=_next_s(held, plan, at_s))


def _order(work: Work, planned: PlannedJob | None) -> tuple[float, float, str]:
    start_s = planned.place.start_s if planned is not None and planned.place is not None else 0.0
    return start_s, work.created_s, work.name


def _is_due(work: Work, planned: PlannedJob | None, at_s: float) -> bool:
    """Whether its start has come; work without GPUs is none of the tide's business, and waits for its own wish."""
    if work.gpus == 0:
        earliest_s = work.wishes.earliest_start_s if work.wishes is not None else None
        return work.wishes is not None and (earliest_s is None or earliest_s <= at_s)
    return planned is not None and planned.place is not None and planned.place.start_s <= at_s


def _next_s(held: Sequence[Work], plan: Mapping[str, PlannedJob], at_s: float) -> float | None:
    planned = [plan[work.name].place for work in held if work.name in plan]
    return min((place.start_s for place in planned if place is not None and place.start_s > at_s), default=None)


def _answer(work: Work, works: Sequence[Work], following: Following, hollows: Sequence[Hollow], at_s: float) -> Answer:
    if not work.flavor:
        return Answer(work=work, admission=Admission(verdict=Verdict.READY, why=Why.NOT_OURS))
    hollow = next((one for one in hollows if one.pool == work.flavor), None)
    if hollow is None:
        return Answer(work=work, admission=Admission(verdict=Verdict.RETRY, why=Why.NO_NODES))
    if work.wishes is None:
        return Answer(work=work, admission=Admission(verdict=Verdict.RETRY, why=Why.BAD_ANNOTATION))
    if work.released:  # the plan counted what others need
        found = may_start(work.gang(), hollow, at_s=at_s, grace_s=ON_THE_WAY_S)
    else:
        found = may_start(work.gang(), hollow, at_s=at_s, held=_held(work, works, following, hollow))
    return Answer(work=work, admission=found)


def _held(work: Work, works: Sequence[Work], following: Following, hollow: Hollow) -> list[Held]:
    """Whole nodes of what must not be interrupted and stands there, or has been let in."""
    others = {
        one.name for one in works if one.name != work.name and (one.stage is Stage.RUNNING or one.released) and one.gpus
    }
    found = []
    for one in following.plan.jobs:
        place = one.place
        if one.job.name in others and place is not None and place.pool == hollow.pool and not one.job.preemptible:
            nodes = one.job.shapes[0].nodes(hollow.gpus_per_node)
            found.append(Held(nodes=nodes or 0, until_s=place.finish_s))
    return found
