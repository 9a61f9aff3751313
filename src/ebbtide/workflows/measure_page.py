"""From a measurement to the values of its page."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from math import exp, isfinite

import numpy as np
from scipy.special import betaincinv

from ebbtide.adapters.documents.target import TargetDocument
from ebbtide.adapters.load.endpoint import shown_url
from ebbtide.adapters.load.evidence import KeptStep
from ebbtide.adapters.report.figures import figure, whole
from ebbtide.adapters.report.measurement import LimitShares, MeasurementPage, StepPoint
from ebbtide.adapters.report.render import Figure
from ebbtide.capacity.claim import CapacityClaim
from ebbtide.capacity.limits import Limit
from ebbtide.capacity.search import Found
from ebbtide.capacity.steps import Purpose, Step
from ebbtide.capacity.verdict import Verdict
from ebbtide.fleet.fingerprint import Fingerprint
from ebbtide.workflows.measure_claim import profile_rows
from ebbtide.workflows.measure_steps import Run

BAR = 0.95  # of a step's bad share, two-sided


def page_of(
    document: TargetDocument,
    run: Run,
    found: Found,
    claim: CapacityClaim | None,
    fingerprint: Fingerprint,
    warnings: tuple[str, ...],
) -> MeasurementPage:
    """Everything that the page says."""
    ends = _ends(found)
    percentile = next((one.percentile for one in document.spec.targets if one.latency is not None), 0.95)
    rows = profile_rows(run.steps, percentile=percentile)
    return MeasurementPage(
        version=version("ebbtide"),
        name=document.name,
        headline=_headline(document, claim),
        lede=_lede(document, found),
        low_rps=None if ends is None else ends[0],
        high_rps=None if ends is None else ends[1],
        figures=tuple(_figures(run, found, claim)),
        warnings=warnings,
        limits=tuple(_limit(run, found, index) for index in range(len(run.state.wish.limits))),
        profile=tuple((row.concurrency, row.throughput_rps, row.latency_s) for row in rows),
        percentile=percentile,
        steps=tuple(_rows(run)),
        facts=tuple(_facts(document, run, claim, fingerprint)),
    )


def _ends(found: Found) -> tuple[float, float] | None:
    one = found.interval
    return None if one is None or not isfinite(one.low) or not isfinite(one.high) else (exp(one.low), exp(one.high))


def _headline(document: TargetDocument, claim: CapacityClaim | None) -> str:
    if claim is None:
        return f"{document.name}: no rate has a bound on both sides yet"
    held = claim.sustained
    one = "" if held.replicas == 1 else " a replica"
    return f"{document.name} holds {figure(held.low_rps)} to {figure(held.high_rps)} requests a second{one}"


def _lede(document: TargetDocument, found: Found) -> str:
    said = "Resolved" if found.resolved else f"Unresolved ({found.reason})"
    return f"{said}. Requests to {shown_url(document.spec.endpoint.url)}, sent at their times whatever the answers did."


def _figures(run: Run, found: Found, claim: CapacityClaim | None) -> Iterator[Figure]:
    if claim is not None:
        held = claim.sustained
        half = (held.high_rps - held.low_rps) / (held.high_rps + held.low_rps)
        remark = "a second, the interval's low end"
        if held.replicas > 1:
            remark = f"a second and replica: the low end of all {held.replicas} together, divided by them"
        yield Figure(name="planning uses", value=figure(held.low_rps), remark=remark)
        sure = f"at {100 * run.state.wish.confidence:g} % confidence"
        yield Figure(name="interval", value=f"±{100 * half:.1f} %", remark=sure)
        yield Figure(name="limited by", value=held.limited_by or "unknown", remark="fails first as the rate grows")
    yield Figure(
        name="requests",
        value=whole(found.requests),
        remark=f"in {found.seconds / 60.0:.1f} min, {len(run.steps)} steps, {run.state.voids} of them void",
        look="alarm" if run.state.voids else "",
    )


def _limit(run: Run, found: Found, index: int) -> LimitShares:
    limit, interval = run.state.wish.limits[index], found.interval
    binds = interval is not None and interval.limit == index
    return LimitShares(
        name=_limit_name(limit),
        allowed=limit.bad_share,
        points=tuple(_points(run, index)),
        at_rps=exp(interval.at) if binds and interval is not None else None,
        slope=interval.slope if binds and interval is not None else None,
    )


def _limit_name(limit: Limit) -> str:
    return limit.name if limit.bound_s is None else f"{limit.name} above {limit.bound_s:g} s"


def _points(run: Run, index: int) -> Iterator[StepPoint]:
    for number, step in _measured(run):
        scatter = step.measured.scatters[index]
        if not scatter.trials:
            continue
        low, high = _share_ends(scatter.bad, scatter.trials, step.measured.memory)
        yield StepPoint(
            number=number,
            rate_rps=step.plan.rate_rps,
            share=scatter.bad / scatter.trials,
            low=low,
            high=high,
            block=step.plan.purpose is Purpose.BLOCK,
        )


def _measured(run: Run) -> Iterator[tuple[int, Step]]:
    """Steps that count, with their numbers among all that were made."""
    numbers = [number for number, kept in enumerate(run.steps, start=1) if kept.void is None]
    yield from zip(numbers, run.state.steps, strict=True)


def _share_ends(bad: float, trials: float, memory: float) -> tuple[float, float]:
    count, few = trials / memory, bad / memory
    tail = 0.5 * (1.0 - BAR)
    low = float(betaincinv(few, count - few + 1.0, tail)) if few > 0.0 else 0.0
    high = float(betaincinv(few + 1.0, max(count - few, 1e-9), 1.0 - tail)) if few < count else 1.0
    return low, high


_WORDS = {Verdict.PASSES: "passes", Verdict.FAILS: "fails", Verdict.NEAR: "near", Verdict.UNDECIDED: "not decided"}


def _rows(run: Run) -> Iterator[tuple[str, ...]]:
    states = dict(_measured(run))
    for number, kept in enumerate(run.steps, start=1):
        head = (str(number), figure(kept.plan.rate_rps), whole(len(kept.calls)))
        late = _late(kept)
        if kept.void is not None:
            yield (*head, f"void: {kept.void}", "–", "–", "–", late)
            continue
        yield (*head, *_verdict(states[number], run), late)


def _verdict(step: Step, run: Run) -> tuple[str, str, str, str]:
    shares = [
        (one.bad / one.trials, limit)
        for limit, one in zip(run.state.wish.limits, step.measured.scatters, strict=True)
        if one.trials
    ]
    share, worst = max(shares, key=lambda pair: pair[0] / pair[1].bad_share)
    said = "block" if step.plan.purpose is Purpose.BLOCK else _WORDS[step.measured.verdict]
    return said, worst.name, f"{100 * share:.3g} %", f"{100 * worst.bad_share:.3g} %"


def _late(kept: KeptStep) -> str:
    late_s = kept.calls.lateness_s[np.isfinite(kept.calls.lateness_s)]
    return f"{1e3 * float(np.percentile(late_s, 99)):.1f} ms" if len(late_s) else "–"


def _facts(
    document: TargetDocument, run: Run, claim: CapacityClaim | None, seen: Fingerprint
) -> Iterator[tuple[str, str]]:
    hardware = [str(one) for one in (seen.gpus, seen.gpu_model, seen.driver) if one is not None]
    yield "hardware", ", ".join(hardware) or "not known"
    yield (
        "settings",
        ", ".join(one for one in (seen.model_revision, seen.image_digest, seen.flags) if one) or "not known",
    )
    if document.spec.replicas > 1:
        yield "replicas", f"{document.spec.replicas}, measured together; steps and charts are of all of them"
    yield "must hold", "; ".join(_must(limit) for limit in run.state.wish.limits)
    if claim is None:
        return
    mix, effort = claim.mix, claim.effort
    yield "arrivals", f"{mix.arrivals}, SCV {mix.arrival_scv:.3g}"
    if isfinite(mix.output_tokens):
        yield "tokens", f"{figure(mix.input_tokens)} in, {figure(mix.output_tokens)} out on average"
    yield "effective sample", f"{whole(effort.effective)} around the answer"
    yield "longest disturbance", f"{effort.longest_disturbance_s:.0f} s: a longer one would not have been seen"
    yield "valid", f"{claim.measured_at} to {claim.valid_until}"
    yield "evidence", f"{claim.evidence_file}, {claim.evidence_sha256}"


def _must(limit: Limit) -> str:
    allowed = f"{100 * limit.bad_share:.3g} %"
    if limit.bound_s is None:
        return f"at most {allowed} {'failed' if limit.name == 'errors' else 'wrong'}"
    return f"P{100 * (1 - limit.bad_share):.4g} {limit.name} {limit.bound_s:g} s"
