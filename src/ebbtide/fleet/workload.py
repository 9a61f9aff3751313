"""Workloads: one inference service each, with its service, its targets and what waiting costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from ebbtide.fleet.fingerprint import Fingerprint
from ebbtide.fleet.operations import OWN_GRACE, Drain, ScaleTarget

ANY = Fingerprint()  # expects nothing


class Balancing(StrEnum):
    """How requests find a replica's slots (§5.6)."""

    POOLED = "pooled"
    LEAST_LOADED = "leastLoaded"
    RANDOM = "random"


class TargetKind(StrEnum):
    """What a target bounds: the wait before service, or wait plus service (§5.4); the first token only by a claim."""

    WAIT = "wait"
    LATENCY = "latency"
    FIRST_TOKEN = "firstToken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """At least ``percentile`` of the requests are to have a wait (or latency) of at most ``bound_s``."""

    kind: TargetKind
    bound_s: float
    percentile: float = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A replica's rate by a claim (§M.8). ``holds_rps`` None: the claim was not read; only planning reads it."""

    name: str
    holds_rps: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What one request asks of a slot, or what a claim says that a replica holds.

    ``time_s`` None: to be taken from the trace ("observed"), unless there is a ``claim``. ``scv`` None: the trace's
    where it has one, else 1. ``concurrency`` is a replica's slots: a replica that serves k requests at once is k
    servers (§5.6). With a claim nothing is known of times and slots.
    """

    time_s: float | None
    scv: float | None = None
    concurrency: int = 1
    claim: Claimed | None = None

    @property
    def holds_rps(self) -> float | None:
        """What a replica holds with all targets met, where a claim says it. ``ValueError`` where none was read.

        >>> Service(time_s=None, claim=Claimed(name="chat", holds_rps=9.6)).holds_rps
        9.6
        """
        if self.claim is None:
            return None
        if self.claim.holds_rps is None:
            raise ValueError(f"the claim {self.claim.name} was not read")
        return self.claim.holds_rps

    @property
    def planned_time_s(self) -> float | None:
        """What a request takes of a slot; of a claimed replica the mean gap at the rate that it holds. None: observed.

        So slots ÷ time is the capacity of a replica either way.

        >>> Service(time_s=None, claim=Claimed(name="chat", holds_rps=10.0)).planned_time_s
        0.1
        """
        held = self.holds_rps
        return self.time_s if held is None else 1.0 / held


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandRef:
    """Which series of which source is this workload's demand. ``key`` is a foreign name such as ``m-small/c5``."""

    source: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One inference service and its bucket of GPUs in one pool.

    ``patience_s`` infinite: users never give up (the state "unlimited"). ``max_replicas`` None: no maximum.
    ``scale_target`` None: completed to the Deployment of its name in the namespace ``default``. ``expects`` is what the
    claim must have been measured on and with.
    """

    name: str
    demand: DemandRef
    pool: str
    gpus_per_replica: int
    service: Service
    targets: tuple[Target, ...]
    balancing: Balancing = Balancing.LEAST_LOADED
    patience_s: float = math.inf
    weight: float = 1.0
    waiting_cost_usd_per_request_h: float = 0.0
    min_replicas: int = 1
    max_replicas: int | None = None
    startup_time_s: float = 300.0
    scale_target: ScaleTarget | None = None
    drain: Drain = OWN_GRACE
    expects: Fingerprint = ANY

    def __post_init__(self) -> None:
        if self.scale_target is None:
            object.__setattr__(self, "scale_target", ScaleTarget(name=self.name))

    @property
    def scales(self) -> ScaleTarget:
        """The object that holds its replicas."""
        assert self.scale_target is not None  # completed above
        return self.scale_target
