"""What may start now: the answer for a workload at Kueue's door (§7.4).

On ephemeral nodes work starts if it may be interrupted, or if it ends before its nodes leave; what has a plan starts
when its time has come. The answer is Ready or Retry with a reason, never a final no.

What belongs here: the rule, on plain values, without a solver. What doesn't: Kueue's objects and where annotations are
read (``adapters.kubernetes``), planning (``search``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ebbtide.batch.durations import Duration
from ebbtide.batch.hollows import Hollow, Tenure
from ebbtide.batch.plan import BatchPlan, PlannedJob

PLANNED_SHARE = 0.9  # of runs that end in time: the P90 of the duration


class Verdict(StrEnum):
    """Kueue's two states of an admission check that ebbtide uses."""

    READY = "Ready"
    RETRY = "Retry"


class Why(StrEnum):
    """Stable words for the reason of an answer, for conditions and Events."""

    PREEMPTIBLE = "Preemptible"
    ENDS_IN_TIME = "EndsInTime"
    DUE = "Due"
    NOT_DUE = "NotDue"
    UNKNOWN_DURATION = "UnknownDuration"
    TIDE_TURNS_FIRST = "TideTurnsFirst"
    NO_NODES = "NoNodes"
    NO_PLACE = "NoPlace"
    BAD_ANNOTATION = "BadAnnotation"
    NOT_OURS = "NotOurs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """A workload as the door sees it. ``duration`` None: nobody said how long it runs."""

    name: str
    pods: int
    gpus_per_pod: int
    duration: Duration | None
    preemptible: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Whole nodes that running work holds which must not be interrupted, until its planned end."""

    nodes: int
    until_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The answer: a verdict, a stable word, and for Retry when it may be otherwise (None: not known)."""

    verdict: Verdict
    why: Why
    retry_s: float | None = None


def may_start(
    gang: Gang,
    hollow: Hollow,
    *,
    at_s: float,
    held: Sequence[Held] = (),
    share: float = PLANNED_SHARE,
    grace_s: float = 0.0,
) -> Admission:
    """Whether a workload without a plan may start now on an ephemeral hollow.

    It may if it is preemptible, or if until the end of so large a ``share`` of its runs never fewer nodes are left than
    it and the work in ``held`` need: which nodes leave is chosen by the least loss, so those are not among them (§6.2).
    On a reserved hollow it may if the gang fits its nodes at all. ``grace_s``: how much later than its nodes leave it
    may end, for what was planned and is on its way.

    >>> tide = Hollow(pool="h100", tenure=Tenure.EPHEMERAL, gpus_per_node=8, edges_s=(0, 7200, 9000), nodes=(2, 1))
    >>> gang = Gang(name="a", pods=1, gpus_per_pod=8, duration=Duration.usual(6000.0), preemptible=False)
    >>> may_start(gang, tide, at_s=0.0).verdict.value
    'Ready'
    >>> answer = may_start(gang, tide, at_s=0.0, held=(Held(nodes=1, until_s=8000.0),))
    >>> answer.verdict.value, answer.why.value
    ('Retry', 'TideTurnsFirst')
    """
    nodes = _nodes(gang, hollow)
    if nodes is None or hollow.nodes_at(at_s) < nodes:
        return Admission(verdict=Verdict.RETRY, why=Why.NO_NODES, retry_s=_grows_s(hollow, at_s))
    if hollow.tenure is Tenure.RESERVED:
        return Admission(verdict=Verdict.READY, why=Why.ENDS_IN_TIME)
    if gang.preemptible:
        return Admission(verdict=Verdict.READY, why=Why.PREEMPTIBLE)
    if gang.duration is None:
        return Admission(verdict=Verdict.RETRY, why=Why.UNKNOWN_DURATION)
    end_s = at_s + gang.duration.quantile_s(share) - grace_s
    if all(_nodes_needed(nodes, held, edge_s) <= hollow.nodes_at(edge_s) for edge_s in _marks(hollow, at_s, end_s)):
        return Admission(verdict=Verdict.READY, why=Why.ENDS_IN_TIME)
    return Admission(verdict=Verdict.RETRY, why=Why.TIDE_TURNS_FIRST, retry_s=_grows_s(hollow, at_s))


def admit(name: str, plan: BatchPlan, *, at_s: float) -> Admission | None:
    """The answer of the plan for one of its jobs; None where the plan does not know it."""
    planned = plan.by_name.get(name)
    if planned is None:
        return None
    if planned.place is None:
        return Admission(verdict=Verdict.RETRY, why=Why.NO_PLACE)
    if planned.place.start_s <= at_s:
        return Admission(verdict=Verdict.READY, why=Why.DUE)
    return Admission(verdict=Verdict.RETRY, why=Why.NOT_DUE, retry_s=planned.place.start_s)


def due(plan: BatchPlan, *, at_s: float, started: Iterable[str] = ()) -> tuple[PlannedJob, ...]:
    """The jobs whose planned start has come and that have not ``started``, the earliest planned first."""
    begun = frozenset(started)
    found = [
        one for one in plan.jobs if one.place is not None and one.place.start_s <= at_s and one.job.name not in begun
    ]
    return tuple(sorted(found, key=lambda one: one.place.start_s if one.place else 0.0))


def next_due_s(plan: BatchPlan, *, at_s: float) -> float | None:
    """The next planned start after ``at_s``; None where there is none."""
    starts = [one.place.start_s for one in plan.jobs if one.place is not None and one.place.start_s > at_s]
    return min(starts, default=None)


def _nodes(gang: Gang, hollow: Hollow) -> int | None:
    on_one = hollow.gpus_per_node // gang.gpus_per_pod
    return None if on_one == 0 else -(-gang.pods // on_one)


def _nodes_needed(own: int, held: Sequence[Held], at_s: float) -> int:
    return own + sum(one.nodes for one in held if one.until_s > at_s)


def _marks(hollow: Hollow, from_s: float, until_s: float) -> list[float]:
    """The instants at which the nodes may be too few: now, and every step until the end (the hollow's own included)."""
    return [from_s, *(edge_s for edge_s in hollow.edges_s if from_s < edge_s < until_s)]


def _grows_s(hollow: Hollow, at_s: float) -> float | None:
    """When the next nodes come; None where none do within the hollow's steps."""
    before = hollow.nodes_at(at_s)
    for edge_s, count in zip(hollow.edges_s, hollow.nodes, strict=False):
        if edge_s > at_s:
            if count > before:
                return edge_s
            before = count
    return None
