"""What a schedule gives when the controller drives it: the loop of production over a world in virtual time (§6).

What belongs here: a world at the schedule's state, its demand seen live, the run, and the books of it as ``Realised``.
What doesn't: deciding (``control``), what the world does (``world``), queues of requests (``runs``), scores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ebbtide.control.actions import RemoveNodes
from ebbtide.control.loop import Tick
from ebbtide.control.state import Side
from ebbtide.control.timetable import Timetable
from ebbtide.control.world import Result
from ebbtide.fleet.demand import Floats, Series
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.planned import Ints
from ebbtide.fleet.pool import Pool
from ebbtide.fleet.schedule import Schedule
from ebbtide.simulate.drive import drive
from ebbtide.simulate.fcfs import Capacity
from ebbtide.simulate.holding import Held
from ebbtide.simulate.realised import Realised
from ebbtide.simulate.world.demand import LiveDemand
from ebbtide.simulate.world.jobs import ResearchLoad
from ebbtide.simulate.world.simulated import SimulatedWorld
from ebbtide.simulate.world.start import Start
from ebbtide.simulate.world.tally import Place, Steps
from ebbtide.simulate.world.troubles import Pace, Troubles
from ebbtide.units import SECONDS_PER_HOUR

# Looks at most once a minute, while `ebbtide run` looks every five seconds: each step of a move is seen up to a minute
# late. On the ServeGen week that gave production 1 % more GPU-hours, changed two windows of 624, and took a third of
# the time: the error is small, and against ebbtide.
TICK_S = 60.0
LIVE_LAG_S = 300.0  # demand is seen as the rate of the last five minutes, as dashboards and autoscalers' metrics are
BACKLOG_PER_NODE = 0.5  # jobs that always wait, by node: research takes whatever it is given


def live_demand(series: Mapping[str, Series], *, start_s: float, end_s: float) -> LiveDemand:
    """What a controller sees of the demand on a stretch: each interval's rate, five minutes after it began.

    Intervals that were not observed are not observed live either.
    """
    starts = np.unique(np.concatenate([one.starts_s for one in series.values()])).astype(np.float64)
    first = max(int(np.searchsorted(starts, start_s, side="right")) - 2, 0)
    starts = starts[first : int(np.searchsorted(starts, end_s))]
    rates = {}
    for name, one in series.items():
        place = np.floor((starts - one.start_s) / one.interval_s).astype(np.int64)
        inside = (place >= 0) & (place < len(one.seen))
        place = np.clip(place, 0, len(one.seen) - 1)
        rates[name] = np.where(inside & one.observed[place], one.rate_rps[place], np.nan)
    return LiveDemand(starts_s=starts + LIVE_LAG_S, rates_rps=rates)


def driven(
    fleet: Fleet,
    schedule: Schedule,
    *,
    start_s: float,
    end_s: float,
    seed: int,
    live: LiveDemand | None = None,
    troubles: Troubles | None = None,
) -> Realised:
    """What the schedule gives on ``[start_s, end_s)`` under control, from its state at the start; same seed, same run.

    ``live`` None: demand is not observed, and the live guard is off. Moves take what the Fleet says at their P90; what
    goes wrong beside that is ``troubles``. Where the schedule wants more nodes than the fleet has, the fleet is run
    with as many as it wants, and ``Held.over`` says how many that is.
    """
    over = {column.name: _over(fleet.pool(column.name), column.production_nodes) for column in schedule.pools}
    ground = _ground(fleet, over)
    world = SimulatedWorld(
        ground,
        seed=seed,
        start=_start(schedule, start_s),
        troubles=troubles,
        pace=Pace(as_told=True),
        load=_load(fleet),
        demand=live,
    )
    watch, books = _Watch(world=world, live=live), _Books()
    drive(world, ground, schedule, clock=watch, until_s=end_s, least_gap_s=TICK_S, seen=books.see)
    books.close(end_s)
    pools = tuple(_held(world, pool, start_s, end_s, books, over.get(pool.name, 0)) for pool in fleet.pools)
    return Realised(
        capacity={
            one.name: _capacity(world.ready(one.name), start_s, end_s, _planned(schedule, one.name, end_s))
            for one in fleet.workloads
        },
        pods={one.name: _capacity(world.standing(one.name), start_s, end_s) for one in fleet.workloads},
        pools=pools,
        given_gpu_h=sum(held.gpu_h(held.research) for held in pools),
        lost_gpu_h=sum(world.research(pool.name).lost_gpu_h for pool in fleet.pools),
        shortages=books.said(fleet),
    )


@dataclass(slots=True, kw_only=True)
class _Watch:
    """The world's clock, rung by a change of live demand too: a real controller looks every few seconds."""

    world: SimulatedWorld
    live: LiveDemand | None

    @property
    def now_s(self) -> float:
        return self.world.now_s

    @property
    def next_event_s(self) -> float:
        change_s = None if self.live is None else self.live.next_change_s(self.world.now_s)
        return min(self.world.next_event_s, math.inf if change_s is None else change_s)

    def advance(self, until_s: float) -> None:
        self.world.advance(until_s)


@dataclass(slots=True)
class _Books:
    """What the ticks said: nodes taken out of a side, once for each move, and who stood below the plan for how long."""

    removed: dict[tuple[str, Side], set[str]] = field(default_factory=dict)
    short_s: dict[str, float] = field(default_factory=dict)
    most_short: dict[str, int] = field(default_factory=dict)
    _since_s: float = 0.0
    _short: Mapping[str, int] = field(default_factory=dict)

    def see(self, at_s: float, done: Tick) -> None:
        """Take a tick down."""
        self.close(at_s)
        for action, result in done.results:
            if isinstance(action, RemoveNodes) and result is Result.DONE:
                self.removed.setdefault((action.pool, action.side), set()).update(action.moves)
        self._since_s, self._short = at_s, done.decision.shortages

    def close(self, at_s: float) -> None:
        """What was short at the last tick was so until now."""
        for name, missing in self._short.items():
            self.short_s[name] = self.short_s.get(name, 0.0) + at_s - self._since_s
            self.most_short[name] = max(self.most_short.get(name, 0), missing)

    def said(self, fleet: Fleet) -> tuple[str, ...]:
        """A line for each workload that usable nodes did not hold as planned."""
        return tuple(
            f"{one.name}: up to {self.most_short[one.name]} replicas below its plan, "
            f"{self.short_s[one.name] / SECONDS_PER_HOUR:.1f} h in all"
            for one in fleet.workloads
            if one.name in self.short_s
        )


def _over(pool: Pool, nodes: tuple[int, ...]) -> int:
    return max(max(nodes) - pool.max_production_nodes, 0)


def _ground(fleet: Fleet, over: Mapping[str, int]) -> Fleet:
    """The fleet as the world has it: with the nodes that are wanted beyond it, and wide replicas placed first."""
    return replace(
        fleet,
        pools=tuple(replace(pool, nodes=pool.nodes + over.get(pool.name, 0)) for pool in fleet.pools),
        workloads=tuple(sorted(fleet.workloads, key=lambda one: -one.gpus_per_replica)),
    )


def _window_at(schedule: Schedule, at_s: float) -> int:
    return Timetable(schedule.windows, schedule.time_zone).from_s(at_s, until_s=at_s)[0].window


def _start(schedule: Schedule, start_s: float) -> Start:
    """Everything as the window at the start has it."""
    window = _window_at(schedule, start_s)
    return Start(
        at_s=float(start_s),
        production_nodes={one.name: one.production_nodes[window] for one in schedule.pools},
        replicas={one.name: one.replicas[window] for one in schedule.workloads},
        quota_gpus={one.name: one.ephemeral_quota_gpus[window] for one in schedule.pools},
    )


def _load(fleet: Fleet) -> ResearchLoad:
    """Research that always wants more and saves its work as the Fleet says: by its interval, not on a signal."""
    interval_s = fleet.research.checkpoint_interval_s
    nodes = max((pool.nodes for pool in fleet.pools), default=0)
    return ResearchLoad(
        backlog=max(8, math.ceil(nodes * BACKLOG_PER_NODE)),
        checkpoint_s=(interval_s, interval_s),
        saves_on_signal=0.0,
    )


def _planned(schedule: Schedule, workload: str, at_s: float) -> int:
    column = next(one for one in schedule.workloads if one.name == workload)
    return column.replicas[_window_at(schedule, at_s)]


def _capacity(steps: Steps, start_s: float, end_s: float, after: int | None = None) -> Capacity:
    """The steps, equal neighbours made one; from the end on at least ``after``, for those who wait still."""
    starts_s, counts = steps.starts_s, steps.counts
    if not len(starts_s):
        starts_s, counts = np.array([float(start_s)]), np.zeros(1, dtype=np.int64)
    if after is not None and counts[-1] < after:
        starts_s, counts = np.append(starts_s, float(end_s)), np.append(counts, after)
        last = np.append(np.diff(starts_s) > 0.0, True)
        starts_s, counts = starts_s[last], counts[last]
    new = np.insert(np.diff(counts) != 0, 0, True)
    return Capacity(starts_s=starts_s[new], replicas=counts[new])


def _held(world: SimulatedWorld, pool: Pool, start_s: float, end_s: float, books: _Books, over: int) -> Held:
    """The pool's nodes by side, as the world's books have them; research is the fleet's own, without those beyond."""
    steps = {place: _steps(world, pool, place) for place in Place}
    edges = np.unique(
        np.clip(np.concatenate([*(one.starts_s for one in steps.values()), [start_s, end_s]]), start_s, end_s)
    )
    level = {place: _level(one, edges[:-1]) for place, one in steps.items()}
    away = level[Place.MOVING] + level[Place.BROKEN]
    research = level[Place.RESEARCH]
    if over:
        left = np.maximum(pool.nodes - level[Place.PRODUCTION] - away, pool.reserved_nodes)
        research = np.minimum(research, left)
    return Held(
        pool=pool,
        edges_s=edges,
        production=level[Place.PRODUCTION],
        moving=away,
        research=research,
        reclaimed=len(books.removed.get((pool.name, Side.RESEARCH), ())),
        yielded=len(books.removed.get((pool.name, Side.PRODUCTION), ())),
        over=over,
    )


def _steps(world: SimulatedWorld, pool: Pool, place: Place) -> Steps:
    series = world.tally.places.get((pool.name, place))
    return Steps(starts_s=np.empty(0), counts=np.empty(0, dtype=np.int64)) if series is None else series.steps


def _level(steps: Steps, at_s: Floats) -> Ints:
    """The count at some instants."""
    counts = np.concatenate([[0], steps.counts])
    return np.asarray(counts[np.searchsorted(steps.starts_s, at_s, side="right")], dtype=np.int64)
