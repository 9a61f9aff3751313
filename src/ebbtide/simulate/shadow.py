"""What a schedule would have done, against what really ran: looks of a controller in Shadow, added up by window.

A look holds until the next one, but not longer than the recorder is ever silent: what was not looked at is missing, and
no hour of it is counted. Counts are means over the time that was looked at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

HOUR_S = 3600.0
HOLDS_S = 150.0  # a recorder writes at least every minute; two lines may be lost on the way


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One look: the window in force ("" where nothing was planned), its plan, and what was seen.

    Replicas and rates by workload (a rate that is absent was not observed), production's nodes by pool.
    """

    at_s: float
    window: str
    planned_replicas: Mapping[str, int] = field(default_factory=dict)
    holds_rps: Mapping[str, float] = field(default_factory=dict)
    ready_replicas: Mapping[str, int] = field(default_factory=dict)
    live_rps: Mapping[str, float] = field(default_factory=dict)
    planned_nodes: Mapping[str, int] = field(default_factory=dict)
    seen_nodes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadShadow:
    """One workload in one window. ``above_share``: of the time its rate was observed, how much ran above the plan.

    ``mean_rps``, ``most_rps`` and ``above_share`` are None where its rate was never observed.
    """

    name: str
    planned: float
    ready: float
    mean_rps: float | None
    most_rps: float | None
    above_share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolShadow:
    """One pool in one window: production's nodes as planned and as seen, and the GPU-hours between them.

    ``to_research_gpu_h``: what production held beyond the plan; ``to_production_gpu_h``: what it lacked.
    """

    name: str
    planned: float
    seen: float
    to_research_gpu_h: float
    to_production_gpu_h: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowShadow:
    """One window, over all its instances that were looked at."""

    window: str
    hours: float
    workloads: tuple[WorkloadShadow, ...]
    pools: tuple[PoolShadow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowScore:
    """All windows in the order in which they were first seen; hours that were missing, or without a plan."""

    windows: tuple[WindowShadow, ...]
    missing_h: float
    unplanned_h: float

    @property
    def hours(self) -> float:
        """Hours with a plan that were looked at."""
        return sum(one.hours for one in self.windows)

    @property
    def to_research_gpu_h(self) -> float:
        """GPU-hours that the schedule would have given to research beyond what it had."""
        return sum(pool.to_research_gpu_h for one in self.windows for pool in one.pools)

    @property
    def to_production_gpu_h(self) -> float:
        """GPU-hours that the schedule would have given to production beyond what it had."""
        return sum(pool.to_production_gpu_h for one in self.windows for pool in one.pools)


Held = tuple[Look, float]


def score(looks: Sequence[Look], gpus_per_node: Mapping[str, int], *, holds_s: float = HOLDS_S) -> ShadowScore:
    """Add the looks up; ``gpus_per_node`` by pool. Looks of one instant, or out of order, are put in order.

    >>> plan = {"window": "night", "planned_nodes": {"h100": 2}, "seen_nodes": {"h100": 5}}
    >>> looks = [Look(at_s=60.0 * minute, **plan) for minute in range(61)]
    >>> found = score(looks, {"h100": 8})
    >>> round(found.hours, 6), round(found.to_research_gpu_h, 6), found.missing_h
    (1.0, 24.0, 0.0)
    """
    held: dict[str, list[Held]] = defaultdict(list)
    missing_s = unplanned_s = 0.0
    for look, after in pairwise(sorted(looks, key=lambda one: one.at_s)):
        lasted_s = min(after.at_s - look.at_s, holds_s)
        missing_s += after.at_s - look.at_s - lasted_s
        if look.window:
            held[look.window].append((look, lasted_s))
        else:
            unplanned_s += lasted_s
    return ShadowScore(
        windows=tuple(_window(name, found, gpus_per_node) for name, found in held.items()),
        missing_h=missing_s / HOUR_S,
        unplanned_h=unplanned_s / HOUR_S,
    )


def _window(name: str, held: list[Held], gpus_per_node: Mapping[str, int]) -> WindowShadow:
    workloads = sorted({workload for look, _ in held for workload in look.planned_replicas})
    pools = sorted({pool for look, _ in held for pool in look.planned_nodes if pool in gpus_per_node})
    return WindowShadow(
        window=name,
        hours=sum(lasted_s for _, lasted_s in held) / HOUR_S,
        workloads=tuple(_workload(one, held) for one in workloads),
        pools=tuple(_pool(one, held, gpus_per_node[one]) for one in pools),
    )


def _workload(name: str, held: list[Held]) -> WorkloadShadow:
    rates = [(look.live_rps[name], look.holds_rps.get(name), s) for look, s in held if name in look.live_rps]
    observed_s = sum(lasted_s for *_, lasted_s in rates)
    above_s = sum(s for rate, holds, s in rates if holds is not None and rate > holds)
    return WorkloadShadow(
        name=name,
        planned=_mean((look.planned_replicas[name], s) for look, s in held if name in look.planned_replicas),
        ready=_mean((look.ready_replicas[name], s) for look, s in held if name in look.ready_replicas),
        mean_rps=_mean((rate, s) for rate, _, s in rates) if observed_s else None,
        most_rps=max(rate for rate, *_ in rates) if observed_s else None,
        above_share=above_s / observed_s if observed_s else None,
    )


def _pool(name: str, held: list[Held], gpus: int) -> PoolShadow:
    both = [
        (look.planned_nodes[name], look.seen_nodes[name], s)
        for look, s in held
        if name in look.planned_nodes and name in look.seen_nodes
    ]
    return PoolShadow(
        name=name,
        planned=_mean((planned, s) for planned, _, s in both),
        seen=_mean((seen, s) for _, seen, s in both),
        to_research_gpu_h=sum(max(seen - planned, 0) * s for planned, seen, s in both) * gpus / HOUR_S,
        to_production_gpu_h=sum(max(planned - seen, 0) * s for planned, seen, s in both) * gpus / HOUR_S,
    )


def _mean(values: Iterable[tuple[float, float]]) -> float:
    """The mean by time; 0 where there was none."""
    found = list(values)
    total_s = sum(lasted_s for _, lasted_s in found)
    return sum(value * lasted_s for value, lasted_s in found) / total_s if total_s else 0.0
