"""How many replicas are wanted now: by the window, ahead of the next ones, for live demand above it (§5.9, §6.7)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ebbtide.control.guard import guarded, observed
from ebbtide.control.limits import Limits
from ebbtide.control.memory import Guard
from ebbtide.control.plan import Plan
from ebbtide.control.state import State
from ebbtide.control.timetable import Segment
from ebbtide.fleet.schedule import WorkloadColumn
from ebbtide.fleet.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaWant:
    """Replicas of one workload: ``replicas`` now (growth ahead and live demand in it), ``planned`` by the window.

    ``live_rps`` None: not observed. ``above_plan``: live demand is, or was just now, above what the plan holds (§6.7).
    """

    replicas: int
    planned: int
    live_rps: float | None = None
    holds_rps: float = math.inf
    above_plan: bool = False


Wanted = tuple[Mapping[str, ReplicaWant], Mapping[str, Guard], float]
"""By workload what is wanted, the guards that are on, and when growth ahead begins next."""


def replica_wants(
    state: State,
    plan: Plan,
    window: int,
    coming: list[Segment],
    at_s: float,
    limits: Limits,
    released: frozenset[str],
) -> Wanted:
    """What is wanted of every workload that is not released.

    While no guard is on, nothing of it changes until growth begins or a rate is observed anew: the last is kept.
    """
    live = observed(state, at_s, limits)
    asked = (plan, window, tuple(coming), released)
    if not state.memory.guards:
        for kept in _kept:
            if kept.asked == asked and kept.from_s <= at_s < kept.wanted[2] and kept.live_rps == live:
                return kept.wanted
    wanted = _worked_out(state, plan, window, coming, at_s, limits, released, live)
    if not wanted[1]:
        _kept[:] = [_Kept(asked=asked, from_s=at_s, live_rps=live, wanted=wanted)]
    return wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    asked: tuple[Plan, int, tuple[Segment, ...], frozenset[str]]
    from_s: float
    live_rps: Mapping[str, float]
    wanted: Wanted


_kept: list[_Kept] = []


def _worked_out(
    state: State,
    plan: Plan,
    window: int,
    coming: list[Segment],
    at_s: float,
    limits: Limits,
    released: frozenset[str],
    live: Mapping[str, float],
) -> Wanted:
    found: dict[str, ReplicaWant] = {}
    guards: dict[str, Guard] = {}
    next_s = math.inf
    for workload, column in plan.columns:
        if workload.name in released:
            continue
        planned = _held_replicas(workload, column.replicas[window])
        early, begins_s = _early(workload, column, coming, planned, at_s)
        next_s = min(next_s, begins_s)
        holds_rps, live_rps = column.holds_rps[window], live.get(workload.name)
        guard = guarded(state.memory.guards.get(workload.name), live_rps, holds_rps, at_s, limits)
        if guard is not None:
            guards[workload.name] = guard
        asked_rps = None if guard is None else guard.rps
        found[workload.name] = ReplicaWant(
            replicas=max(early, _held_live(workload, planned, holds_rps, asked_rps)),
            planned=planned,
            live_rps=live_rps,
            holds_rps=holds_rps,
            above_plan=guard is not None,
        )
    return found, guards, next_s


def _early(
    workload: Workload, column: WorkloadColumn, coming: list[Segment], planned: int, at_s: float
) -> tuple[int, float]:
    """The most of the windows whose growth has begun, and when the next one's does."""
    early = planned
    for segment in coming:
        begins_s = segment.start_s - workload.startup_time_s
        if begins_s > at_s:
            return early, begins_s
        early = max(early, _held_replicas(workload, column.replicas[segment.window]))
    return early, math.inf


def _held_replicas(workload: Workload, planned: int) -> int:
    most = math.inf if workload.max_replicas is None else workload.max_replicas
    return int(max(min(planned, most), workload.min_replicas))


def _held_live(workload: Workload, planned: int, holds_rps: float, live_rps: float | None) -> int:
    """Replicas that would hold live demand above the plan, in proportion: waits only fall with scale (§6.7)."""
    if live_rps is None or live_rps <= holds_rps:
        return planned
    # Nothing was planned, so nothing tells how much one replica holds: one is the least that serves.
    wanted = math.ceil(planned * live_rps / holds_rps) if planned and holds_rps > 0.0 else planned + 1
    most = math.inf if workload.max_replicas is None else workload.max_replicas
    return int(min(wanted, max(most, planned)))
