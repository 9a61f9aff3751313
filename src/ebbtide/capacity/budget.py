"""What a run costs: requests and time, told before it and refined after each step (§M.4)."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp

from scipy.special import ndtri

from ebbtide.capacity.around import WINDOW, apart, memory_near
from ebbtide.capacity.limits import Limit
from ebbtide.capacity.search import LEAST_SHARE, centre
from ebbtide.capacity.steps import Purpose, SearchState

# Before anything is measured: memory and slope of a service that batches, and of one with heavy tails near its limit.
SHORT, LONG = (2.5, 3.0), (550.0, 19.0)
# What is measured is not all that is sent: warm-up and the bracket take two fifths on top.
OVERHEAD = 1.4
# A disturbance is seen where at least this many fit into what was measured (§M.4).
DISTURBANCES = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Requests and seconds from now on until the tolerance is likely reached: at best and at worst."""

    least_requests: int
    most_requests: int
    least_s: float
    most_s: float


def floor_requests(limit: Limit, *, memory: float, slope: float, tolerance: float, confidence: float = 0.95) -> int:
    """Requests around the crossing for that half-width: (z / tolerance)² τ / (α (1 − α) b²).

    >>> from ebbtide.capacity.limits import LimitKind
    >>> limit = Limit(kind=LimitKind.LATENCY, bad_share=0.05, bound_s=2.0)
    >>> floor_requests(limit, memory=2.5, slope=3.0, tolerance=0.05)
    8986
    """
    quantile = float(ndtri(0.5 + confidence / 2.0))
    return ceil((quantile / tolerance) ** 2 * memory / (limit.bad_share * (1.0 - limit.bad_share) * slope**2))


def forecast(state: SearchState) -> Forecast:
    """From the present guess of memory and slope once there is one; before, between a short and a long memory."""
    wish = state.wish
    if not state.steps:
        found = [_needed(state, memory=memory, slope=slope) for memory, slope in (SHORT, LONG)]
        return _forecast(state, min(found), max(found), wish.start_rps)
    led = centre(state)
    lasting = memory_near(state.steps, led.at, len(wish.limits))
    needed = _needed(state, memory=lasting, slope=led.slope)
    done = sum(step.measured.batches[0].requests for step in state.steps if step.plan.purpose is Purpose.BLOCK)
    left = max(needed - done, 0)
    # The memory is known to about a factor of 2 once blocks are measured, the slope too before.
    sure = 1.5 if done else 4.0
    return _forecast(state, ceil(left / sure), ceil(left * sure), exp(led.at))


def longest_disturbance_s(state: SearchState, at: float) -> float:
    """The longest disturbance that the blocks around ``exp(at)`` could see: a fifth of their time."""
    near = [step for step in state.steps if step.plan.purpose is Purpose.BLOCK and apart(step, at) <= WINDOW]
    return sum(step.measured.batches[0].requests / step.plan.rate_rps for step in near) / DISTURBANCES


def _needed(state: SearchState, *, memory: float, slope: float) -> int:
    wish = state.wish
    asked = {"memory": memory, "slope": slope, "tolerance": wish.tolerance, "confidence": wish.confidence}
    floors = [floor_requests(limit, **asked) for limit in wish.limits]
    return max(ceil(OVERHEAD * max(floors)), ceil(LEAST_SHARE * wish.budget_requests))


def _forecast(state: SearchState, least: int, most: int, rate_rps: float) -> Forecast:
    left = max(state.wish.budget_requests - state.spent_requests, 0)
    least, most = min(least, left), min(most, left)
    return Forecast(least_requests=least, most_requests=most, least_s=least / rate_rps, most_s=most / rate_rps)
