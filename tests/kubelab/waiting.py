"""Waiting for what takes its time, with an end and a reason."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(look: Callable[[], T], what: str, *, within_s: float = 60.0, every_s: float = 0.05) -> T:
    """What ``look`` returns once that is true; TimeoutError naming ``what`` and the last look, if it never is.

    >>> until(lambda: 3, "three")
    3
    """
    end = time.monotonic() + within_s
    while True:
        seen = look()
        if seen:
            return seen
        if time.monotonic() > end:
            raise TimeoutError(f"after {within_s:g} s still not: {what}; last seen: {seen!r}")
        time.sleep(every_s)


def steadily(look: Callable[[], bool], what: str, *, for_s: float, every_s: float = 0.1) -> None:
    """Looks again and again for a while; AssertionError as soon as it does not hold."""
    end = time.monotonic() + for_s
    while time.monotonic() < end:
        assert look(), f"no longer: {what}"
        time.sleep(every_s)
