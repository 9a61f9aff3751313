"""Small multiples: every workload's own wave under its own allocation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ebbtide.adapters.report.figures import figure, whole
from ebbtide.adapters.report.inputs import DemandProfile
from ebbtide.adapters.report.paths import Plot, steps_area, steps_line, wave_area, wave_line
from ebbtide.adapters.report.tide import spells_of, split
from ebbtide.adapters.report.wave import wave_of
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import DAY_MINUTES
from ebbtide.fleet.schedule import Schedule, WorkloadColumn

# More small pictures than this are no overview any more; the largest are shown and the rest is said.
MOST_SPARKS = 120
_WIDTH, _HEIGHT = 240, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Spark:
    """One workload's picture: 240 × 64 pixels, its own scale from 0 to ``most`` GPUs."""

    workload: str
    width: int
    height: int
    allocation: str
    allocation_line: str
    band: str
    median: str
    range_text: str
    demand_text: str


def sparks(fleet: Fleet, schedule: Schedule, profiles: Mapping[str, DemandProfile]) -> tuple[Spark, ...]:
    """A picture per workload in the schedule's order, of the largest 120 where there are more."""
    gpus = {w.name: w.gpus_per_replica for w in fleet.workloads}
    largest = sorted(schedule.workloads, key=lambda column: -max(column.replicas, default=0) * gpus[column.name])
    chosen = {column.name for column in largest[:MOST_SPARKS]}
    edges, windows, cycle = _steps(schedule)
    return tuple(
        _spark(column, gpus[column.name], profiles.get(column.name), (edges, windows, cycle))
        for column in schedule.workloads
        if column.name in chosen
    )


def _steps(schedule: Schedule) -> tuple[Floats, list[int], int]:
    """Edges of the cycle in minutes and the window's number between them."""
    spells = spells_of(schedule.windows)
    cycle = DAY_MINUTES * (7 if spells[-1].start >= DAY_MINUTES else 1)
    pieces = sorted(
        (start, end, spell.window) for spell in spells for start, end in split(spell.start, spell.end, cycle)
    )
    edges = np.array([pieces[0][0], *(end for _, end, _ in pieces)], dtype=np.float64)
    return edges, [window for _, _, window in pieces], cycle


def _spark(
    column: WorkloadColumn, gpus: int, profile: DemandProfile | None, steps: tuple[Floats, list[int], int]
) -> Spark:
    edges, windows, cycle = steps
    held = np.array([column.replicas[window] * gpus for window in windows], dtype=np.float64)
    wave = wave_of([profile]) if profile is not None else None
    highest = float(np.nanmax(wave.high_gpus)) if wave and not np.isnan(wave.high_gpus).all() else 0.0
    most = max(float(held.max()), highest, 1.0) * 1.04
    plot = Plot(left=0, right=_WIDTH, top=0, bottom=_HEIGHT, cycle=cycle, most=most)
    low, high = whole(float(held.min())), whole(float(held.max()))
    demand = (
        f"median peaks at {figure(float(np.nanmax(wave.median_gpus)))}" if wave and highest > 0 else "no demand seen"
    )
    return Spark(
        workload=column.name,
        width=_WIDTH,
        height=_HEIGHT,
        allocation=steps_area(plot, edges, np.zeros(len(held)), held),
        allocation_line=steps_line(plot, edges, held),
        band=wave_area(plot, wave, wave.low_gpus, wave.high_gpus) if wave else "",
        median=wave_line(plot, wave, wave.median_gpus) if wave else "",
        range_text=low if low == high else f"{low}–{high}",
        demand_text=demand,
    )
