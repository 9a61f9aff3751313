"""A Horizontal Pod Autoscaler on slots in use, as Kubernetes' controller computes it.

Every ``sync_s``: the mean utilisation of ready pods over the target makes a ratio; inside the tolerance of 1 nothing
changes, else desired = ⌈ratio × ready pods⌉. Pods that are not ready count as 0 % where the ratio asks for more, and
not at all where it asks for fewer; a change that this turns round is dropped. Then the greatest recommendation of the
stabilisation window holds a scale-down back, and the scaling policies bound one step (a policy's period is one sync).
From the algorithm's documentation (kubernetes.io, Horizontal Pod Autoscaling, "Algorithm details", "Configurable
scaling behavior") and the controller's source (pkg/controller/podautoscaler, replica_calculator.go, horizontal.go).

What belongs here: the autoscaler's arithmetic. What doesn't: queues (``lines``), the run of both (``runs``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaler:
    """One workload's autoscaler: the defaults are Kubernetes'. ``target`` is a share of the slots of all ready pods.

    ``startup_s`` passes between a pod's creation and its first request. ``up_pods`` and ``up_share`` bound a step up
    (the larger counts), ``down_share`` one down. ``ValueError`` where a number makes no autoscaler.
    """

    target: float
    min_replicas: int
    max_replicas: int
    startup_s: float
    tolerance: float = 0.1
    sync_s: float = 15.0
    stabilisation_s: float = 300.0
    up_pods: int = 4
    up_share: float = 1.0
    down_share: float = 1.0

    def __post_init__(self) -> None:
        if self.target <= 0.0 or not 1 <= self.min_replicas <= self.max_replicas:
            raise ValueError(f"a target above 0 and 1 ≤ min ≤ max, not {self}")
        if self.sync_s <= 0.0 or self.startup_s < 0.0 or self.stabilisation_s < 0.0:
            raise ValueError(f"times of an autoscaler are not negative: {self}")


class Rules(NamedTuple):
    """The numbers of an ``Autoscaler`` as compiled code takes them."""

    target: float
    least: int
    most: int
    startup_s: float
    tolerance: float
    sync_s: float
    stabilisation_s: float
    up_pods: int
    up_share: float
    down_share: float


class Pods(NamedTuple):
    """The pods of one workload: ``ready_s[:state[0]]`` are the instants from which they serve, oldest first.

    ``advice`` and ``advised_s`` are a ring of the last recommendations, ``state[1]`` how many were made. Pods that
    leave are the newest: those not ready go first, as a ReplicaSet's do.
    """

    ready_s: np.ndarray
    state: np.ndarray
    advice: np.ndarray
    advised_s: np.ndarray


def rules_of(scaler: Autoscaler) -> Rules:
    """The compiled form."""
    return Rules(
        target=scaler.target,
        least=scaler.min_replicas,
        most=scaler.max_replicas,
        startup_s=scaler.startup_s,
        tolerance=scaler.tolerance,
        sync_s=scaler.sync_s,
        stabilisation_s=scaler.stabilisation_s,
        up_pods=scaler.up_pods,
        up_share=scaler.up_share,
        down_share=scaler.down_share,
    )


def new_pods(scaler: Autoscaler, replicas: int, *, at_s: float) -> Pods:
    """So many pods that are ready since ever; the first recommendation is what stands at ``at_s``, the first look."""
    kept = math.ceil(scaler.stabilisation_s / scaler.sync_s) + 2
    ready_s = np.full(scaler.max_replicas, np.inf)
    replicas = min(max(replicas, scaler.min_replicas), scaler.max_replicas)
    ready_s[:replicas] = -np.inf
    pods = Pods(
        ready_s=ready_s,
        state=np.array([replicas, 1], dtype=np.int64),
        advice=np.zeros(kept, dtype=np.int64),
        advised_s=np.full(kept, -np.inf),
    )
    pods.advice[0], pods.advised_s[0] = replicas, at_s
    return pods


@njit(cache=True)
def ready_pods(pods, at_s):  # type: ignore[no-untyped-def] # numba infers from the call
    """How many pods serve at ``at_s``."""
    return np.searchsorted(pods.ready_s[: pods.state[0]], at_s, side="right")


@njit(cache=True)
def next_ready_s(pods, at_s):  # type: ignore[no-untyped-def] # numba infers from the call
    """When the next pod gets ready after ``at_s``; infinite where none is on its way."""
    ready = ready_pods(pods, at_s)
    return pods.ready_s[ready] if ready < pods.state[0] else np.inf


@njit(cache=True)
def desired_by_metric(used, ready, unready, slots, target, tolerance):  # type: ignore[no-untyped-def] # numba infers
    """Replicas that the metric asks for: ``used`` slots on ``ready`` pods of ``slots`` each, ``unready`` on their way.

    >>> desired_by_metric(20, 1, 0, 10, 1.0, 0.1)  # twice the target: the documentation's first example
    2
    >>> desired_by_metric(54, 10, 0, 10, 0.5, 0.1)  # a ratio of 1.08 is within the tolerance
    10
    >>> desired_by_metric(100, 10, 10, 10, 0.5, 0.1)  # those on their way will be enough
    20
    """
    current = ready + unready
    if ready == 0:
        return current  # no metric: nothing is done
    ratio = used / (ready * slots) / target
    if unready == 0 or ratio <= 1.0:
        return current if abs(1.0 - ratio) <= tolerance else _ceil(ratio * ready)
    diluted = used / (current * slots) / target
    if abs(1.0 - diluted) <= tolerance or diluted < 1.0:
        return current
    return max(_ceil(diluted * current), current)


@njit(cache=True)
def _ceil(value):  # type: ignore[no-untyped-def] # numba infers from the call
    # 1.5 × 2 in other orders of evaluation may be 3.0000000000000004, and a pod is not to stand for that.
    return int(np.ceil(value - 1e-9))


@njit(cache=True)
def look(pods, rules, used, slots, at_s):  # type: ignore[no-untyped-def] # numba infers from the call
    """One sync: the metric, the bounds, the stabilisation window, the policies; pods come and go. The new count."""
    current = pods.state[0]
    ready = ready_pods(pods, at_s)
    wished = desired_by_metric(used, ready, current - ready, slots, rules.target, rules.tolerance)
    highest = wished
    for kept in range(pods.advice.size):
        if pods.advised_s[kept] > at_s - rules.stabilisation_s:
            highest = max(highest, pods.advice[kept])
    place = pods.state[1] % pods.advice.size
    pods.advice[place] = wished
    pods.advised_s[place] = at_s
    pods.state[1] += 1
    stable = wished if wished > current else min(current, highest)
    if stable > current:
        step = max(current + rules.up_pods, _ceil(current * (1.0 + rules.up_share)))
        stable = min(stable, step, rules.most)
    elif stable < current:
        step = int(np.floor(current * (1.0 - rules.down_share) + 1e-9))
        stable = max(stable, step, rules.least)
    pods.ready_s[current:stable] = at_s + rules.startup_s
    pods.state[0] = stable
    return stable
