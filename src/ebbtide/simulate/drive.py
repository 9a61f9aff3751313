"""The controller's loop in virtual time: tick, act, then jump to when there is something to look at.

The same ``control.loop.tick`` that production runs, over a world of arithmetic. Time jumps to the decision's
``next_look_s`` or to the world's next event, whichever is first, and never by less than ``least_gap_s``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ebbtide.control.decide import DEFAULT_LIMITS
from ebbtide.control.limits import Limits
from ebbtide.control.loop import Tick, tick
from ebbtide.control.world import World
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.schedule import Schedule


class Clock(Protocol):
    """A world's virtual time."""

    @property
    def now_s(self) -> float:
        """The instant reached."""

    @property
    def next_event_s(self) -> float:
        """When something will happen that is worth a look."""

    def advance(self, until_s: float) -> None:
        """Let time pass."""


def drive(
    world: World,
    fleet: Fleet,
    schedule: Schedule,
    *,
    clock: Clock,
    until_s: float,
    least_gap_s: float = 5.0,
    limits: Limits = DEFAULT_LIMITS,
    seen: Callable[[float, Tick], None] | None = None,
) -> int:
    """Run until an instant; how many ticks it took. ``seen`` is called with every tick."""
    ticks = 0
    while clock.now_s < until_s:
        done = tick(world, fleet, schedule, clock.now_s, limits)
        ticks += 1
        if seen is not None:
            seen(clock.now_s, done)
        next_s = min(done.decision.next_look_s, clock.next_event_s)
        clock.advance(min(max(next_s, clock.now_s + least_gap_s), until_s))
    return ticks
