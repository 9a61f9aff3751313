"""Where least-loaded balancing lies between its exact ends: one pooled queue, and random routing (§5.6).

Least loaded: a request goes to the replica with the fewest requests in service and waiting (ties at random) and stays
there; each of n replicas of k slots has its own first-come queue. The exact ends are pooled, M/M/(n·k), and random,
each replica an M/M/k at λ/n. Both waits have the tail P(W > t) = P·exp(−θ·t), and so has the interpolation, with a the
offered load, ρ = a/(n·k) and S the mean service time::

    ln θ = (1 − v)·ln θ_pooled + v·ln θ_random       v = random_decay_weight(n, k, a), so that θ = (k/S)·(1 − ρⁿ)
    ln P = ln P_pooled − ln(1 + δ·(x − 1))           x = θ_pooled/θ, δ = k/(k + 3)·P_pooled^0.2

θ: whoever waits, waits for departures of its own replica, at rate k/S; that another whole round of requests waits too
has probability ρⁿ. P: *fewer* wait than in one queue (while some wait, slots elsewhere may stand idle), but those who
do wait longer. One replica: both ends and the interpolation are one. As k grows, and k and P → 1, δ → 1: the mean wait
becomes the pooled one, P/θ. P falls and θ grows with n, so the wait's tail falls in n and t. The form of δ follows a
diffusion limit (docs/background/balancing.md); its two numbers are fitted to simulations so that P errs upwards.
"""

from __future__ import annotations

import math

from numba import njit

# The 3 and 0.2 of δ: near least squares over 186 simulated stations, errors downwards counted three times (2.4, 0.22).
SLOTS_AT_HALF = 3.0
RARITY_POWER = 0.2
# With patience: logarithms of late shares and tails lie at most about this far from pooled towards random.
PATIENT_TAIL_WEIGHT = 0.35


@njit(cache=True, nogil=True)
def random_decay_weight(replicas: int, slots: int, offered_load: float) -> float:
    """Weight v of random routing in the logarithm of the wait's decay rate θ: 0 as pooled, 1 as random.

    0 for one replica, for then both ends are one, and where the offered load is 0 or reaches the slots.

    >>> 0.0 < random_decay_weight(4, 8, 24.0) < 1.0
    True
    >>> random_decay_weight(1, 8, 6.0)
    0.0
    """
    if replicas <= 1:
        return 0.0
    return _log_slower(replicas, slots, offered_load) / math.log(replicas)


@njit(cache=True, nogil=True)
def log_waiting(replicas: int, slots: int, offered_load: float, log_pooled: float) -> float:
    """ln P(W > 0) under least loaded, from the pooled queue's.

    >>> log_waiting(1, 8, 6.0, -1.0), log_waiting(4, 8, 24.0, -2.0) < -2.0
    (-1.0, True)
    """
    delta = slots / (slots + SLOTS_AT_HALF) * math.exp(RARITY_POWER * log_pooled)
    return log_pooled - math.log1p(delta * math.expm1(_log_slower(replicas, slots, offered_load)))


@njit(cache=True, nogil=True)
def least_loaded_share(slots: int, pooled: float, slower: float) -> float:
    """P(W > 0) under least loaded, from the pooled queue's P > 0 and x: ``log_waiting`` of the walks up n.

    >>> least_loaded_share(8, 0.3, 1.0), least_loaded_share(8, 0.3, 1.5) < 0.3
    (0.3, True)
    """
    delta = slots / (slots + SLOTS_AT_HALF) * math.exp(RARITY_POWER * math.log(pooled))
    return pooled / (1.0 + delta * (slower - 1.0))


@njit(cache=True, nogil=True)
def patient_weight(slots: int, is_tail: bool) -> float:
    """Weight of random routing in the logarithm of a measure of users with finite patience: 0 pooled, 1 random.

    ``is_tail``: of P(W > t) or the share late or lost, a middle figure (simulated: 0 to 0.45, in overload with many
    slots up to 0.74); else of the share that gives up and
    of the mean wait, where simulated stations gave 1/(k + 3), overload included.

    >>> patient_weight(1, False), patient_weight(1, True)
    (0.25, 0.35)
    """
    return PATIENT_TAIL_WEIGHT if is_tail else 1.0 / (slots + SLOTS_AT_HALF)


@njit(cache=True, nogil=True)
def _log_slower(replicas: int, slots: int, offered_load: float) -> float:
    """ln x: how many times slower the tail decays than the pooled one, n·(1 − ρ)/(1 − ρⁿ)."""
    load = offered_load / (replicas * slots)
    if replicas <= 1 or load >= 1.0 or load <= 0.0:
        return 0.0
    return math.log(replicas * (1.0 - load) / -math.expm1(replicas * math.log(load)))
