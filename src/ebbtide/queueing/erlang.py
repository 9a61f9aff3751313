"""Erlang's loss and delay formulas in the logarithm, for whole arrays and for numba callers.

B(c, a) is the share of requests lost by c servers without a queue; C(c, a) the share that waits in M/M/c. Both hold
for real c ≥ 0 (the continuation of Jagers and Van Doorn, 1986, *Opns Res. Lett.* 5, 263), which the general queue
needs. Within 1e-11·max(1, |ln|) of the exact value for c ≤ 100,000 at any load; finite and monotone to a million
servers and more.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from ebbtide.errors import InputError
from ebbtide.fleet.demand import Floats
from ebbtide.queueing.poisson import log_poisson
from ebbtide.queueing.special import is_uniform, log_upper_scaled, log_upper_share


@njit(cache=True, nogil=True)
def log_b(servers: float, load: float) -> float:
    """ln B for one station: 0 with no servers, −inf with no load.

    1/B = a ∫ e^(−at) (1+t)^c dt = a·Γ(c+1, a) e^a a^(−c−1) (Jagerman 1974): free of cancellation in overload and near
    it. Far below B is the Poisson probability of c over that of at most c.
    """
    if servers <= 0.0:
        return 0.0
    if load <= 0.0:
        return -math.inf
    shape = servers + 1.0
    if load >= shape or is_uniform(shape, load):
        return min(0.0, -math.log(load) - log_upper_scaled(shape, load))
    return log_poisson(servers, load) - log_upper_share(shape, load)


@njit(cache=True, nogil=True)
def log_c(servers: float, load: float) -> float:
    """ln C for one station: C = B / ((c−a)/c + (a/c) B), where c − a is exact near a = c; 0 where a ≥ c (all wait)."""
    if load >= servers:
        return 0.0
    if load <= 0.0:
        return -math.inf
    loss = log_b(servers, load)
    return min(0.0, loss - math.log((servers - load) / servers + load / servers * math.exp(loss)))


@njit(cache=True, nogil=True)
def _fill_log_b(servers: Floats, load: Floats, out: Floats) -> None:
    for i in range(out.size):
        out[i] = log_b(servers[i], load[i])


@njit(cache=True, nogil=True)
def _fill_log_c(servers: Floats, load: Floats, out: Floats) -> None:
    for i in range(out.size):
        out[i] = log_c(servers[i], load[i])


def log_erlang_b(servers: ArrayLike, offered_load: ArrayLike) -> Floats:
    """ln B(servers, offered_load), broadcast: the natural logarithm of Erlang's loss probability.

    ``servers`` ≥ 0 (need not be whole), ``offered_load`` ≥ 0 in erlangs, taken as the given double; overload is
    fine. −inf where there is no load. ``InputError`` on NaN, infinite or negative arguments. Source: Erlang (1917);
    real servers: Jagerman (1974), *Bell Syst. Tech. J.* 53, 525.

    >>> float(np.exp(log_erlang_b(1, 1.0)).round(12))
    0.5
    >>> float(log_erlang_b(1000, 100.0).round(4))
    -1406.958
    """
    c, a = _checked(servers, offered_load)
    out = np.empty(c.size)
    _fill_log_b(c.flatten(), a.flatten(), out)
    return out.reshape(c.shape)


def log_erlang_c(servers: ArrayLike, offered_load: ArrayLike) -> Floats:
    """ln C(servers, offered_load), broadcast: the natural logarithm of the probability of waiting in M/M/c.

    0 (certain) where the offered load is at or above the servers, −inf where there is no load; else as
    ``log_erlang_b``. Source: Erlang (1917).

    >>> np.exp(log_erlang_c([1, 2], 0.5)).round(6).tolist()
    [0.5, 0.1]
    """
    c, a = _checked(servers, offered_load)
    out = np.empty(c.size)
    _fill_log_c(c.flatten(), a.flatten(), out)
    return out.reshape(c.shape)


def _checked(servers: ArrayLike, offered_load: ArrayLike) -> tuple[Floats, Floats]:
    c, a = np.broadcast_arrays(np.asarray(servers, dtype=np.float64), np.asarray(offered_load, dtype=np.float64))
    for name, values in (("servers", c), ("offered_load", a)):
        if not np.all(np.isfinite(values) & (values >= 0.0)):
            raise InputError(f"{name} must be numbers of at least 0", kind=f"bad_{name}")
    return c, a
