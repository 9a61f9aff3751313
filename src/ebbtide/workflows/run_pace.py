"""How long the loop rests between two turns: never hot, and longer while turns fail."""

from __future__ import annotations

LONGEST_S = 60.0  # a controller that is well again is at work within a minute


def rest_s(every_s: float, failures: int) -> float:
    """Seconds until the next turn, after so many that failed in a row.

    >>> [rest_s(5.0, failures) for failures in (0, 1, 2, 3, 4, 50)]
    [5.0, 10.0, 20.0, 40.0, 60.0, 60.0]
    >>> rest_s(90.0, 3)
    90.0
    """
    return max(every_s, min(every_s * 2.0 ** min(failures, 16), LONGEST_S))
