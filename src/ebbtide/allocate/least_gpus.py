"""The fewest nodes that meet all targets in every window: the answer to `--least-gpus`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ebbtide.allocate.choose import DemandOf, chosen_patterns
from ebbtide.allocate.fit import pack
from ebbtide.allocate.moves import timeline_of
from ebbtide.allocate.needs import NEED_RANGE, pool_needs
from ebbtide.errors import InputError
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import DatedException, Window, windows_of
from ebbtide.fleet.planned import WindowDemand
from ebbtide.fleet.pool import Pool
from ebbtide.fleet.workload import Workload

# No station of ours needs a million replicas; a target that does is out of reach at any size of fleet.
_LARGEST_NODES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastPool:
    """The fewest nodes of one pool: ``production_nodes[k]`` in window k, ``nodes`` for all of them with the reserved.

    ``unreachable`` names workloads whose targets no number of replicas up to their maximum meets. They count with their
    maximum; without one, where no number is enough, with what comes as near as can be (§5.4).
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
    short = (needs.held < needs.required).any(axis=1) | beyond | needs.out_of_reach.any(axis=1)
    return LeastPool(
        name=pool.name,
        gpus_per_node=pool.gpus_per_node,
        nodes=pool.reserved_nodes + max(production, default=0),
        reserved_nodes=pool.reserved_nodes,
        production_nodes=production,
        unreachable=tuple(one.name for one, missed in zip(workloads, short.tolist(), strict=True) if missed),
    )


def least_gpus(
    fleet: Fleet, demand_of: DemandOf, *, progress: Callable[[str, int, int], None]
) -> tuple[tuple[Window, ...], tuple[LeastPool, ...]]:
    """The fewest nodes per pool that meet all targets in every window of the cycle, and those windows.

    Where boundaries are to be chosen, the windows that cost a large fleet least may need more nodes than others do. So
    each pool, one after another, is made smaller until windows chosen for one node fewer miss a target: choosing puts
    shortage before cost, so it finds windows that need no more where there are any (as far as its search is exact).
    """
    asked: dict[tuple[str, Window], WindowDemand] = {}

    def remembered(workload: str, window: Window, exception: DatedException | None, /) -> WindowDemand:
        if (workload, window) not in asked:
            asked[workload, window] = demand_of(workload, window, exception)
        return asked[workload, window]

    found = _least(fleet, remembered, progress)
    is_chosen = any(pattern.choose is not None for pattern in fleet.patterns)
    for number, pool in enumerate(fleet.pools):
        if is_chosen and fleet.workloads_of(pool.name):
            found = _shrunk(fleet, number, found, lambda smaller: _least(smaller, remembered, progress))
        progress("least GPUs", number + 1, len(fleet.pools))
    return found


_Found = tuple[tuple[Window, ...], tuple[LeastPool, ...]]


def _least(fleet: Fleet, demand_of: DemandOf, progress: Callable[[str, int, int], None]) -> _Found:
    """The fewest nodes with the windows that are best for this fleet."""
    chosen = chosen_patterns(fleet, demand_of, progress)
    patterns = fleet.patterns if chosen is None else chosen.patterns
    windows = timeline_of([window for pattern in patterns for window in windows_of(pattern)]).windows
    return windows, tuple(
        least_nodes(
            pool,
            fleet.workloads_of(pool.name),
            [[demand_of(one.name, window, None) for window in windows] for one in fleet.workloads_of(pool.name)],
            confidence=fleet.confidence,
        )
        for pool in fleet.pools
    )


def _shrunk(fleet: Fleet, number: int, found: _Found, least: Callable[[Fleet], _Found]) -> _Found:
    """The fewest nodes of pool ``number`` where no other pool gets more: doubling steps down to one that is short, then
    bisection."""
    short = fleet.pools[number].reserved_nodes  # too few: the reserved nodes serve nobody
    step = 1
    while (most := found[1][number].nodes) - short > 1:
        nodes = max(short + 1, most - step) if step else (most + short) // 2
        better = _with_nodes(fleet, found[1], number, nodes, least)
        if better is None:
            short, step = nodes, 0
        else:
            found, step = better, 2 * step
    return found


def _with_nodes(
    fleet: Fleet, known: Sequence[LeastPool], number: int, nodes: int, least: Callable[[Fleet], _Found]
) -> _Found | None:
    """Windows chosen for ``nodes`` nodes in one pool and as many as known in the others; None where those miss more."""
    counts = [nodes if p == number else one.nodes for p, one in enumerate(known)]
    pools = tuple(
        replace(pool, nodes=count, min_production_nodes=min(pool.min_production_nodes, count - pool.reserved_nodes))
        for pool, count in zip(fleet.pools, counts, strict=True)
    )
    try:
        found = least(replace(fleet, pools=pools))
    except InputError as problem:
        if problem.kind == "minima_do_not_fit":
            return None
        raise
    fits = all(
        one.nodes <= count and set(one.unreachable) <= set(before.unreachable)
        for one, count, before in zip(found[1], counts, known, strict=True)
    )
    return found if fits else None
