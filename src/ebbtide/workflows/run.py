"""`ebbtide run`: the controller's process. Documents, the Lease, one tick every few seconds, and how it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from ebbtide.adapters.kubernetes.connections import connect
from ebbtide.adapters.kubernetes.door.runs import LedgerHome
from ebbtide.adapters.telemetry.health import Health, serve
from ebbtide.adapters.telemetry.metrics import Metrics
from ebbtide.control.state import Side
from ebbtide.errors import EbbtideError
from ebbtide.fleet.operations import Clusters
from ebbtide.settings import Settings
from ebbtide.workflows.run_beside import Beside
from ebbtide.workflows.run_controller import Controller, Hold
from ebbtide.workflows.run_documents import Documents, DocumentSource
from ebbtide.workflows.run_door import Door
from ebbtide.workflows.run_lease import LeaseKeeper
from ebbtide.workflows.run_pace import rest_s
from ebbtide.workflows.run_places import Home, RunOptions, clusters_of, door_cluster_of, find_home, lease_of
from ebbtide.workflows.run_record import Recorder
from ebbtide.workflows.run_told import Teller

LONGEST_TURN_S = 120.0  # a look at two clusters that answer at their time-outs; a loop silent for longer hangs


def run(options: RunOptions, settings: Settings, log: Any, stop: threading.Event) -> None:
    """Run until ``stop`` is set: the action under way is finished then, and the Lease given back.

    With files raises ``InputError`` where one is wrong at the start. What cannot be read later, or at any time in the
    cluster, is said and tried again. ``PermanentError`` where a context is not there.
    """
    metrics, health = Metrics(), Health(patience_s=LONGEST_TURN_S + options.every_s)
    recorder = None if options.record is None else Recorder(options.record)
    teller = Teller(log, metrics, recorder)
    with ExitStack() as stack:
        stack.callback(teller.close)
        if options.listen:
            server = serve(options.listen, metrics.registry, health)
            stack.callback(server.server_close)
            stack.callback(server.shutdown)
        home = find_home(options, settings)
        stack.callback(home.close)
        documents = _first_documents(home.source, options, teller, health, stop)
        if documents is None:
            return
        led = stack.enter_context(_leading(home, documents, options, settings, teller, health, stop))
        _loop(led, options, health, stop)
        log.info("stopping")


def _first_documents(
    source: DocumentSource, options: RunOptions, teller: Teller, health: Health, stop: threading.Event
) -> Documents | None:
    """The first that can be read; None where we are to stop before. Resources may be applied after we were started."""
    failures = 0
    while not stop.is_set():
        try:
            return source.read()
        except EbbtideError as problem:
            if options.from_files or options.once:
                raise
            teller.once("home", str(problem))
            failures += 1
            health.came_round(str(problem))
            stop.wait(rest_s(options.every_s, failures))
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Led:
    """What runs under the Lease."""

    controller: Controller
    beside: Beside


@contextmanager
def _leading(
    home: Home,
    documents: Documents,
    options: RunOptions,
    settings: Settings,
    teller: Teller,
    health: Health,
    stop: threading.Event,
) -> Iterator[Led]:
    """The controller and Kueue's door with their Lease; in the end nothing is written, and the Lease is given back."""
    named = clusters_of(documents.fleet, settings)
    lease, at_home = lease_of(named, documents.fleet.name, home.namespace, options)
    keeper = LeaseKeeper(lease, duration_s=options.lease_s, alive=lambda: health.alive)
    with ExitStack() as stack:
        stack.callback(at_home.close)
        clusters = connect(named, kubeconfig=options.kubeconfig, may_write=lease.still_ours)
        for cluster in {id(one): one for one in clusters.values()}.values():
            stack.callback(cluster.close)
        teller.log.info("started", identity=lease.identity, every_s=options.every_s)
        keeper.start()
        try:
            controller = Controller(
                home.source,
                documents,
                named,
                clusters,
                Hold(ours=keeper.ours, holder=lambda: lease.holder, problem=lambda: keeper.problem),
                namespace=home.namespace,
                instance=lease.identity,
                settings=settings,
                teller=teller,
                goes_on=lambda: keeper.ours() and not stop.is_set(),
            )
            ledger = LedgerHome(clusters[Side.PRODUCTION], home.namespace, f"ebbtide-{documents.fleet.name}-durations")
            with _door(
                named,
                controller,
                options,
                teller,
                keeper,
                stop,
                instance=lease.identity,
                ledger=ledger,
                may_write=lease.still_ours,
            ) as beside:
                yield Led(controller=controller, beside=beside)
        finally:
            keeper.stop()
            try:
                lease.release()
            except EbbtideError as problem:  # a home that does not answer lets it run out
                teller.log.warning("lease not given back", problem=str(problem))


@contextmanager
def _door(
    named: Clusters,
    controller: Controller,
    options: RunOptions,
    teller: Teller,
    keeper: LeaseKeeper,
    stop: threading.Event,
    *,
    instance: str,
    ledger: LedgerHome,
    may_write: Callable[[], bool],
) -> Iterator[Beside]:
    """Kueue's door, with a connection of its own: hundreds of releases must not use up the controller's calls."""
    cluster = door_cluster_of(named, options, may_write=may_write)

    def ours() -> bool:
        return keeper.ours() and not stop.is_set()

    beside = Beside(
        Door(cluster, teller, goes_on=ours, instance=instance, ledger=ledger),
        lambda: controller.documents,
        ours,
        every_s=options.every_s,
    )
    if not options.once:
        beside.start()
    try:
        yield beside
    finally:
        beside.stop()
        cluster.close()


def _loop(led: Led, options: RunOptions, health: Health, stop: threading.Event) -> None:
    failures = 0
    while not stop.is_set():
        turn = led.controller.turn()
        led.beside.check()
        failures = failures + 1 if turn.failed else 0
        health.came_round(turn.unready)
        if options.once:
            led.beside.once()
            return
        stop.wait(rest_s(options.every_s, failures))
