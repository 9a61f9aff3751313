"""Users who give up: M/M/c+M (Erlang A, Palm 1943) and its scaling to G/G/c+M.

Patience is exponential with mean 1/θ. Let V be the wait of a user who never gives up; its density above 0 is in
proportion to exp(λH(x) − cμx), H(x) = (1 − e^(−θx))/θ (Zeltyn, Mandelbaum 2005, *Queueing Syst.* 51, 361).
With s = cμ/θ and x = λ/θ all integrals are incomplete gamma functions: ∫_t^∞ = e^(h(t)) L(s, x e^(−θt))/θ, where
h = λH − cμt and L = γ(s, x) e^x x^(−s). Every result is a sum of positive terms over one norm: nothing cancels.

* P(V > t) = x e^h L(s, x_t) / norm, norm = E + x L(s, x), E = 1/B(c−1, a)
* P(abandon) = N(s, x) / norm, N = 1 + (x−s) L
* P(abandon, or wait > t) = (N(s, x) + e^h x_t L(s+1, x_t)) / norm
* E[min(W, t)] = (N(s, x) − e^h N(s, x_t)) / (θ norm)

In overload (x > s) all terms carry e^D, D = s ln(s/x) + x − s, for h(t) = D − D(x_t); it is left out of both sides, and
e^h L(s, x_t) becomes the regularised P(s, x_t) up to a constant: nothing overflows for any c, patience and load.

Exact for M/M/c+M. With other variability, servers and load of V's tail are divided by (c²ₐ + c²ₛ)/2 and those of E by
the peakedness: the scaling of the many-server diffusion (Halfin and Whitt 1981; Whitt 2004, *Opns Res.* 52, 1009);
without patience it is ``general``'s law. Never unstable.
"""

from __future__ import annotations

import math

from numba import njit

from ebbtide.queueing.erlang import log_b
from ebbtide.queueing.general import peakedness, variability
from ebbtide.queueing.poisson import deviance
from ebbtide.queueing.special import log_gamma_shape, log_lower_scaled, log_lower_share


@njit(cache=True, nogil=True)
def log_sum(a: float, b: float) -> float:
    """ln(e^a + e^b)."""
    high = max(a, b)
    return high if high == -math.inf else high + math.log1p(math.exp(min(a, b) - high))


@njit(cache=True, nogil=True)
def _log_excess(s: float, x: float) -> float:
    """ln N(s, x), N = 1 + (x − s) L(s, x) = Σ k x^k / (s)_(k+1), for x ≤ s."""
    if x < 0.3 * s or s < 12.0:
        return _log_excess_series(s, x)
    d = s - x
    if d > 1e5 and x < 1e-5 * d * d:
        # Long patience: 1 − (s − x) L would cancel. N = x dL/dx and L = (1 − N)/d give this series in q = x/d² and 1/d;
        # what it leaves out is 105 q³.
        q = x / d / d
        return math.log(q) + math.log1p(-1.0 / d - 3.0 * q + 1.0 / d / d + 10.0 * q / d + 15.0 * q * q)
    return math.log(max(1e-300, 1.0 - (s - x) * math.exp(log_lower_scaled(s, x))))


@njit(cache=True, nogil=True)
def _log_excess_series(s: float, x: float) -> float:
    term = 1.0 / s
    total = 0.0
    for k in range(1, 10_000):
        term *= x / (s + k)
        total += k * term
        if k * term < 1e-17 * total:
            break
    return math.log(total) if total > 0.0 else -math.inf


@njit(cache=True, nogil=True)
def queue_law(
    servers: float, load: float, service_time_s: float, patience_s: float, arrival_scv: float, service_scv: float
) -> tuple[float, float, float]:
    """(s, x, ln norm): what every measure of one station with finite patience is made of; load > 0."""
    scale = patience_s / (service_time_s * variability(arrival_scv, service_scv))
    s, x = servers * scale, load * scale
    z = peakedness(arrival_scv, service_scv)
    loss = log_b(servers / z, load / z)
    idle = (math.log(math.expm1(-loss)) if loss > -30.0 else -loss) + math.log(load / servers)
    if x > s:
        idle -= deviance(s, x)
    return s, x, log_sum(idle, math.log(x) + _log_lower(s, x, x, 0.0))


@njit(cache=True, nogil=True)
def _log_moved(s: float, x: float, left: float, t: float) -> float:
    """h(t) = λH(t) − cμt, less D in overload; t in units of the patience, left = x e^(−t)."""
    return -deviance(s, left) if x > s else -x * math.expm1(-t) - s * t


@njit(cache=True, nogil=True)
def _log_lower(s: float, x: float, left: float, t: float) -> float:
    """ln(e^h L(s, left)), less D in overload."""
    if x > s:
        return log_gamma_shape(s) + log_lower_share(s, left)
    return _log_moved(s, x, left, t) + log_lower_scaled(s, left)


@njit(cache=True, nogil=True)
def _log_lost(s: float, x: float, left: float, t: float) -> float:
    """ln(e^h N(s, left)), less D in overload."""
    if left > s:
        return log_sum(-deviance(s, left), math.log(left - s) + log_gamma_shape(s) + log_lower_share(s, left))
    return _log_moved(s, x, left, t) + _log_excess(s, left)


@njit(cache=True, nogil=True)
def log_offered_tail(s: float, x: float, log_norm: float, t: float) -> float:
    """ln P(V > t), t in units of the patience."""
    left = x * math.exp(-t)
    return min(0.0, math.log(x) + _log_lower(s, x, left, t) - log_norm) if left > 0.0 else -math.inf


@njit(cache=True, nogil=True)
def log_abandon(s: float, x: float, log_norm: float) -> float:
    """ln of the share that gives up."""
    return min(0.0, _log_lost(s, x, x, 0.0) - log_norm)


@njit(cache=True, nogil=True)
def log_served(s: float, x: float, log_norm: float) -> float:
    """ln of the share that is served, for deep overload (x far above s), where 1 less the lost cancels.

    (E − 1 + s L)/norm, of which E − 1 is lost in E's own rounding there: where it counts (patience far shorter than a
    service) 1 − lost tells more than s L alone. Callers hold the result to the capacity.
    """
    lost = log_abandon(s, x, log_norm)
    by_queue = math.log(s) + _log_lower(s, x, x, 0.0) - log_norm
    return max(by_queue, math.log1p(-math.exp(lost)) if lost < 0.0 else -math.inf)


@njit(cache=True, nogil=True)
def log_late_or_lost(s: float, x: float, log_norm: float, t: float) -> float:
    """ln of the share that gives up or waits longer than t (in units of the patience)."""
    left = x * math.exp(-t)
    late = -math.inf
    if left > 0.0 and x > s:
        late = math.log(s) + log_gamma_shape(s) + log_lower_share(s + 1.0, left)
    elif left > 0.0:
        late = _log_moved(s, x, left, t) + math.log(left) + log_lower_scaled(s + 1.0, left)
    return min(0.0, log_sum(_log_lost(s, x, x, 0.0), late) - log_norm)


@njit(cache=True, nogil=True)
def log_mean_wait_within(s: float, x: float, log_norm: float, t: float) -> float:
    """ln E[min(W, t)], W the time in the queue (ended by service or by giving up), both in units of the patience."""
    whole = _log_lost(s, x, x, 0.0)
    left = x * math.exp(-t)
    if left <= 0.0:
        return whole - log_norm
    later = _log_lost(s, x, left, t) - whole
    return whole - log_norm + (math.log(-math.expm1(later)) if later < 0.0 else -math.inf)


@njit(cache=True, nogil=True)
def log_served_density(s: float, x: float, log_norm: float, t: float) -> float:
    """ln of the density at t > 0 of waiting t and being served, t in units of the patience."""
    left = x * math.exp(-t)
    return math.log(x) + _log_moved(s, x, left, t) - t - log_norm if left > 0.0 else -math.inf
