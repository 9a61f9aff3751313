"""Services under load in virtual time, request by request: what a load generator would see of each.

A service keeps its state from step to step, as a real one does: ``begin`` starts a step at a rate, ``more`` sends
further requests of that step and says what became of all of them so far, ``drain`` waits until it stands empty. All
arrivals are Poisson. What belongs here: servers whose sustained rate can be known (closed form, or long runs). What
doesn't: who chooses the rates (``capacity``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ebbtide.simulate import service_kernels as kernels

Floats = NDArray[np.float64]
ServiceTimes = Callable[[np.random.Generator, int], Floats]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answers:
    """What became of the requests of a step, in order: infinite ``latency_s`` means failed; ``wrong`` where checked."""

    latency_s: Floats
    wrong: NDArray[np.bool_] | None = None


def exponential(mean_s: float) -> ServiceTimes:
    """Service times of that mean, SCV 1."""
    return lambda rng, count: mean_s * rng.standard_exponential(count)


def lognormal(mean_s: float, scv: float) -> ServiceTimes:
    """Lognormal service times: σ² = ln(1 + SCV)."""
    sigma = float(np.sqrt(np.log1p(scv)))
    return lambda rng, count: mean_s * np.exp(sigma * rng.standard_normal(count) - 0.5 * sigma**2)


class Servers:
    """M/G/c, first come, first served.

    >>> service = Servers(4, exponential(1.0), np.random.default_rng(1))
    >>> service.begin(2.0)
    >>> service.more(3).latency_s.shape, service.more(2).latency_s.shape
    ((3,), (5,))
    """

    def __init__(self, servers: int, service: ServiceTimes, rng: np.random.Generator) -> None:
        self.rng, self.service = rng, service
        self.free_s = np.zeros(servers)
        self.clock_s = 0.0
        self.rate_rps = 1.0
        self.parts: list[Floats] = []
        self.marks: list[NDArray[np.bool_]] = []

    def begin(self, rate_rps: float) -> None:
        """A new step at that rate; what is in the service stays in it."""
        self.rate_rps = rate_rps
        self.parts, self.marks = [], []

    def drain(self) -> None:
        """No arrivals until the service stands empty."""
        self.clock_s = max(self.clock_s, float(self.free_s.max()))

    def more(self, count: int) -> Answers:
        """``count`` further requests of the step; the answers to all of the step so far."""
        arrival_s = self.clock_s + np.cumsum(self.rng.standard_exponential(count)) / self.rate_rps
        self.clock_s = float(arrival_s[-1])
        sojourn_s = np.empty(count)
        self._serve(arrival_s, self.service(self.rng, count), sojourn_s)
        self.parts.append(sojourn_s)
        wrong = np.concatenate(self.marks) if self.marks else None
        return Answers(latency_s=np.concatenate(self.parts), wrong=wrong)

    def _serve(self, arrival_s: Floats, service_s: Floats, sojourn_s: Floats) -> None:
        kernels.fcfs(arrival_s, service_s, self.free_s, sojourn_s)


class StallingServers(Servers):
    """All servers stand still for ``stall_s`` at the end of every ``period_s``; services go on afterwards.

    Queueing happens in *working* time, in which stalls take none: arrivals are mapped into it and ends back out of it.
    """

    def __init__(
        self, servers: int, service: ServiceTimes, rng: np.random.Generator, *, period_s: float, stall_s: float
    ) -> None:
        super().__init__(servers, service, rng)
        self.period_s, self.working_s = period_s, period_s - stall_s
        self.clock_s = float(rng.random() * period_s)

    def drain(self) -> None:
        """No arrivals until the service stands empty."""
        self.clock_s = max(self.clock_s, float(self._real(self.free_s.max())))

    def _real(self, work_s: Floats) -> Floats:
        periods = np.floor(work_s / self.working_s)
        return np.asarray(periods * self.period_s + (work_s - periods * self.working_s))

    def _serve(self, arrival_s: Floats, service_s: Floats, sojourn_s: Floats) -> None:
        periods = np.floor(arrival_s / self.period_s)
        inside_s = np.minimum(arrival_s - periods * self.period_s, self.working_s)
        work_s = periods * self.working_s + inside_s
        kernels.fcfs(work_s, service_s, self.free_s, sojourn_s)
        sojourn_s[:] = self._real(work_s + sojourn_s) - arrival_s


class SheddingServers(Servers):
    """M/G/c with a waiting room: a request that finds it full is refused at once (503)."""

    def __init__(self, servers: int, service: ServiceTimes, rng: np.random.Generator, *, waiting_room: int) -> None:
        super().__init__(servers, service, rng)
        self.waiting_room = waiting_room
        self.starts_s, self.head, self.count = np.empty(waiting_room + 1), 0, 0

    def _serve(self, arrival_s: Floats, service_s: Floats, sojourn_s: Floats) -> None:
        ring = (self.starts_s, self.head, self.count)
        self.head, self.count = kernels.loss(arrival_s, service_s, self.free_s, *ring, self.waiting_room, sojourn_s)


class FadingServers(Servers):
    """M/G/c whose answers get worse with load: the wrong share is ``base + slope · min(present / servers, 2)²``."""

    def __init__(
        self, servers: int, service: ServiceTimes, rng: np.random.Generator, *, base: float, slope: float
    ) -> None:
        super().__init__(servers, service, rng)
        self.base, self.slope = base, slope
        self.departures_s, self.present = np.empty(1024), 0

    def _serve(self, arrival_s: Floats, service_s: Floats, sojourn_s: Floats) -> None:
        seen = np.empty(len(arrival_s), dtype=np.int64)
        self.departures_s, self.present = kernels.watched(
            arrival_s, service_s, self.free_s, self.departures_s, self.present, sojourn_s, seen
        )
        share = self.base + self.slope * np.minimum(seen / len(self.free_s), 2.0) ** 2
        self.marks.append(self.rng.random(len(seen)) < share)


class Batching:
    """Continuous batching: n of at most ``slots`` active requests each take ``fixed_s + n · each_s`` a token.

    Lengths are exponential with a mean of ``tokens``. Answers still under way when they are asked for are finished in
    a copy that goes on receiving requests at the same rate.

    >>> service = Batching(8, np.random.default_rng(1), fixed_s=0.01, each_s=0.002, tokens=100.0)
    >>> service.begin(1.0)
    >>> bool(np.isfinite(service.more(100).latency_s).all())
    True
    """

    LOOKAHEAD = 512

    def __init__(self, slots: int, rng: np.random.Generator, *, fixed_s: float, each_s: float, tokens: float) -> None:
        self.rng, self.pace_s, self.tokens = rng, (fixed_s, each_s), tokens
        self.keys, self.ids = np.empty(slots), np.empty(slots, dtype=np.int64)
        self.state = np.zeros(4)  # clock, work done, active, next to be admitted
        self.rate_rps = 1.0
        self.last_s, self.mark = 0.0, 0
        self.arrival_s, self.work, self.finish_s = np.empty(0), np.empty(0), np.empty(0)

    def begin(self, rate_rps: float) -> None:
        """A new step at that rate; what is in the service stays in it."""
        self.rate_rps = rate_rps
        active, admitted = int(self.state[2]), int(self.state[3])
        keep = min([admitted, *self.ids[:active]])
        self.arrival_s, self.work, self.finish_s = (
            part[keep:].copy() for part in (self.arrival_s, self.work, self.finish_s)
        )
        self.ids[:active] -= keep
        self.state[3] -= keep
        self.mark = len(self.arrival_s)

    def drain(self) -> None:
        """No arrivals until the service stands empty."""
        if len(self.arrival_s):
            self.last_s = max(self.last_s, float(np.max(self._finished(np.array([self.last_s + 1e7]), np.zeros(1)))))
        self.state[:] = (self.last_s, 0.0, 0.0, 0.0)
        self.arrival_s, self.work, self.finish_s, self.mark = np.empty(0), np.empty(0), np.empty(0), 0

    def more(self, count: int) -> Answers:
        """``count`` further requests of the step; the answers to all of the step so far."""
        first = len(self.arrival_s)
        arrival_s, work = self._drawn(count, self.last_s)
        self.last_s = float(arrival_s[-1])
        self.arrival_s = np.concatenate((self.arrival_s, arrival_s))
        self.work = np.concatenate((self.work, work))
        self.finish_s = np.concatenate((self.finish_s, np.full(count, np.inf)))
        stream = (self.arrival_s, self.work, first, *self.pace_s)
        kernels.batching(*stream, self.keys, self.ids, self.state, self.finish_s)
        finish_s = self._finished(*self._drawn(self.LOOKAHEAD, self.last_s))
        return Answers(latency_s=(finish_s - self.arrival_s)[self.mark :])

    def _drawn(self, count: int, start_s: float) -> tuple[Floats, Floats]:
        arrival_s = start_s + np.cumsum(self.rng.standard_exponential(count)) / self.rate_rps
        return arrival_s, self.tokens * self.rng.standard_exponential(count)

    def _finished(self, arrival_s: Floats, work: Floats) -> Floats:
        """When the requests so far finish if those arrivals follow; the service itself stays as it is."""
        count = len(self.arrival_s)
        finish_s = np.concatenate((self.finish_s, np.full(len(arrival_s), np.inf)))
        stream = (np.concatenate((self.arrival_s, arrival_s)), np.concatenate((self.work, work)), count, *self.pace_s)
        kernels.batching(*stream, self.keys.copy(), self.ids.copy(), self.state.copy(), finish_s)
        return finish_s[:count]
