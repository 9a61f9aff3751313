"""Which research nodes go back: those whose work loses least, counted over whole Workloads (§6.2).

One pod on a leaving node costs its whole gang. Empty nodes first; then, again and again, the Workload whose end frees
nodes for the least work since its last checkpoint, with everything else that stands on those nodes. A greedy cover:
beside it every node is tried for itself, and the cheaper of the two answers is taken.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ebbtide.control.state import Node, ResearchWork

UNWILLING = 1e9  # GPU-seconds, 30 years of a GPU: work that cannot requeue goes last, but before what must not end


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """What ending work costs by ``due_s``: GPU-seconds since its checkpoint, infinite where it must not be ended.

    ``doomed``: Workloads that other moves end anyway; they, and what is ending already, cost nothing more.
    """

    at_s: float
    due_s: float
    end_overrunning_work: bool
    doomed: frozenset[str] = frozenset()

    def of(self, work: ResearchWork) -> float:
        """GPU-seconds lost; 0 for work that is over in time.

        >>> work = ResearchWork(name="w", pool="p", gpus=8, nodes=("a",), preemptible=True, checkpointed_s=0.0)
        >>> Losses(at_s=60.0, due_s=600.0, end_overrunning_work=False).of(work)
        480.0
        """
        if not work.managed:
            return math.inf
        if not work.active or work.name in self.doomed:
            return 0.0
        if work.ends_s is not None and self.at_s <= work.ends_s <= self.due_s and not work.preemptible:
            return 0.0  # an estimate that is over already promises nothing
        if not work.preemptible and not self.end_overrunning_work:
            return math.inf
        lost = work.gpus * max(self.at_s - work.checkpointed_s, 0.0)
        return lost if work.requeues else lost + UNWILLING


def least_loss(
    count: int, nodes: Sequence[Node], work: Iterable[ResearchWork], losses: Losses
) -> tuple[list[Node], float]:
    """Up to ``count`` of the nodes, and the GPU-seconds that their going loses; fewer where the rest must not go."""
    by_name = {node.name: node for node in nodes}
    standing: dict[str, list[ResearchWork]] = {name: [] for name in by_name}
    for one in work:
        for name in set(one.nodes) & by_name.keys():
            standing[name].append(one)
    cost = {one.name: losses.of(one) for on_node in standing.values() for one in on_node}
    # Without work the emptiest first, by name among equals: the same nodes at every look.
    order = sorted(by_name, key=lambda name: (by_name[name].stuck_pods, by_name[name].pods, name))
    empty = [name for name in order if not standing[name]][:count]
    left = count - len(empty)
    if left <= 0 or len(empty) == len(order):
        return [by_name[name] for name in empty], 0.0
    held = [name for name in order if standing[name]]
    answers = [_cover(left, held, standing, cost, whole) for whole in (True, False)]
    most = max(len(names) for names, _ in answers)
    names, lost = min((one for one in answers if len(one[0]) == most), key=lambda one: one[1])
    return [by_name[name] for name in [*empty, *names]], lost


def _cover(
    left: int,
    held: list[str],
    standing: Mapping[str, list[ResearchWork]],
    cost: Mapping[str, float],
    whole: bool,
) -> tuple[list[str], float]:
    """Take nodes (by whole Workloads, or one by one) at the least loss for each that is still needed.

    A heap of prices; where a Workload ends, the prices of the groups that it stands in are worked out anew.
    """
    groups = _groups(held, standing) if whole else [[name] for name in held]
    at_work = {name: [one.name for one in standing[name]] for name in held}
    chosen: dict[str, None] = {}
    ended: set[str] = set()
    lost = 0.0

    def price(group: int) -> tuple[float, list[str]]:
        fresh = [name for name in groups[group] if name not in chosen][: left - len(chosen)]
        if not fresh:
            return math.inf, fresh
        works = {one for name in fresh for one in at_work[name]} - ended
        return math.fsum(cost[one] for one in works) / len(fresh), fresh

    concerned = _concerned(groups, at_work)
    current = [price(group)[0] for group in range(len(groups))]
    heap = [(each, group) for group, each in enumerate(current) if math.isfinite(each)]
    heapq.heapify(heap)
    while heap and len(chosen) < left:
        each, group = heapq.heappop(heap)
        if each != current[group]:
            continue
        now, fresh = price(group)
        if now != each:  # what is still needed is less than the group frees
            current[group] = now
            if math.isfinite(now):
                heapq.heappush(heap, (now, group))
            continue
        lost += each * len(fresh)
        works = {one for name in fresh for one in at_work[name]} - ended
        chosen.update(dict.fromkeys(fresh))
        ended |= works
        for other in {group for one in works for group in concerned[one]} | {group}:
            current[other] = price(other)[0]
            if math.isfinite(current[other]):
                heapq.heappush(heap, (current[other], other))
    return list(chosen), lost


def _concerned(groups: list[list[str]], at_work: Mapping[str, list[str]]) -> dict[str, set[int]]:
    """The groups on whose nodes each Workload stands."""
    found: dict[str, set[int]] = {}
    for number, group in enumerate(groups):
        for name in group:
            for one in at_work[name]:
                found.setdefault(one, set()).add(number)
    return found


def _groups(held: list[str], standing: Mapping[str, list[ResearchWork]]) -> list[list[str]]:
    """The nodes of each Workload, and each node for itself."""
    by_work: dict[str, list[str]] = {}
    for name in held:
        for one in standing[name]:
            by_work.setdefault(one.name, []).append(name)
    return [*by_work.values(), *([name] for name in held)]
