"""The nouns at the door: a Workload of Kueue's as ebbtide sees it, and what it was told before."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from ebbtide.batch.admission import Gang
from ebbtide.batch.door.wishes import Wishes
from ebbtide.batch.plan import Promise


class Stage(StrEnum):
    """How far a Workload has come."""

    HELD = "held"  # in a held queue, without quota
    WAITING = "waiting"  # in a live queue, without quota
    CHECKING = "checking"  # it holds quota on an ephemeral flavor and waits for our answer
    RUNNING = "running"  # admitted


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What stands on the Workload already: the promise, the flavor that was planned, and the planned finish."""

    promise: Promise | None = None
    flavor: str = ""
    finish_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One Workload that is not over. Instants: seconds since the epoch.

    ``name``: namespace/name. ``team``: namespace/LocalQueue it was submitted to. ``flavors``: those on which it could
    be admitted, by its live queue, node selector and tolerations. ``wishes`` None: they cannot be read, ``problem``
    says why. ``flavor``: the one that it holds quota on, "" without quota. ``since_s``: since when it runs without a
    break; ``ran_s``: how long it had run before. ``can_be_held``: whether its live queue has a held one.
    """

    name: str
    team: str
    stage: Stage
    created_s: float
    pods: int
    gpus_per_pod: int
    flavors: tuple[str, ...]
    wishes: Wishes | None = field(default_factory=Wishes)
    problem: str = ""
    flavor: str = ""
    since_s: float = 0.0
    ran_s: float = 0.0
    told: Told = field(default_factory=Told)
    can_be_held: bool = True

    @property
    def gpus(self) -> int:
        """GPUs of the whole gang."""
        return self.pods * self.gpus_per_pod

    @property
    def released(self) -> bool:
        """Whether it was let into the live queue by a plan of ours."""
        return self.stage in (Stage.WAITING, Stage.CHECKING) and self.told.promise is not None

    def gang(self) -> Gang:
        """As the rule for work without a plan sees it."""
        wishes = self.wishes or Wishes()
        return Gang(
            name=self.name,
            pods=self.pods,
            gpus_per_pod=self.gpus_per_pod,
            duration=wishes.duration,
            preemptible=wishes.checkpoint_interval_s is not None,
        )
