"""Two settings against each other: the interval of the ratio of their sustained rates (§M.9).

Each setting has a search of its own: first both brackets by turns, then blocks in the order A B B A, so that what
drifts slowly (a warming GPU, a noisy neighbour) weighs on both alike. The two blocks of a pair are equally long and, at
each side's own rate, have the same arrivals. What to do next follows from the two searches' states alone, so that a
comparison can stop and go on anywhere, as each of them can.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, hypot, inf, sqrt

from ebbtide.capacity.around import Interval
from ebbtide.capacity.search import LEAST_SHARE, LOOK_GROWTH, WANTED_CLUSTERS, next_step, outcome
from ebbtide.capacity.steps import Purpose, SearchState, Step, StepPlan, Wish

ORDER = (0, 1, 1, 0)
Pair = tuple[SearchState, SearchState]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One setting's crossing, ln(rate), with its interval; an end may be infinite."""

    at: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """First over second; an end is 0 or infinite where one of them has none."""

    ratio: float
    low: float
    high: float

    @property
    def differs(self) -> bool:
        """Whether the interval leaves 1 out."""
        return self.low > 1.0 or self.high < 1.0

    @property
    def half_width(self) -> float:
        """Half the interval as a share of the ratio in its middle; infinite where an end is open."""
        return (self.high - self.low) / (self.high + self.low) if self.low > 0.0 and self.high < inf else inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The step to make now: of which side, and the number of its arrivals, equal for both blocks of a pair."""

    side: int
    plan: StepPlan
    arrivals: tuple[int, int]


def side_wish(wish: Wish) -> Wish:
    """What each side's search is to find, so that the ratio gets as narrow as ``wish`` says.

    Half-widths of two alike add as squares. A side that is narrow enough goes on for the other's sake.
    """
    return replace(wish, tolerance=wish.tolerance / sqrt(2.0), ends_at_tolerance=False)


def next_turn(pair: Pair, tolerance: float) -> Turn | None:
    """The turn after all that both sides know; None where the comparison is over, at the end of a pair of blocks."""
    plans = [next_step(state) for state in pair]
    bracketing = [side for side in (0, 1) if (plan := plans[side]) is not None and plan.purpose is Purpose.BRACKET]
    if bracketing:
        side = min(bracketing, key=lambda one: (pair[one].open is None, len(pair[one].steps)))
        plan = plans[side]
        return None if plan is None else Turn(side=side, plan=plan, arrivals=(1, len(pair[side].steps)))
    made = [_blocks(state) for state in pair]
    count = len(made[0]) + len(made[1])
    side = ORDER[count % 4]
    plan, other = plans[side], plans[1 - side]
    if plan is None or (count % 2 == 0 and (other is None or _enough(pair, tolerance))):
        return None
    like = made[1 - side][-1].plan if count % 2 else other
    return None if like is None else Turn(side=side, plan=_alike(plan, like, pair[side]), arrivals=(2, len(made[side])))


def compared(pair: Pair) -> Ratio | None:
    """The ratio as known now; None where a side has no interval yet."""
    found = [outcome(state).interval for state in pair]
    return None if found[0] is None or found[1] is None else ratio(_side(found[0]), _side(found[1]))


def resolved(pair: Pair, tolerance: float) -> bool:
    """Whether the ratio is as narrow as wished for, by enough blocks of both to know it."""
    found = [outcome(state).interval for state in pair]
    if any(one is None or one.clusters < WANTED_CLUSTERS for one in found):
        return False
    between = compared(pair)
    return between is not None and between.half_width <= tolerance


def _enough(pair: Pair, tolerance: float) -> bool:
    """Whether the ratio is looked at after this pair of blocks, and is narrow enough.

    The pairs between two looks grow: looking after each would stop at the luckiest one.
    """
    wanted, measured, look = LEAST_SHARE * pair[0].wish.budget_requests, 0, False
    for step in _blocks(pair[0]):
        measured += step.plan.requests
        look = measured >= wanted
        wanted = LOOK_GROWTH * measured if look else wanted
    return look and resolved(pair, tolerance)


def _alike(plan: StepPlan, like: StepPlan, state: SearchState) -> StepPlan:
    """The plan as long as the other side's, and from a service that stands empty, as far as the budget goes."""
    requests = max(plan.requests, like.requests)
    return replace(
        plan,
        requests=min(requests, state.wish.budget_requests - state.spent_requests),
        warm_up_requests=max(plan.warm_up_requests, like.warm_up_requests),
        drain=True,
    )


def _blocks(state: SearchState) -> list[Step]:
    return [step for step in state.steps if step.plan.purpose is Purpose.BLOCK]


def _side(found: Interval) -> Side:
    return Side(at=found.at, low=found.low, high=found.high)


def ratio(first: Side, second: Side) -> Ratio:
    """By the method of variance estimates recovery on the logarithm (Zou and Donner, 2008, Stat. in Medicine 27:1693).

    Taken as independent, which equal arrivals make cautious: what both have in common falls out of their ratio.

    >>> found = ratio(Side(at=0.1, low=0.05, high=0.15), Side(at=0.0, low=-0.05, high=0.05))
    >>> round(found.low, 3), round(found.high, 3), found.differs
    (1.03, 1.186, True)
    """
    apart = first.at - second.at
    down = hypot(first.at - first.low, second.high - second.at)
    up = hypot(first.high - first.at, second.at - second.low)
    return Ratio(ratio=exp(apart), low=exp(apart - down), high=exp(apart + up))
