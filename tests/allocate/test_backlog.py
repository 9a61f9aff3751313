"""The fluid backlog (§5.10) against its closed forms."""

from __future__ import annotations

import math

import pytest

from ebbtide.allocate.backlog import NO_BACKLOG, fluid_backlog


def test_where_capacity_suffices_nothing_waits_over() -> None:
    assert fluid_backlog([3.0, 9.0], [9.0, 9.0], hours=[12, 12], track=[0, 1], patience_s=math.inf) == NO_BACKLOG


def test_what_is_not_served_waits_into_the_next_windows() -> None:
    found = fluid_backlog([12.0, 9.0, 2.0], [10.0, 10.0, 10.0], hours=[1, 1, 22], track=[0, 1, 2], patience_s=math.inf)
    assert found.waiting == (0.0, 7200.0, 3600.0)
    assert found.wait_s == (0.0, 720.0, 360.0)
    assert found.clears


def test_a_backlog_crosses_the_end_of_the_cycle() -> None:
    found = fluid_backlog([2.0, 12.0], [10.0, 10.0], hours=[20, 4], track=[0, 1], patience_s=math.inf)
    assert found.waiting == (2.0 * 4 * 3600, 0.0)
    assert found.clears


def test_a_cycle_that_brings_more_than_it_serves_says_so() -> None:
    assert not fluid_backlog([12.0, 9.0], [10.0, 10.0], hours=[12, 12], track=[0, 1], patience_s=math.inf).clears


def test_users_with_patience_leave_and_the_backlog_settles() -> None:
    found = fluid_backlog([12.0, 11.0], [10.0, 10.0], hours=[12, 12], track=[0, 1], patience_s=60.0)
    assert found.waiting == pytest.approx((60.0, 120.0), rel=1e-6)
    assert found.clears


def test_without_capacity_the_wait_is_without_end() -> None:
    found = fluid_backlog([1.0, 0.0], [0.0, 0.0], hours=[1, 23], track=[0, 1], patience_s=math.inf)
    assert found.wait_s[1] == math.inf


@pytest.mark.parametrize(("rate", "capacity", "wait_s"), [(11.0, 10.0, 6.0), (30.0, 10.0, 60.0), (1.0, 0.0, 60.0)])
def test_nobody_waits_longer_than_their_patience(rate: float, capacity: float, wait_s: float) -> None:
    found = fluid_backlog([rate, 0.0], [capacity, capacity], hours=[1, 23], track=[0, 1], patience_s=60.0)
    assert found.waiting[1] == pytest.approx((rate - capacity) * 60.0)
    assert found.wait_s[1] == pytest.approx(wait_s)
