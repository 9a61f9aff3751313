"""The CapacityClaim document, field by field: what a service holds, and what that stands on (§M.8)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ebbtide.adapters.documents.model import Document, DocumentModel, described
from ebbtide.adapters.documents.quantities import Duration, Instant, Percentile, Share
from ebbtide.adapters.documents.target_models import (
    MAX_RATE,
    BoundSpec,
    LiveSpec,
    MeasuredShare,
)

Rate = Annotated[float, Field(gt=0, le=MAX_RATE)]
Amount = Annotated[float, Field(ge=0, le=1e12)]
MAX_COUNT = 1_000_000_000_000


class SustainedSpec(DocumentModel):
    """The rate that a replica holds with every target met: an interval of two sides."""

    low_rps: Rate = described("Its low end: what planning uses.", unit="requests/s")
    high_rps: Rate | None = described(
        "Its high end.", default=None, unit="requests/s", completed="none: no rate was seen to fail"
    )
    confidence: Percentile | None = described(
        "How often such an interval holds the true rate.", default=None, completed="not stated"
    )
    limited_by: Literal["latency", "firstToken", "betweenTokens", "longestGap", "errors", "quality"] | None = described(
        "What fails first as the rate grows.", default=None, completed="not seen"
    )
    resolved: bool = described("Whether the interval became as narrow as wished for.", default=True)
    monotone: bool = described("Whether no higher rate passed after a lower one had failed.", default=True)
    replicas: int = described(
        "Replicas that were measured together; their rate was divided by them.", default=1, ge=1, le=1_000_000
    )


class HeldQualitySpec(DocumentModel):
    """The share of right answers near the rate."""

    check: str = described("How answers were checked.", min_length=1)
    required: MeasuredShare = described("The share that must be right.")
    low: Share = described("Low end of the share seen.")
    high: Share = described("High end of the share seen.")


class HardwareSpec(DocumentModel):
    """What it ran on."""

    gpu_model: str | None = described("The GPUs' model.", default=None, completed="unknown", min_length=1)
    gpus: int | None = described(
        "GPUs of all replicas measured.", default=None, completed="unknown", ge=0, le=1_000_000
    )
    driver: str | None = described("Their driver.", default=None, completed="unknown", min_length=1)


class SettingsSpec(DocumentModel):
    """What it ran."""

    image_digest: str | None = described(
        "The container image's digest.", default=None, completed="unknown", min_length=1
    )
    model_revision: str | None = described("The model's revision.", default=None, completed="unknown", min_length=1)
    flags: str | None = described("The server's flags.", default=None, completed="unknown", min_length=1)


class ProfileSpec(DocumentModel):
    """What a replica does at several loads: columns of equal length."""

    concurrency: list[Rate] = described(
        "Requests in flight on average, ascending.", default=[], unit="requests", max_length=1_000
    )
    throughput_rps: list[Rate] = described("Answers a second.", default=[], unit="requests/s", max_length=1_000)
    latency: list[Duration] = described(
        "The latency's percentile there.", default=[], unit="duration", max_length=1_000
    )
    percentile: Percentile = described("Which percentile.", default=0.95)


class MethodSpec(DocumentModel):
    """How it was measured."""

    tool: str = described("By what.", default="ebbtide", min_length=1)
    arrivals: str | None = described(
        "The law of the gaps: poisson, gamma, replay, or as the tool calls it.", default=None, completed="not stated"
    )
    arrival_scv: Amount | None = described(
        "Squared coefficient of variation of the gaps.", default=None, completed="not stated"
    )
    open_loop: bool = described("Whether requests were sent at their times, whatever the answers did.", default=True)
    mix: str | None = described("Where the requests came from.", default=None, completed="not stated")
    input_tokens: Amount | None = described("Mean.", default=None, unit="tokens", completed="unknown")
    input_scv: Amount | None = described("Their SCV.", default=None, completed="unknown")
    output_tokens: Amount | None = described("Mean.", default=None, unit="tokens", completed="unknown")
    output_scv: Amount | None = described("Their SCV.", default=None, completed="unknown")
    tolerance: MeasuredShare | None = described(
        "The half-width wished for, as a share of the rate.", default=None, completed="not stated"
    )
    measured: Duration | None = described(
        "How long requests were sent.", default=None, unit="duration", completed="not stated"
    )
    requests: int | None = described("Requests sent.", default=None, completed="not stated", ge=0, le=MAX_COUNT)
    effective_sample: int | None = described(
        "As many independent requests would tell as much of the rate (§M.2).",
        default=None,
        completed="not stated",
        ge=0,
        le=MAX_COUNT,
    )
    longest_disturbance: Duration | None = described(
        "A longer one would not have been seen.", default=None, unit="duration", completed="not stated"
    )
    void_steps: int | None = described(
        "Steps that the sender could not offer as planned.", default=None, completed="not stated", ge=0, le=MAX_COUNT
    )
    lateness_p99: Duration | None = described(
        "The sender's own lateness, 99th percentile.", default=None, unit="duration", completed="not stated"
    )


class EvidenceSpec(DocumentModel):
    """The raw results."""

    file: str = described("Their file, relative to here.", min_length=1)
    sha256: Annotated[str, Field(pattern="^sha256:[0-9a-f]{64}$")] = described("Its digest.")


class ClaimSpec(DocumentModel):
    """What was found; all of it facts."""

    measured_at: Instant = described("When.")
    valid_until: Instant = described("From then on it is no ground for a plan.")
    sustained: SustainedSpec = described("The rate of a replica.")
    targets: list[BoundSpec] = described("The latencies that held.", min_length=1, max_length=8)
    error_budget: MeasuredShare | None = described(
        "The share of requests that may fail.", default=None, completed="not stated"
    )
    quality: HeldQualitySpec | None = described("How right the answers were.", default=None, completed="not checked")
    hardware: HardwareSpec = described("What it ran on.", default=HardwareSpec())
    settings: SettingsSpec = described("What it ran.", default=SettingsSpec())
    profile: ProfileSpec = described("What a replica does at several loads.", default=ProfileSpec(), completed="none")
    method: MethodSpec = described("How it was measured.", default=MethodSpec())
    evidence: EvidenceSpec | None = described("The raw results.", default=None, completed="none kept")
    live: LiveSpec | None = described(
        "Queries that show the same service at work.", default=None, completed="none: nothing is looked at live"
    )
    warnings: list[str] = described(
        "What a reader must know of how it was measured.", default=[], completed="none", max_length=32
    )


class ClaimForm(Document):
    """A CapacityClaim: the rate that a replica holds, what it was measured on and with, and how. A file only."""

    kind: Literal["CapacityClaim"] = described("The document's kind.")
    spec: ClaimSpec = described("The claim.")
