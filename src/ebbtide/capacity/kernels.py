"""Compiled inner loops of ``memory`` and ``fit``: a search looks at its data a hundred times.

Imported by these two only. Formulas and sources are theirs.
"""

from __future__ import annotations

import numpy as np
from numba import njit

TINY = 1e-12


@njit(cache=True)
def inflations(residuals, starts, sizes, single, least):  # type: ignore[no-untyped-def] # numba infers from the call
    """Variances of sums over L requests against L · ``single``, L doubling while ``least`` sums remain.

    The largest, and the mean of the last two.

    ``residuals[starts[k]:starts[k + 1]]`` are step k's sums over runs of ``sizes[k]`` requests, around its mean.
    """
    largest, last, before = 1.0, 0.0, 0.0
    length = sizes.max()
    total = 0
    for k in range(sizes.size):
        total += sizes[k] * (starts[k + 1] - starts[k])
    while total >= length * least:
        squares = 0.0
        degrees = 0
        for k in range(sizes.size):
            width = max(1, int(np.rint(length / sizes[k])))
            runs = (starts[k + 1] - starts[k]) // width
            whole = 0.0
            part_squares = 0.0
            for j in range(runs):
                value = 0.0
                for i in range(starts[k] + j * width, starts[k] + (j + 1) * width):
                    value += residuals[i]
                whole += value
                part_squares += value * value
            if runs > 1:
                # Runs of a few base runs are not exactly L long; the variance is that of their own length.
                squares += (part_squares - whole * whole / runs) * length / (width * sizes[k])
                degrees += runs - 1
        if degrees < least // 2:
            break
        before, last = last, squares / degrees / (length * single)
        largest = max(largest, last)
        length *= 2
    return largest, 0.5 * (last + (before if before > 0.0 else last))


@njit(cache=True)
def logit_line(x, trials, bad, centre, slope, weight):  # type: ignore[no-untyped-def] # numba infers from the call
    """(fitted, height at ``centre``, slope) of the likeliest logit line, with a normal prior on the slope."""
    share = bad.sum() / trials.sum()
    height, steep = np.log(share / (1.0 - share)), slope
    for _ in range(40):
        h00, h01, h11, s0, s1 = 0.0, 0.0, weight, 0.0, -weight * (steep - slope)
        for i in range(x.size):
            apart = x[i] - centre
            p = 1.0 / (1.0 + np.exp(-min(max(height + steep * apart, -30.0), 30.0)))
            spread = trials[i] * p * (1.0 - p)
            rest = bad[i] - trials[i] * p
            h00 += spread
            h01 += spread * apart
            h11 += spread * apart * apart
            s0 += rest
            s1 += rest * apart
        determinant = h00 * h11 - h01 * h01
        if determinant <= TINY * h00 * max(h11, TINY):
            return False, height, steep
        up = (h11 * s0 - h01 * s1) / determinant
        tilt = (h00 * s1 - h01 * s0) / determinant
        scale = min(1.0, 2.0 / max(abs(up), TINY), 40.0 / max(abs(tilt), TINY))
        height += scale * up
        steep += scale * tilt
        if abs(up) < 1e-8 and abs(tilt) < 1e-6:
            return True, height, steep
    return False, height, steep


@njit(cache=True)
def _log_likelihood(x, trials, bad, level, steep, at):  # type: ignore[no-untyped-def] # numba infers from the call
    total = 0.0
    for i in range(x.size):
        height = min(max(level + steep * (x[i] - at), -30.0), 30.0)
        total += bad[i] * height - trials[i] * np.log1p(np.exp(height))
    return total


@njit(cache=True)
def _through(x, trials, bad, level, at, steep):  # type: ignore[no-untyped-def] # numba infers from the call
    """Greatest log-likelihood of the lines that have ``level`` at ``at`` and do not fall, and that line's slope."""
    for _ in range(40):
        score, curvature = 0.0, TINY
        for i in range(x.size):
            apart = x[i] - at
            p = 1.0 / (1.0 + np.exp(-min(max(level + steep * apart, -30.0), 30.0)))
            score += (bad[i] - trials[i] * p) * apart
            curvature += trials[i] * p * (1.0 - p) * apart * apart
        change = min(max(score / curvature, -20.0), 20.0)
        before = steep
        steep = max(steep + change, 0.0)
        if abs(steep - before) < 1e-5:
            break
    return _log_likelihood(x, trials, bad, level, steep, at), steep


@njit(cache=True)
def profile_end(x, trials, bad, level, at, steep, allowed, side, farthest):  # type: ignore[no-untyped-def] # numba infers
    """Where the profile log-likelihood has fallen by ``allowed`` on one side; infinite beyond ``farthest``."""
    floor = _through(x, trials, bad, level, at, steep)[0] - allowed
    inner, outer, width = 0.0, 0.0, 0.005
    while True:
        if outer >= farthest:
            return side * np.inf
        outer = min(outer + width, farthest)
        value, there = _through(x, trials, bad, level, at + side * outer, steep)
        if value < floor:
            break
        inner, steep = outer, there
        width *= 2.0
    for _ in range(14):
        middle = 0.5 * (inner + outer)
        value, there = _through(x, trials, bad, level, at + side * middle, steep)
        if value < floor:
            outer = middle
        else:
            inner = middle
    return at + side * 0.5 * (inner + outer)
