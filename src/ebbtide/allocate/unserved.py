"""Load that nobody serves: what decides between counts of replicas that leave the same shortage (§5.7).

Attainment is 0 for every count at which a workload is not stable, so the shortage alone would hold one replica for as
good as a hundred. Among equal shortages the plan leaves the least load unserved, then looks at money.

What belongs here: the load, and how it is counted together with the shortage in one integer. What doesn't: who gets
the replicas.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ebbtide.allocate.samples import WorkloadSamples
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints

# Unserved load is counted in this part of the window's whole claim, rounded down: 0.002 % of all that is asked for.
UNSERVED_UNITS = 1 << 16
# One unit of shortage outweighs all unserved load together, which is at most UNSERVED_UNITS. A billion units of
# shortage are then 2^47 at most: exact as integers, and as doubles in the hulls.
SHORTAGE_STEP = 1 << 17
# Quotients are rounded: a millionth of a unit below a whole one is that whole one.
_ROUNDING = 1e-6


def joint(shortage: Ints, unserved: Ints) -> Ints:
    """Units of shortage and, where they are equal, of unserved load: integers that compare and add up as pairs.

    >>> joint(np.array([1, 1, 2]), np.array([0, 5, 3])).tolist()
    [131072, 131077, 262147]
    """
    return shortage * SHORTAGE_STEP + unserved


def shortage_units(both: int | float) -> int:
    """The whole units of shortage in a joint count; of a lower bound of such a count, a lower bound.

    >>> shortage_units(262147), shortage_units(262143.5)
    (2, 1)
    """
    return int(both // SHORTAGE_STEP)


def unserved_load(both: int, claim: float) -> float:
    """The unserved load in a joint count, as its part of the window's ``claim``.

    >>> unserved_load(262147, 65536.0)
    3.0
    """
    return both % SHORTAGE_STEP / UNSERVED_UNITS * claim


def unserved_units(
    samples: WorkloadSamples, day: Ints, *, replica_rps: Floats, claim_share: Floats, low: Ints, lengths: Ints
) -> Ints:
    """Load unserved with ``low[k]`` replicas and more, flat int64: ``lengths[k]`` entries of window k.

    With n replicas Σ max(0, rate − n · replica_rps) ÷ Σ rate over the planned samples of the deciding ``day``, times
    ``claim_share[k]``, the workload's part of the window's claim, in units of 1 / ``UNSERVED_UNITS``, rounded down.
    """
    shares = _unserved_shares(
        samples.rates_rps, samples.offsets, samples.day, samples.windows, day, replica_rps, low, lengths
    )
    counted: Ints = np.floor(shares * np.repeat(claim_share, lengths) * UNSERVED_UNITS + _ROUNDING).astype(np.int64)
    return counted


@njit(cache=True)
def _unserved_shares(rates_rps, offsets, day, windows, deciding, replica_rps, low, lengths):  # type: ignore[no-untyped-def]  # numba infers types
    out = np.zeros(lengths.sum())
    before = 0
    for k in range(len(windows) - 1):
        total = 0.0
        for g in range(windows[k], windows[k + 1]):
            if day[g] == deciding[k]:
                for s in range(offsets[g], offsets[g + 1]):
                    total += rates_rps[s]
                    for i in range(lengths[k]):
                        left = rates_rps[s] - (low[k] + i) * replica_rps[k]
                        if left <= 0.0:
                            break
                        out[before + i] += left
        if total > 0.0:
            for i in range(lengths[k]):
                out[before + i] /= total
        before += lengths[k]
    return out
