"""Why every number is what it is (§5.12), worked out when it is asked for: a thousand workloads have 96,000 reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ebbtide.allocate.backlog import Backlog
from ebbtide.allocate.pool_plan import PoolPlan
from ebbtide.fleet.schedule import WorkloadReason

# The plans of one workload, cycle first, then its dated windows: each with the workload's index and its backlog.
Parts = tuple[tuple[PoolPlan, int, Backlog], ...]


class Reasons(Mapping[str, tuple[WorkloadReason, ...]]):
    """``reasons[workload][i]`` belongs to window ``i`` of the schedule. Each workload's are made once."""

    def __init__(self, parts: Mapping[str, Parts]) -> None:
        self._parts = parts
        self._made: dict[str, tuple[WorkloadReason, ...]] = {}

    def __getitem__(self, workload: str) -> tuple[WorkloadReason, ...]:
        if workload not in self._made:
            self._made[workload] = tuple(
                reason
                for plan, index, backlog in self._parts[workload]
                for reason in _with_backlog(workload_reasons(plan, index), backlog)
            )
        return self._made[workload]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)


def workload_reasons(plan: PoolPlan, workload: int) -> list[WorkloadReason]:
    """The reasons of one workload of a pool's plan, by window."""
    given, alone = (
        np.array([replicas[workload] for replicas in each], dtype=np.int64)
        for each in (plan.replicas, plan.replicas_alone)
    )
    windows = np.array([window.index for window in plan.windows])
    return plan.windows[0].context.cases(workload, windows).reasons(given, alone)


def _with_backlog(reasons: Sequence[WorkloadReason], backlog: Backlog) -> list[WorkloadReason]:
    """The waits with what waited over from the window before (§5.10)."""
    if not backlog.wait_s:
        return list(reasons)
    return [
        replace(reason, given=replace(reason.given, wait_s=reason.given.wait_s + wait_s)) if wait_s else reason
        for reason, wait_s in zip(reasons, backlog.wait_s, strict=True)
    ]
