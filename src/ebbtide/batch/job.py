"""Jobs: a gang of pods, how long it runs, when it may start, when it must be done, and what it is worth (§7.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ebbtide.batch.durations import Duration


@dataclass(frozen=True, slots=True, kw_only=True)
class Width:
    """Another number of pods that a job can run with, ``speedup`` times as fast as with its own."""

    pods: int
    speedup: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One way to run a job: ``pods`` pods of ``gpus_per_pod`` GPUs for ``duration``."""

    pods: int
    gpus_per_pod: int
    duration: Duration

    @property
    def gpus(self) -> int:
        """GPUs of the whole gang."""
        return self.pods * self.gpus_per_pod

    def nodes(self, gpus_per_node: int) -> int | None:
        """Empty nodes that the gang takes: a pod never spans nodes, a node holds several; None where no pod fits.

        >>> Shape(pods=5, gpus_per_pod=3, duration=Duration.usual(60.0)).nodes(8)
        3
        """
        on_one = gpus_per_node // self.gpus_per_pod
        return None if on_one == 0 else -(-self.pods // on_one)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A gang of ``pods`` × ``gpus_per_pod`` GPUs that runs whole or not at all. Instants: seconds since the epoch.

    ``deadline_s`` None: it has none. ``checkpoint_interval_s`` None: it must not be interrupted; otherwise it may be,
    and loses what it did since its last checkpoint. ``after``: the jobs that must have ended before. ``widths``: other
    numbers of pods that would do. ``pools`` empty: any. ``ValueError`` where a field is out of its bounds.
    """

    name: str
    gpus_per_pod: int
    duration: Duration
    earliest_start_s: float
    pods: int = 1
    deadline_s: float | None = None
    value_usd: float = 0.0
    checkpoint_interval_s: float | None = None
    after: tuple[str, ...] = ()
    widths: tuple[Width, ...] = ()
    pools: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.pods < 1 or self.gpus_per_pod < 1:
            raise ValueError(f"{self.name}: a gang has at least a pod of a GPU, not {self.pods} of {self.gpus_per_pod}")
        if self.value_usd < 0 or not math.isfinite(self.value_usd):
            raise ValueError(f"{self.name}: a value is at least 0, not {self.value_usd}")
        if self.checkpoint_interval_s is not None and self.checkpoint_interval_s <= 0:
            raise ValueError(f"{self.name}: a checkpoint interval is above 0 s")

    @property
    def preemptible(self) -> bool:
        """Whether it may be interrupted."""
        return self.checkpoint_interval_s is not None

    @property
    def gpus(self) -> int:
        """GPUs of the whole gang at its own width."""
        return self.pods * self.gpus_per_pod

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The ways to run it, its own first.

        >>> job = Job(name="a", gpus_per_pod=8, duration=Duration.usual(3600.0), earliest_start_s=0.0,
        ...     widths=(Width(pods=2, speedup=1.8),))
        >>> [(shape.pods, shape.duration.expected_s) for shape in job.shapes]
        [(1, 3600.0), (2, 2000.0)]
        """
        own = Shape(pods=self.pods, gpus_per_pod=self.gpus_per_pod, duration=self.duration)
        others = (
            Shape(pods=one.pods, gpus_per_pod=self.gpus_per_pod, duration=self.duration.times(1 / one.speedup))
            for one in self.widths
        )
        return (own, *others)
