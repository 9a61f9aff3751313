"""Actions: small values that a world carries out, each with its reason; and the decision that holds them.

An action names an object and the state that it is to have, so that doing it twice is doing it once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ebbtide.control.memory import Memory
from ebbtide.control.state import Bounds, Side, Tenure


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """The rule behind an action, what it means in words, and the numbers it was decided on (§6.10)."""

    rule: str
    text: str
    numbers: Mapping[str, float | int | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Something to be done, for a reason."""

    why: Why


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(Action):
    """Write the memory home. First in every decision that has one: nothing is begun that is not written (§6.1)."""

    memory: Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class SetQuota(Action):
    """Set a pool's ephemeral quota, with its borrowing and lending limits."""

    pool: str
    gpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cordon(Action):
    """Make a node unschedulable in our name and mark it, so that other autoscalers leave it alone (§6.8)."""

    side: Side
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncordon(Action):
    """Take our cordon and mark away again."""

    side: Side
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Park(Action):
    """Mark a research Workload as parked by us and set ``active`` false (§7.5)."""

    work: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Activate(Action):
    """Let a Workload that we parked requeue."""

    work: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerDeletionCost(Action):
    """Give a workload's pods on these nodes, and no others, a negative deletion cost (§6.3)."""

    workload: str
    nodes: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetReplicas(Action):
    """Set the scale of a workload; with a precondition on what was seen."""

    workload: str
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Surge(Action):
    """Replicas above the plan while those on leaving nodes are replaced (§6.3)."""

    workload: str
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetBounds(Action):
    """Set an autoscaler's bounds in one write; its own values were saved by ``Record`` before (§6.8)."""

    workload: str
    bounds: Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain(Action):
    """Evict all pods of a node that a drain ends; asked again until none is left."""

    side: Side
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePods(Action):
    """Production wins (§6.5): delete what is left on a node without waiting for its grace any longer."""

    side: Side
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveNodes(Action):
    """Take exactly the named nodes out of a pool, whose size becomes ``size``.

    One action for all of a pool's leaving nodes: all are named before the size is written, once, so that no other
    node can be taken in their place and asking again never grows the pool. ``moves``: the ids, for tokens.
    """

    side: Side
    pool: str
    nodes: tuple[str, ...]
    size: int
    moves: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowPool(Action):
    """Ask the provider for a pool of ``size`` nodes: an absolute number (§6.1). ``moves``: the ids it grows for."""

    side: Side
    pool: str
    size: int
    moves: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Admit(Action):
    """Strip the joining taint from a usable node and give it its tenure (§6.3, §6.4)."""

    side: Side
    node: str
    tenure: Tenure


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine(Action):
    """Name a node as broken: cordoned, owned, counted as unusable (§6.6)."""

    side: Side
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore(Action):
    """A quarantined node is whole again, or a field gets back what it was before us (``value``)."""

    what: str
    value: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """What was not done although the plan asks for it, and why not (§6.10)."""

    what: str
    why: Why


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do now, in order; what not, and why; when to look again even if nothing changes.

    ``phase`` and ``window`` are the Schedule's status words; ``shortages`` says which workloads stand below the plan.
    """

    actions: tuple[Action, ...]
    withheld: tuple[Withheld, ...]
    next_look_s: float
    window: str
    phase: str
    shortages: Mapping[str, int] = field(default_factory=dict)
