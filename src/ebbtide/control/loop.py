"""One tick: look, decide, act in order. The same for the real world and the simulated one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ebbtide.control.actions import Action, Decision, Record
from ebbtide.control.decide import DEFAULT_LIMITS, decide
from ebbtide.control.limits import Limits
from ebbtide.control.state import Mode
from ebbtide.control.world import Result, World
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.schedule import Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """What was decided, and what became of the actions that were tried, in order."""

    decision: Decision
    results: tuple[tuple[Action, Result], ...]


def tick(
    world: World,
    fleet: Fleet,
    schedule: Schedule,
    at_s: float,
    limits: Limits = DEFAULT_LIMITS,
    *,
    goes_on: Callable[[], bool] = lambda: True,
) -> Tick:
    """Look once and act on what was seen. ``goes_on`` is asked before each action: False leaves the rest undone.

    In Shadow nothing is done. Where the record cannot be written nothing else is done either: what is not written
    home must not begin (§6.1). Any other action that fails stands alone: the next tick asks again.
    """
    state = world.observe(at_s)
    decision = decide(state, fleet, schedule, at_s, limits)
    results: list[tuple[Action, Result]] = []
    if state.mode is Mode.ACTIVE:
        for action in decision.actions:
            if not goes_on():
                break
            result = world.apply(action, at_s)
            results.append((action, result))
            if isinstance(action, Record) and result is not Result.DONE:
                break
    return Tick(decision=decision, results=tuple(results))
