"""One measurement: steps made, checked, judged and kept, until the search is over (§M.2–§M.6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf, sqrt
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ebbtide.adapters.load.calls import Calls, Fault, Sent
from ebbtide.adapters.load.checks import UNCHECKED, Checked, Quality
from ebbtide.adapters.load.crew import Crew
from ebbtide.adapters.load.evidence import KeptStep, RunFolder
from ebbtide.adapters.load.items import Item
from ebbtide.adapters.load.messages import Beat
from ebbtide.capacity.limits import LATENCY, Answers, Limit
from ebbtide.capacity.search import next_step, observe
from ebbtide.capacity.steps import SearchState, StepPlan, StepResult, Wish
from ebbtide.errors import InputError, TemporaryError

LEAST_LATENESS_S, LATENESS_SHARE = 0.001, 0.01
# Where no target counts from the intended time, lateness only blurs the gaps: this much of it is nothing beside them.
FREE_LATENESS_S = 0.01
# A checker may break on so few answers before a step is void (§M.6); one broken check of a short step is forgiven.
BROKEN_SHARE = 0.001
MOST_VOIDS = 3
Watch = Callable[["Progress"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a measurement stands: the present step, and all that was spent. ``over``: the step is finished.

    ``side``: which of two settings it is, where two are compared.
    """

    state: SearchState
    plan: StepPlan
    number: int
    beat: Beat
    over: bool = False
    void: str | None = None
    side: str = ""


@dataclass(slots=True)
class Run:
    """What a measurement has gathered."""

    state: SearchState
    steps: list[KeptStep] = field(default_factory=list)
    details: dict[Fault, str] = field(default_factory=dict)
    sent: int = 0


class Measuring:
    """Makes steps with a crew; every finished one is on disk before the next begins."""

    def __init__(
        self,
        crew: Crew,
        folder: RunFolder,
        run: Run,
        *,
        items: Sequence[Item],
        quality: Quality | None,
        seed: int,
        watch: Watch,
        side: str = "",
    ) -> None:
        self._crew, self._folder, self._run, self._side = crew, folder, run, side
        self._items, self._quality, self._seed, self._watch = items, quality, seed, watch
        self._marks: NDArray[np.int8] = np.empty(0, dtype=np.int8)
        self._checked = Checked(marks=self._marks)
        self._voids = 0

    @property
    def state(self) -> SearchState:
        """All that is known so far."""
        return self._run.state

    def to_the_end(self) -> None:
        """Step after step until the search is over. Raises ``TemporaryError`` where rates can't be offered."""
        while (plan := next_step(self._run.state)) is not None:
            self.step(plan, (self._seed, len(self._run.steps) + 1))
        self._crew.halt()

    def step(self, plan: StepPlan, seed: tuple[int, ...]) -> None:
        """One whole step, by as many looks as it takes; its arrivals are those of ``seed``."""
        looks = [plan]
        result, sent = self._look(plan, seed)
        self._run.state = observe(self._run.state, result)
        while self._run.state.open is not None and (further := next_step(self._run.state)) is not None:
            looks.append(further)
            result, sent = self._look(further, seed)
            self._run.state = observe(self._run.state, result)
        kept = KeptStep(looks=tuple(looks), calls=sent.calls, marks=self._marks, void=result.void)
        self._run.steps.append(kept)
        self._folder.keep(len(self._run.steps), kept)
        beat = Beat(sent=len(sent.calls), known=len(sent.calls), in_flight=0)
        self._tell(looks[-1], beat, over=True, void=result.void)
        self._voids = 0 if result.void is None else self._voids + 1
        if result.void is not None and self._voids == MOST_VOIDS:
            self._give_up(looks[-1], result.void)

    def pause(self) -> None:
        """Send nothing more, until everything is answered: another's turn."""
        self._crew.drained()

    def _look(self, plan: StepPlan, seed: tuple[int, ...]) -> tuple[StepResult, Sent]:
        crew = self._crew

        def watch(beat: Beat) -> None:
            self._tell(plan, beat)

        if plan.continues:
            crew.extend(plan.requests)
        else:
            if plan.drain:
                crew.drained(watch)
            crew.begin(plan.rate_rps, plan.requests, seed)
            self._marks = np.empty(0, dtype=np.int8)
            self._checked = Checked(marks=self._marks)
        sent = crew.decided(watch)
        for fault, detail in sent.details:
            self._run.details.setdefault(fault, detail)
        self._check(sent)
        limits = self._run.state.wish.limits
        void = offered(sent.calls, limits) or self._checks_broken()
        return StepResult(plan=plan, answers=answers_of(sent.calls, self._marks), void=void), sent

    def _check(self, sent: Sent) -> None:
        """Checks what came since the look before."""
        known = len(self._marks)
        if self._quality is None:
            self._marks = np.full(len(sent.calls), UNCHECKED, dtype=np.int8)
            return
        new = self._quality.checked(self._items, sent.calls.item[known:].tolist(), sent.texts[known:])
        self._marks = np.concatenate([self._marks, new.marks])
        self._checked = Checked(
            marks=self._marks,
            broken=self._checked.broken + new.broken,
            tried=self._checked.tried + new.tried,
            example=new.example or self._checked.example,
        )

    def _checks_broken(self) -> str | None:
        found = self._checked
        if found.broken <= max(1.0, BROKEN_SHARE * found.tried):
            return None
        return f"the checker broke on {found.broken:,} of {found.tried:,} answers: {found.example}"

    def _give_up(self, plan: StepPlan, why: str) -> None:
        self._crew.halt()
        if why.startswith("the checker"):
            raise InputError(why, kind="checker_failed", hint="run it by hand on one answer; then go on with --resume")
        raise TemporaryError(
            f"{plan.rate_rps:.4g} requests a second can't be offered from here: {why}",
            kind="cannot_offer",
            hint="use --processes 2 or more, or a machine with less to do; then go on with --resume",
        )

    def _tell(self, plan: StepPlan, beat: Beat, *, over: bool = False, void: str | None = None) -> None:
        number = len(self._run.steps) + (0 if over else 1)
        state, side = self._run.state, self._side
        self._watch(Progress(state=state, plan=plan, number=number, beat=beat, over=over, void=void, side=side))


def offered(calls: Calls, limits: Sequence[Limit]) -> str | None:
    """Why a step was not offered as planned; None where it was (§M.5)."""
    count = len(calls)
    lacking = int((calls.fault == Fault.LOCAL).sum())
    if lacking > 3.0 * sqrt(count):
        return f"{lacking:,} of {count:,} requests were not sent: {Fault.LOCAL.words.partition(': ')[2]}"
    late_s = calls.lateness_s[np.isfinite(calls.lateness_s)]
    if not len(late_s):
        return None
    p99_s, allowed_s = float(np.percentile(late_s, 99)), allowed_lateness_s(limits)
    if p99_s > allowed_s:
        return f"P99 lateness {1e3 * p99_s:.1f} ms, at most {1e3 * allowed_s:.3g} ms"
    return None


def allowed_lateness_s(limits: Sequence[Limit]) -> float:
    """The larger of 1 ms and 1 % of the tightest target that counts from the intended time."""
    bounds = [one.bound_s for one in limits if one.bound_s is not None and one.metric in (LATENCY, "firstToken")]
    return max(LEAST_LATENESS_S, LATENESS_SHARE * min(bounds)) if bounds else FREE_LATENESS_S


def answers_of(calls: Calls, marks: NDArray[np.int8]) -> Answers:
    """A step's requests as the search wants them. An answer of one token has no time between tokens: 0."""
    failed = calls.fault != Fault.NONE
    metrics = {
        "firstToken": np.where(np.isnan(calls.first_s), inf, calls.first_s),
        "betweenTokens": np.nan_to_num(calls.mean_gap_s, nan=0.0),
        "longestGap": np.nan_to_num(calls.worst_gap_s, nan=0.0),
    }
    return Answers(
        latency_s=calls.latency_s,
        failed=failed,
        wrong=marks if bool((marks != UNCHECKED).any()) else None,
        metrics_s=MappingProxyType(metrics),
    )


def replayed(wish: Wish, steps: Sequence[KeptStep]) -> Run:
    """A run's state from its kept steps: the same answers lead to the same state."""
    run = Run(SearchState(wish=wish))
    for step in steps:
        replay(run, step, next_step(run.state))
    return run


def replay(run: Run, step: KeptStep, planned: StepPlan | None) -> None:
    """A kept step, look by look, as it was first observed. ``InputError`` where it is none that was planned."""
    for number, plan in enumerate(step.looks):
        expected = next_step(run.state) if number else planned
        if run.state.done is not None or expected != plan:
            raise InputError("the kept steps are not of this search", kind="bad_step", hint="begin anew")
        part = answers_of(step.calls.first(plan.requests), step.marks[: plan.requests])
        void = step.void if plan is step.plan else None
        run.state = observe(run.state, StepResult(plan=plan, answers=part, void=void))
    run.steps.append(step)
