"""Annotations as wishes: every form once, and what cannot be obeyed named with its reason (DOCUMENTS §3)."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchlab import H
from ebbtide.batch.door.wishes import ASKED, BadWishError, Wishes, read_wishes
from ebbtide.batch.durations import Duration

NOON = 1_789_012_800.0  # 2026-09-10T04:00:00Z


def read(created_s: float = NOON, **said: str) -> Wishes:
    annotations = {f"ebbtide.dev/{name.replace('_', '-')}": text for name, text in said.items()}
    return read_wishes(annotations | {"team": "x"}, created_s=created_s, checkpoint_interval_s=H)


def test_nothing_said_is_no_wish() -> None:
    assert read() == Wishes()


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ({"duration": "1h"}, {"duration": Duration(expected_s=H, p90_s=1.3 * H)}),
        ({"duration": "1h", "duration_p90": "2h"}, {"duration": Duration(expected_s=H, p90_s=2 * H)}),
        ({"duration_p90": "1h18m"}, {"duration": Duration(expected_s=1.3 * H / 1.3, p90_s=1.3 * H)}),
        ({"earliest_start": "2026-09-10T05:00:00Z"}, {"earliest_start_s": NOON + H}),
        ({"deadline": "2026-09-10T14:00:00+08:00"}, {"deadline_s": NOON + 2 * H}),
        ({"deadline": "12h"}, {"deadline_s": NOON + 12 * H}),
        (
            {"deadline": "12h", "earliest_start": "2026-09-10T05:00:00Z"},
            {"deadline_s": NOON + 13 * H, "earliest_start_s": NOON + H},
        ),
        ({"value_usd": "12.5"}, {"value_usd": 12.5}),
        ({"preemptible": "true"}, {"checkpoint_interval_s": H}),
        ({"preemptible": "False", "checkpoint_interval": "10m"}, {}),
        ({"checkpoint_interval": "10m"}, {"checkpoint_interval_s": 600.0}),
        ({"planned_start": "whatever", "live_queue": "live", "something_new": "1"}, {}),
    ],
)
def test_what_is_said(said: dict[str, str], wanted: dict[str, object]) -> None:
    assert read(**said) == Wishes(**wanted)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"duration": "0s"}, ("ebbtide.dev/duration", '"0s"', "above 0")),
        ({"duration": "5 hours"}, ("ebbtide.dev/duration", "5h30m")),
        ({"duration": "2h", "duration_p90": "1h"}, ("ebbtide.dev/duration-p90", "below", "2h")),
        ({"earliest_start": "tomorrow"}, ("ebbtide.dev/earliest-start", "+08:00")),
        ({"deadline": "soon"}, ("ebbtide.dev/deadline", "12h")),
        ({"deadline": "2026-09-10T03:59:00Z"}, ("ebbtide.dev/deadline", "over before")),
        ({"deadline": "0s"}, ("ebbtide.dev/deadline", "over before")),
        ({"value_usd": "-1"}, ("ebbtide.dev/value-usd", "at least 0")),
        ({"value_usd": "nan"}, ("ebbtide.dev/value-usd",)),
        ({"preemptible": "yes"}, ("ebbtide.dev/preemptible", '"true"')),
        ({"checkpoint_interval": "0s"}, ("ebbtide.dev/checkpoint-interval",)),
        ({"dead_line": "12h"}, ("ebbtide.dev/dead-line", "nearest: ebbtide.dev/deadline")),
    ],
)
def test_what_cannot_be_obeyed(said: dict[str, str], words: tuple[str, ...]) -> None:
    with pytest.raises(BadWishError) as bad:
        read(**said)
    for word in words:
        assert word in str(bad.value)


@given(st.dictionaries(st.sampled_from(ASKED), st.text(max_size=20) | st.sampled_from(["5h", "1e400", "-1s", "2026"])))
def test_whatever_is_written_is_read_or_refused(said: dict[str, str]) -> None:
    annotations = {f"ebbtide.dev/{name}": text for name, text in said.items()}
    with suppress(BadWishError):  # nothing else escapes
        found = read_wishes(annotations, created_s=NOON, checkpoint_interval_s=H)
        assert found.deadline_s is None or found.deadline_s > NOON
        assert 0 <= found.value_usd < float("inf")
