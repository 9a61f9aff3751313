"""The values of a CapacityClaim: a sustained rate with all that it stands on (§M.8).

What belongs here: the nouns and what two claims or a fleet's expectation differ in. What doesn't: the document's
form (``adapters.documents``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from whenever import OffsetDateTime

from ebbtide.capacity.limits import Limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Sustained:
    """The rate of one replica: two-sided interval at ``confidence``. ``low_rps`` is what planning uses."""

    low_rps: float
    high_rps: float
    confidence: float
    limited_by: str
    monotone: bool = True
    replicas: int = 1

    def __post_init__(self) -> None:
        if not 0.0 <= self.low_rps <= self.high_rps or not 0.0 < self.confidence < 1.0:
            raise ValueError(f"not an interval: {self.low_rps} to {self.high_rps} at {self.confidence}")


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityHeld:
    """The check, the share of right answers that it requires, and the interval of the share seen at the answer."""

    check: str
    required: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What a claim is true of; None is unknown, which matches nothing that is expected."""

    gpu_model: str | None = None
    gpus: int | None = None
    driver: str | None = None
    image_digest: str | None = None
    model_revision: str | None = None
    flags: str | None = None

    def differences(self, expected: Mapping[str, str | int]) -> tuple[str, ...]:
        """The fields that are not what is expected, in the expectation's order; an unknown name is a difference.

        >>> seen = Fingerprint(gpu_model="H100", model_revision="r2")
        >>> seen.differences({"gpu_model": "H100", "model_revision": "r1"})
        ('model_revision',)
        """
        return tuple(name for name, value in expected.items() if getattr(self, name, None) != value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """The requests sent: where from, and the moments of their lengths; NaN where unknown."""

    source: str
    arrivals: str = "poisson"
    arrival_scv: float = 1.0
    input_tokens: float = float("nan")
    input_scv: float = float("nan")
    output_tokens: float = float("nan")
    output_scv: float = float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Concurrency against throughput and the latencies' percentile, as the steps had them, concurrency ascending."""

    concurrency: tuple[float, ...] = ()
    throughput_rps: tuple[float, ...] = ()
    latency_s: tuple[float, ...] = ()
    percentile: float = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """What was spent and seen: ``longest_disturbance_s`` is the longest that the time near the answer could show."""

    tolerance: float
    measured_s: float
    requests: int
    effective: float
    longest_disturbance_s: float
    void_steps: int = 0
    lateness_p99_s: float = float("nan")
    open_loop: bool = True
    tool: str = "ebbtide"


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityClaim:
    """A sustained rate, its targets, what it was measured on and with, until when it holds, and the evidence.

    ``resolved`` False: the budget ended before the tolerance; the interval is what was reached.
    """

    name: str
    sustained: Sustained
    limits: tuple[Limit, ...]
    fingerprint: Fingerprint
    mix: Mix
    effort: Effort
    measured_at: OffsetDateTime
    valid_until: OffsetDateTime
    resolved: bool = True
    quality: QualityHeld | None = None
    profile: Profile = field(default_factory=Profile)
    evidence_file: str = ""
    evidence_sha256: str = ""

    def expired(self, at: OffsetDateTime) -> bool:
        """Whether the claim no longer holds at that instant."""
        return at >= self.valid_until

    def held_rps(self, replicas: int) -> float:
        """What n replicas hold: n times the low end of one."""
        return replicas * self.sustained.low_rps / self.sustained.replicas
