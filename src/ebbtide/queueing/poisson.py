"""The Poisson probability in the logarithm, without cancellation, and what it is made of; for numba callers.

Source: Loader (2000), *Fast and accurate computation of binomial probabilities* (his ``stirlerr``, ``bd0`` and
``dpois_raw``).
"""

from __future__ import annotations

import math

from numba import njit

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_EPS = 1e-17


@njit(cache=True, nogil=True)
def stirling_error(n: float) -> float:
    """ln Γ(n+1) − (n+½) ln n + n − ½ ln 2π for n > 0: what Stirling's formula leaves out (Loader 2000)."""
    if n < 15.0:
        return math.lgamma(n + 1.0) - (n + 0.5) * math.log(n) + n - HALF_LOG_2PI
    q = 1.0 / (n * n)
    tail = 1.0 / 1188.0 - q * (691.0 / 360360.0 - q * (1.0 / 156.0 - q * 3617.0 / 122400.0))
    return (1.0 / 12.0 - q * (1.0 / 360.0 - q * (1.0 / 1260.0 - q * (1.0 / 1680.0 - q * tail)))) / n


@njit(cache=True, nogil=True)
def deviance(s: float, x: float) -> float:
    """s ln(s/x) + x − s ≥ 0 without its cancellation near s = x (Loader 2000, ``bd0``)."""
    if abs(s - x) >= 0.1 * (s + x):
        return s * math.log(s / x) + x - s
    v = (s - x) / (s + x)
    total = (s - x) * v
    term = 2.0 * s * v
    square = v * v
    for j in range(1, 100):
        term *= square
        new = total + term / (2 * j + 1)
        if new == total:
            break
        total = new
    return total


@njit(cache=True, nogil=True)
def log_poisson(s: float, x: float) -> float:
    """ln(x^s e^(−x) / Γ(s+1)) for real s ≥ 0, x > 0."""
    if s == 0.0:
        return -x
    return -stirling_error(s) - deviance(s, x) - HALF_LOG_2PI - 0.5 * math.log(s)


@njit(cache=True, nogil=True)
def scaled_erfc(z: float) -> float:
    """exp(z²) erfc(z) for z ≥ 0."""
    if z < 8.0:
        return math.exp(z * z) * math.erfc(z)
    q = 0.5 / (z * z)
    total = 1.0
    term = 1.0
    for k in range(1, 40):
        term *= -(2 * k - 1) * q
        total += term
        if abs(term) < _EPS:
            break
    return total / (z * math.sqrt(math.pi))
