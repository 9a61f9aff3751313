"""`ebbtide run --dry-run`: one look, and what the API servers would say to every write of the decision."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from ebbtide.adapters.kubernetes.connections import connect
from ebbtide.adapters.kubernetes.world import KubernetesWorld
from ebbtide.adapters.telemetry.metrics import Metrics
from ebbtide.control.actions import Action, Decision, Record
from ebbtide.control.decide import decide
from ebbtide.control.state import Mode, State
from ebbtide.control.world import Result
from ebbtide.errors import InputError, WorldError
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.schedule import Schedule
from ebbtide.settings import Settings
from ebbtide.workflows.run_controller import Controller, Hold
from ebbtide.workflows.run_places import RunOptions, clusters_of, find_home
from ebbtide.workflows.run_told import Teller


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An action, what the servers would make of it, and why not."""

    action: Action
    result: Result
    problems: tuple[WorldError, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """What was seen and decided as if the mode were Active, and the servers' answers."""

    state: State
    decision: Decision
    answers: tuple[Answered, ...]


def dry_run(options: RunOptions, settings: Settings, log: Any) -> DryRun:
    """Look once and try every action with server-side dry run: nothing is written, not even a Lease.

    Raises as ``run`` does at its start; ``InputError`` where no Schedule is in force.
    """
    home = find_home(options, settings)
    with ExitStack() as stack:
        stack.callback(home.close)
        documents = home.source.read()
        if documents.schedule is None:
            raise InputError(documents.blocked, kind="blocked")
        named = clusters_of(documents.fleet, settings)
        clusters = connect(named, kubeconfig=options.kubeconfig, dry_run=True)
        for cluster in {id(one): one for one in clusters.values()}.values():
            stack.callback(cluster.close)
        controller = Controller(
            home.source,
            documents,
            named,
            clusters,
            Hold(ours=lambda: True),
            namespace=home.namespace,
            instance="dry-run",
            settings=settings,
            teller=Teller(log, Metrics(), None),
        )
        return _looked(controller.world(documents), documents.fleet, documents.schedule, log)


def _looked(world: KubernetesWorld, fleet: Fleet, schedule: Schedule, log: Any) -> DryRun:
    at_s = time.time()
    state = replace(world.observe(at_s), mode=Mode.ACTIVE)
    decision = decide(state, fleet, schedule, at_s)
    for problem in world.take_problems():
        log.warning("call failed", problem=str(problem))
    answers = tuple(_tried(world, one, at_s) for one in decision.actions if not isinstance(one, Record))
    return DryRun(state=state, decision=decision, answers=answers)


def _tried(world: KubernetesWorld, action: Action, at_s: float) -> Answered:
    result = world.apply(action, at_s)
    return Answered(action=action, result=result, problems=world.take_problems())
