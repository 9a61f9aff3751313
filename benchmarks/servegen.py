"""The ServeGen study's data, rules and simulation: eight services, days planned from the days before them.

The command is ``servegen_study.py``; method and what was tried: docs/background/forecasting.md.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from whenever import Time

from ebbtide.adapters.demand.read import read_trace
from ebbtide.adapters.demand.source import DemandSource
from ebbtide.allocate.needs import required_of
from ebbtide.allocate.samples import samples_of
from ebbtide.fleet.demand import Series
from ebbtide.fleet.horizon import WEEK, DayPattern, windows_of
from ebbtide.fleet.workload import Balancing, DemandRef, Service, Target, TargetKind, Workload
from ebbtide.forecast.margin import Tuning, tune_margins
from ebbtide.forecast.measured import arrival_scv
from ebbtide.forecast.needs import Past
from ebbtide.forecast.seasonal import Margin, window_demand
from ebbtide.simulate.arrivals import Requests, request_arrivals_s, service_times_s
from ebbtide.simulate.fcfs import Capacity, replay

ROOT = Path(__file__).resolve().parent.parent
SERVICES = {"m-small": ("c5", "c8", "c26", "c31", "c36"), "m-large": ("c15", "c48", "c56")}
KEYS = tuple(f"{model}/{client}" for model, clients in SERVICES.items() for client in clients)
ERLANGS, SERVICE_TIME_S = 60.0, 10.0
TARGET = Target(kind=TargetKind.WAIT, bound_s=5.0, percentile=0.95)
ZONE = "UTC"  # hours of the trace are the data's own; its zone and dates are not published
WINDOW_H, INTERVALS_A_WINDOW, WINDOWS = 2, 12, 12
CONFIDENCE = 0.95  # the Fleet's default: of fewer than twenty past days the worst counts
AT_MOST = 100_000
TESTED = range(7, 14)
STATIC, EBBTIDE = "static peak", "ebbtide"

Plan = NDArray[np.int64]  # replicas by tested day and window


@cache
def traces() -> dict[str, Series]:
    """Every service of both files as it was seen; sums are left out by the reader."""
    found: dict[str, Series] = {}
    for model in SERVICES:
        file = f"servegen_{model.replace('-', '')}_services_10min.csv.gz"
        source = DemandSource(
            name=model, file=file, origin="2026-09-01T00:00", time_zone=ZONE, folder=ROOT / "examples/day-and-night"
        )
        trace = read_trace(source)
        found.update({key: one for key, one in trace.series.items() if key not in trace.sums})
    return found


def services() -> dict[str, Series]:
    """The eight series, scaled to 60 erlangs over the intervals that were observed, with their measured SCV."""
    scv = measured_scv()
    return {key: scaled(traces()[key], scv[key]) for key in KEYS}


def other_services() -> dict[str, Series]:
    """The other nine of the same files, scaled alike, as Poisson streams: their SCV is not in this repository."""
    poisson = np.ones(1)
    return {key: scaled(one, poisson) for key, one in sorted(traces().items()) if key not in KEYS}


def measured_scv() -> dict[str, NDArray[np.float64]]:
    """cv² by service and interval; NaN where the source has none (no two requests)."""
    cv: dict[str, list[float]] = {}
    with gzip.open(ROOT / "benchmarks/data/servegen_cv_10min.csv.gz", "rt") as rows:
        for row in csv.DictReader(rows):
            cv.setdefault(row["service"], []).append(float(row["cv"]) or np.nan)
    return {service: np.square(values) for service, values in cv.items()}


def scaled(series: Series, scv: NDArray[np.float64]) -> Series:
    rates = series.rate_rps * (ERLANGS / SERVICE_TIME_S / np.nanmean(series.rate_rps))
    return replace(series, rate_rps=rates, arrival_scv=np.where(series.observed, scv, np.nan))


def before(series: Series, day: int) -> Series:
    """What was known when ``day`` began."""
    end = day * WINDOWS * INTERVALS_A_WINDOW
    cut = None if series.arrival_scv is None else series.arrival_scv[:end]
    return replace(series, rate_rps=series.rate_rps[:end], seen=series.seen[:end], arrival_scv=cut)


def workload_of(key: str) -> Workload:
    return Workload(
        name=key,
        demand=DemandRef(source=key.split("/")[0], key=key),
        pool="pool",
        gpus_per_replica=1,
        service=Service(time_s=SERVICE_TIME_S, scv=1.0),
        targets=(TARGET,),
        balancing=Balancing.POOLED,
    )


HOURS = windows_of(DayPattern(days=WEEK, starts=tuple(Time(hour) for hour in range(0, 24, WINDOW_H))))


def planned(key: str, series: Series, margin: Margin) -> NDArray[np.int64]:
    """Replicas by window, by the planner's own rule."""
    demand = [
        window_demand(series, window, time_zone=ZONE, margin=margin, service_time_s=SERVICE_TIME_S, service_scv=1.0)
        for window in HOURS
    ]
    return np.maximum(required_of(workload_of(key), samples_of(demand), AT_MOST, CONFIDENCE)[0], 1)


def needs_by_day(key: str, series: Series) -> NDArray[np.int64]:
    """Replicas that every past window needed, exactly at target; −1 where less than half was observed."""
    past = Past(workload=workload_of(key), series=series)
    scenarios = past.scenarios(HOURS, ZONE)
    day = [found.interval[found.offsets[:-1]] // (WINDOWS * INTERVALS_A_WINDOW) for found in scenarios]
    window = np.repeat(np.arange(WINDOWS), [found.days for found in scenarios])
    needs = np.full((len(series.seen) // (WINDOWS * INTERVALS_A_WINDOW), WINDOWS), -1, dtype=np.int64)
    needs[np.concatenate(day), window] = past.batch(scenarios).needs(past.workload)
    return needs


def tune(known: dict[str, Series], wished: float | None = None) -> Tuning:
    """As ``allocate`` does; ``wished`` is for the rules that the product's is compared with."""
    pasts = [Past(workload=workload_of(key), series=series) for key, series in known.items()]
    return tune_margins(pasts, HOURS, time_zone=ZONE, confidence=CONFIDENCE, wished=wished)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Plans by service, and what became of them: requests and those within target, by service, day and window."""

    name: str
    plans: dict[str, Plan]
    requests: dict[str, NDArray[np.int64]]
    within: dict[str, NDArray[np.int64]]

    @property
    def replica_hours(self) -> int:
        return int(sum(plan.sum() for plan in self.plans.values())) * WINDOW_H

    def held(self, key: str) -> NDArray[np.bool_]:
        """By day and window; a window without requests is held."""
        return self.within[key] >= TARGET.percentile * self.requests[key]

    @property
    def held_share(self) -> float:
        return float(np.mean([self.held(key) for key in self.plans]))

    @property
    def within_share(self) -> float:
        return sum(int(w.sum()) for w in self.within.values()) / sum(int(r.sum()) for r in self.requests.values())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stream:
    """Requests of the tested days; ``scored``: those that came in an observed interval."""

    requests: Requests
    window: NDArray[np.int64]
    scored: NDArray[np.bool_]


def stream_of(series: Series, *, days: range, seed: Sequence[int], scv: NDArray[np.float64]) -> Stream:
    """A Gamma renewal stream at the measured rates and SCV; through an outage at the rate interpolated over it."""
    a_day = WINDOWS * INTERVALS_A_WINDOW
    part = slice(days.start * a_day, days.stop * a_day)
    at = np.arange(len(series.seen))
    rates = np.interp(at, at[series.observed], series.rate_rps[series.observed])[part]
    rng = np.random.default_rng(seed)
    edges_s = np.arange(len(rates) + 1) * float(series.interval_s)
    arrival_s = request_arrivals_s(edges_s, rates, arrival_scv=scv[part], rng=rng)
    service_s = service_times_s(len(arrival_s), SERVICE_TIME_S, rng=rng)
    interval = (arrival_s // series.interval_s).astype(np.int64)
    return Stream(
        requests=Requests(arrival_s=arrival_s, service_s=service_s),
        window=interval // INTERVALS_A_WINDOW,
        scored=series.observed[part][interval],
    )


def outcome_of(plan: Plan, stream: Stream) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Scored requests, and those within target, by day and window."""
    starts_s = np.arange(plan.size) * WINDOW_H * 3600.0
    outcome = replay(stream.requests, Capacity(starts_s=starts_s, replicas=plan.ravel()))
    scored = stream.window[stream.scored]
    good = stream.window[stream.scored & outcome.within(TARGET.bound_s)]
    requests, within = (np.bincount(part, minlength=plan.size).reshape(plan.shape) for part in (scored, good))
    return requests, within


class Study:
    """Plans of every rule for the tested days, each made from the days before it only."""

    def __init__(self, series: dict[str, Series], tested: range) -> None:
        self.series = series
        self.tested = tested
        self.known = {day: {key: before(one, day) for key, one in series.items()} for day in tested}
        self.tunings: dict[str, dict[int, Tuning]] = {}

    def static(self) -> dict[str, Plan]:
        """All day the servers of the workload's own worst past window, sized exactly at target."""
        return self._by_day(lambda day, key: np.full(WINDOWS, needs_by_day(key, self.known[day][key]).max()))

    def fixed(self, margin: Margin) -> dict[str, Plan]:
        return self._by_day(lambda day, key: planned(key, self.known[day][key], margin))

    def tuned(self, name: str, wished: dict[int, float] | None = None) -> dict[str, Plan]:
        """Margins tuned on the days before, by the product's rule or to hold the wished share of their trials."""
        self.tunings[name] = {day: tune(self.known[day], wished and wished[day]) for day in self.tested}
        return self._by_day(lambda day, key: planned(key, self.known[day][key], self.tunings[name][day].margins[key]))

    def hindsight(self, instead: dict[str, Plan]) -> dict[str, Plan]:
        """The tested day's true rates, sized exactly at target; ``instead`` where less than half was observed."""
        needs = {key: needs_by_day(key, one)[self.tested.start : self.tested.stop] for key, one in self.series.items()}
        return {key: np.where(need < 0, instead[key], np.maximum(need, 1)) for key, need in needs.items()}

    def simulate(self, rules: dict[str, dict[str, Plan]], *, seed: int, as_published: bool = False) -> list[Policy]:
        """What becomes of every rule's plans; each service's stream is the same for all rules, and gone after them."""
        found = [Policy(name=name, plans=plans, requests={}, within={}) for name, plans in rules.items()]
        for number, (key, one) in enumerate(self.series.items()):
            scv = arrival_scv(one)
            if as_published and one.arrival_scv is not None:
                scv = np.where(np.isfinite(one.arrival_scv), one.arrival_scv, scv)
            stream = stream_of(one, days=self.tested, seed=(seed, number), scv=scv)
            for policy in found:
                policy.requests[key], policy.within[key] = outcome_of(policy.plans[key], stream)
        return found

    def _by_day(self, rule: Callable[[int, str], NDArray[np.int64]]) -> dict[str, Plan]:
        return {key: np.stack([rule(day, key) for day in self.tested]) for key in self.series}
