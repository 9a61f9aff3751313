"""A schedule against what really ran: hand-made looks whose sums are known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.simulate.shadow import Look, score

NIGHT = Look(
    at_s=0.0,
    window="night",
    planned_replicas={"chat": 4},
    holds_rps={"chat": 10.0},
    ready_replicas={"chat": 6},
    live_rps={"chat": 5.0},
    planned_nodes={"h100": 2},
    seen_nodes={"h100": 3},
)


def every_minute(look, minutes, *, from_s=0.0):
    return [replace(look, at_s=from_s + 60.0 * minute) for minute in range(minutes + 1)]


def test_what_production_held_beyond_the_plan_was_researchs():
    (night,) = score(every_minute(NIGHT, 120), {"h100": 8}).windows
    (pool,) = night.pools
    assert (night.hours, pool.planned, pool.seen) == (2.0, 2.0, 3.0)
    assert (pool.to_research_gpu_h, pool.to_production_gpu_h) == pytest.approx((16.0, 0.0))


def test_what_it_lacked_is_counted_apart_and_never_netted():
    lacking = replace(NIGHT, seen_nodes={"h100": 0})
    looks = every_minute(NIGHT, 60) + every_minute(lacking, 60, from_s=3660.0)
    found = score(looks, {"h100": 8})
    assert found.to_research_gpu_h == pytest.approx(8.0 * 61 / 60)  # the last look held until the first of the others
    assert found.to_production_gpu_h == pytest.approx(16.0)


def test_demand_above_the_plan_is_a_share_of_the_time_in_which_it_was_observed():
    above = replace(NIGHT, live_rps={"chat": 20.0})
    unseen = replace(NIGHT, live_rps={})
    looks = [
        *every_minute(NIGHT, 29),
        *every_minute(above, 9, from_s=1800.0),
        *every_minute(unseen, 60, from_s=2400.0),
    ]
    (chat,) = score(looks, {"h100": 8}).windows[0].workloads
    assert chat.above_share == pytest.approx(0.25)
    assert (chat.mean_rps, chat.most_rps) == pytest.approx((8.75, 20.0))
    (nothing,) = score(every_minute(unseen, 5), {"h100": 8}).windows[0].workloads
    assert (nothing.mean_rps, nothing.most_rps, nothing.above_share) == (None, None, None)


def test_silence_is_missing_and_a_pause_has_no_plan():
    looks = [NIGHT, replace(NIGHT, at_s=3600.0), *every_minute(Look(at_s=0.0, window=""), 10, from_s=3660.0)]
    found = score(looks, {"h100": 8})
    assert found.missing_h == pytest.approx((3600.0 - 150.0) / 3600.0)
    assert found.hours == pytest.approx((150.0 + 60.0) / 3600.0)
    assert found.unplanned_h == pytest.approx(600.0 / 3600.0)


def test_two_looks_are_needed_for_an_hour_and_none_is_no_crash():
    for looks in ([], [NIGHT]):
        found = score(looks, {"h100": 8})
        assert (found.hours, found.windows) == (0.0, ())


@given(st.lists(st.tuples(st.floats(0.0, 1e6), st.sampled_from(["night", "day", ""])), min_size=2, max_size=50))
def test_every_second_between_the_first_and_the_last_look_is_counted_once(drawn):
    looks = [replace(NIGHT, at_s=at_s, window=window) for at_s, window in drawn]
    found = score(looks, {"h100": 8})
    span_h = (max(at_s for at_s, _ in drawn) - min(at_s for at_s, _ in drawn)) / 3600.0
    assert found.hours + found.missing_h + found.unplanned_h == pytest.approx(span_h)
    assert found == score(looks[::-1], {"h100": 8}) or len({at_s for at_s, _ in drawn}) < len(drawn)
