"""Writing a measurement down: the claim, its evidence and its page, all or none."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Any

from ebbtide.adapters.documents.emit import block, rounded_down, significant
from ebbtide.adapters.documents.files import Output
from ebbtide.adapters.documents.model import API_VERSION
from ebbtide.adapters.documents.quantities import duration_text
from ebbtide.capacity.claim import CapacityClaim
from ebbtide.capacity.limits import Limit, LimitKind

MARK = "# written by ebbtide measure\n"
DIGITS = 4


def claim_output(path: Path, claim: CapacityClaim) -> Output:
    """The claim's file, ready to be written with the others."""
    return Output(path=path, content=(MARK + block(_plain(claim), open_keys=frozenset({"spec"}))).encode())


def _plain(claim: CapacityClaim) -> dict[str, Any]:
    sustained = claim.sustained
    spec: dict[str, Any] = {
        "measuredAt": str(claim.measured_at),
        "validUntil": str(claim.valid_until),
        "sustained": {
            "lowRps": rounded_down(sustained.low_rps, DIGITS),
            "highRps": significant(sustained.high_rps, DIGITS),
            "confidence": sustained.confidence,
            "limitedBy": sustained.limited_by,
            "resolved": claim.resolved,
            "monotone": sustained.monotone,
            "replicas": sustained.replicas,
        },
        "targets": [_target(limit) for limit in claim.limits if limit.kind is LimitKind.LATENCY],
        "errorBudget": next(limit.bad_share for limit in claim.limits if limit.kind is LimitKind.ERRORS),
    }
    if claim.quality is not None:
        held = claim.quality
        low, high = rounded_down(held.low, DIGITS), significant(held.high, DIGITS)
        spec["quality"] = {"check": held.check, "required": held.required, "low": low, "high": high}
    spec |= {"hardware": _hardware(claim), "settings": _settings(claim)}
    if claim.profile.concurrency:
        spec["profile"] = {
            "concurrency": [significant(one, 3) for one in claim.profile.concurrency],
            "throughputRps": [significant(one, 3) for one in claim.profile.throughput_rps],
            f"latencyP{100 * claim.profile.percentile:g}": [
                _duration(one) or "unstable" for one in claim.profile.latency_s
            ],
        }
    spec |= {"method": _method(claim), "evidence": {"file": claim.evidence_file, "sha256": claim.evidence_sha256}}
    return {"apiVersion": API_VERSION, "kind": "CapacityClaim", "metadata": {"name": claim.name}, "spec": spec}


def _target(limit: Limit) -> dict[str, Any]:
    assert limit.bound_s is not None
    return {limit.metric: duration_text(limit.bound_s), "percentile": significant(1.0 - limit.bad_share, 6)}


def _hardware(claim: CapacityClaim) -> dict[str, Any]:
    found = claim.fingerprint
    return _known({"gpuModel": found.gpu_model, "gpus": found.gpus, "driver": found.driver})


def _settings(claim: CapacityClaim) -> dict[str, Any]:
    found = claim.fingerprint
    given = {"imageDigest": found.image_digest, "modelRevision": found.model_revision, "flags": found.flags}
    return _known(given)


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
            "tolerance": effort.tolerance,
            "measured": duration_text(float(round(effort.measured_s))),
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
