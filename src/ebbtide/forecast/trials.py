"""Trials of margins on the past: each past day planned from the days before it with each margin (§5.3).

What belongs here: which trials there are, what they would have been given, what they needed. What doesn't: which margin
is chosen (``forecast.margin``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.horizon import DatedException, Window
from ebbtide.fleet.planned import Ints
from ebbtide.forecast.needs import Batch, Past
from ebbtide.forecast.peak import days_of_rank, peaks_before, static_peaks
from ebbtide.forecast.scenarios import Scenarios
from ebbtide.forecast.seasonal import Margin, capped_factors

NEIGHBOURS_S = (0, 1800, 3600)
FACTORS = (1.0, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.75, 2.0)
CEILINGS = (math.inf, 1.2, 1.1, 1.0)  # of the busiest past window's mean rate
MARGINS = (len(NEIGHBOURS_S), len(FACTORS), len(CEILINGS))
LEAST_DAYS_BEFORE = 2  # one day says nothing of how days differ

Grid = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tried:
    """Of ``count`` trials, how many held and what they cost, by neighbour, factor and ceiling.

    ``static_held`` of them a static peak would have held: it gives a trial what the workload's worst window needed on
    the dates before it (``static_peaks``). ``busiest_rps`` is the greatest mean rate of a past window.
    """

    count: int
    static_held: int
    busiest_rps: float
    held: Grid
    gpu_h: Grid

    def margin(self, neighbour: int, factor: int, ceiling: int) -> Margin:
        """The margin at a place of the grids, as the next plan uses it."""
        return Margin(
            neighbour_s=NEIGHBOURS_S[neighbour],
            factor=FACTORS[factor],
            ceiling_rps=float(_ceiling_rps(CEILINGS[ceiling], np.array(self.busiest_rps))),
        )


def try_margins(
    past: Past,
    windows: Sequence[Window],
    time_zone: str,
    confidence: float,
    exceptions: tuple[DatedException, ...],
) -> Tried:
    """Plans every past instance of every window with every margin."""
    widest = Margin(neighbour_s=NEIGHBOURS_S[-1])
    scenarios = past.scenarios(windows, time_zone, shifts_s=widest.shifts_s, exceptions=exceptions)
    batch = past.batch(scenarios)
    needs = np.split(batch.needs(past.workload), batch.windows[1:-1])
    dates = [found.dates for found in scenarios]
    own = [need[: found.days] for found, need in zip(scenarios, needs, strict=True)]
    rates = [found.mean_rps[: found.days] for found in scenarios]
    static, busiest = static_peaks(dates, own, confidence), peaks_before(dates, rates)
    trials = _Trials.joined(
        [
            _Trials.of(found, need, confidence, first=first, static=peak, busiest_rps=rate)
            for found, need, first, peak, rate in zip(
                scenarios, needs, batch.windows[:-1].tolist(), static, busiest, strict=True
            )
        ]
    )
    hours = np.repeat(
        [window.nominal_hours for window in windows],
        [max(found.days - LEAST_DAYS_BEFORE, 0) for found in scenarios],
    )
    least = past.workload.min_replicas
    plan = np.maximum(trials.plans(batch, past), least)  # [neighbour, factor, ceiling, trial]
    return Tried(
        count=len(trials.need),
        static_held=int((np.maximum(trials.static, least) >= trials.need).sum()),
        busiest_rps=float(max(rate.max() for rate in rates)),
        held=(plan >= trials.need).sum(axis=-1).astype(np.float64),
        gpu_h=plan @ hours * past.workload.gpus_per_replica,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Trials:
    """Trial ``t`` needed ``need[t]``; a static peak would have had ``static[t]``, and ``busiest_rps[t]`` was the mean
    rate of the busiest window before it. With neighbour ``h`` the scenario ``deciding[h, t]`` decides its plan, and the
    busiest of its own scenarios has the mean rate ``own_rps[h, t]``. Which one decides is taken from the rates without
    factor: one factor on all of them does not change their order, but for rounding.
    """

    need: Ints
    static: Ints
    busiest_rps: Floats
    deciding: Ints
    own_rps: Floats

    @classmethod
    def of(
        cls, scenarios: Scenarios, need: Ints, confidence: float, *, first: int, static: Ints, busiest_rps: Floats
    ) -> _Trials:
        """One window's, from what each of its scenarios needed; ``first`` is its first scenario's number."""
        before = np.arange(LEAST_DAYS_BEFORE, scenarios.days)
        deciding = np.zeros((len(NEIGHBOURS_S), len(before)), dtype=np.int64)
        own_rps = np.zeros(deciding.shape)
        mean_rps = scenarios.mean_rps
        for row, neighbour_s in enumerate(NEIGHBOURS_S):
            near = np.flatnonzero(np.abs(scenarios.shift_s) <= neighbour_s)
            worst = _worst_by_day(scenarios.day[near], need[near], near)
            deciding[row] = first + worst[days_of_rank(need[worst], before, confidence)]
            by_day = np.zeros(scenarios.days)
            np.maximum.at(by_day, scenarios.day[near], mean_rps[near])
            own_rps[row] = np.maximum.accumulate(by_day)[before - 1]
        return cls(
            need=need[LEAST_DAYS_BEFORE : scenarios.days],
            static=static[LEAST_DAYS_BEFORE:],
            busiest_rps=busiest_rps[LEAST_DAYS_BEFORE:],
            deciding=deciding,
            own_rps=own_rps,
        )

    @classmethod
    def joined(cls, parts: Sequence[_Trials]) -> _Trials:
        """The trials of all windows, one after the other."""
        return cls(
            need=np.concatenate([part.need for part in parts]),
            static=np.concatenate([part.static for part in parts]),
            busiest_rps=np.concatenate([part.busiest_rps for part in parts]),
            deciding=np.concatenate([part.deciding for part in parts], axis=1),
            own_rps=np.concatenate([part.own_rps for part in parts], axis=1),
        )

    def plans(self, batch: Batch, past: Past) -> Ints:
        """Replicas by neighbour, factor, ceiling and trial; every scenario is sized once for each of its factors."""
        factor = np.array(FACTORS)[:, None, None]
        ceiling_rps = np.stack([_ceiling_rps(ceiling, self.busiest_rps) for ceiling in CEILINGS])
        factors = capped_factors(factor, ceiling_rps, self.own_rps[:, None, None, :])
        wanted, inverse = np.unique(self.deciding[:, None, None, :] + 1j * factors, return_inverse=True)
        few = batch.of_scenarios(wanted.real.astype(np.int64)).times(wanted.imag)
        return few.needs(past.workload)[inverse].reshape(factors.shape)


def _ceiling_rps(ceiling: float, busiest_rps: Floats) -> Floats:
    """No ceiling stays none over a window without load, where a product would be no number."""
    return ceiling * busiest_rps if ceiling < math.inf else np.full(busiest_rps.shape, math.inf)


def _worst_by_day(day: Ints, need: Ints, scenario: Ints) -> Ints:
    """For each day the scenario that needed most."""
    order = np.lexsort((need, day))
    last = np.flatnonzero(np.diff(day[order], append=-1))
    return scenario[order[last]]
