"""Calls side by side: their order, their progress, and one end for all."""

from __future__ import annotations

import threading

import pytest

from ebbtide.workflows.side_by_side import Tell, side_by_side


@pytest.mark.parametrize("at_once", [1, 3])
def test_answers_come_in_the_order_of_the_calls_and_progress_ends_at_one(at_once: int) -> None:
    told: list[float] = []

    def call(number: int, tell: Tell) -> int:
        tell(0.5)
        tell(1.0)
        return number

    calls = [lambda tell, number=number: call(number, tell) for number in range(5)]
    found = side_by_side(calls, weights=[1.0, 5.0, 2.0, 4.0, 3.0], tell=told.append, at_once=at_once)
    assert found == [0, 1, 2, 3, 4]
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1.0)


def test_the_others_end_where_one_fails() -> None:
    begun = threading.Event()
    ended = []

    def endless(tell: Tell) -> None:
        begun.set()
        try:
            while True:
                tell(0.1)
        finally:
            ended.append("endless")

    def fails(tell: Tell) -> None:
        begun.wait()
        raise ValueError("no")

    def never(tell: Tell) -> None:
        ended.append("never")

    with pytest.raises(ValueError, match="no"):
        side_by_side([fails, endless, never], weights=[3.0, 2.0, 1.0], tell=lambda share: None, at_once=2)
    assert ended == ["endless"]


def test_an_interruption_in_the_first_thread_ends_all() -> None:
    def interrupted(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        side_by_side([lambda tell: tell(0.5)] * 2, weights=[1.0, 1.0], tell=interrupted, at_once=2)
