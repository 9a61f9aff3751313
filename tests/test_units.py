"""Durations: text and seconds are two forms of one value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.units import format_duration, parse_duration_s


@given(st.integers(0, 10_000_000))
def test_whole_seconds_survive_the_round_trip(seconds: int) -> None:
    assert parse_duration_s(format_duration(seconds)) == seconds


@given(st.integers(1, 10_000_000))
def test_milliseconds_survive_the_round_trip(millis: int) -> None:
    assert parse_duration_s(f"{millis}ms") == parse_duration_s(f"{millis / 1000.0!r}s") == millis / 1000.0
    assert parse_duration_s(format_duration(millis / 1000.0)) == millis / 1000.0


@pytest.mark.parametrize("text", ["", "10", "m", "1h30", "30m1h", "1m1m", "-5s", "1 h", "inf", "1e3s", "５s", "1h-30m"])
def test_what_is_not_a_duration_is_refused_with_the_way_to_write_one(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration_s(text)


def test_a_negative_duration_is_refused() -> None:
    with pytest.raises(ValueError, match="never negative"):
        format_duration(-1)
