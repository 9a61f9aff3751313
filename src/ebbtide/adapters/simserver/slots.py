"""Slots and a queue before them, first come, first served: when each request starts and ends, known as it arrives.

The times are calculated, not waited for: a timer that fires late makes its own answer late and no other, so the queue
is exactly the G/G/c that the mathematics speak of, however busy the machine is.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What the server is: ``slots`` requests at once, ``queue`` more may wait (None: any number).

    A request takes ``time_s`` on average with that SCV (0: always the same), of which ``first_share`` goes by before
    its first token. ``wrong_base`` + ``wrong_slope`` · min(present / slots, 2)² of the answers are wrong, ``failing``
    of the requests end in a 500.
    """

    slots: int = 4
    queue: int | None = None
    time_s: float = 0.2
    scv: float = 1.0
    first_share: float = 0.2
    tokens: int = 16
    wrong_base: float = 0.0
    wrong_slope: float = 0.0
    failing: float = 0.0
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One request's times, in seconds on the server's clock, and whether its answer is wrong or an error."""

    start_s: float
    first_s: float
    end_s: float
    wrong: bool
    fails: bool


class Slots:
    """The queue. Times given must not fall.

    >>> queue = Slots(Shape(slots=1, queue=1, time_s=1.0, scv=0.0))
    >>> queue.arrive(0.0).end_s, queue.arrive(0.5).end_s, queue.arrive(0.6)
    (1.0, 2.0, None)
    """

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._rng = np.random.default_rng(shape.seed)
        self._free_s = [0.0] * shape.slots
        self._starts_s: deque[float] = deque()
        self._ends_s: list[float] = []
        self.shed = 0

    def arrive(self, now_s: float) -> Turn | None:
        """The turn of a request that arrives now; None where the queue is full."""
        waiting, running = self.present(now_s)
        shape = self.shape
        if shape.queue is not None and running >= shape.slots and waiting >= shape.queue:
            self.shed += 1
            return None
        start_s = max(now_s, heapq.heappop(self._free_s))
        service_s = self._service_s()
        heapq.heappush(self._free_s, start_s + service_s)
        heapq.heappush(self._ends_s, start_s + service_s)
        if start_s > now_s:
            self._starts_s.append(start_s)
        load = min((waiting + running) / shape.slots, 2.0)
        return Turn(
            start_s=start_s,
            first_s=start_s + shape.first_share * service_s,
            end_s=start_s + service_s,
            wrong=bool(self._rng.random() < shape.wrong_base + shape.wrong_slope * load**2),
            fails=bool(self._rng.random() < shape.failing),
        )

    def present(self, now_s: float) -> tuple[int, int]:
        """Requests that wait and requests that are served."""
        while self._starts_s and self._starts_s[0] <= now_s:
            self._starts_s.popleft()
        while self._ends_s and self._ends_s[0] <= now_s:
            heapq.heappop(self._ends_s)
        waiting = len(self._starts_s)
        return waiting, len(self._ends_s) - waiting

    def _service_s(self) -> float:
        shape = self.shape
        if shape.scv == 0.0:
            return shape.time_s
        return float(self._rng.gamma(1.0 / shape.scv, shape.scv * shape.time_s))
