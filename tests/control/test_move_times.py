"""How long moves take (§6.2, §5.9): weighted P90 against brute force, decay, batches, the store."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.control.memory import Direction, FinishedMove
from ebbtide.control.move_times import KEPT, learned_p90_s, with_finished
from ebbtide.units import DAY_S


def moved(took_s: float, *, batch: int = 1, finished_s: float = 0.0, **more) -> FinishedMove:
    fields = {"pool": "h100", "direction": Direction.RECLAIM, **more}
    return FinishedMove(batch=batch, took_s=took_s, finished_s=finished_s, **fields)


def p90(moves, *, batch: int = 1, at_s: float = 0.0):
    return learned_p90_s(moves, pool="h100", direction=Direction.RECLAIM, batch=batch, at_s=at_s)


@given(
    st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 8)), min_size=5, max_size=60),
)
def test_the_p90_is_the_least_time_that_nine_tenths_of_the_weight_do_not_exceed(pairs):
    """Brute force in fractions: ages in half-lives, so that weights are powers of two."""
    at_s = 8 * 14 * DAY_S
    moves = [moved(float(took), finished_s=at_s - age * 14 * DAY_S) for took, age in pairs]
    total = sum(Fraction(1, 2**age) for _, age in pairs)
    expected = min(
        took
        for took, _ in pairs
        if sum(Fraction(1, 2**age) for other, age in pairs if other <= took) >= Fraction(9, 10) * total
    )
    assert p90(moves, at_s=at_s) == expected


def test_four_moves_teach_nothing_five_do():
    assert p90([moved(600.0)] * 4) is None
    assert p90([moved(600.0)] * 5) == 600.0


@pytest.mark.parametrize("more", [{"pool": "a100"}, {"direction": Direction.YIELD}])
def test_other_pools_and_the_other_direction_teach_nothing(more):
    assert p90([moved(600.0, **more)] * 9) is None


def test_old_moves_fade():
    """Nine slow ones of eight weeks ago (a sixteenth each) against nine quick ones of today."""
    moves = [moved(9000.0)] * 9 + [moved(600.0, finished_s=56 * DAY_S)] * 9
    assert p90(moves, at_s=56 * DAY_S) == 600.0
    assert p90([moved(9000.0)] * 9 + [moved(600.0)] * 9, at_s=56 * DAY_S) == 9000.0


def test_moves_of_a_clock_that_was_ahead_weigh_as_much_as_todays():
    moves = [moved(9000.0, finished_s=100 * DAY_S)] + [moved(600.0)] * 9
    assert p90(moves, at_s=0.0) == 600.0


def test_years_later_the_slowest_is_still_told():
    assert p90([moved(float(k)) for k in range(1, 9)], at_s=1e12) == 8.0


def test_a_large_batch_learns_from_its_like_then_from_larger_ones_then_from_all():
    small, large = [moved(600.0, batch=2)] * 9, [moved(3000.0, batch=40)] * 5
    assert p90([*small, *large], batch=3) == 600.0
    assert p90([*small, *large], batch=33) == 3000.0
    # none of 8 to 15: what forty took is on the safe side
    assert p90([*small, *large], batch=8) == 3000.0
    # nothing as large as a hundred: all that is known
    assert p90([*small, *large], batch=100) == 3000.0
    assert p90(small, batch=100) == 600.0


@given(st.lists(st.tuples(st.integers(1, 500), st.integers(0, 30), st.sampled_from(Direction)), max_size=80))
def test_a_store_that_grew_move_by_move_tells_what_one_made_at_once_tells(triples):
    """Whatever was kept between two looks: the moves, and every P90."""
    moves, now_s = [], 0.0
    for took, days, direction in triples:
        now_s += days * DAY_S
        moves.append(moved(float(took), batch=took % 7, finished_s=now_s, direction=direction))
    grown = ()
    for number, move in enumerate(moves):
        grown = with_finished(grown, [move])
        afresh = with_finished((), moves[: number + 1])
        assert grown == afresh
        assert [p90(grown, batch=size, at_s=now_s) for size in (1, 2, 5)] == [
            p90(list(afresh), batch=size, at_s=now_s) for size in (1, 2, 5)
        ]


def test_a_full_store_that_grows_forgets_the_oldest_times():
    kept = with_finished((), [moved(9000.0, finished_s=float(k)) for k in range(KEPT)])
    assert p90(kept, at_s=1e4) == 9000.0
    for k in range(KEPT - KEPT // 20):
        kept = with_finished(kept, [moved(600.0, finished_s=1000.0 + k)])
    assert len(kept) == KEPT
    assert p90(kept, at_s=1e4) == 600.0


def test_the_store_keeps_the_newest_of_every_pool_and_direction():
    old = tuple(moved(1.0, finished_s=float(k)) for k in range(KEPT))
    other = (moved(2.0, finished_s=-1.0, direction=Direction.YIELD),)
    kept = with_finished(other + old, [moved(3.0, finished_s=1000.0)])
    assert len(kept) == KEPT + 1
    assert kept[-1].took_s == 3.0
    assert min(one.finished_s for one in kept if one.direction is Direction.RECLAIM) == 1.0
    assert [one.took_s for one in kept if one.direction is Direction.YIELD] == [2.0]
    assert with_finished(kept, []) == kept
    assert math.isfinite(p90(kept, at_s=1000.0))
