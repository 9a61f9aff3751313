"""A claim's document: what is written is read again as the same claim; what was not observed is left out, no NaN."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from math import inf, isnan
from pathlib import Path

import pytest
from whenever import OffsetDateTime, hours

from ebbtide.adapters.documents.claim import claim_output, read_claim
from ebbtide.adapters.documents.claim_values import claim_field, document_field
from ebbtide.adapters.documents.files import is_ours, write_together
from ebbtide.capacity.claim import CapacityClaim, Effort, LiveQueries, Mix, Profile, QualityHeld, Sustained
from ebbtide.capacity.limits import Limit, LimitKind
from ebbtide.errors import DocumentError
from ebbtide.fleet.fingerprint import Fingerprint

CLAIM = CapacityClaim(
    name="chat",
    sustained=Sustained(
        low_rps=9.6, high_rps=9.9, confidence=0.95, limited_by="firstToken", monotone=False, replicas=3
    ),
    limits=(
        Limit(kind=LimitKind.LATENCY, bad_share=0.05, bound_s=9.0),
        Limit(kind=LimitKind.LATENCY, bad_share=0.01, bound_s=0.8, metric="firstToken"),
        Limit(kind=LimitKind.ERRORS, bad_share=0.01),
        Limit(kind=LimitKind.QUALITY, bad_share=0.02),
    ),
    fingerprint=Fingerprint(
        gpu_model="H100-SXM-80GB",
        gpus=3,
        driver="550.54",
        image_digest="sha256:" + "a" * 64,
        model_revision="r2",
        flags='--tp 1 --quantization "fp8"',
    ),
    mix=Mix(
        source="prompts.jsonl",
        arrivals="gamma",
        arrival_scv=4.0,
        input_tokens=512.0,
        input_scv=1.5,
        output_tokens=128.0,
        output_scv=0.5,
    ),
    effort=Effort(
        tolerance=0.05,
        measured_s=3600.0,
        requests=36_000,
        effective=5_000.0,
        longest_disturbance_s=400.0,
        void_steps=2,
        lateness_p99_s=0.001,
    ),
    measured_at=OffsetDateTime(2026, 9, 10, 14, offset=hours(8)),
    valid_until=OffsetDateTime(2026, 10, 10, 14, offset=hours(8)),
    resolved=False,
    quality=QualityHeld(check="exact", required=0.98, low=0.985, high=0.995),
    profile=Profile(concurrency=(1.0, 64.0), throughput_rps=(0.4, 9.7), latency_s=(2.6, 7.9), percentile=0.99),
    evidence_file="claim.parquet",
    evidence_sha256="sha256:" + "0" * 64,
    warnings=("a proxy buffers",),
    live=LiveQueries(
        rate='sum(rate(requests_total{app="chat"}[10m]))',
        within=("first", "second"),
        replicas="count(up)",
        step_s=1800,
    ),
)


def written(folder: Path, claim: CapacityClaim) -> Path:
    path = folder / "claim.yaml"
    write_together([claim_output(path, claim)])
    return path


def test_what_is_written_is_read_as_the_same_claim(tmp_path: Path) -> None:
    path = written(tmp_path, CLAIM)
    read = read_claim(path)
    assert read.claim.limits[0].bad_share == pytest.approx(0.05)
    limits = tuple(
        replace(one, bad_share=like.bad_share) for one, like in zip(read.claim.limits, CLAIM.limits, strict=True)
    )
    assert replace(read.claim, limits=limits) == CLAIM
    assert read.sha256 == "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
    assert is_ours(path)


def test_the_low_end_is_rounded_down(tmp_path: Path) -> None:
    claim = replace(CLAIM, sustained=Sustained(low_rps=9.59996, high_rps=9.99999, confidence=0.95))
    held = read_claim(written(tmp_path, claim)).claim.sustained
    assert (held.low_rps, held.high_rps) == (9.599, 10.0)


def test_what_was_not_observed_is_left_out(tmp_path: Path) -> None:
    claim = CapacityClaim(
        name="chat",
        sustained=Sustained(low_rps=9.6),
        limits=(Limit(kind=LimitKind.LATENCY, bad_share=0.05, bound_s=1.0),),
        fingerprint=Fingerprint(),
        mix=Mix(),
        effort=Effort(
            requests=36_000, effective=float("nan"), longest_disturbance_s=inf, tool="other", open_loop=False
        ),
        measured_at=CLAIM.measured_at,
        valid_until=CLAIM.valid_until,
    )
    path = written(tmp_path, claim)
    text = path.read_text(encoding="utf-8")
    assert "requests: 36000" in text
    left_out = {"effectiveSample", "longestDisturbance", "latenessP99", "highRps", "hardware", "settings", "evidence"}
    assert not left_out & set(text.replace(":", " ").split())
    assert "nan" not in text.lower()
    assert "null" not in text
    read = read_claim(path).claim
    assert (read.sustained, read.fingerprint, read.effort.requests) == (claim.sustained, Fingerprint(), 36_000)
    assert isnan(read.effort.longest_disturbance_s)
    assert (read.effort.open_loop, read.mix.arrivals, read.evidence_file) == (False, None, None)


REFUSED = {
    "validUntil: 2026-09-10T14:00:00+08:00": (
        "validUntil",
        "is 2026-09-10T14:00:00+08:00, not after measuredAt, 2026-09-10T14:00:00+08:00",
    ),
    "sustained: {lowRps: 9.6, highRps: 9.5}": ("sustained.highRps", "is 9.5, below lowRps, 9.6"),
    "sustained: {lowRps: 0}": ("sustained.lowRps", "must be above 0"),
    "sustained: {lowRps: 9.6, limitedBy: latancy}": ("sustained.limitedBy", "nearest: latency"),
    "targets: [{percentile: 0.95}]": ("targets[0]", "has neither latency nor firstToken"),
    "quality: {check: exact, required: 0.9, low: 0.99, high: 0.98}": ("quality.high", "below low"),
    "hardware: {gpuModels: H100}": ("hardware.gpuModels", "nearest: gpuModel"),
    "profile: {concurrency: [1, 64], throughputRps: [0.4], latency: [2s, 3s]}": (
        "profile.throughputRps",
        "has 1 values, concurrency 2",
    ),
    "profile: {concurrency: [64, 1], throughputRps: [1, 2], latency: [2s, 3s]}": ("profile.concurrency", "ascend"),
    "evidence: {file: claim.parquet, sha256: abc}": ("evidence.sha256", "has not the form"),
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, line: str) -> None:
    given = {
        "measuredAt": '"2026-09-10T14:00:00+08:00"',
        "validUntil": '"2026-10-10T14:00:00+08:00"',
        "sustained": "{lowRps: 9.6}",
        "targets": "[{latency: 9s}]",
    }
    name, value = line.split(": ", 1)
    given[name] = value if value[0] in "{[" else f'"{value}"'
    path = tmp_path / "claim.yaml"
    head = ["apiVersion: ebbtide.dev/v1alpha1", "kind: CapacityClaim", "metadata: {name: chat}", "spec:"]
    path.write_text("\n".join(head + [f"  {key}: {text}" for key, text in given.items()]) + "\n", encoding="utf-8")
    with pytest.raises(DocumentError) as caught:
        read_claim(path)
    field, said = REFUSED[line]
    assert caught.value.place.field == field
    assert caught.value.place.line == len(head) + 1 + list(given).index(name)
    assert said in str(caught.value)


def test_fields_have_the_documents_names() -> None:
    assert document_field("image_digest") == "imageDigest"
    assert claim_field("image_digest") == "settings.imageDigest"
    assert claim_field("gpus") == "hardware.gpus"
