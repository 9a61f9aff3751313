"""What would make missed deadlines hold: the least, and checked by planning again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from batchlab import H, hollow, job, tide
from ebbtide.batch.hollows import Tenure
from ebbtide.batch.instance import instance_of
from ebbtide.batch.plan import Relief, ReliefKind
from ebbtide.batch.relief import reliefs, with_nodes
from ebbtide.batch.search import searched


def reliefs_of(jobs, hollows) -> dict[ReliefKind, Relief]:
    _, placing = searched(instance_of(jobs, hollows, at_s=0.0), seed=1)
    return {one.kind: one for one in reliefs(placing, seed=1)}


def holds(jobs, hollows) -> bool:
    _, placing = searched(instance_of(jobs, hollows, at_s=0.0), seed=1)
    return bool(placing.in_time.all())


FOUR = [job(name, 2, 3.5, deadline_s=6.0 * H) for name in "abcd"]


def test_nothing_where_all_hold() -> None:
    assert reliefs_of(FOUR[:2], [hollow()]) == {}


def test_each_relief_is_enough_and_a_step_less_is_not() -> None:
    found = reliefs_of(FOUR, [hollow()])
    later, more, move = (found[kind] for kind in ReliefKind)
    assert sorted(at_s for _, at_s in later.deadlines_s) == [7 * H, 7 * H]
    deadlines = dict(later.deadlines_s)
    moved = [replace(one, deadline_s=deadlines.get(one.name, one.deadline_s)) for one in FOUR]
    assert holds(moved, [hollow()])
    for name in deadlines:
        tight = [replace(one, deadline_s=one.deadline_s - 60 * (one.name == name)) for one in moved]
        assert not holds(tight, [hollow()])
    assert (more.nodes, more.gpus, more.proven) == (1, 4, True)
    assert holds(FOUR, with_nodes([hollow()], "h100", Tenure.RESERVED, 1, (more.from_s, more.until_s)))
    assert (move.nodes, move.from_s, move.until_s, move.proven) == (1, 0, 6 * H, True)
    assert holds(FOUR, with_nodes([hollow()], "h100", Tenure.EPHEMERAL, 1, (move.from_s, move.until_s)))
    assert move.gpu_hours < more.gpu_hours


def test_a_job_that_is_too_wide_needs_nodes_and_no_later_deadline() -> None:
    found = reliefs_of([job("wide", 4, 2.0, pods=3, deadline_s=9.0 * H)], [hollow(1, 4)])
    assert ReliefKind.LATER_DEADLINE not in found
    assert (found[ReliefKind.MORE_NODES].nodes, found[ReliefKind.MORE_NODES].proven) == (2, True)


def test_one_deadline_is_moved_to_the_minute_and_that_is_proven() -> None:
    jobs = [job("a", 4, 2.0, deadline_s=2.0 * H), job("b", 4, 3.1, deadline_s=3.0 * H)]
    found = reliefs_of(jobs, [hollow(1, 4)])[ReliefKind.LATER_DEADLINE]
    ((name, at_s),) = found.deadlines_s
    assert name in ("a", "b")
    assert at_s == pytest.approx(5.1 * H)
    assert found.proven


def test_a_node_that_stays_through_the_turn() -> None:
    night = tide([(0, 2), (4, 0), (12, 2)])
    one = job("long", 4, 6.0, deadline_s=8.0 * H)
    found = reliefs_of([one], [night])
    assert found[ReliefKind.MORE_NODES].nodes == 1
    assert found[ReliefKind.MOVE].nodes == 1
    assert (found[ReliefKind.MOVE].from_s, found[ReliefKind.MOVE].until_s) == (4 * H, 8 * H)
