"""List rules: orders in which jobs are placed, each good on some days; the best of them begins the search (§7.2).

What belongs here: priorities from what is known of each job by itself, and orders that keep predecessors before their
successors. What doesn't: placing (``fitting``), search (``neighbourhoods``).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from ebbtide.batch.instance import Instance, Ints

Floats = NDArray[np.float64]


def earliest_deadline(instance: Instance) -> Floats:
    """EDF: the nearest deadline first (Jackson 1955), jobs without one last."""
    return np.array([np.inf if job.deadline_s is None else job.deadline_s for job in instance.jobs])


def least_slack(instance: Instance) -> Floats:
    """The least laxity first: at any instant, deadline less shortest planned length orders jobs by time to spare."""
    return earliest_deadline(instance) - _shortest_s(instance)


def value_density(instance: Instance) -> Floats:
    """The most value for a GPU-second first, as a knapsack is filled (Dantzig 1957)."""
    work = instance.work_gpu_s
    return -np.divide(instance.values_usd, work, out=np.zeros_like(work), where=np.isfinite(work))


def first_come(instance: Instance) -> Floats:
    """FIFO: the earliest release first."""
    return instance.release_s.astype(float)


def slack_density(instance: Instance) -> Floats:
    """Value for a GPU-second, halved with every shortest length of time to spare: what is dear and urgent first."""
    spare_s = least_slack(instance) - instance.release_s
    spare = np.clip(spare_s / np.maximum(_shortest_s(instance), 1.0), 0.0, 20.0)
    return value_density(instance) * np.exp2(-spare)


RULES: Mapping[str, Callable[[Instance], Floats]] = {
    "edf": earliest_deadline,
    "least-slack": least_slack,
    "value-density": value_density,
    "fifo": first_come,
    "dear-and-urgent": slack_density,
}


def order_of(instance: Instance, priority: Floats) -> Ints:
    """Job numbers by ascending priority (ties as listed), predecessors before their successors.

    A predecessor is as urgent as the most urgent job that waits for it.
    """
    urgency = priority.copy()
    waiting = _waiting(instance)
    for job in reversed(_topological(instance, waiting)):
        for one in _before(instance, job):
            urgency[one] = min(urgency[one], urgency[job])
    missing = np.diff(instance.after_first).copy()
    ready = [(urgency[job], job) for job in range(len(urgency)) if missing[job] == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        _, job = heapq.heappop(ready)
        order.append(job)
        for one in waiting[job]:
            missing[one] -= 1
            if missing[one] == 0:
                heapq.heappush(ready, (urgency[one], one))
    return np.array(order, dtype=np.int64)


def _topological(instance: Instance, waiting: list[list[int]]) -> list[int]:
    missing = np.diff(instance.after_first).copy()
    found = [job for job in range(len(missing)) if missing[job] == 0]
    for job in found:
        for one in waiting[job]:
            missing[one] -= 1
            if missing[one] == 0:
                found.append(one)
    if len(found) < len(missing):
        raise ValueError("jobs wait for each other in a circle")
    return found


def _waiting(instance: Instance) -> list[list[int]]:
    """The jobs that wait for each."""
    found: list[list[int]] = [[] for _ in instance.jobs]
    for job in range(len(instance.jobs)):
        for one in _before(instance, job):
            found[one].append(job)
    return found


def _before(instance: Instance, job: int) -> list[int]:
    return [int(one) for one in instance.after[instance.after_first[job] : instance.after_first[job + 1]]]


def _shortest_s(instance: Instance) -> Floats:
    """The shortest planned length of each job; 0 where nothing holds it."""
    found = np.zeros(len(instance.jobs))
    for job in range(len(found)):
        lengths = instance.way_length_s[instance.way_first[job] : instance.way_first[job + 1]]
        found[job] = lengths.min() if len(lengths) else 0
    return found
