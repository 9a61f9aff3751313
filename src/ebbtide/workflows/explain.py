"""``ebbtide explain``: why a workload has its replicas in a window, from the schedule document alone (§5.12)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from ebbtide.errors import InputError, Place
from ebbtide.fleet.horizon import Window, clock
from ebbtide.fleet.schedule import Explanation, Schedule, Standing, WorkloadFacts, WorkloadReason
from ebbtide.fleet.workload import Target
from ebbtide.workflows.windows import named_workload, selected_windows


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One workload in one window.

    ``replicas`` is what the schedule holds; where a person edited it, the reason still speaks of
    ``reason.given.replicas``. ``money`` is ``USD`` or, where the Fleet names no value, ``GPU-h``.
    """

    workload: str
    window: Window
    replicas: int
    reason: WorkloadReason
    facts: WorkloadFacts | None
    money: str

    @property
    def gpus(self) -> int | None:
        """GPUs of the replicas; None where the document doesn't say."""
        return None if self.facts is None else self.facts.gpus_per_replica * self.replicas

    @property
    def replica_holds_rps(self) -> float | None:
        """What a replica holds by the workload's claim; None without one."""
        return None if self.facts is None else self.facts.replica_holds_rps

    @property
    def edited(self) -> bool:
        """Whether the replicas are no longer those that are explained."""
        return self.replicas != self.reason.given.replicas

    @property
    def target(self) -> Target | None:
        """The tightest target: the one whose share of its bound the reason states; None where none is said."""
        if self.facts is None or not self.facts.targets:
            return None
        given, share = self.reason.given.wait_s, self.reason.target_share
        if not (math.isfinite(given) and math.isfinite(share)):
            return min(self.facts.targets, key=lambda target: target.bound_s)
        return min(self.facts.targets, key=lambda target: abs(given / target.bound_s - share))

    def meets(self, standing: Standing) -> bool | None:
        """Whether a count meets the target; None where the target isn't said."""
        if self.replica_holds_rps is not None:
            least = self.reason.least_replicas
            return least is not None and standing.replicas >= least
        if standing is self.reason.given and self.reason.bound == "shortage":
            return False
        return None if self.target is None else standing.wait_s <= self.target.bound_s

    def as_json(self) -> dict[str, object]:
        """The answer for scripts (DOCUMENTS §5): snake_case, units in the names, "unstable" for an infinite wait."""
        reason = self.reason
        return {
            "workload": self.workload,
            "window": self.window.name,
            "days": [day.value for day in self.window.days],
            "start": clock(self.window.start),
            "end": clock(self.window.end),
            "replicas": self.replicas,
            "gpus": self.gpus,
            "rate_rps": _number(reason.rate_rps),
            "peak_rps": _number(reason.peak_rps),
            "target": None if self.target is None else _target_json(self.target),
            "target_share": _number(reason.target_share),
            "replica_holds_rps": self.replica_holds_rps,
            "bound": reason.bound,
            "least_replicas": reason.least_replicas,
            "floor": self._standing_json(reason.floor),
            "last_given": self._standing_json(reason.given),
            "first_refused": None if reason.refused is None else self._refused_json(reason.refused),
            "money": self.money,
            "edited": self.edited,
        }

    def _standing_json(self, standing: Standing) -> dict[str, object]:
        return {
            "replicas": standing.replicas,
            "wait_s": _number(standing.wait_s),
            "waiting_requests": _number(standing.waiting),
            "attainment": _number(standing.attainment),
            "meets_target": self.meets(standing),
            "saves_per_h": _number(standing.gain_usd_per_h),
        }

    def _refused_json(self, standing: Standing) -> dict[str, object]:
        return {**self._standing_json(standing), "costs_research_per_h": _number(self.reason.cost_usd_per_h)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What ``explain`` answers: one or more windows and workloads, in the schedule's order."""

    answers: tuple[Answer, ...]

    def as_json(self) -> dict[str, object]:
        """The one answer; where there are more, ``{"answers": [...]}``."""
        if len(self.answers) == 1:
            return self.answers[0].as_json()
        return {"answers": [answer.as_json() for answer in self.answers]}


def explain(path: Path | str, *, window: str | None = None, workload: str | None = None) -> Answers:
    """Read a schedule and explain it; ``InputError`` where it has no explanation, or no such window or workload."""
    from ebbtide.adapters.documents.schedule import read_schedule

    schedule, explanation = read_schedule(path)
    if explanation is None:
        raise InputError(
            "has no explanation",
            kind="no_explanation",
            place=Place(file=str(path)),
            hint="write it anew with `ebbtide allocate`",
        )
    return explain_schedule(schedule, explanation, window=window, workload=workload)


def explain_schedule(
    schedule: Schedule, explanation: Explanation, *, window: str | None = None, workload: str | None = None
) -> Answers:
    """The answers for the windows that contain a time (``09:00``, ``Mon 09:00``) and a workload; None: all."""
    windows = selected_windows(schedule, window)
    columns = {column.name: column for column in schedule.workloads}
    names = tuple(columns) if workload is None else (named_workload(workload, columns),)
    money = "USD" if explanation.bound.unit.startswith("USD") else "GPU-h"
    answers = [
        Answer(
            workload=name,
            window=schedule.windows[index],
            replicas=columns[name].replicas[index],
            reason=explanation.reasons[name][index],
            facts=explanation.facts.get(name),
            money=money,
        )
        for index in windows
        for name in names
        if name in explanation.reasons
    ]
    if not answers:
        raise InputError(
            f'the explanation says nothing of "{workload}"', kind="no_explanation", hint="write the schedule anew"
        )
    return Answers(answers=tuple(answers))


def _target_json(target: Target) -> dict[str, object]:
    return {"kind": target.kind.value, "bound_s": target.bound_s, "percentile": target.percentile}


def _number(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return "unstable" if math.isinf(value) else value
