"""The controller from turn to turn: documents, the Lease, and where it is ours a look and what follows from it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ebbtide.adapters.kubernetes.bindings import bindings_of
from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.home import ConfigMapHome, ScheduleHome
from ebbtide.adapters.kubernetes.home import Home as MemoryHome
from ebbtide.adapters.kubernetes.wishes import MapWishes, PeoplesWishes
from ebbtide.adapters.kubernetes.world import KubernetesWorld, Wishes
from ebbtide.adapters.nodepools.of_fleet import node_pools_of
from ebbtide.control.loop import tick as one_tick
from ebbtide.control.state import Side
from ebbtide.errors import EbbtideError, PermanentError
from ebbtide.fleet.operations import Clusters
from ebbtide.settings import Settings
from ebbtide.workflows.run_documents import Documents, DocumentSource
from ebbtide.workflows.run_journal import Journal
from ebbtide.workflows.run_live import LiveReader
from ebbtide.workflows.run_places import clusters_of
from ebbtide.workflows.run_told import Teller


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """The Lease as the loop sees it: whether it is ours, who has it, why home could not be asked."""

    ours: Callable[[], bool]
    holder: Callable[[], str] = lambda: ""
    problem: Callable[[], EbbtideError | None] = lambda: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """How a turn ended: why the controller is not ready ("" where it is), and whether something failed."""

    unready: str = ""
    failed: bool = False


class Controller:
    """Documents, the Lease and the world. ``goes_on`` is asked before each action: False ends the tick there."""

    def __init__(
        self,
        source: DocumentSource,
        documents: Documents,
        named: Clusters,
        clusters: dict[Side, Cluster],
        hold: Hold,
        *,
        namespace: str,
        instance: str,
        settings: Settings,
        teller: Teller,
        goes_on: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._source, self.documents, self._named, self._clusters = source, documents, named, clusters
        self._hold, self._namespace, self._settings, self._teller = hold, namespace, settings, teller
        self._goes_on, self._clock = goes_on, clock
        self._live = LiveReader(settings)
        self._world: tuple[tuple[object, ...], KubernetesWorld] | None = None
        self._journal = Journal(clusters, namespace, documents.fleet.name, instance)
        self._last_asked = PeoplesWishes()

    def turn(self) -> Turn:
        """One turn.

        ``PermanentError`` where the Fleet names other clusters than those that this process is connected to.
        """
        try:
            self.documents = documents = self._source.read()
        except EbbtideError as problem:
            self._teller.once("home", str(problem))
            return Turn(unready=str(problem), failed=True)
        self._same_clusters(documents)
        ours, silent = self._hold.ours(), self._hold.problem()
        self._teller.turned(documents, ours=ours, holder=self._hold.holder())
        self._teller.once("home", "" if silent is None else str(silent))
        if not ours:
            return Turn(unready="" if silent is None else str(silent), failed=silent is not None)
        if documents.schedule is None:
            return self._blocked(documents)
        return self._tick(documents)

    def _same_clusters(self, documents: Documents) -> None:
        if clusters_of(documents.fleet, self._settings) != self._named:
            raise PermanentError(
                f"Fleet {documents.fleet.name} names other clusters than at the start",
                kind="other_clusters",
                hint="start again: the Lease and the memory are kept where production is",
            )

    def _blocked(self, documents: Documents) -> Turn:
        try:
            self._journal.blocked(documents, self._clock())
        except EbbtideError as problem:
            self._teller.once("journal", str(problem))
        return Turn(unready=documents.blocked)

    def _tick(self, documents: Documents) -> Turn:
        assert documents.schedule is not None  # the caller asked
        started_s, at_s = time.monotonic(), self._clock()
        try:
            world = self.world(documents)
            tick = one_tick(world, documents.fleet, documents.schedule, at_s, goes_on=self._goes_on)
        except EbbtideError as problem:
            self._teller.once("tick", str(problem))
            return Turn(unready=str(problem), failed=True)
        self._teller.once("tick", "")
        self._teller.tick(documents, tick, world.last, at_s, time.monotonic() - started_s)
        problems = world.take_problems()
        if self._goes_on():
            problems += self._journal.tick(world, documents, tick, world.last, at_s)
        self._teller.failed(problems)
        self._teller.asked(self._clusters.values())
        return Turn()

    def world(self, documents: Documents) -> KubernetesWorld:
        """The world as these documents name it: another Fleet, other objects.

        ``ApiError`` where a provider's cluster must be asked for that, and does not answer.
        """
        key: tuple[object, ...] = (documents.fleet, documents.schedules)
        if self._world is None or self._world[0] != key:
            bindings = bindings_of(documents.fleet)
            made = KubernetesWorld(
                self._clusters,
                bindings,
                self._memory(documents),
                node_pools_of(documents.fleet, bindings, self._clusters),
                wishes=self._wishes,
                still_ours=self._hold.ours,
            )
            self._world = (key, made)
        return self._world[1]

    def _memory(self, documents: Documents) -> MemoryHome:
        production = self._clusters[Side.PRODUCTION]
        if documents.schedules:
            return ScheduleHome(production, self._namespace, documents.schedules[0])
        return ConfigMapHome(production, self._namespace, f"ebbtide-{documents.fleet.name}")

    def _wishes(self, at_s: float) -> Wishes:
        documents, schedule = self.documents, self.documents.schedule
        live, asked = self._live.read(documents.fleet, at_s), self._asked(documents)
        self._teller.once("live demand", "" if live.problem is None else str(live.problem))
        return Wishes(
            mode=documents.fleet.mode,
            overrides=asked.overrides if schedule is None else (*schedule.overrides, *asked.overrides),
            paused=bool(documents.blocked)
            or asked.pause is not None
            or (schedule is not None and schedule.pause is not None),
            doubt=documents.doubt,
            live_rps=live.rps,
            live_at_s=live.at_s,
        )

    def _asked(self, documents: Documents) -> PeoplesWishes:
        """What people ask for beside the documents: with files that is kept at home; what cannot be read stays."""
        if not documents.schedules:
            home = MapWishes(self._clusters[Side.PRODUCTION], self._namespace, f"ebbtide-{documents.fleet.name}-wishes")
            try:
                self._last_asked = home.read()
                self._teller.once("wishes", "")
            except EbbtideError as problem:
                self._teller.once("wishes", str(problem))
        return self._last_asked
