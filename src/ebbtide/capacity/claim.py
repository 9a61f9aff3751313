"""The values of a CapacityClaim: a sustained rate with all that it stands on (§M.8).

What belongs here: the nouns and when a claim no longer holds. What doesn't: the document's form
(``adapters.documents``), hardware and settings (``fleet.fingerprint``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, nan

from whenever import OffsetDateTime

from ebbtide.capacity.limits import FIRST_TOKEN, LATENCY, Limit
from ebbtide.fleet.fingerprint import Fingerprint
from ebbtide.fleet.workload import Target, TargetKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Sustained:
    """The rate of one replica: two-sided interval at ``confidence``. ``low_rps`` is what planning uses.

    ``replicas`` were measured together, and the rate of all divided by them. ``high_rps`` infinite: no rate was seen
    to fail. ``confidence`` None: the source states none. ``limited_by`` None: not seen.
    """

    low_rps: float
    high_rps: float = inf
    confidence: float | None = None
    limited_by: str | None = None
    monotone: bool = True
    replicas: int = 1

    def __post_init__(self) -> None:
        if not 0.0 <= self.low_rps <= self.high_rps or self.low_rps == inf:
            raise ValueError(f"not an interval: {self.low_rps} to {self.high_rps}")
        if self.confidence is not None and not 0.0 < self.confidence < 1.0:
            raise ValueError(f"not a confidence: {self.confidence}")
        if self.replicas < 1:
            raise ValueError(f"not measured: {self.replicas} replicas")


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityHeld:
    """The check, the share of right answers that it requires, and the interval of the share seen at the answer."""

    check: str
    required: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """The requests sent: where from, when, and the moments of their lengths; None and NaN where unknown."""

    source: str | None = None
    arrivals: str | None = None
    arrival_scv: float = nan
    input_tokens: float = nan
    input_scv: float = nan
    output_tokens: float = nan
    output_scv: float = nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A replica's concurrency against its throughput and the latencies' percentile, concurrency ascending."""

    concurrency: tuple[float, ...] = ()
    throughput_rps: tuple[float, ...] = ()
    latency_s: tuple[float, ...] = ()
    percentile: float = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """What was spent and seen; NaN and None where the tool does not say.

    ``longest_disturbance_s`` is the longest that the time near the answer could show.
    """

    tolerance: float = nan
    measured_s: float = nan
    requests: int | None = None
    effective: float = nan
    longest_disturbance_s: float = nan
    void_steps: int | None = None
    lateness_p99_s: float = nan
    open_loop: bool = True
    tool: str = "ebbtide"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveQueries:
    """Where the same service is seen at work: ``within[i]`` is the share of requests that keeps latency target i."""

    rate: str
    within: tuple[str, ...]
    replicas: str = "vector(1)"
    step_s: int = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityClaim:
    """A sustained rate, its targets, what it was measured on and with, until when it holds, and the evidence.

    ``resolved`` False: the budget ended before the tolerance; the interval is what was reached. ``warnings`` are what
    a reader must know of how it was measured.
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
    evidence_file: str | None = None
    evidence_sha256: str | None = None
    warnings: tuple[str, ...] = ()
    live: LiveQueries | None = None

    def expired(self, at: OffsetDateTime) -> bool:
        """Whether the claim no longer holds at that instant."""
        return at >= self.valid_until

    def covers(self, target: Target) -> bool:
        """Whether its rate keeps a workload's target: one of its own is as tight, on the same or a longer span.

        A request waits no longer than until its first token, and that comes no later than the whole answer.
        """
        spans = (LATENCY,) if target.kind is TargetKind.LATENCY else (LATENCY, FIRST_TOKEN)  # no longer than these
        late = 1.0 - target.percentile + 1e-12
        return any(
            one.metric in spans and one.bound_s is not None and one.bound_s <= target.bound_s and one.bad_share <= late
            for one in self.limits
        )

    def held_rps(self, replicas: int) -> float:
        """What n replicas hold: n times the low end of one."""
        return replicas * self.sustained.low_rps
