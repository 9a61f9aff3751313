"""§5.2 on made-up grids: what is an outage, what is a sum, and what only looks like one."""

from __future__ import annotations

import numpy as np
import pytest

from ebbtide.adapters.demand.grid import Grid
from ebbtide.adapters.demand.outages import find_outages, outage_spans
from ebbtide.adapters.demand.sums import find_sums

DAY = 24


def grid(value: np.ndarray, keys: tuple[str, ...] | None = None, start_s: int = 1_788_220_800) -> Grid:
    names = keys if keys is not None else tuple(f"w{number}" for number in range(len(value)))
    return Grid(keys=names, start_s=start_s, interval_s=3600, value=np.asarray(value, dtype=np.float64))


def busy(workloads: int, days: int = 3) -> np.ndarray:
    return np.random.default_rng(5).uniform(1.0, 2.0, (workloads, days * DAY))


def outages(value: np.ndarray, zone: str | None = None) -> list[int]:
    found = find_outages(grid(value), counted=np.ones(len(value), dtype=np.bool_), zone=zone)
    return np.flatnonzero(found).tolist()


@pytest.mark.parametrize("silence", [[0, 0, 0], [np.nan, np.nan, np.nan], [0, np.nan, 0]])
def test_three_workloads_silent_at_once_are_an_outage(silence: list[float]) -> None:
    value = busy(3)
    value[:, 30] = silence
    assert outages(value) == [30]


def test_two_workloads_are_too_few() -> None:
    value = busy(2)
    value[:, 30] = 0
    assert outages(value) == []


def test_one_workload_that_still_sees_requests_shows_that_the_collector_lives() -> None:
    value = busy(4)
    value[:3, 30] = 0
    assert outages(value) == []


def test_a_sum_that_still_sees_requests_shows_it_too() -> None:
    value = busy(4)
    value[:3, 30] = 0
    found = find_outages(grid(value), counted=np.array([True, True, True, False]), zone=None)
    assert not found.any()


def test_hours_that_were_always_silent_are_night() -> None:
    value = busy(3)
    value[:, [2, 26, 50]] = 0
    assert outages(value) == []


def test_nothing_is_known_on_the_first_day() -> None:
    value = busy(3)
    value[:, 5] = 0
    assert outages(value) == []


def test_an_outage_does_not_teach_that_the_hour_is_silent() -> None:
    value = busy(3, days=6)
    value[:, [30, 54, 78, 102]] = 0
    assert outages(value) == [30, 54, 78, 102]


def test_hours_are_the_zones() -> None:
    # Silent at 02:00 in New York, which is 06:00 UTC in summer time and 07:00 UTC from 2026-11-01 on.
    start_s = 1_793_318_400  # 2026-10-30T00:00Z
    value = busy(3, days=5)
    value[:, [6, 30, 54 + 1, 78 + 1, 102 + 1]] = 0
    counted = np.ones(3, dtype=np.bool_)
    assert not find_outages(grid(value, start_s=start_s), counted=counted, zone="America/New_York").any()
    assert find_outages(grid(value, start_s=start_s), counted=counted, zone=None).any()


def test_neighbouring_outages_are_one_stretch() -> None:
    value = busy(3)
    value[:, 30:33] = 0
    value[:, 40] = 0
    one = grid(value)
    spans = outage_spans(one, find_outages(one, counted=np.ones(3, dtype=np.bool_), zone=None))
    assert [(span.start_s - one.start_s, span.end_s - one.start_s) for span in spans] == [
        (30 * 3600, 33 * 3600),
        (40 * 3600, 41 * 3600),
    ]


def sums(keys: tuple[str, ...], value: np.ndarray) -> set[str]:
    return {key for key, is_sum in zip(keys, find_sums(grid(value, keys)), strict=True) if is_sum}


def test_a_rounded_sum_beside_its_rounded_parts() -> None:
    parts = busy(3)
    value = np.vstack([np.round(parts, 3), np.round(parts.sum(axis=0), 3)])
    assert sums(("a", "b", "c", "all"), value) == {"all"}


def test_sums_of_groups_and_the_sum_of_them_all() -> None:
    parts = np.round(busy(4), 4)
    east, west = parts[:2].sum(axis=0), parts[2:].sum(axis=0)
    value = np.vstack([east, parts, west, east + west])
    keys = ("east/sum", "east/a", "east/b", "west/a", "west/b", "west/sum", "everything")
    assert sums(keys, value) == {"east/sum", "west/sum", "everything"}


def test_a_total_is_never_below_its_parts() -> None:
    parts = busy(3)
    value = np.vstack([parts, parts.sum(axis=0) + 1.0])
    assert sums(("x/a", "x/b", "x/c", "x/total"), value) == {"x/total"}
    value[3, 7] = 0.5
    assert sums(("x/a", "x/b", "x/c", "x/total"), value) == set()
    assert sums(("x/a", "x/b", "x/c", "x/rest"), np.vstack([parts, parts.sum(axis=0) + 1.0])) == set()


def test_a_sources_only_series_is_kept() -> None:
    assert sums(("m/total",), busy(1)) == set()


def test_twins_are_no_sums() -> None:
    one = busy(1)
    assert sums(("a", "b"), np.vstack([one, one])) == set()
    assert sums(("a", "b", "zero"), np.vstack([one, one, 0 * one])) == set()


def test_small_numbers_add_up_by_chance() -> None:
    value = np.array([[1.0, 0, 2], [1, 1, 0], [2, 1, 2]])
    assert sums(("a", "b", "c"), value) == set()


def test_gaps_do_not_hide_a_sum() -> None:
    parts = busy(2)
    value = np.vstack([parts, parts.sum(axis=0)])
    value[:, 9] = np.nan
    value[2, 11] = np.nan
    assert sums(("a", "b", "c"), value) == {"c"}
