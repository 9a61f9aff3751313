"""Bare metal that changes sides by a label: the machine starts anew for its new side, and is away in between.

A machine has a Node of the same name in each cluster (one, where one cluster is both sides). Its kubelet runs where it
stands; the other Node is not Ready. Once the label of a Node says that it is to stand there, and no other Node of the
machine says so, the kubelet stops, and after ``join_s`` starts on the new side: whole, broken, or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kubelab.api import Api, Json
from kubelab.cloud import DEAD_LABEL, Cloud, Delivery, Outcome
from kubelab.cluster import delete_quietly
from kubelab.nodes import node, set_allocatable_gpus

SIDE = "ebbtide.dev/side"
NEITHER = "none"


@dataclass(slots=True)
class _Machine:
    """``stands``: the side that its kubelet runs for; while it is away, the one that it goes to."""

    stands: str
    due_s: float | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class RelabelledMachines:
    """All machines of a pool. ``apis``: one for each side; the same twice where one cluster is both."""

    cloud: Cloud
    apis: Mapping[str, Api]
    machines: dict[str, _Machine] = field(default_factory=dict)

    @property
    def _distinct(self) -> list[Api]:
        return list({api.url: api for api in self.apis.values()}.values())

    def create(self, name: str, side: str, labels: Mapping[str, str]) -> None:
        """A machine that stands on a side."""
        for api in self._distinct:
            here = api.url == self.apis[side].url
            where = {SIDE: side} if here else {SIDE: NEITHER, DEAD_LABEL: "true"}
            body = node(name, gpus=self.cloud.gpus, labels=dict(labels) | where, provider_id=f"lab://{name}")
            body["spec"]["unschedulable"] = not here
            api.create("/api/v1/nodes", body)
        self.machines[name] = _Machine(side)
        if self not in self.cloud.players:
            self.cloud.players.append(self)

    def remove(self) -> None:
        """Take all its Nodes away."""
        self.cloud.players.remove(self)
        for name in self.machines:
            for api in self._distinct:
                delete_quietly(api, f"/api/v1/nodes/{name}")

    def step(self, at_s: float) -> None:
        """Machines whose label changed set out; those that are due arrive."""
        for name, machine in list(self.machines.items()):
            if self.cloud.stalled:
                continue
            wanted = self._wanted(name)
            if machine.due_s is None and wanted is not None and wanted != machine.stands:
                self._stop(self.apis[machine.stands], name)
                self._stop(self.apis[wanted], name)
                machine.stands, machine.due_s = wanted, at_s + self.cloud.join_s
            elif machine.due_s is not None and at_s >= machine.due_s:
                machine.due_s = None
                self._start(self.apis[machine.stands], name, self.cloud.deliver())

    def _wanted(self, name: str) -> str | None:
        """The one side that a Node of the machine says for itself; None where none does, or two do."""
        said = []
        for side, api in self.apis.items():
            found = api.find(f"/api/v1/nodes/{name}")
            if found is not None and found["metadata"].get("labels", {}).get(SIDE) == side:
                said.append(side)
        return said[0] if len(said) == 1 else None

    def _stop(self, api: Api, name: str) -> None:
        """The kubelet is away: kwok lets go of the Node, and it is not Ready."""
        path = f"/api/v1/nodes/{name}"
        api.merge(path, {"metadata": {"labels": {DEAD_LABEL: "true"}}}, manager="kubelet")
        conditions = [it for it in api.get(path)["status"].get("conditions", ()) if it["type"] != "Ready"]
        away: Json = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "starting anew"}
        api.merge(f"{path}/status", {"status": {"conditions": [*conditions, away]}}, manager="kubelet")

    def _start(self, api: Api, name: str, delivery: Delivery) -> None:
        if delivery.outcome in (Outcome.DEAD, Outcome.FAILED):
            return
        set_allocatable_gpus(api, name, delivery.gpus)
        api.merge(f"/api/v1/nodes/{name}", {"metadata": {"labels": {DEAD_LABEL: None}}}, manager="kubelet")
