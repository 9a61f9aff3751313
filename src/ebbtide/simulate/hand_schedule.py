"""Schedules of replicas that no planner made: the fewest whole nodes for them, leads by the same rule (§5.8, §5.9).

What belongs here: from replicas by window to a ``Schedule`` that the controller can drive. What doesn't: which
replicas (``policies``), the planner (``allocate``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from whenever import OffsetDateTime

from ebbtide.allocate.moves import Holding, leads_s
from ebbtide.allocate.packing import node_shape
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import Window
from ebbtide.fleet.pool import Pool
from ebbtide.fleet.schedule import PoolColumn, Schedule, WorkloadColumn
from ebbtide.simulate.realised import packed_nodes


def hand_schedule(
    fleet: Fleet, windows: tuple[Window, ...], replicas: Mapping[str, tuple[int, ...]], *, valid_until: OffsetDateTime
) -> Schedule:
    """``replicas[workload][i]`` in window i, each window after the one before it, the first after the last.

    Nobody worked out what the replicas hold: ``holds_rps`` is infinite, so the live guard stays off. Nodes may be more
    than the fleet has.
    """
    return Schedule(
        name=fleet.name,
        fleet_name=fleet.name,
        fleet_digest=fleet.digest,
        time_zone=fleet.time_zone,
        valid_until=valid_until,
        windows=windows,
        workloads=tuple(
            WorkloadColumn(name=one.name, replicas=replicas[one.name], holds_rps=(math.inf,) * len(windows))
            for one in fleet.workloads
        ),
        pools=tuple(_column(fleet, pool, windows, replicas) for pool in fleet.pools),
    )


def _column(
    fleet: Fleet, pool: Pool, windows: tuple[Window, ...], replicas: Mapping[str, tuple[int, ...]]
) -> PoolColumn:
    workloads = fleet.workloads_of(pool.name)
    counts = np.array([replicas[one.name] for one in workloads], dtype=np.int64).reshape(len(workloads), len(windows))
    shape = node_shape(pool.gpus_per_node, [one.gpus_per_replica for one in workloads])
    nodes = np.maximum(packed_nodes(shape, counts), pool.min_production_nodes).tolist()
    holdings = [Holding(nodes=nodes[i], replicas=tuple(counts[:, i].tolist())) for i in range(len(windows))]
    after = [(i - 1 if i else len(windows) - 1, i) for i in range(len(windows))] if len(windows) > 1 else []
    ephemeral = tuple(max(pool.max_production_nodes - one, 0) for one in nodes)
    return PoolColumn(
        name=pool.name,
        production_nodes=tuple(nodes),
        ephemeral_nodes=ephemeral,
        ephemeral_quota_gpus=tuple(one * pool.gpus_per_node for one in ephemeral),
        lead_s=leads_s(pool, [one.startup_time_s for one in workloads], holdings, after),
    )
