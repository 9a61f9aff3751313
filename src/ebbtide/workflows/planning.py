"""What `allocate` plans from: margins tuned on past days, and the planned demand of any workload in any window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from whenever import Time

from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import DAY_MINUTES, DatedException, DayPattern, Window, windows_of
from ebbtide.fleet.planned import WindowDemand
from ebbtide.forecast.margin import Tuning, tune_margins
from ebbtide.forecast.seasonal import window_demand
from ebbtide.forecast.trials import Past
from ebbtide.workflows.demand import Demand


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Planned:
    """Answers ``allocate`` for its windows; the fewest past days that it found are in ``fewest_days``."""

    fleet: Fleet
    demand: Demand
    tuning: Tuning
    days_seen: list[int] = field(default_factory=list)

    def __call__(self, workload: str, window: Window, exception: DatedException | None, /) -> WindowDemand:
        """The planned demand; in a dated window with the exception's factor, where it names the workload."""
        one = self.fleet.workload(workload)
        concerned = exception is not None and (not exception.workloads or workload in exception.workloads)
        planned = window_demand(
            self.demand.series[workload],
            window,
            time_zone=self.fleet.time_zone,
            margin=self.tuning.margins[workload],
            service_time_s=one.service.time_s,
            service_scv=one.service.scv,
            demand_factor=exception.demand_factor if exception is not None and concerned else 1.0,
            exceptions=self.fleet.exceptions,
            workload=workload,
        )
        self.days_seen.append(planned.days)
        return planned

    @property
    def fewest_days(self) -> int:
        """Past days of the window that had fewest: what the confidence can stand on."""
        return min(self.days_seen, default=0)


def tuned(fleet: Fleet, demand: Demand) -> Tuning:
    """Margins by workload, tuned on the fleet's own windows (chosen ones: on the shortest that may be)."""
    pasts = [Past(workload=one, series=demand.series[one.name]) for one in fleet.workloads]
    return tune_margins(
        pasts,
        tuning_windows(fleet.patterns),
        time_zone=fleet.time_zone,
        confidence=fleet.confidence,
        exceptions=fleet.exceptions,
    )


def tuning_windows(patterns: Sequence[DayPattern]) -> tuple[Window, ...]:
    """The windows on which margins are tried: the given ones, or a day cut into the shortest that may be chosen."""
    return tuple(window for pattern in patterns for window in windows_of(_given(pattern)))


def _given(pattern: DayPattern) -> DayPattern:
    if pattern.choose is None:
        return pattern
    step = max(int(pattern.choose.shortest_s // 60), 15)
    starts = tuple(Time(minute // 60, minute % 60) for minute in range(0, DAY_MINUTES - step + 1, step))
    return DayPattern(days=pattern.days, starts=starts)
