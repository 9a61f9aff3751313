"""A claim's document ↔ the core's values; what was not observed is left out of the one and NaN or None in the other."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isfinite, nan
from typing import Any

from pydantic.alias_generators import to_camel

from ebbtide.adapters.documents.claim_models import ClaimSpec, HardwareSpec, MethodSpec, SettingsSpec
from ebbtide.adapters.documents.emit import rounded_down, significant
from ebbtide.adapters.documents.model import API_VERSION, DocumentModel
from ebbtide.adapters.documents.quantities import duration_text
from ebbtide.adapters.documents.target_models import LiveSpec
from ebbtide.adapters.documents.target_values import bound_of
from ebbtide.capacity.claim import CapacityClaim, Effort, LiveQueries, Mix, Profile, QualityHeld, Sustained
from ebbtide.capacity.limits import Limit, LimitKind
from ebbtide.fleet.fingerprint import Fingerprint

DIGITS = 4


def claim_value(name: str, spec: ClaimSpec) -> CapacityClaim:
    """The claim of a checked document."""
    evidence = spec.evidence
    return CapacityClaim(
        name=name,
        sustained=Sustained(
            low_rps=spec.sustained.low_rps,
            high_rps=inf if spec.sustained.high_rps is None else spec.sustained.high_rps,
            confidence=spec.sustained.confidence,
            limited_by=spec.sustained.limited_by,
            monotone=spec.sustained.monotone,
            replicas=spec.sustained.replicas,
        ),
        limits=tuple(_limits(spec)),
        fingerprint=Fingerprint(**spec.hardware.model_dump(), **spec.settings.model_dump()),
        mix=_mix(spec.method),
        effort=_effort(spec.method),
        measured_at=spec.measured_at,
        valid_until=spec.valid_until,
        resolved=spec.sustained.resolved,
        quality=None if spec.quality is None else QualityHeld(**spec.quality.model_dump()),
        profile=Profile(
            concurrency=tuple(spec.profile.concurrency),
            throughput_rps=tuple(spec.profile.throughput_rps),
            latency_s=tuple(spec.profile.latency),
            percentile=spec.profile.percentile,
        ),
        evidence_file=None if evidence is None else evidence.file,
        evidence_sha256=None if evidence is None else evidence.sha256,
        warnings=tuple(spec.warnings),
        live=live_value(spec.live),
    )


def claim_plain(claim: CapacityClaim) -> dict[str, Any]:
    """The document of a claim as plain values: rates of four digits, the low one rounded down."""
    spec: dict[str, Any] = {
        "measuredAt": str(claim.measured_at),
        "validUntil": str(claim.valid_until),
        "sustained": _sustained(claim),
        "targets": [_target(limit) for limit in claim.limits if limit.kind is LimitKind.LATENCY],
        "errorBudget": next((one.bad_share for one in claim.limits if one.kind is LimitKind.ERRORS), None),
        "quality": _quality(claim.quality),
        "hardware": _named(claim.fingerprint, HardwareSpec),
        "settings": _named(claim.fingerprint, SettingsSpec),
        "profile": _profile(claim.profile),
        "method": _method(claim),
        "evidence": _known({"file": claim.evidence_file, "sha256": claim.evidence_sha256}) or None,
        "live": _live(claim.live),
        "warnings": list(claim.warnings) or None,
    }
    return {"apiVersion": API_VERSION, "kind": "CapacityClaim", "metadata": {"name": claim.name}, "spec": _known(spec)}


def live_value(spec: LiveSpec | None) -> LiveQueries | None:
    """The queries of a checked document."""
    if spec is None:
        return None
    return LiveQueries(rate=spec.rate, within=tuple(spec.within), replicas=spec.replicas, step_s=int(spec.step))


def _live(live: LiveQueries | None) -> dict[str, Any] | None:
    if live is None:
        return None
    step = duration_text(float(live.step_s))
    return {"rate": live.rate, "replicas": live.replicas, "within": list(live.within), "step": step}


def document_field(name: str) -> str:
    """A fingerprint's field as documents call it.

    >>> document_field("gpu_model")
    'gpuModel'
    """
    return to_camel(name)


def claim_field(name: str) -> str:
    """The same with the map of a claim that holds it.

    >>> claim_field("gpu_model"), claim_field("flags")
    ('hardware.gpuModel', 'settings.flags')
    """
    return f"{'hardware' if name in HardwareSpec.model_fields else 'settings'}.{to_camel(name)}"


def _sustained(claim: CapacityClaim) -> dict[str, Any]:
    held = claim.sustained
    return _known(
        {
            "lowRps": rounded_down(held.low_rps, DIGITS),
            "highRps": significant(held.high_rps, DIGITS) if isfinite(held.high_rps) else None,
            "confidence": held.confidence,
            "limitedBy": held.limited_by,
            "resolved": claim.resolved,
            "monotone": held.monotone,
            "replicas": held.replicas,
        }
    )


def _target(limit: Limit) -> dict[str, Any]:
    assert limit.bound_s is not None
    return {limit.metric: duration_text(limit.bound_s), "percentile": significant(1.0 - limit.bad_share, 6)}


def _quality(held: QualityHeld | None) -> dict[str, Any] | None:
    if held is None:
        return None
    low, high = rounded_down(held.low, DIGITS), significant(held.high, DIGITS)
    return {"check": held.check, "required": held.required, "low": low, "high": high}


def _named(found: Fingerprint, model: type[DocumentModel]) -> dict[str, Any] | None:
    return _known({to_camel(name): getattr(found, name) for name in model.model_fields}) or None


def _profile(profile: Profile) -> dict[str, Any] | None:
    if not profile.concurrency:
        return None
    return {
        "concurrency": [significant(one, 3) for one in profile.concurrency],
        "throughputRps": [significant(one, 3) for one in profile.throughput_rps],
        "latency": [_duration(one) for one in profile.latency_s],
        "percentile": profile.percentile,
    }


def _method(claim: CapacityClaim) -> dict[str, Any]:
    mix, effort = claim.mix, claim.effort
    return _known(
        {
            "tool": effort.tool,
            "arrivals": mix.arrivals,
            "arrivalScv": _number(mix.arrival_scv),
            "openLoop": effort.open_loop,
            "mix": mix.source,
            "inputTokens": _number(mix.input_tokens),
            "inputScv": _number(mix.input_scv),
            "outputTokens": _number(mix.output_tokens),
            "outputScv": _number(mix.output_scv),
            "tolerance": effort.tolerance if isfinite(effort.tolerance) else None,
            "measured": duration_text(float(round(effort.measured_s))) if isfinite(effort.measured_s) else None,
            "requests": effort.requests,
            "effectiveSample": round(effort.effective) if isfinite(effort.effective) else None,
            "longestDisturbance": _duration(effort.longest_disturbance_s),
            "voidSteps": effort.void_steps,
            "latenessP99": _duration(effort.lateness_p99_s),
        }
    )


def _number(value: float) -> float | None:
    return significant(value, 3) if isfinite(value) else None


def _duration(seconds: float) -> str | None:
    """A duration's text; None where it was not observed, as without a step that counts."""
    return duration_text(significant(max(seconds, 0.0), 3)) if isfinite(seconds) else None


def _known(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _limits(spec: ClaimSpec) -> Iterator[Limit]:
    for bound in spec.targets:
        metric, bound_s = bound_of(bound)
        yield Limit(kind=LimitKind.LATENCY, bad_share=1.0 - bound.percentile, bound_s=bound_s, metric=metric)
    if spec.error_budget is not None:
        yield Limit(kind=LimitKind.ERRORS, bad_share=spec.error_budget)
    if spec.quality is not None:
        yield Limit(kind=LimitKind.QUALITY, bad_share=1.0 - spec.quality.required)


def _mix(spec: MethodSpec) -> Mix:
    return Mix(
        source=spec.mix,
        arrivals=spec.arrivals,
        arrival_scv=_or_nan(spec.arrival_scv),
        input_tokens=_or_nan(spec.input_tokens),
        input_scv=_or_nan(spec.input_scv),
        output_tokens=_or_nan(spec.output_tokens),
        output_scv=_or_nan(spec.output_scv),
    )


def _effort(spec: MethodSpec) -> Effort:
    return Effort(
        tolerance=_or_nan(spec.tolerance),
        measured_s=_or_nan(spec.measured),
        requests=spec.requests,
        effective=_or_nan(spec.effective_sample),
        longest_disturbance_s=_or_nan(spec.longest_disturbance),
        void_steps=spec.void_steps,
        lateness_p99_s=_or_nan(spec.lateness_p99),
        open_loop=spec.open_loop,
        tool=spec.tool,
    )


def _or_nan(value: float | None) -> float:
    return nan if value is None else float(value)
