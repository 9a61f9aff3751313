"""Brackets, budgets, ratios and claims: the small rules."""

from __future__ import annotations

from math import exp, log

import pytest
from whenever import OffsetDateTime, hours

from ebbtide.capacity.bracket import bracketed
from ebbtide.capacity.budget import floor_requests, forecast
from ebbtide.capacity.claim import CapacityClaim, Effort, Mix, Sustained
from ebbtide.capacity.compare import Side, ratio
from ebbtide.capacity.limits import Limit, LimitKind
from ebbtide.capacity.steps import SearchState, Wish
from ebbtide.capacity.verdict import Verdict
from ebbtide.fleet.fingerprint import Difference, Fingerprint

LIMIT = Limit(kind=LimitKind.LATENCY, bad_share=0.05, bound_s=1.0)


def test_rates_double_halve_and_meet_in_the_middle() -> None:
    assert bracketed([]).next_rps(3.0) == 3.0
    assert bracketed([(3.0, Verdict.PASSES)]).next_rps(3.0) == 6.0
    assert bracketed([(3.0, Verdict.FAILS)]).next_rps(3.0) == 1.5
    assert bracketed([(3.0, Verdict.PASSES), (12.0, Verdict.FAILS)]).next_rps(3.0) == pytest.approx(6.0)


def test_a_pass_above_a_failure_is_not_monotone_and_the_lower_counts() -> None:
    found = bracketed([(2.0, Verdict.PASSES), (4.0, Verdict.FAILS), (6.0, Verdict.PASSES), (8.0, Verdict.FAILS)])
    assert (found.low_rps, found.high_rps, found.monotone) == (2.0, 4.0, False)


def test_a_rate_measured_again_says_what_it_said_last() -> None:
    found = bracketed([(4.0, Verdict.FAILS), (6.0, Verdict.PASSES), (4.0, Verdict.PASSES)])
    assert (found.low_rps, found.high_rps, found.monotone) == (6.0, None, True)


def test_before_the_run_the_budget_lies_between_batching_and_heavy_tails() -> None:
    wish = Wish(limits=(LIMIT,), start_rps=2.0, budget_requests=1_000_000)
    told = forecast(SearchState(wish=wish))
    assert told.least_requests <= told.most_requests <= 1_000_000
    assert told.most_s == pytest.approx(told.most_requests / 2.0)
    # §M.4: the ideal floor of ±5 % is 5,000 requests for batching and 56,000 for heavy tails.
    assert 3_000 < floor_requests(LIMIT, memory=2.5, slope=3.0, tolerance=0.05) < 12_000
    assert 40_000 < floor_requests(LIMIT, memory=550.0, slope=19.0, tolerance=0.05) < 70_000


def test_the_ratio_of_two_settings() -> None:
    found = ratio(Side(at=log(12.0), low=log(11.5), high=log(12.5)), Side(at=log(10.0), low=log(9.6), high=log(10.4)))
    assert found.ratio == pytest.approx(1.2)
    assert found.low > 1.1
    assert found.differs
    assert found.high < exp(log(12.5) - log(9.6))


def claim(**changes: object) -> CapacityClaim:
    at = OffsetDateTime(2026, 9, 10, 14, offset=hours(8))
    return CapacityClaim(
        name="chat",
        sustained=Sustained(low_rps=9.6, high_rps=9.9, confidence=0.95, limited_by="latency"),
        limits=(LIMIT,),
        fingerprint=Fingerprint(gpu_model="H100-SXM-80GB", gpus=1),
        mix=Mix(source="prompts.jsonl"),
        effort=Effort(tolerance=0.05, measured_s=3600.0, requests=36_000, effective=500.0, longest_disturbance_s=400.0),
        measured_at=at,
        valid_until=OffsetDateTime(2026, 9, 11, 14, offset=hours(8)),
    )


def test_a_claim_expires_and_scales_with_replicas() -> None:
    one = claim()
    assert not one.expired(one.measured_at)
    assert one.expired(one.valid_until)
    assert one.held_rps(10) == pytest.approx(96.0)


def test_what_is_unknown_matches_nothing_that_is_expected() -> None:
    expected = Fingerprint(gpu_model="H100-SXM-80GB", gpus=2, driver="550")
    assert claim().fingerprint.differences(expected) == (
        Difference(field="gpus", expected=2, found=1),
        Difference(field="driver", expected="550", found=None),
    )


def test_an_interval_is_one() -> None:
    with pytest.raises(ValueError, match="not an interval"):
        Sustained(low_rps=2.0, high_rps=1.0, confidence=0.95, limited_by="latency")


def test_an_interval_may_be_open_above_and_its_confidence_unstated() -> None:
    assert Sustained(low_rps=2.0).high_rps == float("inf")
    with pytest.raises(ValueError, match="not a confidence"):
        Sustained(low_rps=2.0, confidence=1.0)
    with pytest.raises(ValueError, match="0 replicas"):
        Sustained(low_rps=2.0, replicas=0)
