"""A claim beside what Prometheus saw of its service (§M.9): queries over days, and what they say together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from whenever import Date, Instant, OffsetDateTime

from ebbtide.adapters.prometheus.instant import Prometheus
from ebbtide.adapters.prometheus.range import Span, line_of
from ebbtide.capacity.claim import CapacityClaim, LiveQueries
from ebbtide.capacity.drift import LEAST_DAYS, DayVerdict, Drift, DriftVerdict, Intervals, drift
from ebbtide.capacity.limits import Floats, Limit
from ebbtide.settings import Settings

DAY_S = 86_400
ANSWERS = {DriftVerdict.HOLDS: "ok", DriftVerdict.DRIFTED: "no", DriftVerdict.UNKNOWN: "unknown"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveLook:
    """What to look at: the ``days`` before ``at``, none from before the claim was measured, by a zone's calendar."""

    claim: CapacityClaim
    queries: LiveQueries | None
    days: int
    time_zone: str
    at: OffsetDateTime

    @property
    def span(self) -> Span:
        """Whole steps, the last one ending now; the first begins no earlier than the claim: before it, what ran was
        perhaps something else."""
        assert self.queries is not None
        step_s = self.queries.step_s
        end_s = int(self.at.timestamp()) // step_s * step_s
        since_s = max(end_s - self.days * DAY_S, int(self.claim.measured_at.timestamp()))
        count = max((end_s - since_s) // step_s, 1)
        return Span(start_s=end_s - (count - 1) * step_s, step_s=step_s, count=count)


def live_checks(look: LiveLook, settings: Settings) -> Iterator[tuple[str, str]]:
    """An answer (ok, no, unknown) and its words for each latency target of the claim, or for why nobody was asked.

    Raises ``WorldError`` where the server does not answer.
    """
    if look.queries is None:
        if settings.prometheus_url is not None:
            yield "unknown", "not looked at: the claim has no live queries (live, or --rate and --within)"
        return
    if settings.prometheus_url is None:
        yield "unknown", "not looked at: no server is set (EBBTIDE_PROMETHEUS_URL)"
        return
    server = Prometheus(url=settings.prometheus_url, token_file=settings.prometheus_token_file)
    span = look.span
    rate, replicas = (line_of(server, query, span) for query in (look.queries.rate, look.queries.replicas))
    dates = _dates(span, look.time_zone)
    limits = [one for one in look.claim.limits if one.bound_s is not None]
    for limit, query in zip(limits, look.queries.within, strict=True):
        seen = _intervals(span, rate, replicas, line_of(server, query, span), dates)
        found = drift(seen, low_rps=look.claim.sustained.low_rps, allowed=limit.bad_share)
        yield ANSWERS[found.verdict], _words(look, limit, seen, found, dates)


def _dates(span: Span, time_zone: str) -> list[Date]:
    """The date of each interval: of its middle."""
    middles = (span.instants_s - span.step_s // 2).tolist()
    return [Instant.from_timestamp(at_s).to_tz(time_zone).date() for at_s in middles]


def _intervals(span: Span, rate: Floats, replicas: Floats, within: Floats, dates: list[Date]) -> Intervals:
    known = {date: number for number, date in enumerate(dict.fromkeys(dates))}
    return Intervals(
        step_s=float(span.step_s),
        rate_rps=rate,
        replicas=replicas,
        within=within,
        day=np.array([known[date] for date in dates], dtype=np.int64),
    )


def _words(look: LiveLook, limit: Limit, seen: Intervals, found: Drift, dates: list[Date]) -> str:
    low = look.claim.sustained.low_rps
    target = f"P{100 * (1.0 - limit.bad_share):.6g} {limit.metric} {limit.bound_s:.6g}s"
    if not found.days:
        return f"{target}: {_nothing(seen, low)}"
    kept = f"{100 * (1.0 - found.late_share):.4g} % within it at up to {low:.4g} rps a replica"
    said = f"{target}: {kept}, {found.below} of {found.judged} days below target"
    if found.verdict is DriftVerdict.UNKNOWN:
        return f"{said}; {LEAST_DAYS} days with 40 effective requests are needed"
    if not found.below:
        return said
    named = list(dict.fromkeys(dates))
    below = [str(named[one.day]) for one in found.days if one.verdict is DayVerdict.BELOW]
    more = f" and {len(below) - 5} more" if len(below) > 5 else ""
    end = ": measure again" if found.verdict is DriftVerdict.DRIFTED else f", {LEAST_DAYS} would be drift"
    return f"{said} ({', '.join(below[:5])}{more}){end}"


def _nothing(seen: Intervals, low_rps: float) -> str:
    """Why no interval spoke."""
    for name, line in (("rate", seen.rate_rps), ("replicas", seen.replicas), ("within", seen.within)):
        if not np.isfinite(line).any():
            return f"the query for {name} gave no number"
    return f"no two intervals in a row at up to {low_rps:.4g} rps a replica"
