"""The live guard: observed demand above what the planned replicas hold, and for how long that counts (§6.7).

Demand that hovers about the plan would begin moves and give them up again and again. So the guard goes on at once,
and off only when demand has not been above the plan for a while; what it asks for is the peak of that while.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ebbtide.control.limits import Limits
from ebbtide.control.memory import Guard
from ebbtide.control.state import State

CONFIRM_S = 60.0  # how exactly memory knows when demand was last above the plan: no write at every look


def observed(state: State, at_s: float, limits: Limits) -> Mapping[str, float]:
    """Live demand by workload, where it was measured recently; a measurement from the future is a jumped clock's."""
    age_s = at_s - state.live_at_s
    return state.live_rps if -limits.stale_after_s <= age_s <= limits.live_after_s else {}


def guarded(kept: Guard | None, live_rps: float | None, holds_rps: float, at_s: float, limits: Limits) -> Guard | None:
    """The guard of one workload now; None: off.

    >>> on = guarded(None, 120.0, 100.0, 0.0, Limits())
    >>> on.rps, guarded(on, 90.0, 100.0, 300.0, Limits()).rps, guarded(on, 90.0, 100.0, 600.0, Limits())
    (120.0, 120.0, None)
    """
    above = live_rps is not None and live_rps > holds_rps
    if kept is None or kept.above_s > at_s:  # remembered from the future: the clock was set back
        return Guard(rps=live_rps, peak_s=at_s, above_s=at_s) if above and live_rps is not None else None
    if not above and at_s - kept.above_s >= limits.guard_holds_s:
        return None
    if above and at_s - kept.above_s >= CONFIRM_S:
        kept = replace(kept, above_s=at_s)
    if live_rps is not None and (live_rps > kept.rps or at_s - kept.peak_s >= limits.guard_holds_s):
        kept = replace(kept, rps=live_rps, peak_s=at_s)
    return kept
