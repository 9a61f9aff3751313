"""What the controller must not forget: written home before the act, read back after any crash (§6.1).

While a node travels no object stands for it: its ``Move`` does. Memory is a value; the ``Record`` action replaces it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Direction(StrEnum):
    """Which way a node goes (§2)."""

    YIELD = "yield"
    RECLAIM = "reclaim"


class Stage(StrEnum):
    """How far a move is; the same stages both ways (§6.2, §6.3).

    ``EMPTYING``: cordoned; research work is ended (reclaim) or replicas leave (yield). ``DRAINING``: the rest of its
    pods are evicted. ``REMOVING``: the provider was asked to take the named node out. ``TRAVELLING``: no object
    stands for it; the other side was grown. ``JOINING``: its Node is there and is not usable yet. ``RETURNING``:
    given up before removal; cordon and quota are being restored.
    """

    EMPTYING = "emptying"
    DRAINING = "draining"
    REMOVING = "removing"
    TRAVELLING = "travelling"
    JOINING = "joining"
    RETURNING = "returning"


AT_HOME = frozenset({Stage.EMPTYING, Stage.DRAINING, Stage.RETURNING})  # the Node still stands on its old side
AWAY = frozenset({Stage.REMOVING, Stage.TRAVELLING, Stage.JOINING})  # cannot be given up any more: go on


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One node in motion.

    ``id`` is written before the first act and names the move for good. ``node`` is the name it leaves under,
    ``arrived`` the one under which it came ("" until then; the cloud may give another machine). ``batch``: how many
    moves were begun together. ``due_s``: the window start that a reclaim is for (§6.5), or the start of a yield.
    ``late``: a step took too long once; from then on the node counts as broken, not as being in motion, until it is
    usable after all. ``asked_s``: when the world was last asked for the step it stands at. ``reason``: what it was
    begun for, in words.
    """

    id: str
    pool: str
    direction: Direction
    node: str
    stage: Stage
    begun_s: float
    since_s: float
    due_s: float
    batch: int = 1
    token: str = ""
    arrived: str = ""
    late: bool = False
    asked_s: float = float("-inf")
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedMove:
    """How long one move took, from its first act to usable, and in what company."""

    pool: str
    direction: Direction
    batch: int
    took_s: float
    finished_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Revert:
    """Somebody else set a field back: who, which, and when it was seen (at most the last two, §6.8)."""

    who: str
    seen_s: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A field that we wrote: what it was before we first did (to be restored), and what we wrote last.

    ``seen``: our value was seen in place since, so that another one there now is somebody else's.
    """

    before: str
    value: str
    at_s: float
    seen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Live demand ran above a workload's plan: its peak and when that was, and when it was last above (§6.7)."""

    rps: float
    peak_s: float
    above_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A node known to be broken: its pool, and since when that is known."""

    pool: str
    since_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Nodes of a pool that nothing is seen of and nothing is known of: how many, and since when so many.

    ``lost`` of them have been missing for so long that they are written down as lost: they explain a difference.
    """

    nodes: int
    since_s: float
    lost: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What home keeps. ``version`` is its resourceVersion: a stale writer is refused.

    ``quarantined``: nodes known to be broken, by name: owned, unusable, be their Node object there or not.
    ``difference_ticks``: for how many ticks a pool's nodes have not added up. ``missing``: by pool. ``written``
    and ``reverts`` by field, as ``kind/name:field``.
    ``spared``: nodes that a move was given up on, and until when no other one takes them. ``sizes``: the size that a
    pool's provider is to have on a side, as ``side/pool``: an absolute number, worked out once and written before it
    is asked for. ``guards``: workloads whose live guard is on. ``next_move``: the number of the next move's id.
    """

    version: int = 0
    moves: tuple[Move, ...] = ()
    finished: tuple[FinishedMove, ...] = ()
    quarantined: Mapping[str, Broken] = field(default_factory=dict)
    difference_ticks: Mapping[str, int] = field(default_factory=dict)
    missing: Mapping[str, Missing] = field(default_factory=dict)
    written: Mapping[str, Written] = field(default_factory=dict)
    reverts: Mapping[str, Revert] = field(default_factory=dict)
    spared: Mapping[str, float] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    guards: Mapping[str, Guard] = field(default_factory=dict)
    next_move: int = 1
