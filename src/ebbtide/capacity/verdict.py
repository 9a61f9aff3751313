"""Whether a rate passes, fails or is not decided yet, from a step's answers so far (§M.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.special import betainc

from ebbtide.capacity.batches import Batches, run_sums
from ebbtide.capacity.limits import Limit
from ebbtide.capacity.memory import Scatter, memory, scatter

# Below this many effective observations there is no verdict: the memory itself is not known yet (§M.2).
LEAST_EFFECTIVE = 40.0
# The chance of one wrong verdict in a step, over all its looks; a wrong one costs requests, not the answer, since the
# fit around the crossing follows its own data wherever they lead.
STEP_ERROR = 0.02
WARM_UP_MEMORIES = 5.0
# A step's first tenth is never measured, whatever the memory.
LEAST_WARM_UP = 0.1
_SEGMENTS = 8


class Verdict(StrEnum):
    """What a step said of its rate. ``near``: as much as may be spent on one step did not decide it."""

    PASSES = "passes"
    FAILS = "fails"
    UNDECIDED = "undecided"
    NEAR = "near"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measured:
    """A step so far: its sums after warm-up by limit, its memory, and what it says."""

    verdict: Verdict
    batches: tuple[Batches, ...]
    scatters: tuple[Scatter, ...]
    memory: float
    warm_up_requests: int
    growing: bool = False

    @property
    def effective(self) -> float:
        """Effective observations, of the limit that has the fewest."""
        return min(one.trials for one in self.scatters) / self.memory


def measured(limits: Sequence[Limit], whole: Sequence[Batches], *, looks: int, warm_up: int = 0) -> Measured:
    """What the step says at one of at most ``looks`` looks; ``warm_up`` requests at least are discarded.

    >>> import numpy as np
    >>> from ebbtide.capacity.batches import batches
    >>> from ebbtide.capacity.limits import Answers, LimitKind
    >>> limit = Limit(kind=LimitKind.LATENCY, bad_share=0.05, bound_s=3.0)
    >>> latency_s = np.random.default_rng(1).exponential(0.5, 400)
    >>> whole = [batches(limit, Answers(latency_s=latency_s, failed=np.zeros(400, dtype=bool)))]
    >>> measured([limit], whole, looks=4).verdict
    <Verdict.PASSES: 'passes'>
    """
    after, lasting, skip = warmed(whole, warm_up=warm_up)
    scatters = tuple(scatter(one) for one in after)
    growing = _growing(limits, whole)
    verdict = Verdict.FAILS if growing else _decided(limits, scatters, lasting, STEP_ERROR / looks)
    return Measured(
        verdict=verdict, batches=after, scatters=scatters, memory=lasting, warm_up_requests=skip, growing=growing
    )


def warmed(
    whole: Sequence[Batches], *, warm_up: int, lasting: float | None = None
) -> tuple[tuple[Batches, ...], float, int]:
    """The sums without warm-up, the memory, and how many requests were discarded: at least 5 memories (§M.2)."""
    requests = whole[0].requests
    skip = max(warm_up, int(LEAST_WARM_UP * requests))
    known = lasting if lasting is not None else memory_of([one.after(skip) for one in whole])
    skip = min(max(skip, int(np.ceil(WARM_UP_MEMORIES * known))), requests // 2)
    return tuple(one.after(skip) for one in whole), known, skip


def memory_of(parts: Sequence[Batches]) -> float:
    """The longest memory over all limits of one step."""
    return max(memory([scatter(part)]) for part in parts)


def _decided(limits: Sequence[Limit], parts: Sequence[Scatter], lasting: float, error: float) -> Verdict:
    """Fails where one limit fails, passes where all pass."""
    tails = [_tails(limit, one, lasting) for limit, one in zip(limits, parts, strict=True)]
    if any(tail is not None and tail[0] <= error for tail in tails):
        return Verdict.FAILS
    if all(tail is not None and tail[1] <= error for tail in tails):
        return Verdict.PASSES
    return Verdict.UNDECIDED


def _tails(limit: Limit, step: Scatter, lasting: float) -> tuple[float, float] | None:
    """Chances of so many, and of so few, bad requests at the limit; None below 40 effective observations.

    Binomial with the effective numbers, exact in the tails where a normal law is not (40 observations of 5 %).
    """
    effective = step.trials / lasting
    if effective < LEAST_EFFECTIVE:
        return None
    bad = effective * step.bad / step.trials
    many = float(betainc(bad, effective - bad + 1.0, limit.bad_share)) if bad > 0.0 else 1.0
    few = 1.0 - float(betainc(bad + 1.0, max(effective - bad, 1e-9), limit.bad_share))
    return many, few


def _growing(limits: Sequence[Limit], whole: Sequence[Batches]) -> bool:
    """Whether the backlog grows: the level rises over every eighth of the step, and all later ones are far too bad.

    A stationary service shows seven rises in a row once in 8! = 40,320 steps, one that fills from empty more often;
    hence the second condition. Overload never becomes steady: without this it would never have 40 observations.
    """
    for limit, one in zip(limits, whole, strict=True):
        length = len(one.trials) // _SEGMENTS
        if length < 1:
            continue
        levels, trials, bad = (run_sums(part, length)[:_SEGMENTS] for part in (one.level, one.trials, one.bad))
        shares = bad / np.maximum(trials, 1.0)
        saturated = bool(np.all(shares[_SEGMENTS // 2 :] > 0.9))
        rising = bool(np.all(np.diff(levels) > 0.0)) and bool(np.all(shares[_SEGMENTS // 2 :] > 3.0 * limit.bad_share))
        if limit.bound_s is not None and (saturated or rising) and one.requests >= 200:
            return True
    return False
