"""Which research nodes go back: those whose work loses least, counted over whole Workloads (§6.2).

One pod on a leaving node costs its whole gang: a gang's other nodes are free once it ends, and a node costs all the
gangs that stand on it. Empty nodes go first; the rest is the cheapest cover (``cover``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ebbtide.control.cover import cheapest
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
    # Without work the emptiest first, by name among equals: the same nodes at every look.
    order = sorted(by_name, key=lambda name: (by_name[name].stuck_pods, by_name[name].pods, name))
    empty = [name for name in order if not standing[name]][:count]
    left = count - len(empty)
    if left <= 0 or len(empty) == len(order):
        return [by_name[name] for name in empty], 0.0
    cost = {one.name: losses.of(one) for on_node in standing.values() for one in on_node}
    held = {name: frozenset(one.name for one in standing[name]) for name in order if standing[name]}
    free = {name: works for name, works in held.items() if all(math.isfinite(cost[one]) for one in works)}
    names = cheapest(left, free, cost)
    lost = math.fsum(cost[one] for one in set().union(*(free[name] for name in names)))
    return [by_name[name] for name in [*empty, *names]], lost
