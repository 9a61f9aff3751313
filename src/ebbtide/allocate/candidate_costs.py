"""What every candidate window would cost a pool, and what goes before money: shortage, then unserved load (§5.7)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ebbtide.allocate.arcs import Missed
from ebbtide.allocate.curves import SHORTAGE_UNITS
from ebbtide.allocate.moves import move_cost_usd
from ebbtide.allocate.pool_window import pool_windows
from ebbtide.allocate.unserved import UNSERVED_UNITS
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import Window
from ebbtide.fleet.planned import WindowDemand
from ebbtide.fleet.pool import Pool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PoolCosts:
    """USD per occurrence of every candidate with 0 … M nodes, [candidates, M + 1], and what goes before money.

    ``missed``: shortage, then unserved load, each with what counting it in units may hide between two cuts of a day:
    half a unit for every workload and cut, in the day's units.
    """

    costs_usd: Floats
    missed: tuple[Missed, ...]
    move_usd: float
    node_usd_per_h: float


def pool_costs(
    fleet: Fleet, pool: Pool, windows: Sequence[Window], demand: Iterable[Sequence[WindowDemand]]
) -> PoolCosts:
    """One pool's costs in all candidate ``windows``; ``demand[w][k]`` is its workload w's in window k."""
    hours = np.array([window.nominal_hours for window in windows])
    workloads = fleet.workloads_of(pool.name)
    found = pool_windows(
        pool,
        workloads,
        demand,
        hours=hours,
        research=fleet.research,
        confidence=fleet.confidence,
    )
    node_usd_per_h = pool.gpus_per_node * fleet.research.value_usd_per_gpu_h
    waiting = np.array([window.cost_usd_per_h for window in found])
    costs = hours[:, None] * (waiting + node_usd_per_h * np.arange(pool.max_production_nodes + 1))
    costs[:, : pool.min_production_nodes] = np.inf
    claim = SHORTAGE_UNITS * float(found[0].context.curves.deficit_unit.max())
    shortage, unserved = (np.array(kind) for kind in zip(*((one.shortage, one.unserved) for one in found), strict=True))
    return PoolCosts(
        costs_usd=costs,
        missed=(
            Missed(by_arc=shortage, rounding=len(workloads) * claim / SHORTAGE_UNITS),
            Missed(by_arc=unserved, rounding=len(workloads) * claim / UNSERVED_UNITS),
        ),
        move_usd=move_cost_usd(pool, fleet.research),
        node_usd_per_h=node_usd_per_h,
    )
