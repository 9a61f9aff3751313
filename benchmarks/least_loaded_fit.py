"""The two numbers of the least-loaded interpolation, fitted to simulated stations.

``uv run python -m benchmarks.least_loaded_fit`` simulates stations of 2 to 64 replicas with 1 to 64 slots at loads
where the pooled probability of waiting is 0.02 to 0.9, and prints what ``ebbtide.queueing.balancing`` was made from:
how the conditional mean wait compares with 1/θ, the least-squares numbers of δ with errors downwards counted three
times, and the errors of the rounded numbers in use. Some six minutes on one core.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, least_squares

from benchmarks.least_loaded import simulated_waits_s
from ebbtide.queueing.balancing import RARITY_POWER, SLOTS_AT_HALF
from ebbtide.queueing.erlang import log_erlang_c

REPLICAS = (2, 4, 8, 16, 32, 64)
SLOTS = (1, 2, 4, 8, 16, 32, 64)
WAITING = (0.02, 0.1, 0.3, 0.6, 0.9)
# Above this load a run of this length says little about the mean: busy periods are too long.
MOST_LOAD = 0.99
REQUESTS = 2_500_000
BATCHES = 10
DOWNWARDS = 3.0
# A model this simple is not better than 2 %: no station counts for more than one measured to that.
MODEL_ERROR = 0.02

Floats = NDArray[np.float64]


def load_where(replicas: int, slots: int, waiting: float) -> float:
    """Load a server at which the pooled queue has this probability of waiting."""
    servers = replicas * slots
    return float(brentq(lambda rho: float(log_erlang_c(servers, rho * servers)) - math.log(waiting), 1e-3, 1 - 1e-9))


def simulated() -> Floats:
    """A row a station: k, pooled P, x, simulated P, its relative error, conditional mean wait times θ."""
    rows = []
    for replicas in REPLICAS:
        for slots in SLOTS:
            for waiting in WAITING:
                rho = load_where(replicas, slots, waiting)
                if rho > MOST_LOAD:
                    continue
                waits_s = simulated_waits_s(slots, rho * replicas * slots, replicas, requests=REQUESTS, seed=55)
                shares = (waits_s > 0.0).reshape(BATCHES, -1).mean(axis=1)
                share = float(shares.mean())
                error = float(shares.std(ddof=1)) / math.sqrt(BATCHES) / share
                round_share = 1.0 - rho**replicas
                slower = replicas * (1.0 - rho) / round_share
                rows.append((slots, waiting, slower, share, error, waits_s.mean() / share * slots * round_share))
    return np.array(rows)


def log_relief(numbers: Floats, slots: Floats, waiting: Floats, slower: Floats) -> Floats:
    """ln of P over the pooled P."""
    half, power = numbers
    return -np.log1p(slots / (slots + half) * waiting**power * (slower - 1.0))


def main() -> None:
    """Simulate, fit, print."""
    slots, waiting, slower, share, error, conditional = simulated().T
    print(f"{len(slots)} stations; conditional mean wait × θ at 5, 50, 95 %:", *np.round(_quantiles(conditional), 3))
    seen = np.log(share / waiting)

    def misses(numbers: Floats) -> Floats:
        over = (log_relief(numbers, slots, waiting, slower) - seen) / np.hypot(error, MODEL_ERROR)
        return np.where(over < 0.0, DOWNWARDS * over, over)

    print("least squares, SLOTS_AT_HALF and RARITY_POWER:", *np.round(least_squares(misses, [3.0, 0.2]).x, 3))
    over = log_relief(np.array([SLOTS_AT_HALF, RARITY_POWER]), slots, waiting, slower) - seen
    print(
        "in use:", SLOTS_AT_HALF, RARITY_POWER, "; ln P less the simulated, at 5, 50, 95 %:", *_quantiles(over).round(3)
    )
    print("lowest beyond two standard errors:", (over + 2.0 * error).min().round(3), "; highest:", over.max().round(3))


def _quantiles(values: Floats) -> Floats:
    return np.quantile(values, [0.05, 0.5, 0.95])


if __name__ == "__main__":
    main()
