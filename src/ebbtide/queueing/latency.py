"""Wait plus service (§5.4): independent, service gamma with its SCV, for both laws of the wait.

With W an atom at 0 and an exponential tail, and S gamma of shape κ and rate r::

    P(W + S > t) = Q(κ, rt) + P · ∫₀ᵗ f_S(x) e^(−θ(t−x)) dx,   the integral = κ pois(κ; rt) L(κ, (r−θ)t)

where pois(κ; y) = y^κ e^(−y)/Γ(κ+1) and L = γ(κ, x) e^x x^(−κ), entire in x: no case is singular, and nothing
overflows where θ and r are far apart. With patience the integral over the served density is done by adaptive
Gauss–Kronrod, 1e-12 a piece.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ebbtide.queueing.abandonment import log_late_or_lost, log_served_density, log_sum
from ebbtide.queueing.poisson import log_poisson
from ebbtide.queueing.special import log_lower_scaled, log_lower_share, log_upper_share

# Service that varies less than this is constant: its spread is a ten-thousandth of its mean.
CONSTANT_SCV = 1e-8
_NODES = np.array(
    [
        0.991455371120812639206854697526329,
        0.949107912342758524526189684047851,
        0.864864423359769072789712788640926,
        0.741531185599394439863864773280788,
        0.586087235467691130294144691693013,
        0.405845151377397166906606412076961,
        0.207784955007898467600689403773245,
        0.0,
    ]
)
_KRONROD = np.array(
    [
        0.022935322010529224963732008058970,
        0.063092092629978553290700663189204,
        0.104790010322250183839876322541518,
        0.140653259715525918745189590510238,
        0.169004726639267902826583426598550,
        0.190350578064785409913256402421014,
        0.204432940075298892414161999234649,
        0.209482141084727828012999174891714,
    ]
)
_GAUSS = np.array(
    [
        0.129484966168869693270611432679082,
        0.279705391489276667901467771423780,
        0.381830050505118944950369775488975,
        0.417959183673469387755102040816327,
    ]
)
_MOST_PIECES = 400


@njit(cache=True, nogil=True)
def service_share(t_s: float, mean_s: float, scv: float) -> float:
    """P(S ≤ t) of gamma service."""
    if t_s <= 0.0:
        return 0.0
    if scv < CONSTANT_SCV:
        return 1.0 if t_s >= mean_s else 0.0
    return math.exp(log_lower_share(1.0 / scv, t_s / (mean_s * scv)))


@njit(cache=True, nogil=True)
def log_late(log_p: float, decay_per_s: float, t_s: float, mean_s: float, scv: float) -> float:
    """ln P(W + S > t) for an exponential tail (ln P, θ); 0 where the station is unstable (θ = 0) or t ≤ 0."""
    if decay_per_s <= 0.0 or t_s <= 0.0:
        return 0.0
    if scv < CONSTANT_SCV:
        return log_p - decay_per_s * (t_s - mean_s) if t_s >= mean_s else 0.0
    shape = 1.0 / scv
    rate = shape / mean_s
    service = log_upper_share(shape, rate * t_s)
    if log_p == -math.inf:
        return service
    waited = log_poisson(shape, rate * t_s) + math.log(shape) + log_lower_scaled(shape, (rate - decay_per_s) * t_s)
    return min(0.0, log_sum(service, log_p + waited))


@njit(cache=True, nogil=True)
def log_late_or_lost_latency(
    s: float, x: float, log_norm: float, patience_s: float, t_s: float, mean_s: float, scv: float
) -> float:
    """ln of the share that gives up or has W + S > t, for a queue law (s, x, ln norm) of ``abandonment``."""
    if t_s <= 0.0:
        return 0.0
    if scv < CONSTANT_SCV:
        return log_late_or_lost(s, x, log_norm, (t_s - mean_s) / patience_s) if t_s >= mean_s else 0.0
    at_once = -math.expm1(log_late_or_lost(s, x, log_norm, 0.0))
    attained = at_once * service_share(t_s, mean_s, scv)
    edges = _edges(s, x, t_s / patience_s, mean_s / patience_s, math.sqrt(scv))
    for i in range(edges.size - 1):
        if edges[i + 1] > edges[i]:
            attained += _integral(s, x, log_norm, patience_s, t_s, mean_s, scv, edges[i], edges[i + 1])
    return math.log(max(1e-300, 1.0 - min(1.0, attained)))


@njit(cache=True, nogil=True)
def _edges(s: float, x: float, t: float, mean: float, spread: float) -> np.ndarray:
    """Where to cut (0, t): around the served density's peak (or its start) and around the service's mean."""
    peak = max(0.0, math.log(x / (s + 1.0)))
    width = 1.0 / max(math.sqrt(s + 1.0), s + 1.0 - x)
    cuts = np.empty(12)
    cuts[0] = 0.0
    cuts[1] = t
    for i, step in enumerate((-6.0, -2.0, 0.0, 2.0, 6.0, 30.0)):
        cuts[2 + i] = peak + step * width
    for i, step in enumerate((-6.0, -2.0, 2.0, 6.0)):
        cuts[8 + i] = t - mean + step * mean * min(spread, 0.2)
    for i in range(cuts.size):
        cut, j = min(t, max(0.0, cuts[i])), i
        while j > 0 and cuts[j - 1] > cut:
            cuts[j] = cuts[j - 1]
            j -= 1
        cuts[j] = cut
    return cuts


@njit(cache=True, nogil=True)
def _served_in_time(
    s: float, x: float, log_norm: float, patience_s: float, t_s: float, mean_s: float, scv: float, u: float
) -> float:
    density = log_served_density(s, x, log_norm, u)
    return math.exp(density) * service_share(t_s - u * patience_s, mean_s, scv) if density > -60.0 else 0.0


@njit(cache=True, nogil=True)
def _rule(
    s: float, x: float, log_norm: float, patience_s: float, t_s: float, mean_s: float, scv: float, a: float, b: float
) -> tuple[float, float]:
    """Kronrod's 15-point value of the integral over (a, b) and its distance to Gauss's 7-point value."""
    middle, half = 0.5 * (a + b), 0.5 * (b - a)
    fine = 0.0
    coarse = 0.0
    for i in range(8):
        value = 0.0
        for side in range(-1, 2 if i < 7 else 0, 2):
            value += _served_in_time(s, x, log_norm, patience_s, t_s, mean_s, scv, middle + side * half * _NODES[i])
        fine += _KRONROD[i] * value
        if i % 2 == 1:
            coarse += _GAUSS[i // 2] * value
    return fine * half, abs(fine - coarse) * half


@njit(cache=True, nogil=True)
def _integral(
    s: float, x: float, log_norm: float, patience_s: float, t_s: float, mean_s: float, scv: float, a: float, b: float
) -> float:
    """Adaptive: a piece is halved until its error is below 1e-12 or its share of ``_MOST_PIECES`` is used up."""
    lefts = np.empty(64)
    rights = np.empty(64)
    lefts[0], rights[0] = a, b
    waiting = 1
    total = 0.0
    for _ in range(_MOST_PIECES):
        if waiting == 0:
            break
        waiting -= 1
        left, right = lefts[waiting], rights[waiting]
        value, error = _rule(s, x, log_norm, patience_s, t_s, mean_s, scv, left, right)
        if error < 1e-12 or waiting > 60 or right - left < 1e-13 * b:
            total += value
            continue
        middle = 0.5 * (left + right)
        lefts[waiting], rights[waiting] = middle, right
        lefts[waiting + 1], rights[waiting + 1] = left, middle
        waiting += 2
    return total
