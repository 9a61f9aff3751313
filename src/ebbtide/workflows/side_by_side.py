"""Calls that share nothing, as many at once as the process may have cores: threads, since compiled queues need no lock.

What belongs here: order of answers, progress of all together, an end for all when one fails or somebody interrupts.
What doesn't: what is worked out.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

MOST_AT_ONCE = 8  # each holds a piece of requests and what its queues make of it, some 50 MB

Tell = Callable[[float], None]
"""Told the share of one call that is done."""


class _GivenUpError(Exception):
    """Another call failed, or somebody interrupted: this one need not go on."""


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def side_by_side(
    calls: Sequence[Callable[[Tell], T]],
    *,
    weights: Sequence[float],
    tell: Tell,
    at_once: int | None = None,
) -> list[T]:
    """The answers in the order of the calls; the heaviest begin first. ``tell``: the share of all weights done.

    Each call tells its own share now and then, and ends there when the others are given up. The first failure is raised
    once all have ended.

    >>> side_by_side([lambda tell: 1, lambda tell: 2], weights=[1.0, 3.0], tell=lambda share: None)
    [1, 2]
    """
    done = [0.0] * len(calls)
    total = max(sum(weights), 1e-9)
    lock, given_up = threading.Lock(), threading.Event()
    failures: list[BaseException] = []

    def run(number: int) -> T:
        def tell_mine(share: float) -> None:
            if given_up.is_set():
                raise _GivenUpError
            with lock:
                done[number] = share * weights[number]
                tell(sum(done) / total)

        if given_up.is_set():
            raise _GivenUpError
        try:
            return calls[number](tell_mine)
        except _GivenUpError:
            raise
        except BaseException as error:  # an interruption too: it ends the others as a failure does
            with lock:
                failures.append(error)
            given_up.set()
            raise

    heaviest_first = sorted(range(len(calls)), key=lambda number: -weights[number])
    workers = min(at_once or cores(), MOST_AT_ONCE, len(calls))
    if workers <= 1:
        found = {number: run(number) for number in heaviest_first}
        return [found[number] for number in range(len(calls))]
    with ThreadPoolExecutor(workers) as pool:
        running = {number: pool.submit(run, number) for number in heaviest_first}
        try:
            return [running[number].result() for number in range(len(calls))]
        except BaseException as error:
            given_up.set()
            pool.shutdown(wait=False, cancel_futures=True)
            if isinstance(error, _GivenUpError):  # it ended because of another's failure
                raise failures[0] from None
            raise
