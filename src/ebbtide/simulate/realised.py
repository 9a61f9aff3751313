"""What a policy gave, over time: the seam between whoever decides and the scores.

What belongs here: the value, and how a schedule becomes one when everything goes as planned. A control loop over a
simulated world fills the same value with what really came. What doesn't: policies' decisions, queues, scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ebbtide.allocate.packing import NodeShape, by_width, first_fit, node_shape
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import Weekday, Window
from ebbtide.fleet.planned import Ints
from ebbtide.fleet.pool import Pool
from ebbtide.fleet.schedule import Schedule
from ebbtide.forecast.calendar import date_at, instant_s
from ebbtide.simulate.fcfs import Capacity
from ebbtide.simulate.holding import Held, held_nodes, without_short_gaps


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Realised:
    """Replicas that served by workload, and nodes by side by pool, on one tested stretch of time.

    ``pods`` are the replicas that GPUs were held for where more stood than served (starting ones); else as
    ``capacity``. ``given_gpu_h`` is research's time on nodes, ``lost_gpu_h`` what of its work reclaims threw away.
    ``shortages`` name what the policy itself could not give.
    """

    capacity: Mapping[str, Capacity]
    pods: Mapping[str, Capacity]
    pools: tuple[Held, ...]
    given_gpu_h: float
    lost_gpu_h: float
    shortages: tuple[str, ...] = ()

    @property
    def production_gpu_h(self) -> float:
        """GPU-hours that production held, whole nodes."""
        return sum(held.gpu_h(held.production) for held in self.pools)

    @property
    def moving_gpu_h(self) -> float:
        """GPU-hours on the way, charged to nobody."""
        return sum(held.gpu_h(held.moving) for held in self.pools)

    @property
    def moves(self) -> int:
        """Nodes moved, either way."""
        return sum(held.moves for held in self.pools)


def realised(
    fleet: Fleet,
    capacity: Mapping[str, Capacity],
    pools: Sequence[Held],
    *,
    pods: Mapping[str, Capacity] | None = None,
    shortages: tuple[str, ...] = (),
) -> Realised:
    """The value with research's account made up from the pools."""
    return Realised(
        capacity=capacity,
        pods=capacity if pods is None else pods,
        pools=tuple(pools),
        given_gpu_h=sum(held.gpu_h(held.research) for held in pools),
        lost_gpu_h=sum(held.lost_gpu_h(fleet.research) for held in pools),
        shortages=shortages,
    )


def window_starts(windows: Sequence[Window], *, start_s: int, end_s: int, time_zone: str) -> tuple[Floats, Ints]:
    """Which window holds from when on ``[start_s, end_s)``: starts ascend, the first at ``start_s``; and its number.

    On a date of dated windows those hold, else the weekday's.

    >>> from ebbtide.fleet.horizon import WEEK, DayPattern, windows_of
    >>> from whenever import Time
    >>> day = windows_of(DayPattern(days=WEEK, starts=(Time(8), Time(20))))
    >>> starts, window = window_starts(day, start_s=0, end_s=86400, time_zone="UTC")
    >>> (starts / 3600).tolist(), window.tolist()
    ([0.0, 8.0, 20.0], [1, 0, 1])
    """
    found: dict[int, int] = {}
    date, last = date_at(start_s, time_zone).subtract(days=1), date_at(end_s, time_zone)
    while date <= last:
        dated = [k for k, one in enumerate(windows) if one.valid_from is not None and one.valid_from <= date]
        dated = [k for k in dated if (until := windows[k].valid_until) is not None and date < until]
        chosen = dated or [k for k, one in enumerate(windows) if one.valid_from is None]
        for k in chosen:
            if Weekday.of(date) in windows[k].days:
                found[instant_s(date, windows[k].start, time_zone)] = k
        date = date.add(days=1)
    at = np.array(sorted(found), dtype=np.float64)
    number = np.array([found[int(start)] for start in at], dtype=np.int64)
    first = max(int(np.searchsorted(at, start_s, side="right")) - 1, 0)
    inside = slice(first, int(np.searchsorted(at, end_s, side="left")))
    at = at[inside]
    at[0] = start_s
    return at, number[inside]


def scheduled(fleet: Fleet, schedule: Schedule, *, start_s: int, end_s: int) -> Realised:
    """What a schedule gives where all goes as planned: replicas stand at window starts, nodes come with their lead."""
    starts_s, window = window_starts(schedule.windows, start_s=start_s, end_s=end_s, time_zone=fleet.time_zone)
    replicas = {one.name: np.array(one.replicas, dtype=np.int64)[window] for one in schedule.workloads}
    pools = []
    for column in schedule.pools:
        pool = fleet.pool(column.name)
        names = [one.name for one in fleet.workloads_of(pool.name)]
        nodes = np.array(column.production_nodes, dtype=np.int64)[window]
        startup_s = startups_s(fleet, pool, [replicas[name] for name in names])
        pools.append(held_nodes(pool, starts_s, nodes, end_s=end_s, startup_s=startup_s))
    return realised(fleet, steps_of(starts_s, replicas), pools)


def steps_of(starts_s: Floats, replicas: Mapping[str, Ints]) -> dict[str, Capacity]:
    """Each workload's steps, equal neighbours made one."""
    found = {}
    for name, counts in replicas.items():
        new = np.insert(np.diff(counts) != 0, 0, True)
        found[name] = Capacity(starts_s=starts_s[new], replicas=counts[new])
    return found


def startups_s(fleet: Fleet, pool: Pool, replicas: Sequence[Ints]) -> Floats:
    """At every step the start-up time of the slowest workload that grows (§5.9)."""
    workloads = fleet.workloads_of(pool.name)
    longest = np.zeros(len(replicas[0]) if replicas else 1)
    for workload, counts in zip(workloads, replicas, strict=True):
        grows = np.insert(np.diff(counts) > 0, 0, False)
        longest = np.maximum(longest, np.where(grows, workload.startup_time_s, 0.0))
    return longest


def on_demand(fleet: Fleet, pods: Mapping[str, Capacity], *, end_s: float, ready_ahead: bool) -> tuple[Held, ...]:
    """Nodes for replicas that were not planned on nodes: packed anew at every step, kept through short pauses.

    The best that a node manager could do for such a policy: it foresees every step, so no replica ever waits for its
    node, and none leaves for less than a yield and a reclaim. ``ready_ahead``: the steps are of ready replicas, so
    nodes come their start-up time earlier.
    """
    held = []
    for pool in fleet.pools:
        workloads = fleet.workloads_of(pool.name)
        starts_s, counts = joined([pods[one.name] for one in workloads])
        shape = node_shape(pool.gpus_per_node, [one.gpus_per_replica for one in workloads])
        nodes = np.maximum(packed_nodes(shape, counts), pool.min_production_nodes)
        startup_s = startups_s(fleet, pool, list(counts)) if ready_ahead else np.zeros(len(starts_s))
        pause_s = pool.yield_time_s + pool.reclaim_time_s + float(startup_s.max(initial=0.0))
        kept_s, kept = without_short_gaps(starts_s, nodes, end_s=end_s, shortest_s=pause_s)
        held.append(held_nodes(pool, kept_s, kept, end_s=end_s, startup_s=startup_s[np.searchsorted(starts_s, kept_s)]))
    return tuple(held)


def joined(steps: Sequence[Capacity]) -> tuple[Floats, Ints]:
    """All starts of some workloads' steps, and every workload's replicas from each on: int64[workloads, starts].

    >>> one = Capacity(starts_s=np.array([0.0, 5.0]), replicas=np.array([1, 2]))
    >>> [part.tolist() for part in joined([one, Capacity(starts_s=np.array([0.0]), replicas=np.array([3]))])]
    [[0.0, 5.0], [[1, 2], [3, 3]]]
    """
    starts_s = np.unique(np.concatenate([one.starts_s for one in steps]))
    rows = []
    for one in steps:
        place = np.searchsorted(one.starts_s, starts_s, side="right") - 1
        rows.append(np.where(place >= 0, one.replicas[np.maximum(place, 0)], 0))
    return starts_s, np.stack(rows)


def packed_nodes(shape: NodeShape, replicas: Ints) -> Ints:
    """Nodes that hold the replicas of every column of int64[workloads, steps], packed first-fit decreasing."""
    if shape.perfect:
        units = (replicas * shape.width_units[:, None]).sum(axis=0)
        return np.asarray(-(-units // shape.node_units), dtype=np.int64)
    columns, place = np.unique(replicas, axis=1, return_inverse=True)
    nodes = np.array(
        [first_fit(shape.node_units, *by_width(shape, column)).nodes for column in columns.T], dtype=np.int64
    )
    return nodes[place.ravel()]
