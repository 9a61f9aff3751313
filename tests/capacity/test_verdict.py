"""Verdicts: what passes, what fails, what stays open, and what is never said."""

from __future__ import annotations

import numpy as np

from ebbtide.capacity.batches import batches
from ebbtide.capacity.limits import UNCHECKED, WRONG, Answers, Limit, LimitKind, judged
from ebbtide.capacity.verdict import STEP_ERROR, Measured, Verdict, measured

LATENCY = Limit(kind=LimitKind.LATENCY, bad_share=0.05, bound_s=1.0)
ERRORS = Limit(kind=LimitKind.ERRORS, bad_share=0.01)
QUALITY = Limit(kind=LimitKind.QUALITY, bad_share=0.05)


def answers(late: np.ndarray, failed: np.ndarray | None = None, wrong: np.ndarray | None = None) -> Answers:
    nobody = np.zeros(len(late), dtype=bool)
    return Answers(latency_s=np.where(late, 2.0, 0.5), failed=nobody if failed is None else failed, wrong=wrong)


def said(limits: list[Limit], found: Answers, looks: int = 4) -> Measured:
    return measured(limits, [batches(limit, found) for limit in limits], looks=looks)


def test_a_burst_of_late_requests_is_one_observation() -> None:
    rng = np.random.default_rng(1)
    alone = rng.random(4000) < 0.12
    lasting = np.repeat(rng.random(10) < 0.3, 400)
    assert said([LATENCY], answers(alone)).verdict is Verdict.FAILS
    assert said([LATENCY], answers(lasting)).verdict is Verdict.UNDECIDED


def test_under_forty_effective_observations_there_is_no_verdict() -> None:
    none_late = np.zeros(40, dtype=bool)
    found = said([LATENCY], answers(none_late))
    assert found.effective < 40.0
    assert found.verdict is Verdict.UNDECIDED


def test_failed_requests_are_late_and_not_judged_for_quality() -> None:
    failed = np.array([True, False, False, False])
    wrong = np.array([WRONG, WRONG, UNCHECKED, 0], dtype=np.int8)
    found = answers(np.zeros(4, dtype=bool), failed, wrong)
    assert judged(LATENCY, found)[1].tolist() == [True, False, False, False]
    spoken, bad = judged(QUALITY, found)
    assert spoken.tolist() == [False, True, False, True]
    assert bad.tolist() == [False, True, False, False]


def test_all_limits_must_pass_and_one_may_fail() -> None:
    rng = np.random.default_rng(2)
    failed = rng.random(4000) < 0.03
    found = answers(np.zeros(4000, dtype=bool), failed)
    assert said([LATENCY, ERRORS], found).verdict is Verdict.FAILS
    assert said([LATENCY], found).verdict is Verdict.PASSES


def test_a_shedding_server_does_not_pass_by_the_latency_of_its_successes() -> None:
    failed = np.tile([True, False, False, False, False], 400)
    assert said([LATENCY], answers(np.zeros(2000, dtype=bool), failed)).verdict is Verdict.FAILS


def test_a_growing_backlog_fails_early() -> None:
    latency_s = np.linspace(0.1, 8.0, 400)
    found = said([LATENCY], Answers(latency_s=latency_s, failed=np.zeros(400, dtype=bool)))
    assert found.growing
    assert found.verdict is Verdict.FAILS


def test_wrong_verdicts_stay_within_the_error_budget() -> None:
    rng = np.random.default_rng(3)
    wrong = 0
    for _ in range(300):
        late = rng.random(3200) < LATENCY.bad_share
        wrong += any(
            said([LATENCY], answers(late[:n]), looks=4).verdict is not Verdict.UNDECIDED for n in (400, 800, 1600, 3200)
        )
    # At the limit itself either verdict is wrong: twice the budget, plus three standard deviations of 300 runs.
    assert wrong <= 300 * 2 * STEP_ERROR + 3 * (300 * 2 * STEP_ERROR) ** 0.5
