"""The true sustained rates of the capacity study's services.

    uv run python benchmarks/capacity_truth.py [REQUESTS]

Closed forms for M/M/4, shedding and fading; for the others the bad share at 1 % below and above the rate in
`capacity_cases.py`, from REQUESTS requests each (2 × 10⁸ unless said otherwise; minutes of CPU time), and the line
through both in the log odds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import exp, factorial, log

import numpy as np
from capacity_cases import CASES, Case, answers
from scipy.optimize import brentq

from ebbtide.capacity.limits import judged

CHUNK = 1_000_000


def stationary(rate_rps: float, servers: int, most: int) -> np.ndarray:
    """P(n present), n = 0 … most, of M/M/c with service 1 s and room for ``most``."""
    steps = rate_rps / np.minimum(np.arange(1, most + 1), servers)
    weights = np.cumprod(np.concatenate(([1.0], steps)))
    return weights / weights.sum()


def late_share(rate_rps: float, servers: int, bound_s: float) -> float:
    """P(wait + service > bound) of M/M/c with service 1 s (Erlang; Gross et al. 2008, §2.3)."""
    head = sum(rate_rps**n / factorial(n) for n in range(servers))
    tail = rate_rps**servers / factorial(servers) / (1.0 - rate_rps / servers)
    waits, spare = tail / (head + tail), servers - rate_rps
    return (1.0 - waits) * exp(-bound_s) + waits * (spare * exp(-bound_s) - exp(-spare * bound_s)) / (spare - 1.0)


def shed_share(rate_rps: float) -> float:
    """Share refused by 16 servers with 8 places to wait."""
    return float(stationary(rate_rps, 16, 24)[-1])


def wrong_share(rate_rps: float) -> float:
    """Share of wrong answers of the fading service: its mean over what arrivals find present."""
    present = np.arange(2001)
    return float(stationary(rate_rps, 16, 2000) @ (0.005 + 0.04 * np.minimum(present / 16.0, 2.0) ** 2))


CLOSED: dict[str, tuple[Callable[[float], float], float, float]] = {
    "M/M/4": (lambda rate: late_share(rate, 4, 10.0) - 0.05, 3.1, 3.95),
    "503 shedding": (lambda rate: shed_share(rate) - 0.01, 5.0, 20.0),
    "quality falling with load": (lambda rate: wrong_share(rate) - 0.03, 5.0, 15.5),
}


def simulated_share(case: Case, rate_rps: float, requests: int, seed: int) -> float:
    """Bad share of the case's first limit in a long run, after a million requests of warm-up."""
    service = case.make(np.random.default_rng(seed))
    service.begin(rate_rps)
    service.more(CHUNK)
    bad = 0
    for _ in range(requests // CHUNK):
        service.begin(rate_rps)
        bad += int(judged(case.limits[0], answers(service.more(CHUNK)))[1].sum())
    return bad / (requests // CHUNK * CHUNK)


def simulated_rps(case: Case, requests: int) -> float:
    """Where the line through the log odds at 1 % below and above crosses the limit."""
    rates = (0.99 * case.true_rps, 1.01 * case.true_rps)
    odds = [log(share / (1.0 - share)) for share in (simulated_share(case, rate, requests, 7) for rate in rates)]
    limit = log(case.limits[0].bad_share / (1.0 - case.limits[0].bad_share))
    return rates[0] + (limit - odds[0]) * (rates[1] - rates[0]) / (odds[1] - odds[0])


def main(requests: int) -> int:
    """Prints every case's rate beside the one that the study uses."""
    for case in CASES:
        closed = CLOSED.get(case.name)
        found = brentq(*closed, xtol=1e-9) if closed is not None else simulated_rps(case, requests)
        how = "closed form" if closed is not None else f"2 × {requests:,} requests"
        print(f"{case.name}: {found:.4f} ({how}); the study uses {case.true_rps}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 200_000_000))
