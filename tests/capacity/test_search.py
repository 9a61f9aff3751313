"""The search in virtual time: a small part of the study, and what must hold of every run.

``uv run python benchmarks/capacity_study.py`` is the whole; docs/background/capacity-study.md has its table.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import exp, inf

import numpy as np
import pytest
from scipy.optimize import brentq

from ebbtide.capacity.budget import forecast, longest_disturbance_s
from ebbtide.capacity.limits import Answers, Limit, LimitKind
from ebbtide.capacity.search import next_step, observe, outcome
from ebbtide.capacity.steps import Purpose, SearchState, StepResult, Wish
from ebbtide.capacity.verdict import Verdict
from ebbtide.simulate.services import Servers, SheddingServers, exponential

SHEDDING = Wish(
    limits=(
        Limit(kind=LimitKind.LATENCY, bad_share=0.05, bound_s=5.0),
        Limit(kind=LimitKind.ERRORS, bad_share=0.01),
    ),
    start_rps=3.0,
    budget_requests=60_000,
    tolerance=0.06,
)


def driven(wish: Wish, service: Servers) -> tuple[SearchState, list[StepResult]]:
    """A search to its end, and all that it was told."""
    state, told, sent = SearchState(wish=wish), [], 0
    while (plan := next_step(state)) is not None:
        if not plan.continues:
            sent = 0
            if plan.drain:
                service.drain()
            service.begin(plan.rate_rps)
        latency_s = service.more(plan.requests - sent).latency_s
        sent = plan.requests
        answers = Answers(
            latency_s=latency_s, failed=np.isinf(latency_s), wrong=np.zeros(len(latency_s), dtype=np.int8)
        )
        told.append(StepResult(plan=plan, answers=answers))
        state = observe(state, told[-1])
    return state, told


@cache
def shedding(seed: int) -> tuple[SearchState, list[StepResult]]:
    rng = np.random.default_rng(seed)
    wish = replace(SHEDDING, start_rps=SHEDDING.start_rps * (0.8 + 0.4 * rng.random()))
    return driven(wish, SheddingServers(16, exponential(1.0), rng, waiting_room=8))


def shed_share(rate_rps: float) -> float:
    weights = np.cumprod(np.concatenate(([1.0], rate_rps / np.minimum(np.arange(1, 25), 16))))
    return float(weights[-1] / weights.sum())


def test_the_interval_holds_the_true_rate() -> None:
    true = brentq(lambda rate: shed_share(rate) - 0.01, 5.0, 20.0)
    found = [outcome(shedding(seed)[0]) for seed in range(12)]
    ends = [(one.interval.low, one.interval.high) for one in found if one.interval is not None]
    inside = sum(exp(low) <= true <= exp(high) for low, high in ends)
    # At a coverage of 95 % fewer than nine of twelve happen once in 600 studies of other seeds; these are fixed.
    assert inside >= 9
    assert sum(one.resolved for one in found) >= 9
    assert all(SHEDDING.limits[one.interval.limit].name == "errors" for one in found if one.interval is not None)


def test_the_budget_holds_and_the_time_is_counted() -> None:
    state, told = shedding(1)
    assert state.spent_requests <= state.wish.budget_requests
    last = [
        one for one, after in zip(told, [*told[1:], None], strict=True) if after is None or not after.plan.continues
    ]
    assert state.spent_requests == sum(len(one.answers) for one in last)
    assert state.spent_s == pytest.approx(sum(one.plan.duration_s for one in last))


def test_a_search_goes_on_from_its_recorded_steps() -> None:
    state, told = shedding(2)
    again = SearchState(wish=state.wish)
    for one in told:
        assert next_step(again) == one.plan
        again = observe(again, one)
    assert next_step(again) is None
    assert outcome(again) == outcome(state)


def test_blocks_lie_within_a_tenth_and_last_25_memories() -> None:
    state, _ = shedding(3)
    found = outcome(state).interval
    assert found is not None
    blocks = [step for step in state.steps if step.plan.purpose is Purpose.BLOCK]
    near = [step for step in blocks if abs(step.plan.rate_rps / exp(found.at) - 1.0) <= 0.1]
    assert len(near) >= 8
    assert all(step.measured.batches[0].requests >= 25.0 * step.measured.memory for step in near[-3:])
    assert all(step.measured.warm_up_requests >= 5.0 * step.measured.memory for step in near)
    assert longest_disturbance_s(state, found.at) > 0.0


def test_a_void_step_changes_nothing_but_what_was_spent() -> None:
    state = SearchState(wish=SHEDDING)
    plan = next_step(state)
    assert plan is not None
    nothing = Answers(latency_s=np.full(plan.requests, inf), failed=np.ones(plan.requests, dtype=bool))
    after = observe(state, StepResult(plan=plan, answers=nothing, void="P99 lateness 40 ms"))
    assert after.steps == ()
    assert after.voids == 1
    assert after.spent_requests == plan.requests
    assert next_step(after) == plan


def test_a_budget_that_is_too_small_is_unresolved() -> None:
    rng = np.random.default_rng(4)
    state, _ = driven(
        replace(SHEDDING, budget_requests=4000), SheddingServers(16, exponential(1.0), rng, waiting_room=8)
    )
    found = outcome(state)
    assert not found.resolved
    assert found.reason == "budget spent"


def test_a_limit_that_nothing_ever_breaks_does_not_hide_the_one_that_binds() -> None:
    """Latency's long memory once stood for the errors' too: no run without errors could say what it held."""
    limits = (
        Limit(kind=LimitKind.LATENCY, bad_share=0.05, bound_s=4.0),
        Limit(kind=LimitKind.ERRORS, bad_share=0.01),
        Limit(kind=LimitKind.QUALITY, bad_share=0.03),
    )
    wish = Wish(limits=limits, start_rps=1.0, budget_requests=100_000, tolerance=0.06)
    state, _ = driven(wish, Servers(4, exponential(1.0), np.random.default_rng(3)))
    found = outcome(state)
    assert found.interval is not None
    # P(wait + service > 4) of M/M/4 is 5 % at a load of 2.9414.
    assert exp(found.interval.low) <= 2.9414 <= exp(found.interval.high)
    assert limits[found.interval.limit].name == "latency"


def test_time_ends_a_run_too() -> None:
    rng = np.random.default_rng(4)
    state, _ = driven(replace(SHEDDING, budget_s=600.0), SheddingServers(16, exponential(1.0), rng, waiting_room=8))
    assert not outcome(state).resolved
    assert state.spent_s >= 600.0


def test_the_forecast_shrinks_to_nothing() -> None:
    state, told = shedding(5)
    first = forecast(SearchState(wish=state.wish))
    assert first.most_requests > 0
    assert forecast(state).most_requests < first.most_requests
    assert len(told) > 10


def test_verdicts_come_before_blocks() -> None:
    state, _ = shedding(6)
    purposes = [step.plan.purpose for step in state.steps]
    assert purposes == sorted(purposes, key=lambda one: one is Purpose.BLOCK)
    verdicts = [step.measured.verdict for step in state.steps if step.plan.purpose is Purpose.BRACKET]
    assert Verdict.UNDECIDED not in verdicts
