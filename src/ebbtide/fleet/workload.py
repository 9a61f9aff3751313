"""Workloads: one inference service each, with its service, its targets and what waiting costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from ebbtide.fleet.operations import OWN_GRACE, Drain, ScaleTarget


class Balancing(StrEnum):
    """How requests find a replica's slots (§5.6)."""

    POOLED = "pooled"
    LEAST_LOADED = "leastLoaded"
    RANDOM = "random"


class TargetKind(StrEnum):
    """What a target bounds: the wait before service, or wait plus service (§5.4)."""

    WAIT = "wait"
    LATENCY = "latency"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """At least ``percentile`` of the requests are to have a wait (or latency) of at most ``bound_s``."""

    kind: TargetKind
    bound_s: float
    percentile: float = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What one request asks of a slot.

    ``time_s`` None: to be taken from the trace ("observed"). ``scv`` None: the trace's where it has one, else 1.
    ``concurrency`` is a replica's slots: a replica that serves k requests at once is k servers (§5.6).
    """

    time_s: float | None
    scv: float | None = None
    concurrency: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandRef:
    """Which series of which source is this workload's demand. ``key`` is a foreign name such as ``m-small/c5``."""

    source: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One inference service and its bucket of GPUs in one pool.

    ``patience_s`` infinite: users never give up (the state "unlimited"). ``max_replicas`` None: no maximum.
    ``scale_target`` None: completed to the Deployment of its name in the namespace ``default``.
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

    def __post_init__(self) -> None:
        if self.scale_target is None:
            object.__setattr__(self, "scale_target", ScaleTarget(name=self.name))

    @property
    def scales(self) -> ScaleTarget:
        """The object that holds its replicas."""
        assert self.scale_target is not None  # completed above
        return self.scale_target
