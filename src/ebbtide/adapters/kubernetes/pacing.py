"""How often a cluster is asked: a budget of calls, and silence after it said that it has too much to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Calls per second in the long run and at once; the first and the longest silence after a failure.

    20 and 40 are a quarter of what client-go's controllers usually take; a quiet tick needs some ten calls. The silence
    doubles up to 30 s: two ticks of fifteen seconds, so that a server that came back is seen within half a minute.
    """

    per_s: float = 20.0
    at_once: int = 40
    silence_s: float = 1.0
    longest_silence_s: float = 30.0


class Budget:
    """Tokens that come back with time; ``take`` says how long to wait for one.

    >>> budget = Budget(Pace(per_s=2.0, at_once=1), now_s=0.0)
    >>> budget.take(0.0), budget.take(0.0), budget.take(10.0)
    (0.0, 0.5, 0.0)
    """

    def __init__(self, pace: Pace, now_s: float) -> None:
        self._pace = pace
        self._tokens = float(pace.at_once)
        self._at_s = now_s

    def take(self, now_s: float) -> float:
        """Take one token, in advance where none is left; the seconds to wait before using it."""
        elapsed_s = max(now_s - self._at_s, 0.0)
        self._tokens = min(self._tokens + elapsed_s * self._pace.per_s, float(self._pace.at_once)) - 1.0
        self._at_s = max(now_s, self._at_s)
        return max(0.0, -self._tokens) / self._pace.per_s


class Silence:
    """Back-off: nothing is asked for a time that doubles with every failure in a row, with some chance in it.

    >>> silence = Silence(Pace(), lambda: 1.0)
    >>> silence.after_failure(0.0, asked_s=None)
    >>> silence.until_s
    1.0
    >>> silence.after_failure(1.0, asked_s=7.0)
    >>> silence.until_s
    8.0
    """

    def __init__(self, pace: Pace, chance: Callable[[], float]) -> None:
        self._pace = pace
        self._chance = chance
        self._failures = 0
        self.until_s = float("-inf")

    def after_failure(self, now_s: float, asked_s: float | None) -> None:
        """Be silent for longer than last time; for ``asked_s`` where the server named a time (Retry-After)."""
        longest_s = self._pace.longest_silence_s
        wait_s = min(self._pace.silence_s * 2.0**self._failures, longest_s)
        self._failures = min(self._failures + 1, 16)
        # Half of it by chance: controllers that failed together are not to come back together.
        wait_s *= 0.5 + 0.5 * self._chance()
        self.until_s = now_s + max(wait_s, min(asked_s or 0.0, longest_s))

    def after_success(self) -> None:
        """It answers again."""
        self._failures = 0
