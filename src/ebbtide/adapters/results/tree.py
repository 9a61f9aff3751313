"""Places in another tool's JSON: a number, a text or None, never an exception for what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, nan
from typing import Any

UNITS_S = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0}


def at(tree: Any, *path: str | int) -> Any:
    """What stands there; None where nothing does.

    >>> at({"a": [{"b": 1}]}, "a", 0, "b"), at({"a": 3}, "a", "b")
    (1, None)
    """
    for step in path:
        if isinstance(step, int):
            tree = tree[step] if isinstance(tree, Sequence) and not isinstance(tree, str) and step < len(tree) else None
        else:
            tree = tree.get(step) if isinstance(tree, Mapping) else None
    return tree


def number(tree: Any, *path: str | int) -> float:
    """The finite number there; NaN where there is none.

    >>> number({"a": "x"}, "a")
    nan
    """
    found = at(tree, *path)
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not isfinite(found):
        return nan
    return float(found)


def count(tree: Any, *path: str | int) -> int:
    """The count there; 0 where there is none."""
    found = number(tree, *path)
    return int(found) if found > 0.0 else 0


def text(tree: Any, *path: str | int) -> str | None:
    """The text there."""
    found = at(tree, *path)
    return found if isinstance(found, str) and found else None


def first_number(*found: float) -> float:
    """The first that is one."""
    return next((one for one in found if isfinite(one)), nan)


def scv(mean: float, deviation: float) -> float:
    """Squared coefficient of variation; NaN where it isn't known."""
    return (deviation / mean) ** 2 if mean > 0.0 else nan


def pairs(values: Mapping[float, float]) -> tuple[tuple[float, float], ...]:
    """(share, seconds), ascending, without what is no number."""
    return tuple(sorted((share, seconds) for share, seconds in values.items() if isfinite(seconds)))
