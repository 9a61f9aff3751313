"""The state: what was observed of two clusters, each with its own time of sight (§6.1, §6.4, §6.6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ebbtide.control.memory import Memory
from ebbtide.fleet.operations import Mode as Mode
from ebbtide.fleet.operations import Override as Override
from ebbtide.fleet.operations import OverrideKind as OverrideKind


class Side(StrEnum):
    """Where a node stands."""

    PRODUCTION = "production"
    RESEARCH = "research"

    @property
    def other(self) -> Side:
        """The opposite side.

        >>> Side.PRODUCTION.other.value
        'research'
        """
        return Side.RESEARCH if self is Side.PRODUCTION else Side.PRODUCTION


class Tenure(StrEnum):
    """What a node's label says: in research for good, or movable. A node without the label is not ours (§6.4)."""

    RESERVED = "reserved"
    EPHEMERAL = "ephemeral"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One Node object as it was seen; which side it stands on is said by the ``Sight`` that holds it.

    ``since_s``: since when ``ready``, ``gpus`` and ``startup_taint`` are as they are. ``gpus``: allocatable.
    ``joining``: carries our joining taint. ``cordoned``: unschedulable, by ``cordoned_by_us`` or by somebody else.
    ``pods``: pods that a drain has to end, whatever owns them (daemons left out); ``stuck_pods`` of them are
    Terminating for longer than their grace. ``managed`` False: opted out, never to be touched.
    """

    name: str
    tenure: Tenure | None
    provider_id: str
    gpus: int
    ready: bool = True
    since_s: float = 0.0
    startup_taint: bool = False
    joining: bool = False
    cordoned: bool = False
    cordoned_by_us: bool = False
    marked: bool = False
    leaving: bool = False
    pods: int = 0
    stuck_pods: int = 0
    managed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """An autoscaler's least and most replicas; as text, in memory and records, ``least..most``.

    >>> str(Bounds.of("2..8")), Bounds.of("2..8").most
    ('2..8', 8)
    """

    least: int
    most: int

    def __str__(self) -> str:
        return f"{self.least}..{self.most}"

    @classmethod
    def of(cls, text: str) -> Bounds:
        """Those that the text says."""
        least, _, most = text.partition("..")
        return cls(least=int(least), most=int(most))


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """One workload's replicas as they were seen.

    ``wanted`` is the scale's spec; ``ready`` counts ready pods on existing Ready nodes only; ``on`` says how many
    pods (ready or not, not yet deleted) stand on a node. ``autoscaler`` names who else sets the scale, within
    ``bounds``; None: nobody; ``lowest_least``: the smallest least that it takes. ``rolling``: a rollout is under way;
    ``paused``: its owner paused it. ``ordered``: which pod goes is not for a deletion cost to say (a StatefulSet ends
    its youngest). ``disruptions_allowed``: what its PodDisruptionBudget lets go now; None: it has no budget.
    ``lowered_cost``: nodes whose pods of this workload carry a negative deletion cost. ``set_by``: who wrote the
    scale (or the bounds) last, where it can be seen.
    """

    workload: str
    wanted: int
    ready: int
    on: Mapping[str, int] = field(default_factory=dict)
    autoscaler: str | None = None
    bounds: Bounds | None = None
    lowest_least: int = 0
    lowered_cost: frozenset[str] = frozenset()
    disruptions_allowed: int | None = None
    unschedulable: int = 0
    rolling: bool = False
    paused: bool = False
    ordered: bool = False
    managed: bool = True
    set_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchWork:
    """One Kueue Workload (or an owner's pods outside Kueue) with pods or quota in research.

    ``nodes``: where its pods stand, Terminating ones too. ``checkpointed_s``: when its work was last saved (its start,
    where never). ``ends_s`` None: no estimate. ``requeues`` False: ending it loses it (plain pods, §7.5).
    ``active``: spec.active; ``parked_by_us``: our mark that we set it to False.
    """

    name: str
    pool: str
    gpus: int
    nodes: tuple[str, ...]
    preemptible: bool
    checkpointed_s: float
    ends_s: float | None = None
    requeues: bool = True
    active: bool = True
    parked_by_us: bool = False
    has_quota: bool = True
    managed: bool = True

    @property
    def gone(self) -> bool:
        """Ended as §7.5 asks: it holds neither quota nor a pod."""
        return not self.nodes and not self.has_quota


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSeen:
    """One pool on one side: its Node objects, and the size that its provider was asked for (None: cannot be read).

    ``stock_out_s``: since when the provider answers that it has no capacity; None: it does not.
    """

    nodes: tuple[Node, ...] = ()
    size: int | None = None
    stock_out_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """One cluster as it was seen at ``seen_at_s``; a cluster that cannot be read keeps its last sight."""

    seen_at_s: float
    pools: Mapping[str, PoolSeen] = field(default_factory=dict)
    replicas: Mapping[str, Replicas] = field(default_factory=dict)  # production only
    quota_gpus: Mapping[str, int] = field(default_factory=dict)  # research only: nominal ephemeral quota by pool
    quota_set_by: Mapping[str, str] = field(default_factory=dict)  # who wrote it last, where it can be seen
    work: tuple[ResearchWork, ...] = ()  # research only

    def pool(self, name: str) -> PoolSeen:
        """A pool that nothing was seen of is empty."""
        return self.pools.get(name, _NOTHING)


_NOTHING = PoolSeen()


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Everything that ``decide`` knows beside fleet, schedule and clock.

    ``live_rps``: live demand by workload; a workload that is absent is "not observed" (§6.7), as is one last measured
    at ``live_at_s`` too long ago. ``memory``: what home keeps (moves in progress, move times, quarantine …).
    ``paused``: somebody paused the Schedule. ``doubt``: why Fleet and Schedule may not be what people mean by now (one
    can no longer be read): nothing leaves production then, as after ``validUntil``; "": no doubt.
    """

    production: Sight
    research: Sight
    memory: Memory
    mode: Mode = Mode.SHADOW
    live_rps: Mapping[str, float] = field(default_factory=dict)
    live_at_s: float = float("-inf")
    overrides: tuple[Override, ...] = ()
    paused: bool = False
    doubt: str = ""

    def sight(self, side: Side) -> Sight:
        """The cluster on that side."""
        return self.production if side is Side.PRODUCTION else self.research
