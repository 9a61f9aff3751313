"""Where least-loaded balancing lies between its exact ends: one pooled queue, and random routing (§5.6).

Least loaded: a request goes to the replica with the fewest requests in service and waiting (ties at random) and stays
there; every replica of k slots has its own first-come queue. With n replicas the exact ends are pooled, M/M/(n·k), and
random, each replica an M/M/k at λ/n. Both waits have the tail P(W > t) = P·exp(−θ·t), and so has the interpolation::

    ln P = (1 − w)·ln P_pooled + w·ln P_random        w = random_weight(n, k, a)
    ln θ = (1 − v)·ln θ_pooled + v·ln θ_random        v = random_decay_weight(n, k, a)

with θ_pooled = (n·k − a)/S, θ_random = (n·k − a)/(n·S), a the offered load, S the mean service time. E[W] = P/θ.
"""

from __future__ import annotations

import math

from numba import njit


@njit(cache=True)
def random_weight(replicas: int, slots: int, offered_load: float) -> float:
    """Weight w of random routing in the logarithm of the probability of waiting: 0 as pooled, 1 as random.

    >>> random_weight(4, 8, 24.0)
    0.0
    """
    return 0.0


@njit(cache=True)
def random_decay_weight(replicas: int, slots: int, offered_load: float) -> float:
    """Weight v of random routing in the logarithm of the wait's decay rate θ: 0 as pooled, 1 as random.

    It makes θ = (k/S)·(1 − ρⁿ): a waiting request waits for its own replica's next departures (rate k/S each), and
    in a congested system another whole round of waiting has probability ρⁿ. One replica: 0, for both ends are one.

    >>> 0.0 < random_decay_weight(4, 8, 24.0) < 1.0
    True
    >>> random_decay_weight(1, 8, 6.0)
    0.0
    """
    load = offered_load / (replicas * slots)
    if replicas <= 1 or load >= 1.0 or load <= 0.0:
        return 0.0
    least_loaded = -math.expm1(replicas * math.log(load))
    return math.log(replicas * (1.0 - load) / least_loaded) / math.log(replicas)
