"""The simulated world keeps the contract."""

from __future__ import annotations

import pytest

from ebbtide.simulate.world.jobs import ResearchLoad
from worlds.contract import *  # noqa: F403 # the contract's tests are this module's
from worlds.contract import Bench

LOAD = ResearchLoad(backlog=2, nodes=(1,), hours=(100.0, 100.0), startup_s=0.0, fill_reserved=False)


class SimulatedBench(Bench):
    """Virtual time passes when it is told to."""

    def __init__(self, hands):
        self.hand = hands(production_nodes=6, replicas=8, load=LOAD)
        self.world = self.hand.world
        self.wait(600.0)

    @property
    def now_s(self):
        return self.world.now_s

    def wait(self, seconds):
        self.hand.wait(seconds)


@pytest.fixture
def bench(hands):
    return SimulatedBench(hands)
