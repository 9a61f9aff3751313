"""Live demand for the guard (§6.7): each workload's arrival rate now, or nothing where it is not observed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ebbtide.adapters.prometheus.instant import Prometheus, rates_by_key
from ebbtide.errors import WorldError
from ebbtide.fleet.fleet import Fleet
from ebbtide.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """Rates by workload, when they were measured, and why they could not be."""

    rps: Mapping[str, float] = field(default_factory=dict)
    at_s: float = float("-inf")
    problem: WorldError | None = None


def live_demand(fleet: Fleet, settings: Settings, now_s: float) -> Live:
    """What Prometheus says now; nothing where the Fleet names no ``liveDemand`` or no server is set."""
    if fleet.live_demand is None or settings.prometheus_url is None:
        return Live()
    server = Prometheus(url=settings.prometheus_url, token_file=settings.prometheus_token_file)
    try:
        rates = rates_by_key(server.instant(fleet.live_demand.promql), now_s=now_s)
    except WorldError as problem:
        return Live(problem=problem)
    keys = {one.name: one.demand.key for one in fleet.workloads}
    return Live(rps={name: rates[key] for name, key in keys.items() if key in rates}, at_s=now_s)
