"""Virtual time: a heap of what will happen, in order; at one instant in the order in which it was planned."""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

_Event = tuple[float, int, Callable[..., None], tuple[Any, ...]]


class Timeline:
    """Events to come and the instant reached.

    A *loud* event is one that a controller should wake for (a node came, a drain ended); a quiet one changes the world
    too, and is seen at the next look.

    >>> rung = []
    >>> line = Timeline(0.0)
    >>> line.at(20.0, rung.append, "later")
    >>> line.at(10.0, rung.append, "quietly", loud=False)
    >>> line.next_loud_s
    20.0
    >>> line.advance(15.0)
    >>> rung, line.now_s
    (['quietly'], 15.0)
    """

    __slots__ = ("_loud", "_planned", "_quiet", "now_s")

    def __init__(self, start_s: float) -> None:
        self.now_s = start_s
        self._loud: list[_Event] = []
        self._quiet: list[_Event] = []
        self._planned = 0

    def at(self, when_s: float, call: Callable[..., None], *args: Any, loud: bool = True) -> None:
        """Plan a call; one for the past happens next."""
        self._planned += 1
        heappush(self._loud if loud else self._quiet, (max(when_s, self.now_s), self._planned, call, args))

    def after(self, delay_s: float, call: Callable[..., None], *args: Any, loud: bool = True) -> None:
        """Plan a call ``delay_s`` from now."""
        self._planned += 1
        heappush(self._loud if loud else self._quiet, (self.now_s + delay_s, self._planned, call, args))

    @property
    def next_loud_s(self) -> float:
        """When to wake next; infinite where nothing is planned."""
        return self._loud[0][0] if self._loud else math.inf

    def advance(self, until_s: float) -> None:
        """Let everything happen that is due by ``until_s``. Time never goes back: an earlier instant does nothing."""
        loud, quiet = self._loud, self._quiet
        while True:
            heap = loud if not quiet or (loud and loud[0] < quiet[0]) else quiet
            if not heap or heap[0][0] > until_s:
                break
            self.now_s, _, call, args = heappop(heap)
            call(*args)
        self.now_s = max(self.now_s, until_s)
