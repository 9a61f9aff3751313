"""The search for the sustained rate: a state, the next step it asks for, and what an observation makes of it (§M.3).

``next_step`` and ``observe`` are functions of values: the same answers lead to the same next step, so a run that was
stopped goes on by observing its recorded steps again. First rates are bracketed by verdicts; then blocks are measured
on both sides of the crossing until the interval of a local fit is as narrow as wished for or the budget is spent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, exp, log

from ebbtide.capacity.around import (
    Guess,
    Interval,
    block_requests,
    guess,
    interval,
    memory_near,
    offset,
)
from ebbtide.capacity.batches import batches
from ebbtide.capacity.bracket import Bracket, bracketed
from ebbtide.capacity.steps import Purpose, SearchState, Step, StepPlan, StepResult
from ebbtide.capacity.verdict import Verdict, measured

LOOKS = 6
FIRST_LOOK = 400
# A step may take this share of the budget before its rate counts as near the answer; the bracket this share in all.
STEP_SHARE, BRACKET_SHARE = 1.0 / 14.0, 0.35
# Independent blocks that an answer needs, and that the search strives for while the budget lasts: with few of them
# their scatter, and so the interval, is known badly.
LEAST_CLUSTERS, WANTED_CLUSTERS = 12, 24
# No search ends before this share of the budget was measured around the crossing: a memory longer than those seen is
# only found by looking longer.
LEAST_SHARE = 0.4
# A block is at least this share of the budget: before the memory is known, short blocks lead astray.
LEAST_BLOCK = 1.0 / 64.0
# Between two looks at the interval the measurements grow by this factor: looking after every block would stop at the
# luckiest one.
LOOK_GROWTH = 1.3
_MOST_MOVE = 0.12


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the steps say: the interval where there is one, whether it is as narrow as wished for, and why not."""

    interval: Interval | None
    resolved: bool
    reason: str
    bracket: Bracket
    requests: int
    seconds: float


def next_step(state: SearchState) -> StepPlan | None:
    """The step to make now; None where the search is over."""
    if state.done is not None:
        return None
    if state.open is not None:
        return _longer(state, state.open)
    left = _left(state)
    bracket = _bracket(state)
    if not _around(state, bracket):
        return _bracket_step(state, bracket, left)
    return _block_step(state, left)


def observe(state: SearchState, result: StepResult) -> SearchState:
    """The state after a step, or after a look at one that goes on."""
    plan = result.plan
    before = state.open.plan.requests if state.open is not None else 0
    spent = max(0, len(result.answers) - before)
    state = replace(
        state, spent_requests=state.spent_requests + spent, spent_s=state.spent_s + spent / plan.rate_rps, open=None
    )
    if result.void is not None:
        return _ended(replace(state, voids=state.voids + 1, looks=0))
    whole = tuple(batches(limit, result.answers) for limit in state.wish.limits)
    found = measured(state.wish.limits, whole, looks=LOOKS, warm_up=plan.warm_up_requests)
    step = Step(plan=plan, whole=whole, measured=found)
    if plan.purpose is Purpose.BLOCK:
        return _ended(replace(state, steps=(*state.steps, step)))
    looks = state.looks + 1
    if found.verdict is Verdict.UNDECIDED:
        if looks < LOOKS and 2 * plan.requests <= _step_limit(state) and plan.requests <= _left(state):
            return replace(state, open=step, looks=looks)
        step = replace(step, measured=replace(found, verdict=Verdict.NEAR))
    return _ended(replace(state, steps=(*state.steps, step), looks=0))


def outcome(state: SearchState) -> Found:
    """What is known now; at any time, also in the middle."""
    found = _looked(state)
    resolved = found is not None and found.clusters >= LEAST_CLUSTERS and found.half_width <= state.wish.tolerance
    return Found(
        interval=found,
        resolved=resolved,
        reason="resolved" if resolved else state.done or "unfinished",
        bracket=_bracket(state),
        requests=state.spent_requests,
        seconds=state.spent_s,
    )


def _left(state: SearchState) -> int:
    return state.wish.budget_requests - state.spent_requests


def _step_limit(state: SearchState) -> int:
    return int(state.wish.budget_requests * STEP_SHARE)


def _bracket(state: SearchState) -> Bracket:
    return bracketed(
        [(step.plan.rate_rps, step.measured.verdict) for step in state.steps if step.plan.purpose is Purpose.BRACKET]
    )


def _around(state: SearchState, bracket: Bracket) -> bool:
    """Whether to measure around the crossing now."""
    if bracket.narrow or any(step.plan.purpose is Purpose.BLOCK for step in state.steps):
        return True
    spent = state.spent_requests >= BRACKET_SHARE * state.wish.budget_requests
    return spent and bracket.high_rps is not None and bracket.low_rps is not None


def _bracket_step(state: SearchState, bracket: Bracket, left: int) -> StepPlan:
    rate = bracket.next_rps(state.wish.start_rps)
    requests = max(FIRST_LOOK, ceil(rate * state.wish.least_step_s))
    requests = min(requests, max(_step_limit(state), FIRST_LOOK), left)
    return StepPlan(rate_rps=rate, requests=requests, purpose=Purpose.BRACKET, drain=True)


def _longer(state: SearchState, step: Step) -> StepPlan:
    return replace(step.plan, requests=min(2 * step.plan.requests, step.plan.requests + _left(state)), continues=True)


def centre(state: SearchState) -> Guess:
    """Where the crossing seems to be, led from the bracket's middle through block after block."""
    bracket = _bracket(state)
    at = log(bracket.centre_rps)
    led = guess(state.steps, state.wish.limits, at)
    for _ in range(4):
        moved = at + min(max(led.at - at, -_MOST_MOVE), _MOST_MOVE)
        if abs(moved - at) < 0.01:
            break
        at = moved
        led = guess(state.steps, state.wish.limits, at)
    return replace(led, at=at + min(max(led.at - at, -_MOST_MOVE), _MOST_MOVE))


def _block_step(state: SearchState, left: int) -> StepPlan | None:
    """A block below and above the crossing in turn, the first at the guess itself."""
    led = centre(state)
    limit = state.wish.limits[led.limit]
    lasting = memory_near(state.steps, led.at, len(state.wish.limits))
    measure, _ = block_requests(led, limit, lasting, state.wish.tolerance)
    blocks = sum(step.plan.purpose is Purpose.BLOCK for step in state.steps)
    side = 0 if blocks == 0 else (-1 if blocks % 2 else 1)
    warm_up = ceil(max(5.0 * lasting, 50.0))
    requests = min(warm_up + max(measure, ceil(LEAST_BLOCK * state.wish.budget_requests)), left)
    rate = exp(led.at + offset(led.slope, side))
    return StepPlan(rate_rps=rate, requests=requests, purpose=Purpose.BLOCK, warm_up_requests=warm_up)


def _looked(state: SearchState) -> Interval | None:
    if not any(step.plan.purpose is Purpose.BLOCK for step in state.steps):
        return None
    return interval(state.steps, state.wish.limits, centre(state).at, state.wish.confidence)


def _ended(state: SearchState) -> SearchState:
    """Looks at the interval where it is time to, and ends the search at the tolerance or the budget."""
    measured_now = sum(step.plan.requests for step in state.steps if step.plan.purpose is Purpose.BLOCK)
    over_time = state.wish.budget_s is not None and state.spent_s >= state.wish.budget_s
    if _left(state) < FIRST_LOOK or over_time:
        return replace(state, done="budget spent")
    least = ceil(LEAST_SHARE * state.wish.budget_requests)
    if state.wish.ends_at_tolerance and measured_now >= max(state.blocks_wanted, least):
        found = _looked(state)
        if found is not None and found.clusters >= WANTED_CLUSTERS and found.half_width <= state.wish.tolerance:
            return replace(state, done="resolved")
        return replace(state, blocks_wanted=ceil(LOOK_GROWTH * measured_now))
    return state
