"""From a finished search to the claim: the interval, the profile, what was spent, and the evidence beside it (§M.8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, isfinite
from pathlib import Path

import numpy as np
from scipy.special import betaincinv
from whenever import Instant, OffsetDateTime, TimeDelta

from ebbtide.adapters.documents.claim_values import live_value
from ebbtide.adapters.documents.target import TargetDocument
from ebbtide.adapters.load.calls import Calls, Fault
from ebbtide.adapters.load.evidence import KeptStep
from ebbtide.adapters.load.gaps import Law
from ebbtide.capacity.around import WINDOW, Interval, apart
from ebbtide.capacity.budget import longest_disturbance_s
from ebbtide.capacity.claim import CapacityClaim, Effort, Mix, Profile, QualityHeld, Sustained
from ebbtide.capacity.limits import LimitKind
from ebbtide.capacity.search import Found
from ebbtide.capacity.steps import Purpose, Step
from ebbtide.fleet.fingerprint import Fingerprint
from ebbtide.workflows.measure_steps import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRow:
    """A step as the planner's profile has it: requests in flight on average, and what came of them."""

    concurrency: float
    throughput_rps: float
    latency_s: float
    first_token_s: float


def claim_of(
    document: TargetDocument,
    run: Run,
    found: Found,
    *,
    fingerprint: Fingerprint,
    law: Law,
    evidence: tuple[Path, str],
    at: OffsetDateTime,
    warnings: tuple[str, ...] = (),
) -> CapacityClaim | None:
    """The claim of one replica: what all held, divided by them. None where the interval has an open end."""
    interval, spec = found.interval, document.spec
    if interval is None or not isfinite(interval.low) or not isfinite(interval.high):
        return None
    limits = run.state.wish.limits
    rows = profile_rows(run.steps, percentile=_percentile(document))
    return CapacityClaim(
        name=document.name,
        sustained=Sustained(
            low_rps=exp(interval.low) / spec.replicas,
            high_rps=exp(interval.high) / spec.replicas,
            confidence=run.state.wish.confidence,
            limited_by=limits[interval.limit].name,
            monotone=found.bracket.monotone,
            replicas=spec.replicas,
        ),
        limits=limits,
        fingerprint=fingerprint,
        mix=mix_of(document, run.steps, law),
        effort=effort_of(run, interval),
        measured_at=at,
        valid_until=_later(at, spec.valid_for),
        resolved=found.resolved,
        quality=_quality(document, run, interval),
        profile=Profile(
            concurrency=tuple(row.concurrency / spec.replicas for row in rows),
            throughput_rps=tuple(row.throughput_rps / spec.replicas for row in rows),
            latency_s=tuple(row.latency_s for row in rows),
            percentile=_percentile(document),
        ),
        evidence_file=evidence[0].name,
        evidence_sha256=evidence[1],
        warnings=warnings,
        live=live_value(spec.live),
    )


def near_steps(run: Run, interval: Interval) -> list[KeptStep]:
    """The blocks around the answer."""
    near = {
        id(step.plan)
        for step in run.state.steps
        if step.plan.purpose is Purpose.BLOCK and apart(step, interval.at) <= WINDOW
    }
    return [step for step in run.steps if step.void is None and id(step.plan) in near]


def profile_rows(steps: Sequence[KeptStep], *, percentile: float) -> list[ProfileRow]:
    """Steps by concurrency, of neighbours within a twentieth the one with the most requests; overload is left out.

    Concurrency is Little's: answers a second times their mean latency.
    """
    rows: list[tuple[int, ProfileRow]] = []
    for step in steps:
        calls = step.calls.first(len(step.calls))
        answered = calls.fault == Fault.NONE
        if step.void is not None or answered.mean() < 0.9:
            continue
        skip = max(step.plan.warm_up_requests, len(calls) // 10)
        late = calls.latency_s[skip:]
        span_s = float(calls.intended_s[-1] - calls.intended_s[skip])
        if span_s <= 0.0 or len(late) < 20:
            continue
        rate = float(np.isfinite(late).sum()) / span_s
        mean_s = float(late[np.isfinite(late)].mean())
        first = calls.first_s[skip:]
        rows.append(
            (
                len(calls),
                ProfileRow(
                    concurrency=rate * mean_s,
                    throughput_rps=rate,
                    latency_s=float(np.quantile(late, percentile, method="higher")),
                    first_token_s=float(np.nanquantile(first, percentile)) if np.isfinite(first).any() else inf,
                ),
            )
        )
    kept: list[tuple[int, ProfileRow]] = []
    for count, row in sorted(rows, key=lambda one: one[1].concurrency):
        if not isfinite(row.latency_s):
            continue
        if kept and row.concurrency <= 1.05 * kept[-1][1].concurrency:
            if count > kept[-1][0]:
                kept[-1] = (count, row)
            continue
        kept.append((count, row))
    return [row for _, row in kept]


def mix_of(document: TargetDocument, steps: Sequence[KeptStep], law: Law) -> Mix:
    """Where requests came from and the moments of their lengths, as the server counted tokens."""
    requests = document.spec.requests
    source = requests.prompts or (requests.template.values if requests.template else None)
    if source is None:
        source = requests.lengths.file if requests.lengths else ""
    given = [step.calls for step in steps if step.void is None]
    sent = _moments([calls.input_tokens for calls in given]), _moments([calls.output_tokens for calls in given])
    scv = law.scv if law.gaps is None else float(law.gaps.var() / law.gaps.mean() ** 2)
    return Mix(
        source=source,
        arrivals=str(law.arrivals),
        arrival_scv=scv,
        input_tokens=sent[0][0],
        input_scv=sent[0][1],
        output_tokens=sent[1][0],
        output_scv=sent[1][1],
    )


def effort_of(run: Run, interval: Interval) -> Effort:
    """What was spent and seen around the answer."""
    state, near = run.state, near_steps(run, interval)
    late = [step.calls.lateness_s[np.isfinite(step.calls.lateness_s)] for step in near]
    return Effort(
        tolerance=state.wish.tolerance,
        measured_s=sum(float(step.calls.intended_s[-1]) for step in run.steps),
        requests=sum(len(step.calls) for step in run.steps),
        effective=interval.effective,
        longest_disturbance_s=longest_disturbance_s(state, interval.at),
        void_steps=state.voids,
        lateness_p99_s=float(np.percentile(np.concatenate(late), 99)) if late else float("nan"),
    )


def _quality(document: TargetDocument, run: Run, interval: Interval) -> QualityHeld | None:
    spec = document.spec.quality
    if spec is None:
        return None
    index = next(i for i, one in enumerate(run.state.wish.limits) if one.kind is LimitKind.QUALITY)
    near = [
        step for step in run.state.steps if step.plan.purpose is Purpose.BLOCK and apart(step, interval.at) <= WINDOW
    ]
    low, high = share_interval(near, index, confidence=run.state.wish.confidence)
    return QualityHeld(check=quality_name(document), required=spec.required, low=low, high=high)


def share_interval(steps: Sequence[Step], index: int, *, confidence: float) -> tuple[float, float]:
    """Clopper and Pearson's interval of the right share, of as many effective answers as memory leaves."""
    trials = sum(step.measured.scatters[index].trials / step.measured.memory for step in steps)
    wrong = sum(step.measured.scatters[index].bad / step.measured.memory for step in steps)
    if trials <= 0.0:
        return 0.0, 1.0
    tail = 0.5 * (1.0 - confidence)
    right = trials - wrong
    low = float(betaincinv(right, wrong + 1.0, tail)) if right > 0.0 else 0.0
    high = float(betaincinv(right + 1.0, wrong, 1.0 - tail)) if wrong > 0.0 else 1.0
    return low, high


def quality_name(document: TargetDocument) -> str:
    """The check's name in the Target."""
    spec = document.spec.quality
    assert spec is not None
    given = {
        "exact": spec.exact or None,
        "regex": spec.regex,
        "jsonSchema": spec.json_schema,
        "numeric": spec.numeric,
        "similarity": spec.similarity,
        "checker": spec.checker,
    }
    return next(name for name, value in given.items() if value is not None)


def _percentile(document: TargetDocument) -> float:
    bound = next((one for one in document.spec.targets if one.latency is not None), document.spec.targets[0])
    return bound.percentile


def _moments(parts: Sequence[np.ndarray]) -> tuple[float, float]:
    """Mean and SCV of what was counted (−1 is nothing)."""
    counts = np.concatenate(parts) if parts else np.empty(0)
    counts = counts[counts >= 0].astype(np.float64)
    if not len(counts) or not counts.mean() > 0.0:
        return float("nan"), float("nan")
    return float(counts.mean()), float(counts.var() / counts.mean() ** 2)


def _later(at: OffsetDateTime, seconds: float) -> OffsetDateTime:
    return (at.to_instant() + TimeDelta(seconds=seconds)).to_fixed_offset(at.offset)


def now() -> OffsetDateTime:
    """This second, in UTC."""
    return Instant.now().round("second").to_fixed_offset()


def buffered(calls: Sequence[Calls]) -> float | None:
    """Share of streams whose events came all at once, at the end of a long answer; None where there were no streams.

    A proxy that buffers does so: the time between its tokens says nothing (§M.7).
    """
    events = np.concatenate([one.events for one in calls]) if calls else np.empty(0)
    long = events >= 4
    if not long.any():
        return None
    spread_s = np.concatenate([one.latency_s - one.first_s for one in calls])[long]
    whole_s = np.concatenate([one.latency_s for one in calls])[long]
    seen = np.isfinite(spread_s) & (whole_s > 0.02)
    return float((spread_s[seen] < 0.02 * whole_s[seen]).mean()) if seen.any() else None
