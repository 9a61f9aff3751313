"""The controller's memory in the Schedule's status, field by field (§6.1): a part of the one table.

Written whole by one writer, so it is atomic. Whoever edits it by hand takes nodes in motion out of the controller's
sight.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ebbtide.adapters.documents.exact_times import ExactDuration, ExactInstant
from ebbtide.adapters.documents.model import DocumentModel, described
from ebbtide.adapters.documents.quantities import Label

MOST_MOVES = 2_000
MOST_FINISHED = 2_048  # eight pools' directions with all that are kept of each
MOST_NODES = 10_000
MOST_FIELDS = 10_000  # written fields: replicas, bounds, quota and cordons of the largest fleet
_NUMBER = 2**53

DirectionWord = Literal["yield", "reclaim"]
StageWord = Literal["emptying", "draining", "removing", "travelling", "joining", "returning"]
NodeName = Annotated[str, Field(max_length=253)]
FieldName = Annotated[str, Field(max_length=600)]
FieldValue = Annotated[str, Field(max_length=16_384)]


class MoveSpec(DocumentModel):
    """One node in motion."""

    id: str = described("Names the move for good.", max_length=253)
    pool: Label = described("The pool's name.")
    direction: DirectionWord = described("Which way it goes.")
    node: NodeName = described("The name that it leaves under.")
    stage: StageWord = described("How far it is.")
    begun: ExactInstant = described("When it was begun.", unit="instant")
    since: ExactInstant = described("Since when it is at its stage.", unit="instant")
    due: ExactInstant = described("The window start that it is for.", unit="instant")
    batch: int = described("Moves that were begun together.", default=1, ge=1, le=_NUMBER)
    token: str = described("The provider's.", default="", completed="none", max_length=1_024)
    arrived: NodeName = described("The name that it came under.", default="", completed="not yet")
    late: bool = described("Whether a step took too long once.", default=False)
    asked: ExactInstant | None = described(
        "When the world was last asked for its step.", default=None, unit="instant", completed="never"
    )
    reason: str = described("What it was begun for.", default="", completed="not said", max_length=1_024)


class FinishedSpec(DocumentModel):
    """Moves that are done, in columns: one entry per move."""

    pool: list[Label] = described("The pool.", default=[], completed="none", max_length=MOST_FINISHED)
    direction: list[DirectionWord] = described("The way.", default=[], completed="none", max_length=MOST_FINISHED)
    batch: list[int] = described(
        "Moves that were begun together.", default=[], completed="none", max_length=MOST_FINISHED
    )
    took: list[ExactDuration] = described(
        "From the first act to usable.", default=[], completed="none", unit="duration", max_length=MOST_FINISHED
    )
    at: list[ExactInstant] = described(
        "When it was done.", default=[], completed="none", unit="instant", max_length=MOST_FINISHED
    )


class BrokenSpec(DocumentModel):
    """A node known to be broken."""

    node: NodeName = described("The node's name.")
    pool: Label = described("Its pool.")
    since: ExactInstant = described("Since when that is known.", unit="instant")


class DifferenceSpec(DocumentModel):
    """A pool whose nodes do not add up."""

    pool: Label = described("The pool's name.")
    ticks: int = described("For how many ticks.", unit="ticks", ge=0, le=_NUMBER)


class MissingSpec(DocumentModel):
    """Nodes of a pool that nothing is seen of."""

    pool: Label = described("The pool's name.")
    nodes: int = described("How many.", unit="nodes", ge=1, le=_NUMBER)
    since: ExactInstant = described("Since when so many are.", unit="instant")
    lost: int = described("Of them, taken for lost.", unit="nodes", default=0, ge=0, le=_NUMBER)


class WrittenSpec(DocumentModel):
    """A field that the controller wrote."""

    field: FieldName = described("Which, as kind/name:field.")
    before: FieldValue = described("What it was before: restored on release.")
    value: FieldValue = described("What was written last.")
    at: ExactInstant = described("When.", unit="instant")
    seen: bool = described("Whether it was seen in place since.", default=False)


class RevertSpec(DocumentModel):
    """A field that somebody else set back."""

    field: FieldName = described("Which, as kind/name:field.")
    who: str = described("Who.", default="", completed="not known", max_length=1_024)
    seen: list[ExactInstant] = described("When.", unit="instant", max_length=16)


class SparedSpec(DocumentModel):
    """A node that no move takes for a while, because one was given up on it."""

    node: NodeName = described("The node's name.")
    until: ExactInstant = described("Until when.", unit="instant")


class SizeSpec(DocumentModel):
    """The size that a pool's provider is to have on a side."""

    pool: str = described("Which, as side/pool.", max_length=128)
    nodes: int = described("The size, an absolute number.", unit="nodes", ge=-_NUMBER, le=_NUMBER)


class GuardSpec(DocumentModel):
    """A workload whose live demand ran above what its replicas hold (§6.7)."""

    workload: Label = described("The workload's name.")
    rps: float = described("The highest rate.", unit="requests/s")
    peak: ExactInstant = described("When that was.", unit="instant")
    above: ExactInstant = described("When demand was last above.", unit="instant")


class MemorySpec(DocumentModel):
    """What the controller must not forget; not to be edited."""

    next_move: int = described("The number of the next move's id.", default=1, ge=0, le=_NUMBER)
    moves: list[MoveSpec] = described("Nodes in motion.", default=[], completed="none", max_length=MOST_MOVES)
    finished: FinishedSpec = described(
        "Moves that are done, the oldest first.", default=FinishedSpec(), completed="none"
    )
    quarantined: list[BrokenSpec] = described(
        "Nodes known to be broken.", default=[], completed="none", max_length=MOST_NODES
    )
    differences: list[DifferenceSpec] = described(
        "Pools that do not add up.", default=[], completed="none", max_length=64
    )
    missing: list[MissingSpec] = described("Pools with missing nodes.", default=[], completed="none", max_length=64)
    written: list[WrittenSpec] = described(
        "Fields that the controller wrote.", default=[], completed="none", max_length=MOST_FIELDS
    )
    reverts: list[RevertSpec] = described(
        "Fields that somebody set back.", default=[], completed="none", max_length=MOST_FIELDS
    )
    spared: list[SparedSpec] = described("Nodes left alone.", default=[], completed="none", max_length=MOST_NODES)
    sizes: list[SizeSpec] = described("Sizes asked of providers.", default=[], completed="none", max_length=128)
    guards: list[GuardSpec] = described("Live guards that are on.", default=[], completed="none", max_length=2_000)
