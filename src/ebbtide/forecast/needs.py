"""How many replicas each of a workload's past scenarios needed, exactly at target: no margin, no confidence (§5.3).

What belongs here: past scenarios of many windows sized in one go. What doesn't: which past speaks
(``forecast.scenarios``), what the days' needs say together (``forecast.peak``, ``forecast.trials``), plans for the
future (``allocate.needs``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ebbtide.fleet.demand import Floats, Series
from ebbtide.fleet.horizon import DatedException, Window
from ebbtide.fleet.planned import Ints, WindowDemand
from ebbtide.fleet.workload import Workload
from ebbtide.forecast.scenarios import Scenarios, past_scenarios
from ebbtide.forecast.seasonal import demand_of
from ebbtide.queueing.curves import StationShape, required_replicas

AT_MOST_REPLICAS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Past:
    """One workload with the demand that was seen of it, cut off where the plan is made."""

    workload: Workload
    series: Series

    def scenarios(
        self,
        windows: Sequence[Window],
        time_zone: str,
        *,
        shifts_s: tuple[int, ...] = (0,),
        exceptions: tuple[DatedException, ...] = (),
    ) -> list[Scenarios]:
        """What past days asked of each window, without margin; errors are those of ``past_scenarios``."""
        name = self.workload.name
        return [
            past_scenarios(
                self.series, window, time_zone=time_zone, shifts_s=shifts_s, exceptions=exceptions, workload=name
            )
            for window in windows
        ]

    def batch(self, scenarios: Sequence[Scenarios]) -> Batch:
        """The scenarios of some windows with burstiness and service, ready to be sized."""
        name, service = self.workload.name, self.workload.service
        return Batch.of(
            [
                demand_of(
                    self.series, found, service_time_s=service.planned_time_s, service_scv=service.scv, workload=name
                )
                for found in scenarios
            ]
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """Scenarios of one workload, ragged: ``g`` has the samples ``offsets[g]:offsets[g+1]``, its window's service.

    Window ``k`` of those that it was made of has the scenarios ``windows[k]:windows[k+1]``.
    """

    rates_rps: Floats
    scv: Floats
    service_time_s: Floats
    service_scv: Floats
    offsets: Ints
    windows: Ints

    @classmethod
    def of(cls, demands: Sequence[WindowDemand]) -> Batch:
        """All scenarios of some windows, one window after the other."""
        counts = [len(demand.day) for demand in demands]
        sizes = np.concatenate([np.diff(demand.offsets) for demand in demands])
        return cls(
            rates_rps=np.concatenate([demand.rates_rps for demand in demands]),
            scv=np.concatenate([demand.scv for demand in demands]),
            service_time_s=np.repeat([demand.service_time_s for demand in demands], counts),
            service_scv=np.repeat([demand.service_scv for demand in demands], counts),
            offsets=np.concatenate([[0], np.cumsum(sizes)]),
            windows=np.concatenate([[0], np.cumsum(counts)]),
        )

    def of_scenarios(self, chosen: Ints) -> Batch:
        """The chosen scenarios only, in their order."""
        sizes = np.diff(self.offsets)[chosen]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1][chosen] - offsets[:-1], sizes)
        return Batch(
            rates_rps=self.rates_rps[rows],
            scv=self.scv[rows],
            service_time_s=self.service_time_s[chosen],
            service_scv=self.service_scv[chosen],
            offsets=offsets,
            windows=np.array([0, len(chosen)]),
        )

    def times(self, factors: Floats) -> Batch:
        """The batch with the rates of each scenario times its factor."""
        return replace(self, rates_rps=self.rates_rps * np.repeat(factors, np.diff(self.offsets)))

    def needs(self, workload: Workload) -> Ints:
        """Replicas that each scenario needs at all targets; ``AT_MOST_REPLICAS`` + 1 where those are too few."""
        shape = StationShape.of(workload)
        need = np.zeros(len(self.service_time_s), np.int64)
        for target in workload.targets if len(need) else ():
            found = required_replicas(
                shape,
                target,
                rates_rps=self.rates_rps,
                scv=self.scv,
                service_time_s=self.service_time_s,
                service_scv=self.service_scv,
                offsets=self.offsets,
                at_most=AT_MOST_REPLICAS,
            )
            need = np.maximum(need, found)
        return need
