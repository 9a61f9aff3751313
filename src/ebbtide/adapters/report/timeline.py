"""A replayed stretch as charts: nodes by side over the days, each workload's replicas over its demand, its waits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ebbtide.adapters.report.figures import wait, whole
from ebbtide.adapters.report.paths import Plot, steps_area, steps_line
from ebbtide.fleet.demand import Floats

WIDE = (1000.0, 300.0)
SPARK = (240.0, 64.0)
MOST_WAIT = 2.0  # waits are drawn up to twice their target


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Steps:
    """Values between edges, in seconds since the stretch began: one fewer than edges."""

    edges_s: Floats
    values: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PoolTimeline:
    """One pool's GPUs by side, all of the same edges; the GPUs that requests kept busy; other policies' production."""

    pool: str
    gpus: float
    production: Steps
    moving: Steps
    research: Steps
    busy: Steps
    others: tuple[tuple[str, Steps], ...]
    moves: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WorkloadTimeline:
    """One workload's replicas, how many of them its demand kept busy, and its wait as a share of the target by window.

    ``wait_s`` and ``missed`` (same length as ``share.values``) say the wait itself, NaN where nothing was scored, and
    whether any target was missed.
    """

    workload: str
    replicas: Steps
    busy: Steps
    share: Steps
    wait_s: Floats
    missed: NDArray[np.bool_]
    measure: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StretchTimeline:
    """A stretch of ``days`` days that begins at a midnight; ``labels`` name its days."""

    name: str
    days: int
    labels: tuple[str, ...]
    pools: tuple[PoolTimeline, ...]
    workloads: tuple[WorkloadTimeline, ...]

    @property
    def end_s(self) -> float:
        """Its length."""
        return float(self.days * 86_400)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolDrawing:
    """The paths of a pool's chart."""

    pool: str
    plot: Plot
    production: str
    production_line: str
    moving: str
    research: str
    busy: str
    others: tuple[tuple[str, str], ...]
    ticks: tuple[tuple[float, str], ...]
    days: tuple[tuple[float, str], ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadDrawing:
    """The paths of a workload's two small pictures."""

    workload: str
    replicas: str
    replicas_line: str
    busy: str
    waits: str
    missed: str
    range_text: str
    wait_text: str


def pool_drawing(stretch: StretchTimeline, one: PoolTimeline) -> PoolDrawing:
    """Production from below, research above it, moves between; the fleet's GPUs are the top."""
    most = max(one.gpus, float(one.production.values.max(initial=0.0)), *(_top(steps) for _, steps in one.others), 1.0)
    plot = Plot(left=56, right=WIDE[0] - 8, top=18, bottom=WIDE[1] - 28, cycle=stretch.end_s, most=most)
    edges = one.production.edges_s
    held = one.production.values
    away = held + one.moving.values
    step = _round(most / 4)
    return PoolDrawing(
        pool=one.pool,
        plot=plot,
        production=steps_area(plot, edges, np.zeros(len(held)), held),
        production_line=steps_line(plot, edges, held),
        moving=steps_area(plot, edges, held, away),
        research=steps_area(plot, edges, away, away + one.research.values),
        busy=line_path(plot, one.busy),
        others=tuple((name, steps_line(plot, steps.edges_s, steps.values)) for name, steps in one.others),
        ticks=tuple((plot.y(value), whole(value)) for value in np.arange(0.0, most + 1e-9, step).tolist()),
        days=tuple((plot.x((day + 0.5) * 86_400), label) for day, label in enumerate(stretch.labels)),
        text=f"production between {whole(held.min())} and {whole(held.max())} of {whole(one.gpus)} GPUs, "
        f"{whole(one.moves)} moves",
    )


def workload_drawing(stretch: StretchTimeline, one: WorkloadTimeline) -> WorkloadDrawing:
    """Replicas over the demand; under it the wait as a share of its target, what missed it in a path of its own."""
    width, height = SPARK
    most = max(_top(one.replicas), _top(one.busy), 1.0)
    plot = Plot(left=0, right=width, top=2, bottom=height, cycle=stretch.end_s, most=most)
    waits = Plot(left=0, right=width, top=2, bottom=height / 2, cycle=stretch.end_s, most=MOST_WAIT)
    share = np.nan_to_num(one.share.values, nan=0.0, posinf=MOST_WAIT)
    edges, counts = one.replicas.edges_s, one.replicas.values
    known = one.wait_s[~np.isnan(one.wait_s)]
    zero = np.zeros(len(share))
    missed = one.missed
    return WorkloadDrawing(
        workload=one.workload,
        replicas=steps_area(plot, edges, np.zeros(len(counts)), counts),
        replicas_line=steps_line(plot, edges, counts),
        busy=line_path(plot, one.busy),
        waits=steps_area(waits, one.share.edges_s, zero, np.where(missed, 0.0, share)),
        missed=steps_area(waits, one.share.edges_s, zero, np.where(missed, share, 0.0)),
        range_text=f"{whole(counts.min())} to {whole(counts.max())} replicas",
        wait_text=f"{one.measure}: {int(missed.sum())} of {len(share)} windows over target, the longest "
        f"{wait(float(known.max())) if len(known) else 'none'}",
    )


def line_path(plot: Plot, steps: Steps) -> str:
    """A line through the middles of the steps, broken where a value is missing.

    >>> box = Plot(left=0, right=10, top=0, bottom=10, cycle=10, most=10)
    >>> line_path(box, Steps(edges_s=np.array([0.0, 2, 4, 6]), values=np.array([5.0, 6.0, np.nan])))
    'M1.0,5.0L3.0,4.0'
    """
    parts: list[str] = []
    fresh = True
    middles = (steps.edges_s[:-1] + steps.edges_s[1:]) / 2.0
    for at, value in zip(middles.tolist(), steps.values.tolist(), strict=True):
        if value != value:
            fresh = True
            continue
        parts.append(f"{'M' if fresh else 'L'}{plot.x(at)},{plot.y(value)}")
        fresh = False
    return "".join(parts)


def drawings(stretch: StretchTimeline) -> tuple[tuple[PoolDrawing, ...], tuple[WorkloadDrawing, ...]]:
    """All of a stretch's charts."""
    return tuple(pool_drawing(stretch, one) for one in stretch.pools), tuple(_workloads(stretch))


def _workloads(stretch: StretchTimeline) -> Iterator[WorkloadDrawing]:
    for one in stretch.workloads:
        yield workload_drawing(stretch, one)


def _top(steps: Steps) -> float:
    return float(np.nan_to_num(steps.values).max(initial=0.0))


def _round(least: float) -> float:
    """The least of 1, 2, 5, 10, 20, … that is not below."""
    power = 10.0 ** np.floor(np.log10(max(least, 1.0)))
    return float(next(power * factor for factor in (1.0, 2.0, 5.0, 10.0) if power * factor >= least))
