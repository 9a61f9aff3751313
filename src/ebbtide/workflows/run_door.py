"""Kueue's door, turn by turn: look, follow, decide, and where the Fleet says Active, act (§7.4)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.door.acts import DoorActs
from ebbtide.adapters.kubernetes.door.owners import Owners
from ebbtide.adapters.kubernetes.door.runs import LedgerHome
from ebbtide.adapters.kubernetes.door.sight import Flavors, Sight, look
from ebbtide.adapters.kubernetes.events import Events, Told
from ebbtide.adapters.kubernetes.kinds import KUEUE_GROUP, KUEUE_VERSIONS, Kinds
from ebbtide.adapters.kubernetes.problems import ApiError, Kind
from ebbtide.batch.door.decide import Decision, decide
from ebbtide.batch.door.following import Following, by_flavor, followed, horizon_s
from ebbtide.batch.hollows import Hollow, Tenure
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.operations import Mode
from ebbtide.fleet.schedule import Schedule
from ebbtide.workflows.research_capacity import ResearchCapacity
from ebbtide.workflows.run_documents import Documents
from ebbtide.workflows.run_door_acts import TOLD_AGAIN_S, Acting
from ebbtide.workflows.run_door_ledger import Bookkeeper
from ebbtide.workflows.run_told import Teller

BARRED_S = 60.0
HEARD_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorTurn:
    """How a turn ended: why nothing was done ("" where it was), and when to look again (None: as usual)."""

    idle: str = ""
    failed: bool = False
    next_s: float | None = None


class Door:
    """One cluster's door. ``goes_on`` is asked before each write: False ends the turn there.

    ``ledger``: where the ledger of runs is kept; None: in memory alone.
    """

    def __init__(
        self,
        cluster: Cluster,
        teller: Teller,
        *,
        goes_on: Callable[[], bool],
        instance: str = "ebbtide",
        ledger: LedgerHome | None = None,
    ) -> None:
        self._events = Events(cluster=cluster, instance=instance)
        self._books = Bookkeeper(ledger, teller)
        self._cluster, self._teller, self._goes_on = cluster, teller, goes_on
        self._kinds = Kinds(cluster)
        self._owners = Owners(cluster, self._kinds)
        self._following: Following | None = None
        self._barred_s = float("-inf")
        self._told: dict[str, float] = {}

    def changes(self) -> Iterator[None]:
        """Yields when a Workload changed; ends after a while. ``ApiError`` where that cannot be heard."""
        root = self._kinds.kueue
        if root is not None:
            yield from self._cluster.changes(f"{root}/workloads", for_s=HEARD_S)

    def turn(self, documents: Documents, at_s: float) -> DoorTurn:
        """One turn; ``at_s`` is now. What fails is told and tried at the next turn."""
        idle = _idle(documents)
        if idle:
            self._teller.once("jobs", idle, level="info")
            return DoorTurn(idle=idle)
        if at_s < self._barred_s:
            return DoorTurn(idle="something is forbidden", failed=True)
        assert documents.schedule is not None  # it would be idle
        try:
            return self._turn(documents.fleet, documents.schedule, at_s)
        except ApiError as problem:
            if problem.why is Kind.FORBIDDEN:
                self._barred_s = at_s + BARRED_S
            if problem.why is Kind.MISSING:
                self._kinds.forget()
            self._teller.once("jobs", str(problem))
            return DoorTurn(idle=str(problem), failed=True)

    def _turn(self, fleet: Fleet, schedule: Schedule, at_s: float) -> DoorTurn:
        root = self._kinds.kueue
        if root is None:
            idle = _no_kueue(self._kinds.served(KUEUE_GROUP))
            self._teller.once("jobs", idle)
            return DoorTurn(idle=idle)
        whole_s = float(math.floor(at_s))
        self._owners.begin()
        oldest_s = time.monotonic() - 2 * TOLD_AGAIN_S
        self._told = {uid: told_s for uid, told_s in self._told.items() if told_s > oldest_s}
        sight = look(self._cluster, root, _flavors(fleet), self._owners.annotations)
        hollows = _hollows(fleet, schedule, whole_s, horizon_s(sight.works, whole_s))
        ledger = self._books.tell(sight, write=fleet.mode is Mode.ACTIVE and self._goes_on())
        self._following = followed(self._following, sight.works, hollows, at_s=whole_s, ledger=ledger)
        decision = decide(self._following, sight.works, hollows, at_s=whole_s)
        self._teller.once("jobs", "; ".join(sight.queues.problems))
        if fleet.mode is Mode.ACTIVE:
            acts = DoorActs(self._cluster, root, self._owners)
            acting = Acting(acts, sight, self._teller, zone=schedule.time_zone, goes_on=self._goes_on, told=self._told)
            acting.all(decision)
            self._tell(tuple(acting.events), at_s)
        else:
            self._shadow(decision, sight)
        return DoorTurn(next_s=decision.next_s)

    def _tell(self, events: tuple[Told, ...], at_s: float) -> None:
        """Events stop nothing: what cannot be told is said in the log."""
        try:
            if self._goes_on():
                self._events.tell(events, at_s)
                self._teller.once("job events", "")
        except ApiError as problem:
            self._teller.once("job events", str(problem))

    def _shadow(self, decision: Decision, sight: Sight) -> None:
        """In Shadow what would be done is said, and nothing is written: a check that nobody answers admits nothing."""
        unanswered = ", ".join(one.metadata.name for one in sight.queues.inactive)
        self._teller.once(
            "checks", f"in Shadow nobody answers {unanswered}: its ClusterQueues admit nothing" if unanswered else ""
        )
        due = sorted(move.work.name for move in decision.moves if move.to_live)
        self._teller.once("would release", ", ".join(due), level="info")


def _idle(documents: Documents) -> str:
    """Why nothing is to be done; "" where something is."""
    fleet, schedule = documents.fleet, documents.schedule
    if documents.blocked or schedule is None:
        return f"jobs wait: {documents.blocked or 'there is no Schedule'}"
    if fleet.research.quota is None:
        return "no job is admitted: the Fleet names no spec.research.quota"
    if schedule.fleet_digest != fleet.digest:
        return "jobs wait: the Schedule was made for another Fleet"
    return ""


def _no_kueue(served: list[str]) -> str:
    if not served:
        return "no job is admitted: research has no Kueue"
    return f"no job is admitted: Kueue serves {', '.join(served)}, and {' or '.join(KUEUE_VERSIONS)} is needed"


def _flavors(fleet: Fleet) -> Flavors:
    assert fleet.research.quota is not None  # it would be idle
    resources = {}
    for one in fleet.research.quota.flavors:
        for name in (one.reserved, one.ephemeral):
            if name:
                resources[name] = fleet.pool(one.pool).gpu_resource
    return Flavors(resources=resources, checkpoint_interval_s=fleet.research.checkpoint_interval_s)


def _hollows(fleet: Fleet, schedule: Schedule, at_s: float, until_s: float) -> tuple[Hollow, ...]:
    assert fleet.research.quota is not None  # it would be idle
    names = {}
    for one in fleet.research.quota.flavors:
        names[one.pool, Tenure.RESERVED] = one.reserved
        names[one.pool, Tenure.EPHEMERAL] = one.ephemeral
    capacity = ResearchCapacity(schedule=schedule, pools=fleet.pools, remarks=())
    return by_flavor(capacity.hollows(from_s=at_s, until_s=until_s), names)
