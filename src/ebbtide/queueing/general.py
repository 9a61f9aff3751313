"""The wait in G/G/c without abandonment: an atom at 0 and an exponential tail, P(W > t) = P·exp(−θt).

Exact for M/M/c (and the mean for M/G/1, Pollaczek–Khinchine). Elsewhere two standard approximations from the first
two moments:

* P(W > 0): Hayward's (Fredericks 1980, *Bell Syst. Tech. J.* 59, 809; Whitt 1993, *Prod. Oper. Manag.* 2, 114):
  Erlang's C with servers and load over the peakedness z = (c²ₐ + c²ₛ)/(1 + c²ₛ), which is 1 for Poisson arrivals.
* θ = (c − a)/S · 2/(c²ₐ + c²ₛ): Kingman's heavy-traffic rate (1962; Köllerström 1974 for c servers). With P it gives
  the mean of Lee and Longton (1959) for M/G/c, and Allen–Cunneen's (1978) with P in C's place for G/G/c.

For exponential service and gamma gaps of c²ₐ from 0.25 to 9, the mean wait is within 10 % of the exact GI/M/c for
1 ≤ c ≤ 100 and loads of 0.8 and more; gaps of other shapes with the same c²ₐ differ among themselves by more than that
(docs/background/queueing.md has the table).
"""

from __future__ import annotations

import math

from numba import njit

from ebbtide.queueing.erlang import log_c

# D/D/c never waits below capacity; this variability stands for none, so that no formula divides by zero: its waits are
# a ten-thousandth of M/M/c's.
LEAST_SCV = 1e-4


@njit(cache=True, nogil=True)
def peakedness(arrival_scv: float, service_scv: float) -> float:
    """z: variance over mean of the busy servers, were there no limit to them; 1 for Poisson arrivals."""
    return max(LEAST_SCV, (arrival_scv + service_scv) / (1.0 + service_scv))


@njit(cache=True, nogil=True)
def variability(arrival_scv: float, service_scv: float) -> float:
    """(c²ₐ + c²ₛ)/2: how much longer than in M/M/c a congested queue waits."""
    return max(LEAST_SCV, 0.5 * (arrival_scv + service_scv))


@njit(cache=True, nogil=True)
def wait_decay_per_s(
    servers: float, load: float, service_time_s: float, arrival_scv: float, service_scv: float
) -> float:
    """θ of one station below capacity."""
    return (servers - load) / (service_time_s * variability(arrival_scv, service_scv))


@njit(cache=True, nogil=True)
def wait_law(
    servers: float, load: float, service_time_s: float, arrival_scv: float, service_scv: float
) -> tuple[float, float]:
    """(ln P(W > 0), θ per second) of one station; (0, 0) where it is unstable: every wait is infinite."""
    if load >= servers:
        return 0.0, 0.0
    z = peakedness(arrival_scv, service_scv)
    decay_per_s = wait_decay_per_s(servers, load, service_time_s, arrival_scv, service_scv)
    if load <= 0.0:
        return -math.inf, decay_per_s
    return log_c(servers / z, load / z), decay_per_s
