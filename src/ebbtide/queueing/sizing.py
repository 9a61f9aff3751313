"""The least servers for a target on the wait, for whole arrays."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from ebbtide.errors import InputError
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints
from ebbtide.fleet.workload import TargetKind
from ebbtide.queueing.general import variability, wait_law
from ebbtide.queueing.poisson import scaled_erfc
from ebbtide.queueing.station import Station, check_percentile

# Above this many servers a double no longer holds every whole number's neighbours apart in (c − a)/c.
MOST_SERVERS = 1 << 50


@njit(cache=True, nogil=True)
def _staffing_guess(load: float, bound: float, log_late: float, spread: float) -> float:
    """Servers by the square-root rule a + β√(za): β solves ln α(β) − β √(a/z)·bound = log_late with Halfin and
    Whitt's α (1981, eq. 2.2), bound in service times. A start for the search, right to a few servers."""
    slope = math.sqrt(load / spread) * bound
    beta = 0.0
    for _ in range(8):
        # 1/α = 1 + β Φ(β)/φ(β)
        mills = math.sqrt(0.5 * math.pi) * scaled_erfc(beta * math.sqrt(0.5))
        ratio = math.sqrt(2.0 * math.pi) * math.exp(min(300.0, 0.5 * beta * beta)) - mills
        inverse = 1.0 + beta * ratio
        over = -math.log(inverse) - slope * beta - log_late
        if over <= 0.0 and beta == 0.0:
            break
        fall = (ratio + beta * (1.0 + beta * ratio)) / inverse + slope
        new = max(0.0, beta + over / fall)
        if abs(new - beta) < 0.02:
            beta = new
            break
        beta = new
    return load + beta * math.sqrt(spread * load)


@njit(cache=True, nogil=True)
def _log_over(
    servers: int, load: float, bound: float, log_late: float, arrival_scv: float, service_scv: float
) -> float:
    """ln P(W > bound) over its allowance: above 0 where the target is missed (bound in service times)."""
    log_p, decay = wait_law(float(servers), load, 1.0, arrival_scv, service_scv)
    return log_p - decay * bound - log_late if decay > 0.0 else -log_late


@njit(cache=True, nogil=True)
def fill_least(
    load: Floats, bound: Floats, log_late: Floats, arrival_scv: Floats, service_scv: Floats, out: Ints
) -> None:
    """Least servers per element: gallops from the square-root rule, then bisects. The tail falls with the servers."""
    for i in range(out.size):
        args = (load[i], bound[i], log_late[i], arrival_scv[i], service_scv[i])
        floor = int(load[i])
        spread = variability(arrival_scv[i], service_scv[i])
        n = max(floor + 1, int(_staffing_guess(load[i], bound[i], log_late[i], spread) + 0.5))
        below, met, step = floor, -1, 1
        while met < 0 or met - below > 1:
            if _log_over(n, *args) > 0.0:
                below = n
            else:
                met = n
            if met < 0:
                n = below + step
            elif below == floor:
                n = max(floor + 1, met - step)
            else:
                n = (met + below) // 2
            step *= 2
        out[i] = met


def least_servers(
    arrival_rate_rps: ArrayLike,
    service_time_s: ArrayLike,
    target_wait_s: ArrayLike,
    target_percentile: ArrayLike,
    *,
    arrival_scv: ArrayLike = 1.0,
    service_scv: ArrayLike = 1.0,
    patience_s: ArrayLike = math.inf,
) -> Ints:
    """Least servers c ≥ 1 of one queue with P(W ≤ target) ≥ percentile, broadcast, int64.

    With patience: the least c that serves the share ``target_percentile`` of all requests within the target (§5.7).
    M/M/c and M/M/c+M are exact; other SCVs as ``general``. ``InputError`` on what ``Station`` refuses, a target below
    0 or a percentile outside [0, 1).

    >>> least_servers([9.5, 100.0], 1.0, 0.5, 0.95).tolist()
    [13, 105]
    """
    share = check_percentile(target_percentile)
    station = Station(
        replicas=1,
        arrival_rate_rps=arrival_rate_rps,
        service_time_s=service_time_s,
        arrival_scv=arrival_scv,
        service_scv=service_scv,
        patience_s=patience_s,
    )
    wait_s = np.asarray(target_wait_s, dtype=np.float64)
    if not np.all(np.isfinite(wait_s) & (wait_s >= 0.0)):
        raise InputError("target_wait_s must be numbers of at least 0", kind="bad_target_wait_s")
    load = station.offered_load
    if not np.all(load < MOST_SERVERS):
        raise InputError("an offered load of 1e15 erlangs and more is not sized", kind="bad_arrival_rate_rps")
    times = np.asarray(service_time_s, dtype=np.float64)
    patience = np.asarray(patience_s, dtype=np.float64) / times
    fields = (load, wait_s / times, np.log1p(-share), arrival_scv, service_scv, patience, share)
    columns = np.broadcast_arrays(*(np.asarray(field, dtype=np.float64) for field in fields))
    flat = [np.ascontiguousarray(np.ravel(column)) for column in columns]
    out = np.empty(flat[0].size, dtype=np.int64)
    is_patient = np.isfinite(flat[5])
    a, bound, log_late, arrival, service = (column[~is_patient] for column in flat[:5])
    found = np.empty(a.size, dtype=np.int64)
    fill_least(a, bound, log_late, arrival, service, found)
    out[~is_patient] = found
    if np.any(is_patient):
        out[is_patient] = _least_patient(*(flat[k][is_patient] for k in (0, 1, 3, 4, 5, 6)))
    return out.reshape(columns[0].shape)


def _least_patient(
    load: Floats, bound: Floats, arrival_scv: Floats, service_scv: Floats, patience: Floats, share: Floats
) -> Ints:
    """The same with patience, times in service times: all elements gallop up from 0 and bisect."""
    below = np.zeros(load.size, dtype=np.int64)
    # Serving the share takes at least that share of the load; one less is a miss or 0.
    below = np.maximum(below, (share * load * (1.0 - 1e-9)).astype(np.int64) - 1)
    met = np.full(load.size, -1, dtype=np.int64)
    step = np.maximum(1, np.sqrt(load).astype(np.int64))
    while np.any(is_open := (met < 0) | (met - below > 1)):
        n = np.where(met < 0, below + step, (met + below) // 2)
        station = Station(
            replicas=np.maximum(1, n[is_open]),
            arrival_rate_rps=load[is_open],
            service_time_s=1.0,
            arrival_scv=arrival_scv[is_open],
            service_scv=service_scv[is_open],
            patience_s=patience[is_open],
        )
        is_met = np.zeros(load.size, dtype=bool)
        is_met[is_open] = station.attainment(TargetKind.WAIT, bound[is_open]) >= share[is_open]
        met = np.where(is_met, n, met)
        below = np.where(is_open & ~is_met, n, below)
        step *= 2
    return met
