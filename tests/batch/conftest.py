"""Judges of placings."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from batchlab import broken_rules, crowded_nodes
from ebbtide.batch.fitting import Placing
from ebbtide.batch.plan import Place, places_of


@pytest.fixture
def judge() -> Callable[[Placing], list[str]]:
    """What is wrong with a placing; nothing where it keeps all rules."""
    return lambda placing: [*broken_rules(placing), *crowded_nodes(placing)]


@pytest.fixture
def places() -> Callable[[Placing], dict[str, Place | None]]:
    """The places of a placing by job."""
    return lambda placing: {
        one.name: place for one, place in zip(placing.instance.jobs, places_of(placing), strict=True)
    }
