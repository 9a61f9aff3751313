"""A station of which one thing is known: n replicas hold n times a rate with the target met (§M.8).

At or below that rate the target's percentile is attained, at least: it counts as exactly that, for a claim says no
more. Above it nothing is attained, as above the capacity of any station (§5.3). n times is exact where every replica
gets its own part of the stream (``balancing: random``, as it was measured) and cautious where replicas share. How long
requests wait is not known.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints

# Rates that are whole multiples of the one held must not need one replica more for their last bit.
_ROUNDING = 1e-9


def replicas_for(rates_rps: Floats, holds_rps: float) -> Ints:
    """Least replicas that hold each rate; 0 for none.

    >>> replicas_for(np.array([0.0, 9.6, 9.7, 28.8]), 9.6).tolist()
    [0, 1, 2, 3]
    """
    return np.ceil(np.asarray(rates_rps) / holds_rps * (1.0 - _ROUNDING)).astype(np.int64)


def required(rates_rps: Floats, offsets: Ints, holds_rps: float, at_most: int) -> Ints:
    """``curves.required_replicas``: what the highest rate of each group needs, for every one counts.

    >>> required(np.array([5.0, 30.0, 1.0]), np.array([0, 2, 3, 3]), 10.0, 100).tolist()
    [3, 1, 0]
    """
    needs: Ints = _greatest(replicas_for(rates_rps, holds_rps), offsets)
    return np.minimum(needs, at_most + 1)


def attainment(
    rates_rps: Floats, offsets: Ints, holds_rps: float, percentile: float, low: Ints, high: Ints
) -> tuple[Floats, Ints]:
    """``curves.attainment_curves``: the percentile, times the share of requests that come at a rate that is held.

    >>> attainment(np.array([5.0, 15.0]), np.array([0, 2]), 10.0, 0.8, np.array([1]), np.array([2]))[0].tolist()
    [0.2, 0.8]
    """
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(high - low + 1)])
    rates = np.ascontiguousarray(rates_rps, dtype=np.float64)
    values: Floats = _steps(replicas_for(rates, holds_rps), rates, offsets, percentile, low, starts)
    return values, starts


@njit(cache=True)
def _greatest(needs, offsets):  # type: ignore[no-untyped-def]  # numba infers types
    out = np.zeros(len(offsets) - 1, dtype=np.int64)
    for g in range(len(out)):
        for s in range(offsets[g], offsets[g + 1]):
            out[g] = max(out[g], needs[s])
    return out


@njit(cache=True)
def _steps(needs, rates, offsets, percentile, low, starts):  # type: ignore[no-untyped-def]  # numba infers types
    out = np.ones(starts[-1])
    for g in range(len(offsets) - 1):
        total = 0.0
        most = 0
        for s in range(offsets[g], offsets[g + 1]):
            total += rates[s]
            most = max(most, needs[s])
        if total == 0.0:
            continue
        for i in range(starts[g], starts[g + 1]):
            replicas = low[g] + i - starts[g]
            held = 0.0
            for s in range(offsets[g], offsets[g + 1]):
                held += rates[s] if needs[s] <= replicas else 0.0
            # Where all is held, exactly the percentile: a rounded sum must leave nobody short.
            out[i] = percentile if replicas >= most else percentile * held / total
    return out
