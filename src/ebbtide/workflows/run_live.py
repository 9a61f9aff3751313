"""Live demand for the guard (§6.7): each workload's arrival rate now, or nothing where it is not observed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import httpx2

from ebbtide.adapters.prometheus.instant import Prometheus, rates_by_key
from ebbtide.errors import PermanentError, WorldError
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.operations import LiveDemand
from ebbtide.settings import Settings
from ebbtide.workflows.run_pace import rest_s

ASK_EVERY_S = 15.0  # as Prometheus is usually told to scrape: asked more often it has nothing new to say


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """Rates by workload, when they were measured, and why they could not be."""

    rps: Mapping[str, float] = field(default_factory=dict)
    at_s: float = float("-inf")
    problem: WorldError | None = None


NOTHING = Live()


class LiveReader:
    """Asks Prometheus every quarter of a minute, more seldom while it fails; between that the last answer stands.

    An answer that is old is told with its time, and ``control`` takes it for not observed. After a failure nothing is
    observed: a rate that cannot be confirmed must not hold back, nor begin, anything.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        running_s: Callable[[], float] = time.monotonic,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self._settings, self._running_s, self._transport = settings, running_s, transport
        self._asked: LiveDemand | None = None
        self._last, self._next_s, self._failures = NOTHING, float("-inf"), 0

    def read(self, fleet: Fleet, now_s: float) -> Live:
        """What is known now; nothing where the Fleet names no ``liveDemand``."""
        if fleet.live_demand is None:
            return NOTHING
        if self._running_s() >= self._next_s or fleet.live_demand != self._asked:
            self._asked = fleet.live_demand
            self._last = self._ask(fleet, fleet.live_demand, now_s)
            self._failures = 0 if self._last.problem is None else self._failures + 1
            self._next_s = self._running_s() + rest_s(ASK_EVERY_S, self._failures)
        return self._last

    def _ask(self, fleet: Fleet, source: LiveDemand, now_s: float) -> Live:
        if self._settings.prometheus_url is None:
            message = f"liveDemand names {source.source}, and no server is set"
            return Live(problem=PermanentError(message, kind="no_prometheus", hint="set EBBTIDE_PROMETHEUS_URL"))
        server = Prometheus(
            url=self._settings.prometheus_url,
            token_file=self._settings.prometheus_token_file,
            transport=self._transport,
        )
        try:
            rates = rates_by_key(server.instant(source.promql), now_s=now_s)
        except WorldError as problem:
            return Live(problem=problem)
        found = {one.name: rates.rps[one.demand.key] for one in fleet.workloads if one.demand.key in rates.rps}
        return Live(rps=found, at_s=min(rates.at_s, now_s))
