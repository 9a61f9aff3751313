"""`ebbtide size --claim`: what n replicas hold, and what may not be asked beside a claim."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

CLAIM = Path(__file__).parents[2] / "examples" / "claim" / "claims" / "chat.yaml"  # 31.94 requests a second


def test_the_fewest_replicas_that_hold_a_rate(ebbtide) -> None:
    told = ebbtide("size", "--arrival-rate-rps", 100, "--claim", CLAIM)
    assert told.code == 0, told.err
    assert [" ".join(line.split()) for line in told.out.splitlines()] == [
        "replicas 4",
        "hold, requests a second 128",
        "arrive 100, held",
        "a replica, by the claim 31.9",
        "fewest that hold it 4",
        "waits not observed",
    ]


@pytest.mark.parametrize(("rate_rps", "servers", "is_held"), [(95.82, 3, True), (95.83, 3, False), (0, 1, True)])
def test_what_given_replicas_hold(ebbtide, rate_rps: float, servers: int, is_held: bool) -> None:
    told = ebbtide("size", "--arrival-rate-rps", rate_rps, "--claim", CLAIM, "--servers", servers, "--json")
    answer = json.loads(told.out)
    assert (answer["is_held"], answer["replicas"]) == (is_held, servers)
    assert answer["holds_rps"] == pytest.approx(servers * 31.94)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--claim", CLAIM, "--service-time-s", 1), "--service-time-s: has no meaning beside --claim"),
        (("--claim", CLAIM, "--target-wait-s", 1), "--target-wait-s: has no meaning beside --claim"),
        (("--claim", CLAIM, "--servers", 0), "--servers: must be at least 1, not 0"),
        (("--claim", "none.yaml"), "none.yaml: no such file"),
        ((), "--service-time-s: is missing; or give --claim"),
    ],
)
def test_what_makes_no_sense_is_refused(ebbtide, words: tuple[object, ...], said: str) -> None:
    told = ebbtide("size", "--arrival-rate-rps", 1, *words)
    assert (told.code, told.out) == (2, "")
    assert said in told.err


def test_a_rate_that_is_none(ebbtide) -> None:
    told = ebbtide("size", "--arrival-rate-rps", "inf", "--claim", CLAIM)
    assert (told.code, "--arrival-rate-rps: must be a number from 0" in told.err) == (2, True)
