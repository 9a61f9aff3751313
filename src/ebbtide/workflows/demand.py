"""Read the demand that a Fleet's workloads name: each source once, each workload's series, what to say about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from whenever import Instant

from ebbtide.adapters.demand.read import read_trace
from ebbtide.adapters.documents.fleet import FleetDocument
from ebbtide.errors import DemandError
from ebbtide.fleet.demand import Seen, Series, Trace
from ebbtide.fleet.schedule import SourceRecord

Stage = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Demand:
    """The traces by source, the series by workload, and each source's record for the schedule."""

    traces: Mapping[str, Trace]
    series: Mapping[str, Series]
    records: tuple[SourceRecord, ...]

    @property
    def end_s(self) -> int:
        """Where the youngest series ends, seconds since the epoch."""
        return max(trace.end_s for trace in self.traces.values())


def read_demand(document: FleetDocument, *, sql_url: str | None, stage: Stage) -> Demand:
    """Read every source that a workload names, and of it only the named series.

    Raises ``DemandError``: what the adapter raises; for a key that its source does not hold, at the Fleet's line.
    """
    wanted: dict[str, set[str]] = {}
    for workload in document.fleet.workloads:
        wanted.setdefault(workload.demand.source, set()).add(workload.demand.key)
    traces: dict[str, Trace] = {}
    for number, (name, keys) in enumerate(wanted.items()):
        stage(f"reading demand {name}", number, len(wanted))
        traces[name] = _read(document, name, frozenset(keys), sql_url)
    series = {one.name: traces[one.demand.source].series[one.demand.key] for one in document.fleet.workloads}
    records = tuple(_record(trace, document.fleet.time_zone) for trace in traces.values())
    return Demand(traces=traces, series=series, records=records)


def _read(document: FleetDocument, name: str, keys: frozenset[str], sql_url: str | None) -> Trace:
    try:
        return read_trace(document.source(name), keys=keys, sql_url=sql_url)
    except DemandError as error:
        if error.kind != "no_demand":
            raise
        lost = next(
            one
            for one in document.fleet.workloads
            if one.demand.source == name and repr(one.demand.key) in error.message
        )
        place = document.place(f"workloads[{lost.name}].demand.key")
        raise DemandError(error.message, kind=error.kind, place=place, hint=error.hint) from error


def _record(trace: Trace, time_zone: str) -> SourceRecord:
    seen = [series.seen for series in trace.series.values()]
    intervals = sum(len(states) for states in seen)
    named_rps = sum(_mean_rps(series) for series in trace.series.values())
    outage_intervals = sum(outage.end_s - outage.start_s for outage in trace.outages) // trace.interval_s
    return SourceRecord(
        source=trace.source,
        sha256=trace.sha256,
        start=_instant(trace.start_s, time_zone),
        end=_instant(trace.end_s, time_zone),
        missing_intervals=sum(int((states == Seen.MISSING).sum()) for states in seen),
        outages=len(trace.outages),
        outage_intervals=outage_intervals,
        outage_share=sum(int((states == Seen.OUTAGE).sum()) for states in seen) / intervals,
        planned_share=named_rps / total_rps if (total_rps := named_rps + trace.rest_rps) > 0 else 1.0,
    )


def _mean_rps(series: Series) -> float:
    return float(series.rate_rps[series.observed].mean()) if series.observed.any() else 0.0


def _instant(at_s: int, time_zone: str) -> str:
    return Instant.from_timestamp(at_s).to_tz(time_zone).to_fixed_offset().format_iso()


def source_talk(record: SourceRecord) -> tuple[str, ...]:
    """What a person is told of a source before the plan: outages left out, and the share that nobody plans for."""
    lines = []
    if record.outages:
        lines.append(
            f"{record.source}: {record.outages} outages ({record.outage_intervals} intervals, "
            f"{record.outage_share:.1%}) left out".replace("%", " %")
        )
    if record.planned_share < 0.995:
        share = f"{record.planned_share:.0%}".replace("%", " %")
        lines.append(f"{record.source}: {share} of its demand is planned for; no workload names the rest")
    return tuple(lines)
