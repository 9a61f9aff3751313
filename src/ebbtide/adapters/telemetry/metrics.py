"""The controller's metrics, in a registry of their own: what was decided, what stands, how fresh it is."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from ebbtide.control.loop import Tick
from ebbtide.control.state import Mode, Side, State
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.schedule import Schedule

PHASES = ("Holding", "Yielding", "Reclaiming", "Paused", "Blocked")


class Metrics:
    """All of them, under ``ebbtide_``; ``registry`` is what is shown."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"ebbtide_{name}", text, labels, registry=registry)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"ebbtide_{name}", text, labels, registry=registry)

        self.leader = gauge("leader", "1 while this process holds the Lease.")
        self.documents_ok = gauge("documents_ok", "0 while Fleet or Schedule cannot be read: the last good ones hold.")
        self.active = gauge("active", "1 in mode Active, 0 in Shadow.")
        self.phase = gauge("phase", "1 for the phase that the Schedule is in.", "phase")
        self.nodes = gauge("nodes", "Nodes by what they are.", "pool", "side", "is")
        self.moving = gauge("moving_nodes", "Nodes on their way.", "pool", "direction", "stage")
        self.quarantined = gauge("quarantined_nodes", "Nodes known to be broken.", "pool")
        self.replicas = gauge("replicas", "Replicas of a workload.", "workload", "are")
        self.shortage = gauge("shortage", "Replicas (of a workload) or nodes (of a pool) below the plan.", "of")
        self.quota = gauge("quota_gpus", "Nominal quota of a pool's ephemeral flavor.", "pool")
        self.live = gauge("live_rate_rps", "Observed arrival rate.", "workload")
        self.live_share = gauge("live_demand_share", "Observed rate over what the plan holds.", "workload")
        self.withheld = gauge("withheld", "What is withheld now, by rule.", "rule")
        self.sight_age = gauge("sight_age_seconds", "How old the last sight of a cluster is.", "side")
        self.last_tick = gauge("last_tick_timestamp_seconds", "When the last tick ended.")
        self.ticks = counter("ticks", "Ticks made.")
        self.actions = counter("actions", "Actions tried.", "kind", "result")
        self.problems = counter("problems", "Calls that failed.", "kind")
        self.calls = counter("api_calls", "Calls to an API server.", "cluster", "verb", "resource")
        self.tick_s = Histogram("ebbtide_tick_seconds", "How long a tick takes.", registry=registry)
        self._calls: Tally[tuple[str, str, str]] = Tally()

    def saw(
        self, tick: Tick, state: State, fleet: Fleet, schedule: Schedule | None, *, at_s: float, took_s: float
    ) -> None:
        """One tick."""
        self.ticks.inc()
        self.tick_s.observe(took_s)
        self.last_tick.set(at_s)
        for action, result in tick.results:
            self.actions.labels(type(action).__name__, str(result)).inc()
        for phase in PHASES:
            self.phase.labels(phase).set(phase == tick.decision.phase)
        _all(self.withheld, Tally((one.why.rule,) for one in tick.decision.withheld))
        _all(self.shortage, {(name,): short for name, short in tick.decision.shortages.items()})
        for side in Side:
            self.sight_age.labels(str(side)).set(at_s - state.sight(side).seen_at_s)
        self.active.set(state.mode is Mode.ACTIVE)
        self._stands(state, fleet)
        holds_rps = {} if schedule is None else holds_of(schedule, tick.decision.window)
        shares = {(name,): rate / holds_rps[name] for name, rate in state.live_rps.items() if holds_rps.get(name)}
        _all(self.live_share, shares)

    def _stands(self, state: State, fleet: Fleet) -> None:
        nodes: Tally[tuple[str, str, str]] = Tally()
        for pool in fleet.pools:
            for side in Side:
                for node in state.sight(side).pool(pool.name).nodes:
                    is_what = "joining" if node.joining else "cordoned" if node.cordoned else "open"
                    nodes[pool.name, str(side), is_what if node.ready else "not_ready"] += 1
        _all(self.nodes, nodes)
        memory = state.memory
        _all(self.moving, Tally((one.pool, str(one.direction), str(one.stage)) for one in memory.moves))
        _all(self.quarantined, Tally((one.pool,) for one in memory.quarantined.values()))
        counted: dict[tuple[str, str], float] = {}
        for name, seen in state.production.replicas.items():
            counted |= {(name, "wanted"): seen.wanted, (name, "ready"): seen.ready}
        _all(self.replicas, counted)
        _all(self.quota, {(pool,): gpus for pool, gpus in state.research.quota_gpus.items()})
        _all(self.live, {(name,): rate for name, rate in state.live_rps.items()})

    def called(self, cluster: str, calls: Mapping[tuple[str, str], int]) -> None:
        """How often a cluster was asked so far."""
        for (verb, resource), count in calls.items():
            key = (cluster, verb, resource)
            self.calls.labels(*key).inc(max(count - self._calls[key], 0))
            self._calls[key] = count


def holds_of(schedule: Schedule, window: str) -> dict[str, float]:
    """What a window's planned replicas hold, by workload; nothing where there is no such window."""
    index = next((k for k, one in enumerate(schedule.windows) if one.name == window), None)
    return {} if index is None else {one.name: one.holds_rps[index] for one in schedule.workloads}


def _all(gauge: Gauge, values: Mapping[Any, float]) -> None:
    """Show these, by their labels, and no others: what is gone is not shown with its last value."""
    gauge.clear()
    for labels, value in values.items():
        gauge.labels(*labels).set(value)
