"""The fewest nodes that meet all targets in every window: the answer to `--least-gpus`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ebbtide.allocate.needs import NEED_RANGE, pool_needs
from ebbtide.allocate.packing import pack
from ebbtide.fleet.planned import WindowDemand
from ebbtide.fleet.pool import Pool
from ebbtide.fleet.workload import Workload

# No station of ours needs a million replicas; a target that does is out of reach at any size of fleet.
_LARGEST_NODES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastPool:
    """The fewest nodes of one pool: ``production_nodes[k]`` in window k, ``nodes`` for all of them with the reserved.

    ``unreachable`` names workloads whose targets no number of replicas up to their maximum meets. They count with their
    maximum; without one, where no number is enough, with their floor (§5.5).
    """

    name: str
    gpus_per_node: int
    nodes: int
    reserved_nodes: int
    production_nodes: tuple[int, ...]
    unreachable: tuple[str, ...]

    @property
    def gpus(self) -> int:
        """GPUs of ``nodes``."""
        return self.nodes * self.gpus_per_node


def least_nodes(
    pool: Pool, workloads: Sequence[Workload], demand: Sequence[Sequence[WindowDemand]], *, confidence: float
) -> LeastPool:
    """The fewest nodes of a pool for the given windows; ``demand[w][k]`` is workload w's in window k.

    Replicas are those that targets and minima ask for (§5.5), packed onto the fewest nodes (§5.8); ``pool.nodes`` and
    ``min_production_nodes`` bound nothing here. A pool without workloads needs its reserved nodes only.
    """
    if not workloads:
        return LeastPool(
            name=pool.name,
            gpus_per_node=pool.gpus_per_node,
            nodes=pool.reserved_nodes,
            reserved_nodes=pool.reserved_nodes,
            production_nodes=(),
            unreachable=(),
        )
    size = max(pool.max_production_nodes, sum(one.min_replicas * one.gpus_per_replica for one in workloads), 1)
    while True:
        roomy = replace(pool, nodes=size, reserved_nodes=0, min_production_nodes=0)
        needs = pool_needs(roomy, workloads, demand, confidence=confidence)
        reached = needs.capacity_units // needs.shape.width_units * NEED_RANGE
        beyond = needs.target.max(axis=1, initial=0) > reached
        if not beyond.any() or size >= _LARGEST_NODES:
            break
        size *= NEED_RANGE
    endless = (needs.target > reached[:, None]) & np.array([[one.max_replicas is None] for one in workloads])
    counted = np.where(endless, np.maximum(needs.floor, needs.minimum[:, None]), needs.held)
    production = tuple(pack(needs.shape, counted[:, k]).nodes for k in range(counted.shape[1]))
    short = (needs.held < needs.required).any(axis=1) | beyond
    return LeastPool(
        name=pool.name,
        gpus_per_node=pool.gpus_per_node,
        nodes=pool.reserved_nodes + max(production, default=0),
        reserved_nodes=pool.reserved_nodes,
        production_nodes=production,
        unreachable=tuple(one.name for one, missed in zip(workloads, short.tolist(), strict=True) if missed),
    )
