"""The services of the capacity study, in virtual time, and what is known of each: limits, budget, the true rate.

The true rate of M/M/4 and of the shedding and fading services has a closed form; the others' comes from 2 × 10⁸
requests each (`uv run python benchmarks/capacity_truth.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ebbtide.capacity.limits import Answers, Limit, LimitKind
from ebbtide.simulate import services
from ebbtide.simulate.services import Answers as Served


def latency(bound_s: float) -> Limit:
    """At most 5 % later than that."""
    return Limit(kind=LimitKind.LATENCY, bad_share=0.05, bound_s=bound_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A service, what it must hold, where a search starts, and the budget and tolerance of the issue."""

    name: str
    make: Callable[[np.random.Generator], services.Servers | services.Batching]
    limits: tuple[Limit, ...]
    start_rps: float
    budget_requests: int
    tolerance: float
    true_rps: float
    says: str


CASES = (
    Case(
        name="M/M/4",
        make=lambda rng: services.Servers(4, services.exponential(1.0), rng),
        limits=(latency(10.0),),
        start_rps=1.0,
        budget_requests=400_000,
        tolerance=0.05,
        true_rps=3.680744,
        says="four servers, service 1 s, exponential; P95 ≤ 10 s",
    ),
    Case(
        name="M/G/4, lognormal, SCV 4",
        make=lambda rng: services.Servers(4, services.lognormal(1.0, 4.0), rng),
        limits=(latency(15.0),),
        start_rps=1.0,
        budget_requests=400_000,
        tolerance=0.08,
        true_rps=3.4844,
        says="four servers, service 1 s, lognormal with SCV 4; P95 ≤ 15 s",
    ),
    Case(
        name="continuous batching",
        make=lambda rng: services.Batching(64, rng, fixed_s=0.02, each_s=0.0015, tokens=200.0),
        limits=(latency(25.0),),
        start_rps=0.5,
        budget_requests=100_000,
        tolerance=0.05,
        true_rps=1.5911,
        says="64 slots, a token every 20 ms + 1.5 ms a request, 200 tokens, exponential; P95 ≤ 25 s",
    ),
    Case(
        name="periodic stalls",
        make=lambda rng: services.StallingServers(8, services.exponential(0.25), rng, period_s=60.0, stall_s=2.0),
        limits=(latency(1.7),),
        start_rps=4.0,
        budget_requests=400_000,
        tolerance=0.08,
        true_rps=24.1034,
        says="8 servers, service 0.25 s, all of them standing still for 2 s every minute; P95 ≤ 1.7 s",
    ),
    Case(
        name="quality falling with load",
        make=lambda rng: services.FadingServers(16, services.exponential(1.0), rng, base=0.005, slope=0.04),
        limits=(latency(6.0), Limit(kind=LimitKind.QUALITY, bad_share=0.03)),
        start_rps=3.0,
        budget_requests=100_000,
        tolerance=0.05,
        true_rps=11.583025,
        says="16 servers, service 1 s; wrong: 0.5 % + 4 % · min(present / 16, 2)²; at least 97 % right, P95 ≤ 6 s",
    ),
    Case(
        name="503 shedding",
        make=lambda rng: services.SheddingServers(16, services.exponential(1.0), rng, waiting_room=8),
        limits=(latency(5.0), Limit(kind=LimitKind.ERRORS, bad_share=0.01)),
        start_rps=3.0,
        budget_requests=100_000,
        tolerance=0.05,
        true_rps=12.722803,
        says="16 servers, service 1 s, 8 places to wait, 503 beyond; errors ≤ 1 %, P95 ≤ 5 s",
    ),
)


# The first form of the stalling service, on which the budget is too small: kept, so that the study also says what the
# method can't do. Its true rate is from 2 × 2 × 10⁷ requests.
BEYOND = (
    Case(
        name="rarer, longer stalls",
        make=lambda rng: services.StallingServers(16, services.exponential(0.5), rng, period_s=120.0, stall_s=3.0),
        limits=(latency(2.5),),
        start_rps=4.0,
        budget_requests=400_000,
        tolerance=0.08,
        true_rps=24.82,
        says="16 servers, service 0.5 s, all of them standing still for 3 s every two minutes; P95 ≤ 2.5 s",
    ),
)


def answers(served: Served) -> Answers:
    """As the search wants them."""
    wrong = None if served.wrong is None else served.wrong.astype(np.int8)
    return Answers(latency_s=served.latency_s, failed=np.isinf(served.latency_s), wrong=wrong)
