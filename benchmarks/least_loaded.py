"""How well the least-loaded interpolation sizes: the replicas it asks for against the simulated need.

``uv run python -m benchmarks.least_loaded`` prints the two tables of docs/background/balancing.md; some ten minutes
on one core. Exit 1 where a station's answer is more than one replica and more than 3 % away from the simulated need.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ebbtide.fleet.workload import Balancing, Target, TargetKind
from ebbtide.queueing.curves import StationShape, required_replicas, wait_percentile_s
from ebbtide.simulate.arrivals import Floats, Requests
from ebbtide.simulate.fcfs import Capacity, replay

SLOTS = (1, 2, 4, 16, 64)
# Offered load in full replicas: from two replicas to some sixty.
FULL_REPLICAS = (0.9, 1.6, 3.3, 7.2, 15.5, 29.0, 55.0)
# Bounds in services of one slot ÷ k, the time between departures of a busy replica: short, like it, long.
BOUNDS = (0.1, 1.0, 4.0)
PERCENTILES = (0.95, 0.99)
BATCHES = 20
REQUESTS = 1_000_000


def simulated_waits_s(slots: int, load: float, replicas: int, *, requests: int = REQUESTS, seed: int = 1) -> Floats:
    """Waits at a steady Poisson stream and exponential services of mean 1, the first tenth left out."""
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(rng.standard_exponential(requests)) / load
    stream = Requests(arrival_s=arrivals, service_s=rng.standard_exponential(requests))
    seen = replay(stream, Capacity.steady(replicas), balancing=Balancing.LEAST_LOADED, slots=slots, rng=rng)
    return seen.wait_s[requests // 10 :]


def asked_replicas(slots: int, load: float, bound_s: float, percentile: float, balancing: Balancing) -> int:
    """What the interpolation (or an exact end) asks for."""
    one = np.ones(1)
    return int(
        required_replicas(
            StationShape(slots=slots, balancing=balancing, patience_s=math.inf),
            Target(kind=TargetKind.WAIT, bound_s=bound_s, percentile=percentile),
            rates_rps=np.array([load]),
            scv=one,
            service_time_s=one,
            service_scv=one,
            offsets=np.array([0, 1], dtype=np.int64),
            at_most=100_000,
        )[0]
    )


@dataclass
class Simulated:
    """Waits by replicas for one load, simulated when asked for, the same random numbers for every count."""

    slots: int
    load: float
    waits_s: dict[int, Floats] = field(default_factory=dict)

    def attainment(self, replicas: int, bound_s: float) -> tuple[float, float]:
        """Share within the bound, and twice its standard error by batch means."""
        if replicas * self.slots <= self.load:
            return 0.0, 0.0
        if replicas not in self.waits_s:
            self.waits_s[replicas] = simulated_waits_s(self.slots, self.load, replicas)
        within = self.waits_s[replicas] <= bound_s
        means = within[: len(within) // BATCHES * BATCHES].reshape(BATCHES, -1).mean(axis=1)
        return float(means.mean()), float(2.0 * means.std(ddof=1) / math.sqrt(BATCHES))

    def need(self, asked: int, bound_s: float, percentile: float) -> int:
        """Fewest replicas that attain the percentile, looked for around what was asked."""
        replicas = asked
        while self.attainment(replicas, bound_s)[0] < percentile:
            replicas += 1
        while self.attainment(replicas - 1, bound_s)[0] >= percentile:
            replicas -= 1
        return replicas


@dataclass(frozen=True)
class Sizing:
    slots: int
    load: float
    bound_s: float
    percentile: float
    need: int
    asked: int
    pooled: int
    random: int
    is_close: bool  # what was asked attains the percentile within the simulation's own error


def sizings() -> Iterator[Sizing]:
    """Every station of the grid."""
    for slots in SLOTS:
        for full in FULL_REPLICAS:
            load = full * slots
            simulated = Simulated(slots, load)
            for bound in BOUNDS:
                for percentile in PERCENTILES:
                    bound_s = bound / slots
                    asked, pooled, random = (
                        asked_replicas(slots, load, bound_s, percentile, balancing)
                        for balancing in (Balancing.LEAST_LOADED, Balancing.POOLED, Balancing.RANDOM)
                    )
                    need = simulated.need(asked, bound_s, percentile)
                    share, error = simulated.attainment(asked, bound_s)
                    is_close = share + error >= percentile
                    yield Sizing(slots, load, bound_s, percentile, need, asked, pooled, random, is_close)


def print_sizings(found: list[Sizing]) -> None:
    """A line for each number of slots and size of the fleet."""
    print("| slots | load, replicas | need | asked | pooled asks | random asks | too few | too many |")
    print("|---|---|---|---|---|---|---|---|")
    for slots in SLOTS:
        for full in FULL_REPLICAS:
            rows = [row for row in found if row.slots == slots and row.load == full * slots]
            spans = [
                f"{min(values)}–{max(values)}"
                for values in ([getattr(row, name) for row in rows] for name in ("need", "asked", "pooled", "random"))
            ]
            few = sum(row.asked < row.need for row in rows)
            many = max(row.asked - row.need for row in rows)
            print(f"| {slots} | {full} | {' | '.join(spans)} | {few} of {len(rows)} | at most {max(many, 0)} |")


def print_percentiles() -> None:
    """Wait percentiles, interpolation over simulation, for loads near what a fleet would run at."""
    print("| replicas | slots | load | P50 | P90 | P95 | P99 |\n|---|---|---|---|---|---|---|")
    for replicas, slots, load in [(2, 1, 0.8), (2, 16, 0.93), (8, 1, 0.8), (8, 4, 0.9), (8, 64, 0.975), (32, 1, 0.93),
                                  (32, 16, 0.98), (64, 4, 0.97), (64, 64, 0.994)]:  # fmt: skip
        offered = replicas * slots * load
        waits_s = simulated_waits_s(slots, offered, replicas, requests=3_000_000)
        cells = []
        for percentile in (0.5, 0.9, 0.95, 0.99):
            simulated = float(np.quantile(waits_s, percentile))
            asked = wait_percentile_s(
                StationShape(slots=slots, balancing=Balancing.LEAST_LOADED, patience_s=math.inf),
                Target(kind=TargetKind.WAIT, bound_s=1.0, percentile=percentile),
                rates_rps=np.array([offered]),
                scv=np.ones(1),
                service_time_s=1.0,
                service_scv=1.0,
                replicas=replicas,
            )
            cells.append(f"{asked:.3g} / {simulated:.3g}")
        print(f"| {replicas} | {slots} | {load} | {' | '.join(cells)} |")


def main() -> int:
    """Both tables; 1 where an answer is out of bounds."""
    found = list(sizings())
    print_sizings(found)
    far = [row for row in found if abs(row.asked - row.need) > max(1.0, 0.03 * row.need)]
    few = [row for row in found if row.asked < row.need]
    exact = sum(row.asked == row.need for row in found)
    within = sum(row.is_close for row in few)
    print(
        f"\n{len(found)} stations: {exact} as simulated; {len(few)} too few, {within} of them within the simulation's"
    )
    print(f"own error; {len(far)} out of bounds")
    for row in [*few, *far]:
        print(row)
    print()
    print_percentiles()
    return 1 if far else 0


if __name__ == "__main__":
    sys.exit(main())
