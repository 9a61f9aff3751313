"""How a backtest is run: the policies by name, what may go wrong, and the answers that are asked for."""

from __future__ import annotations

from dataclasses import dataclass

from ebbtide.simulate.world.troubles import Troubles
from ebbtide.workflows.demand import Stage

EBBTIDE, STATIC, REACTIVE, CRON, HINDSIGHT = "ebbtide", "static", "reactive", "cron", "hindsight"
RIVALS = (STATIC, REACTIVE, CRON, HINDSIGHT)
ORDER = (STATIC, REACTIVE, CRON, EBBTIDE, HINDSIGHT)
TROUBLES = {"none": Troubles(), "usual": Troubles.usual(), "wild": Troubles.wild()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How a backtest is run: which rivals take part, by what seed, and what goes wrong, by its name in ``TROUBLES``."""

    against: tuple[str, ...]
    seed: int
    troubles: str = "none"
    stage: Stage
