"""Incomplete gamma functions that keep their relative accuracy in every tail, for numba callers.

Every queue of this room rests on γ(s, x) and Γ(s, x): the Erlang formulas (s = servers + 1), users who give up
(s = servers × service rate × patience) and gamma service. Written here because scipy's return 0 or a cancelled
difference where the logarithm is still wanted, and because compiled code that calls scipy cannot be cached.

Ranges, s > 0: the uniform expansion for s ≥ 12 and x/s in (0.3, 2.35); the power series below it; Legendre's
continued fraction above it. All results hold 1e-13 relative (of the logarithm where the name starts with ``log_``).
Sources: Temme (1979) and Gil, Segura, Temme (2012), SIAM J. Sci. Comput. 34(6) A2965, section 2.4, for the expansion;
DLMF 8.7.1 and 8.9.2 for series and fraction.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ebbtide.queueing.poisson import HALF_LOG_2PI, deviance, log_poisson, scaled_erfc, stirling_error

_EPS = 1e-17
# Coefficients of η/(λ−1) in powers of η, where ½η² = λ − 1 − ln λ (computed to 60 digits from the series' own
# differential equation). 26 of them leave less than 1e-15 for s ≥ 12 and x/s in (0.3, 2.35).
_EXPANSION = np.array(
    [
        1.0,
        -0.33333333333333333333,
        0.083333333333333333333,
        -0.014814814814814814815,
        0.0011574074074074074074,
        0.00035273368606701940035,
        -0.0001787551440329218107,
        0.000039192631785224377817,
        -2.1854485106799921615e-6,
        -1.8540622107151599607e-6,
        8.296711340953086005e-7,
        -1.7665952736826079304e-7,
        6.7078535434014985804e-9,
        1.0261809784240308043e-8,
        -4.3820360184533531866e-9,
        9.1476995822367902342e-10,
        -2.5514193994946249767e-11,
        -5.8307721325504250675e-11,
        2.4361948020667416244e-11,
        -5.0276692801141755891e-12,
        1.1004392031956134771e-13,
        3.3717632624009853788e-13,
        -1.3923887224181620659e-13,
        2.8534893807047443204e-14,
        -5.139111834242572619e-16,
        -1.9752288294349442835e-15,
        8.0995211567045613341e-16,
    ]
)
_LOW_RATIO, _HIGH_RATIO, _LEAST_SHAPE = 0.3, 2.35, 12.0


@njit(cache=True, nogil=True)
def _expansion_sum(s: float, eta: float) -> float:
    """S_s(η) of Gil, Segura, Temme (2012) by the backward recursion for its coefficients."""
    per_s = 1.0 / s
    # In the middle of the range: 5e-12 · 0.3^13, and 5e-12 · 13!!/50^7 through the recursion, are less than 1e-17.
    top = 14 if s > 50.0 and abs(eta) < 0.3 else 26
    later = _EXPANSION[top]
    here = _EXPANSION[top - 1]
    total = later * eta + here
    for m in range(top - 2, 0, -1):
        before = _EXPANSION[m] + (m + 1) * per_s * later
        later = here
        here = before
        total = total * eta + here
    value: float = total / (1.0 + later * per_s)
    return value


@njit(cache=True, nogil=True)
def is_uniform(s: float, x: float) -> bool:
    """Whether the uniform expansion holds here."""
    return s >= _LEAST_SHAPE and _LOW_RATIO * s < x < _HIGH_RATIO * s


@njit(cache=True, nogil=True)
def _near_tail(s: float, x: float, d: float) -> float:
    """The smaller of P and Q divided by exp(−d), d = deviance(s, x), in the uniform range."""
    eta = math.copysign(math.sqrt(2.0 * d / s), x - s)
    correction = _expansion_sum(s, eta) / math.sqrt(2.0 * math.pi * s)
    return 0.5 * scaled_erfc(math.sqrt(d)) + (correction if x >= s else -correction)


@njit(cache=True, nogil=True)
def _fraction(s: float, x: float) -> float:
    """Γ(s, x) e^x x^(−s) by Legendre's continued fraction (DLMF 8.9.2), modified Lentz; for x > s, x > 0."""
    b = x + 1.0 - s
    c = 1e300
    d = 1.0 / b
    value = d
    for i in range(1, 100_000):
        a = -i * (i - s)
        b += 2.0
        d = 1.0 / (a * d + b)
        c = b + a / c
        step = c * d
        value *= step
        if abs(step - 1.0) < 1e-16:
            break
    return value


@njit(cache=True, nogil=True)
def _series(s: float, x: float) -> float:
    """γ(s, x) e^x x^(−s) = Σ x^k / (s)_(k+1), all terms positive (DLMF 8.7.1)."""
    term = 1.0 / s
    total = term
    for k in range(1, 100_000):
        term *= x / (s + k)
        total += term
        if term < _EPS * total:
            break
    return total


@njit(cache=True, nogil=True)
def log_gamma_shape(s: float) -> float:
    """ln(Γ(s) e^s s^(−s)) for s > 0: joins the scaled and the regularised functions."""
    return stirling_error(s) + HALF_LOG_2PI - 0.5 * math.log(s)


@njit(cache=True, nogil=True)
def log_lower_share(s: float, x: float) -> float:
    """ln P(s, x), the regularised lower incomplete gamma function, for s > 0, x ≥ 0 (−inf at 0)."""
    if x <= 0.0:
        return -math.inf
    if is_uniform(s, x):
        d = deviance(s, x)
        tail = _near_tail(s, x, d)
        return math.log(tail) - d if x < s else math.log1p(-tail * math.exp(-d))
    if x < s + 1.0:
        return min(0.0, math.log(_series(s, x) * s) + log_poisson(s, x))
    return math.log1p(-min(1.0, _fraction(s, x) * s * math.exp(log_poisson(s, x))))


@njit(cache=True, nogil=True)
def log_upper_share(s: float, x: float) -> float:
    """ln Q(s, x) = ln(1 − P(s, x)) for s > 0, x ≥ 0 (0 at 0)."""
    if x <= 0.0:
        return 0.0
    if is_uniform(s, x):
        d = deviance(s, x)
        tail = _near_tail(s, x, d)
        return math.log(tail) - d if x >= s else math.log1p(-tail * math.exp(-d))
    if x < s + 1.0:
        return math.log1p(-min(1.0, _series(s, x) * s * math.exp(log_poisson(s, x))))
    return min(0.0, math.log(_fraction(s, x) * s) + log_poisson(s, x))


@njit(cache=True, nogil=True)
def log_upper_scaled(s: float, x: float) -> float:
    """ln(Γ(s, x) e^x x^(−s)) for s > 0, x > 0."""
    if is_uniform(s, x):
        d = deviance(s, x)
        tail = _near_tail(s, x, d)
        return log_gamma_shape(s) + (math.log(tail) if x >= s else d + math.log1p(-tail * math.exp(-d)))
    if x >= s + 1.0:
        return math.log(_fraction(s, x))
    return log_upper_share(s, x) + deviance(s, x) + log_gamma_shape(s)


@njit(cache=True, nogil=True)
def log_lower_scaled(s: float, x: float) -> float:
    """ln(γ(s, x) e^x x^(−s)) for s > 0 and any x, below 0 by ₁F₁'s values (the function is entire in x)."""
    if x < 0.0:
        return math.log(_lower_scaled_below(s, -x))
    if is_uniform(s, x) and x < s:
        return math.log(_near_tail(s, x, deviance(s, x))) + log_gamma_shape(s)
    if x < s + 1.0:
        return math.log(_series(s, x))
    return log_lower_share(s, x) + deviance(s, x) + log_gamma_shape(s)


@njit(cache=True, nogil=True)
def _lower_scaled_below(s: float, d: float) -> float:
    """L(s) = ∫₀¹ e^(−d v) (1−v)^(s−1) dv, d > 0: γ e^x x^(−s) at x = −d.

    For d ≤ 40 the series of e^(−d) ₁F₁(s; s+1; d), all positive. Beyond, L(s) = (1 − d L(s+1)) / s is stable downwards
    where s > d and upwards where s < d (a step multiplies an error by d/s or s/d): it starts far above d from
    L(s) ≈ 1/(s+d), or below 1 from the expansion in 1/d, whose least term is e^(−d).
    """
    if d <= 40.0:
        return _lower_scaled_series(s, d)
    if s < d:
        return _lower_scaled_upwards(s, d)
    top = 0
    product = 1.0
    while product > _EPS:
        top += 1
        product *= d / (s + top)
    value = 1.0 / (s + top + d)
    for i in range(top - 1, -1, -1):
        value = (1.0 - d * value) / (s + i)
    return value


@njit(cache=True, nogil=True)
def _lower_scaled_series(s: float, d: float) -> float:
    weight = math.exp(-d)
    total = weight / s
    for k in range(1, 400):
        weight *= d / k
        total += weight / (s + k)
        if k > d and weight < _EPS * total:
            break
    return total


@njit(cache=True, nogil=True)
def _lower_scaled_upwards(s: float, d: float) -> float:
    steps = math.ceil(s) - 1
    here = s - steps
    value = 0.0
    term = 1.0 / d
    for n in range(1, 41):
        value += term
        term *= (n - here) / d
    for i in range(steps):
        value = (1.0 - (here + i) * value) / d
    return value
