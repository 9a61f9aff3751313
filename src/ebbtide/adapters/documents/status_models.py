"""The status of Fleet and Schedule, field by field: the controller's words, which no plan reads."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from ebbtide.adapters.documents.memory_models import MemorySpec
from ebbtide.adapters.documents.model import DocumentModel, described
from ebbtide.adapters.documents.quantities import Duration, Instant, Label

_MOST = 1_000_000
_COUNT: dict[str, Any] = {"ge": 0, "le": _MOST}
Generation = Annotated[int, Field(ge=0)]


class ConditionSpec(DocumentModel):
    """One thing that holds, does not, or is not known; as Kubernetes' own conditions."""

    type: str = described("What it is about.", max_length=316)
    status: Literal["True", "False", "Unknown"] = described("Whether it holds.")
    observed_generation: Generation | None = described(
        "The generation of the object that it was found at.", default=None, completed="not said"
    )
    last_transition_time: Instant = described("Since when it is so.", unit="instant")
    reason: str = described("Why, in one word.", max_length=1_024)
    message: str = described("Why, in a sentence.", default="", completed="not said", max_length=32_768)


class MotionSpec(DocumentModel):
    """One pool's nodes on their way."""

    pool: Label = described("The pool's name.")
    direction: Literal["yield", "reclaim"] = described("Which way.")
    there: int = described("Nodes of the window's plan that are there.", unit="nodes", **_COUNT)
    wanted: int = described("Nodes that the plan asks for.", unit="nodes", **_COUNT)
    moving: int = described("Nodes on their way.", unit="nodes", **_COUNT)
    late: int = described("Nodes whose move took too long.", default=0, unit="nodes", **_COUNT)


class ScheduleShortageSpec(DocumentModel):
    """A workload that stands below its plan now."""

    workload: Label = described("Who goes short.")
    missing_replicas: int = described("Replicas below the plan.", unit="replicas", **_COUNT)
    missing_gpus: int | None = described("Their GPUs.", default=None, unit="GPUs", completed="not said", **_COUNT)
    reason: str = described("Why.", default="", completed="not said")


class ScheduleStatusSpec(DocumentModel):
    """Where the schedule stands; the controller's alone."""

    observed_generation: Generation | None = described(
        "The generation of the Schedule that this tells of.", default=None, completed="none yet"
    )
    phase: Literal["Holding", "Yielding", "Reclaiming", "Paused", "Blocked"] | None = described(
        "What is being done.", default=None, completed="none yet"
    )
    window: str | None = described("The window in force.", default=None, completed="none", max_length=63)
    next_change: Instant | None = described(
        "When the next window begins.", default=None, unit="instant", completed="not known"
    )
    shortage: str | None = described("All shortages on one line.", default=None, completed="none yet")
    motion: list[MotionSpec] = described("What is on its way.", default=[], completed="nothing", max_length=128)
    shortages: list[ScheduleShortageSpec] = described(
        "Who goes short now.", default=[], completed="nobody", max_length=2_000
    )
    conditions: list[ConditionSpec] = described(
        "What holds and what does not.", default=[], completed="none yet", max_length=64, merge_by="type"
    )
    memory: MemorySpec | None = described(
        "What the controller must not forget; not to be edited.", default=None, completed="nothing"
    )


class PoolStatusSpec(DocumentModel):
    """One pool's nodes and how long they take."""

    name: Label = described("The pool's name.")
    production_nodes: int = described("Usable in production.", default=0, unit="nodes", **_COUNT)
    ephemeral_nodes: int = described("Usable in research, movable.", default=0, unit="nodes", **_COUNT)
    reserved_nodes: int = described("In research for good.", default=0, unit="nodes", **_COUNT)
    moving_nodes: int = described("On their way.", default=0, unit="nodes", **_COUNT)
    quarantined_nodes: int = described("Known to be broken.", default=0, unit="nodes", **_COUNT)
    yield_time: Duration | None = described(
        "The measured P90 of a yield.", default=None, unit="duration", completed="too few moves"
    )
    reclaim_time: Duration | None = described(
        "The measured P90 of a reclaim.", default=None, unit="duration", completed="too few moves"
    )


class FleetStatusSpec(DocumentModel):
    """Where the nodes stand; the controller's alone."""

    observed_generation: Generation | None = described(
        "The generation of the Fleet that this tells of.", default=None, completed="none yet"
    )
    mode: Literal["Shadow", "Active"] | None = described("Whether it acts.", default=None, completed="none yet")
    pool_names: str | None = described("The pools on one line.", default=None, completed="none yet")
    nodes: str | None = described("Nodes by side on one line.", default=None, completed="none yet")
    pools: list[PoolStatusSpec] = described(
        "The pools.", default=[], completed="none yet", max_length=64, merge_by="name"
    )
    conditions: list[ConditionSpec] = described(
        "What holds and what does not.", default=[], completed="none yet", max_length=64, merge_by="type"
    )
