"""The test cloud: machines in stock, delivered after a while, or not, or not whole, on command.

Who asks it plays a provider's controllers: `machines.MachinePool` (Cluster API) and `relabelled.RelabelledMachines`
(bare metal). All of them are stepped by one thread, as controllers are, and see the cluster only through its API.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import TracebackType
from typing import Protocol

from kubelab.api import Api, ApiError, Json
from kubelab.nodes import GPU, node

JOINING = "ebbtide.dev/joining"
DEAD_LABEL = "lab/dead"
STEP_S = 0.1


class Outcome(StrEnum):
    """What becomes of an order: a whole machine; fewer GPUs than it has; a kubelet that never starts; none at all."""

    WHOLE = "whole"
    BROKEN = "broken"
    DEAD = "dead"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One order's outcome; ``gpus`` allocatable of those that the machine has."""

    outcome: Outcome
    gpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTemplate:
    """What a pool's nodes register with: labels (pool, tenure) and taints, the joining one unless told otherwise."""

    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Json, ...] = ({"key": JOINING, "effect": "NoSchedule"},)


class Player(Protocol):
    """Somebody who does a provider's work."""

    def step(self, at_s: float, /) -> None:
        """Look, and do what is due; called again and again."""


@dataclass(slots=True, kw_only=True, eq=False)
class Cloud:
    """Machines of one shape. A context manager: its thread steps the players until the end of the block.

    ``stock``: machines that can be had now; 0 is a stockout, 5 where 8 are asked for a partial delivery. ``join_s``:
    from order to Node; ``leave_s``: from emptied to gone; ``plugin_s``: from Node to its GPUs (the device plugin).
    ``stalled``: nothing is delivered or taken away until it is False again.
    """

    stock: int
    gpus: int = 8
    join_s: float = 0.5
    leave_s: float = 0.2
    plugin_s: float = 0.0
    stalled: bool = False
    players: list[Player] = field(default_factory=list)
    coming: deque[Delivery] = field(default_factory=deque)
    serial: int = 0
    problem: BaseException | None = None
    _thread: threading.Thread | None = None
    _ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Cloud:
        self._thread = threading.Thread(target=self._run, name="test-cloud", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        if self.problem is not None:
            raise self.problem

    def next(self, outcome: Outcome, *, times: int = 1, gpus: int = 0) -> None:
        """The next orders' outcome; ``gpus`` that a broken machine still has."""
        self.coming.extend([Delivery(outcome=outcome, gpus=gpus)] * times)

    def order(self) -> Delivery | None:
        """Take a machine out of stock; None in a stockout."""
        if self.stock <= 0:
            return None
        self.stock -= 1
        return self.deliver()

    def deliver(self) -> Delivery:
        """What becomes of the next machine, wherever it comes from."""
        told = self.coming.popleft() if self.coming else Delivery(outcome=Outcome.WHOLE, gpus=self.gpus)
        return Delivery(outcome=told.outcome, gpus=self.gpus) if told.outcome is not Outcome.BROKEN else told

    def give_back(self) -> None:
        """A machine is free again."""
        self.stock += 1

    def name(self, pool: str) -> str:
        """A machine's name, never used before."""
        self.serial += 1
        return f"{pool}-{self.serial:03d}"

    def register(self, api: Api, name: str, template: NodeTemplate, delivery: Delivery) -> None:
        """The kubelet of a delivered machine makes its Node; GPUs are there when the device plugin says so."""
        labels = dict(template.labels) | ({DEAD_LABEL: "true"} if delivery.outcome is Outcome.DEAD else {})
        body = node(name, gpus=self.gpus, labels=labels, taints=template.taints, provider_id=f"lab://{name}")
        body["status"]["allocatable"][GPU] = "0" if self.plugin_s else str(delivery.gpus)
        try:
            api.create("/api/v1/nodes", body)
        except ApiError as error:
            if error.reason != "AlreadyExists":  # an answer that was lost on its way
                raise

    def _run(self) -> None:
        while not self._ended.wait(STEP_S):
            for player in list(self.players):
                try:
                    player.step(time.monotonic())
                except (OSError, ApiError) as error:
                    if isinstance(error, ApiError) and error.code not in (404, 409, 429) and error.code < 500:
                        self.problem = error
                        return
                except BaseException as error:
                    self.problem = error
                    return
