"""`ebbtide run`: the controller's process. Documents, the Lease, one tick every few seconds, and what is said of it."""

from __future__ import annotations

import os
import platform
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebbtide.adapters.kubernetes.bindings import bindings_of
from ebbtide.adapters.kubernetes.clients import Cluster, config_of
from ebbtide.adapters.kubernetes.connections import connect
from ebbtide.adapters.kubernetes.home import ConfigMapHome, Home, ScheduleHome
from ebbtide.adapters.kubernetes.lease import DURATION_S, Lease
from ebbtide.adapters.kubernetes.wishes import MapWishes, PeoplesWishes
from ebbtide.adapters.kubernetes.world import KubernetesWorld, Wishes
from ebbtide.adapters.nodepools.of_fleet import node_pools_of
from ebbtide.adapters.telemetry.health import Health, serve
from ebbtide.adapters.telemetry.metrics import Metrics
from ebbtide.control.loop import Tick
from ebbtide.control.loop import tick as one_tick
from ebbtide.control.state import Side
from ebbtide.errors import EbbtideError, InputError, PermanentError, Place
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.operations import ClusterRef, Clusters
from ebbtide.settings import Settings
from ebbtide.workflows.run_documents import Documents, DocumentSource, Files, Resources
from ebbtide.workflows.run_journal import Journal
from ebbtide.workflows.run_live import live_demand
from ebbtide.workflows.run_record import Recorder

LONGEST_TURN_S = 120.0  # a look at two clusters that answer at their time-outs; a loop silent for longer hangs


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What `ebbtide run` was asked for: two files, or the name of a Fleet in the cluster."""

    fleet: Path | None = None
    schedule: Path | None = None
    fleet_name: str = ""
    namespace: str = ""
    kubeconfig: str | None = None
    every_s: float = 5.0
    lease_s: float = DURATION_S
    listen: str = ""
    record: Path | None = None
    once: bool = False


def run(options: RunOptions, settings: Settings, log: Any, stop: threading.Event) -> None:
    """Run until ``stop`` is set; the Lease is given back then.

    Raises ``InputError`` where a document is wrong at the start, ``WorldError`` where home cannot be reached then;
    later both are said and tried again.
    """
    metrics, health = Metrics(), Health(patience_s=LONGEST_TURN_S + options.every_s)
    with ExitStack() as stack:
        if options.listen:
            server = serve(options.listen, metrics.registry, health)
            stack.callback(server.server_close)
            stack.callback(server.shutdown)
        controller = stack.enter_context(open_controller(options, settings, log, metrics))
        log.info("started", identity=controller.lease.identity, every_s=options.every_s)
        while not stop.is_set():
            health.came_round(controller.turn())
            if options.once:
                break
            stop.wait(options.every_s)
        log.info("stopping")


@contextmanager
def open_controller(
    options: RunOptions, settings: Settings, log: Any, metrics: Metrics, *, dry_run: bool = False
) -> Iterator[Controller]:
    """The controller with its connections; in the end they are closed and the Lease is given back."""
    home, namespace = _home(options, settings)
    try:
        source = _source(options, home, namespace)
        documents = source.read()
        fleet = documents.fleet
        clusters = _clusters(fleet, options, settings, dry_run=dry_run)
        at_home = home if home is not None else clusters[Side.PRODUCTION]
        lease = Lease(at_home, namespace, f"ebbtide-{fleet.name}", _identity(), duration_s=options.lease_s)
        controller = Controller(
            source,
            clusters,
            lease,
            namespace,
            settings=settings,
            log=log,
            metrics=metrics,
            record=options.record,
            dry_run=dry_run,
        )
        try:
            yield controller
        finally:
            controller.close()
    finally:
        if home is not None:
            home.close()


def _identity() -> str:
    """Another with every start: a controller that was killed is not the one that comes after it."""
    return f"{platform.node() or 'ebbtide'}_{os.getpid()}_{uuid.uuid4().hex[:8]}"


def _home(options: RunOptions, settings: Settings) -> tuple[Cluster | None, str]:
    """A connection of its own to where Fleet and Schedule are, None with files; and the namespace of the home."""
    inside = settings.context_production is None and "KUBERNETES_SERVICE_HOST" in os.environ
    if options.fleet_name:
        config = config_of(context=settings.context_production, in_cluster=inside, kubeconfig=options.kubeconfig)
        return Cluster(config, name="production"), options.namespace or config.namespace
    return None, options.namespace or "default"


def _source(options: RunOptions, home: Cluster | None, namespace: str) -> DocumentSource:
    if home is not None:
        return Resources(home, namespace, options.fleet_name)
    if options.fleet is None or options.schedule is None:
        raise InputError(
            "needs --fleet FILE and --schedule FILE, or --fleet-name NAME for resources in the cluster",
            kind="no_documents",
            place=Place(field="--fleet"),
        )
    return Files(options.fleet, options.schedule)


def _clusters(fleet: Fleet, options: RunOptions, settings: Settings, *, dry_run: bool) -> dict[Side, Cluster]:
    contexts = {Side.PRODUCTION: settings.context_production or "", Side.RESEARCH: settings.context_research or ""}
    named = fleet.clusters
    if named is None:
        if not all(contexts.values()):
            raise PermanentError(
                f"Fleet {fleet.name} names no clusters",
                kind="no_clusters",
                place=Place(field="spec.clusters"),
                hint="name them there, or set EBBTIDE_CONTEXT_PRODUCTION and EBBTIDE_CONTEXT_RESEARCH",
            )
        named = Clusters(
            production=ClusterRef(context=contexts[Side.PRODUCTION]),
            research=ClusterRef(context=contexts[Side.RESEARCH]),
        )
    return connect(named, contexts=contexts, kubeconfig=options.kubeconfig, dry_run=dry_run)


class Controller:
    """Documents, the Lease and the world, from turn to turn. ``journal`` is told of every tick of the leader."""

    def __init__(
        self,
        source: DocumentSource,
        clusters: dict[Side, Cluster],
        lease: Lease,
        namespace: str,
        *,
        settings: Settings,
        log: Any,
        metrics: Metrics,
        record: Path | None = None,
        dry_run: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._source, self._clusters, self.lease, self._namespace = source, clusters, lease, namespace
        self._settings, self._log, self._metrics, self._clock = settings, log, metrics, clock
        # A dry run writes nothing, so it needs no Lease.
        self._may_write = (lambda: True) if dry_run else lease.still_ours
        self._recorder = Recorder(record) if record is not None else None
        self._world: tuple[tuple[object, ...], KubernetesWorld] | None = None
        self._documents = source.read()
        self._journal = Journal(clusters, namespace, self._documents.fleet.name, lease.identity)
        self._last_asked = PeoplesWishes()
        self._said: dict[str, str] = {}

    @property
    def documents(self) -> Documents:
        """What is in force."""
        return self._documents

    def close(self) -> None:
        """Give the Lease back and close the connections; a home that does not answer lets the Lease run out."""
        try:
            self.lease.release()
        except EbbtideError as problem:
            self._log.warning("lease not given back", problem=str(problem))
        for cluster in {id(one): one for one in self._clusters.values()}.values():
            cluster.close()
        if self._recorder is not None:
            self._recorder.close()

    def turn(self) -> str:
        """One turn: documents, the Lease, and where it is ours a tick. Why it is not ready, "" where it is."""
        try:
            self._documents = documents = self._source.read()
            self._metrics.documents_ok.set(documents.problem is None)
            self._once("documents", str(documents.blocked or documents.problem or ""))
            ours = self.lease.hold()
        except EbbtideError as problem:
            self._metrics.leader.set(0)
            self._once("home", str(problem))
            return str(problem)
        self._once("home", "")
        self._metrics.leader.set(ours)
        self._once("standby", "" if ours else f"{self.lease.holder} holds the Lease", level="info")
        return self.tick(documents) if ours else ""

    def tick(self, documents: Documents) -> str:
        """Look, decide, act, and say what became of it."""
        started_s, at_s = time.monotonic(), self._clock()
        if documents.schedule is None:
            try:
                self._journal.blocked(documents, at_s)
            except EbbtideError as problem:
                self._once("journal", str(problem))
            return documents.blocked
        world = self.world(documents)
        try:
            tick = one_tick(world, documents.fleet, documents.schedule, at_s)
        except EbbtideError as problem:
            self._once("tick", str(problem))
            return str(problem)
        self._once("tick", "")
        self._tell(world, documents, tick, at_s, time.monotonic() - started_s)
        return ""

    def world(self, documents: Documents) -> KubernetesWorld:
        """The world as these documents name it: another Fleet, other objects."""
        key: tuple[object, ...] = (documents.fleet, documents.schedules)
        if self._world is None or self._world[0] != key:
            bindings = bindings_of(documents.fleet)
            made = KubernetesWorld(
                self._clusters,
                bindings,
                self._memory(documents),
                node_pools_of(documents.fleet, bindings, self._clusters),
                wishes=self._wishes,
                still_ours=self._may_write,
            )
            self._world = (key, made)
        return self._world[1]

    def _memory(self, documents: Documents) -> Home:
        production = self._clusters[Side.PRODUCTION]
        if documents.schedules:
            return ScheduleHome(production, self._namespace, documents.schedules[0])
        return ConfigMapHome(production, self._namespace, f"ebbtide-{documents.fleet.name}")

    def _wishes(self, at_s: float) -> Wishes:
        documents = self._documents
        live = live_demand(documents.fleet, self._settings, at_s)
        self._once("live demand", "" if live.problem is None else str(live.problem))
        schedule, asked = documents.schedule, self._asked(documents)
        return Wishes(
            mode=documents.fleet.mode,
            overrides=asked.overrides if schedule is None else (*schedule.overrides, *asked.overrides),
            paused=bool(documents.blocked)
            or asked.pause is not None
            or (schedule is not None and schedule.pause is not None),
            live_rps=live.rps,
            live_at_s=live.at_s,
        )

    def _asked(self, documents: Documents) -> PeoplesWishes:
        """What people ask for beside the documents: with files that is kept at home; what cannot be read stays."""
        if not documents.schedules:
            home = MapWishes(self._clusters[Side.PRODUCTION], self._namespace, f"ebbtide-{documents.fleet.name}-wishes")
            try:
                self._last_asked = home.read()
            except EbbtideError as problem:
                self._once("wishes", str(problem))
        return self._last_asked

    def _tell(self, world: KubernetesWorld, documents: Documents, tick: Tick, at_s: float, took_s: float) -> None:
        state = world.last
        self._metrics.saw(tick, state, documents.fleet, at_s=at_s, took_s=took_s)
        for cluster in self._clusters.values():
            self._metrics.called(cluster.name, cluster.calls)
        for problem in world.take_problems():
            self._metrics.problems.labels(problem.kind).inc()
            self._log.warning("call failed", kind=problem.kind, problem=str(problem))
        for action, result in tick.results:
            self._log.info(
                "action", kind=type(action).__name__, result=str(result), rule=action.why.rule, why=action.why.text
            )
        for one in tick.decision.withheld:
            self._once(f"withheld {one.what}", f"{one.why.text} ({one.why.rule})", level="info")
        self._forget_withheld({one.what for one in tick.decision.withheld})
        for problem in self._journal.tick(world, documents, tick, state, at_s):
            self._metrics.problems.labels(problem.kind).inc()
            self._once("journal", str(problem))
        if self._recorder is not None:
            self._recorder.write(tick, state, documents, at_s)

    def _once(self, about: str, text: str, *, level: str = "warning") -> None:
        """Say it when it changes, not at every turn."""
        if self._said.get(about, "") != text:
            self._said[about] = text
            getattr(self._log, level if text else "info")(about, now=text or "as it should be")

    def _forget_withheld(self, still: set[str]) -> None:
        for about in [about for about in self._said if about.startswith("withheld ")]:
            if about.removeprefix("withheld ") not in still:
                del self._said[about]
