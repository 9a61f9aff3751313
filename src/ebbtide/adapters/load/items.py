"""What is sent: requests ready to go, and in which order a step takes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

JSON_TYPE = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One request's body. ``expected`` is what its check compares with; ``request`` what a user's checker is told."""

    body: bytes
    content_type: str = JSON_TYPE
    expected: Any = None
    request: Any = field(default=None, compare=False)


@lru_cache(maxsize=8)
def _shuffled(count: int, seed: tuple[int, ...], turn: int) -> list[int]:
    order: list[int] = np.random.default_rng((*seed, turn)).permutation(count).tolist()
    return order


def item_of(index: int, count: int, seed: tuple[int, ...]) -> int:
    """Which item the step's request ``index`` sends: all of them in a seeded order, then again in another.

    >>> sorted(item_of(index, 3, (1,)) for index in range(3)), item_of(7, 1, (1,))
    ([0, 1, 2], 0)
    """
    if count == 1:  # a new order for every request would cost a sixth of sending it
        return 0
    turn, place = divmod(index, count)
    return _shuffled(count, seed, turn)[place]
