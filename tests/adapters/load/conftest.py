"""Servers on loopback that several tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ebbtide.adapters.simserver.slots import Shape
from loopback import hostile_app, running, simulated


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    """A quick model: eight slots of 2 ms."""
    with simulated(Shape(slots=8, time_s=0.002, tokens=4)) as address:
        yield address


@pytest.fixture(scope="module")
def hostile() -> Iterator[str]:
    """The server that does everything wrong."""
    with running(hostile_app()) as address:
        yield address
