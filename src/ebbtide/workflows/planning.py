"""What `allocate` plans from: margins tuned on past days, and the planned demand of any workload in any window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from whenever import Time

from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import DAY_MINUTES, DatedException, DayPattern, Window, hours_label, windows_of
from ebbtide.fleet.planned import WindowDemand
from ebbtide.forecast.margin import Tuning, tune_margins
from ebbtide.forecast.needs import Past
from ebbtide.forecast.scenarios import LEAST_OBSERVED_SHARE
from ebbtide.forecast.seasonal import window_demand
from ebbtide.workflows.demand import Demand


@dataclass(frozen=True, slots=True, kw_only=True)
class DaysSeen:
    """How many past days spoke for a workload in a window."""

    workload: str
    window: Window
    days: int
    everywhere: bool = False  # all the windows that were asked about have as many

    def __str__(self) -> str:
        """For people.

        >>> noon = Window(name="weekend-1200", days=("Sat", "Sun"), start=Time(12), end=Time(18))
        >>> str(DaysSeen(workload="chat", window=noon, days=2))
        'chat Sat+Sun 12:00-18:00 has 2 past days'
        """
        days = f"{self.days} past day{'s' if self.days != 1 else ''}"
        return (
            f"every window has {days}" if self.everywhere else f"{self.workload} {hours_label(self.window)} has {days}"
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Planned:
    """Answers ``allocate`` for its windows; ``days_seen`` keeps how many past days it found where.

    ``least_observed``: the share of a window's intervals that makes a past day of it.
    """

    fleet: Fleet
    demand: Demand
    tuning: Tuning
    least_observed: float = LEAST_OBSERVED_SHARE
    days_seen: list[DaysSeen] = field(default_factory=list)

    def __call__(self, workload: str, window: Window, exception: DatedException | None, /) -> WindowDemand:
        """The planned demand; in a dated window with the exception's factor, where it names the workload."""
        one = self.fleet.workload(workload)
        concerned = exception is not None and (not exception.workloads or workload in exception.workloads)
        planned = window_demand(
            self.demand.series[workload],
            window,
            time_zone=self.fleet.time_zone,
            margin=self.tuning.margins[workload],
            service_time_s=one.service.planned_time_s,
            service_scv=one.service.scv,
            demand_factor=exception.demand_factor if exception is not None and concerned else 1.0,
            exceptions=self.fleet.exceptions,
            workload=workload,
            least_observed=self.least_observed,
        )
        self.days_seen.append(DaysSeen(workload=workload, window=window, days=planned.days))
        return planned

    def fewest(self, windows: Sequence[Window]) -> DaysSeen:
        """Which workload has the fewest past days in which of the windows: what the confidence can stand on.

        The first of equals. Windows that were tried and not taken do not count.
        """
        planned = {_hours(window) for window in windows}
        found = [seen for seen in self.days_seen if _hours(seen.window) in planned]
        fewest = min(found, key=lambda seen: seen.days)
        return replace(fewest, everywhere=all(seen.days == fewest.days for seen in found))


def _hours(window: Window) -> tuple[object, ...]:
    """A window but for its name, which is given to the ones that are taken."""
    return window.days, window.start, window.end, window.valid_from, window.valid_until


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
