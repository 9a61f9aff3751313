"""Replicas, and how their workloads are run; the scheduler that places them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from ebbtide.control.state import Bounds
from ebbtide.simulate.world.machines import Host, NodePool
from ebbtide.simulate.world.timeline import Timeline

if TYPE_CHECKING:  # a replica knows its deployment, which makes it
    from ebbtide.simulate.world.deployments import Deployment


class Phase(IntEnum):
    """Where a replica is in its life; a Deployment deletes the earlier ones first."""

    PENDING = 0
    STARTING = 1
    READY = 2
    TERMINATING = 3
    GONE = 4


class Replica:
    """One replica. ``number`` counts up in a workload: its age, and a StatefulSet's ordinal."""

    __slots__ = ("counted", "deployment", "hosts", "hung", "lowered", "number", "phase", "revision")

    def __init__(self, deployment: Deployment, number: int, revision: int) -> None:
        self.deployment, self.number, self.revision = deployment, number, revision
        self.phase = Phase.PENDING
        self.hosts: tuple[Host, ...] = ()
        self.lowered = self.counted = self.hung = False

    def host_changed(self, host: Host) -> None:
        """A pod counts as ready on an existing, Ready Node only."""
        self.deployment.recount(self)
        if not host.there:
            self.deployment.orphaned(self)

    def host_gone(self, host: Host) -> None:
        """Dead with its machine: it is replaced once its pods are collected."""
        self.deployment.lost(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """How a workload is run. ``autoscaler``: who else sets its scale, at ``target_rps`` for each replica.

    ``budget``: the least available that its PodDisruptionBudget asks for; None: it has none. ``stateful``: scaled
    down from the highest ordinal, whatever pods cost.
    """

    autoscaler: str | None = None
    bounds: Bounds | None = None
    target_rps: float = 1.0
    budget: int | None = None
    stateful: bool = False
    managed: bool = True


class Scheduler:
    """Places what is pending, once for all that changed at an instant; and knows whose scale is to be seen anew."""

    def __init__(self, line: Timeline) -> None:
        self.changed: dict[Deployment, None] = {}
        self._pending: dict[NodePool, dict[Deployment, None]] = {}
        self._due: dict[NodePool, None] = {}
        self._line = line

    def ask_for(self, deployment: Deployment) -> None:
        """It has replicas that need room."""
        self._pending.setdefault(deployment.pool, {})[deployment] = None
        self.ask(deployment.pool)

    def ask(self, pool: NodePool) -> None:
        """There may be room for those that wait."""
        if pool not in self._due and self._pending.get(pool):
            self._due[pool] = None
            self._line.at(self._line.now_s, self._run, pool, loud=False)

    def _run(self, pool: NodePool) -> None:
        del self._due[pool]
        waiting = self._pending[pool]
        for deployment in list(waiting):
            deployment.place()
            if not deployment.pending:
                del waiting[deployment]
