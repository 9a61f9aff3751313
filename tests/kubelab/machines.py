"""Cluster API's controllers, played: a MachineDeployment's size becomes Machines, these become Nodes.

As in the real ones: on scale-down the Machines that carry the delete-machine annotation go first, then those without a
Node or that failed, then any; the annotation alone does nothing. A Machine that goes keeps its finalizer until its node
was cordoned, drained (a second time, after whoever drained before) and deleted. One that failed stays and counts.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from kubelab.api import Api, ApiError, Json
from kubelab.cloud import Cloud, Delivery, NodeTemplate, Outcome
from kubelab.cluster import Cluster
from kubelab.nodes import set_allocatable_gpus

GROUP = "cluster.x-k8s.io"
VERSION = f"{GROUP}/v1beta2"
DELETE_MACHINE = f"{GROUP}/delete-machine"
DEPLOYMENT_NAME = f"{GROUP}/deployment-name"
FINALIZER = f"machine.{GROUP}"
NO_STOCK = "InsufficientInstanceCapacity"
KINDS = ("clusters", "machinedeployments", "machinesets", "machines")


def install_cluster_api(cluster: Cluster) -> None:
    """Its CRDs; doing it again changes nothing."""
    for kind in KINDS:
        cluster.install(cluster.programs.manifests / "capi" / f"{GROUP}_{kind}.yaml", f"{kind}.{GROUP}")


@dataclass(slots=True)
class _Trip:
    """A Machine on its way to being a Node, or back into stock."""

    delivery: Delivery
    due_s: float
    plugin_s: float | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class MachinePool:
    """One MachineDeployment of one cluster, and everything that follows from it."""

    cloud: Cloud
    api: Api
    namespace: str
    name: str
    template: NodeTemplate
    dice: random.Random = field(default_factory=lambda: random.Random(5))
    trips: dict[str, _Trip] = field(default_factory=dict)
    leaving: dict[str, float] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The MachineDeployment's."""
        return f"{self.collection('machinedeployments')}/{self.name}"

    @property
    def machines(self) -> list[Json]:
        """Its Machines, in order of their names."""
        found = self.api.items(self.collection("machines"), f"{DEPLOYMENT_NAME}={self.name}")
        return sorted(found, key=lambda it: str(it["metadata"]["name"]))

    def collection(self, kind: str) -> str:
        """Where objects of a kind are."""
        return f"/apis/{VERSION}/namespaces/{self.namespace}/{kind}"

    def create(self, replicas: int) -> None:
        """Make the MachineDeployment, and have the cloud look after it."""
        labels = {DEPLOYMENT_NAME: self.name}
        template = {"metadata": {"labels": labels}, "spec": self._machine_spec()}
        spec = {"clusterName": "lab", "replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        body = {"apiVersion": VERSION, "kind": "MachineDeployment", "metadata": {"name": self.name}, "spec": spec}
        self.api.create(self.collection("machinedeployments"), body)
        self.cloud.players.append(self)

    def _machine_spec(self) -> Json:
        infrastructure = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "LabMachine", "name": self.name}
        return {"clusterName": "lab", "bootstrap": {"dataSecretName": "none"}, "infrastructureRef": infrastructure}

    def step(self, at_s: float) -> None:
        """As many Machines as the size says; each one a step further."""
        found = self.api.find(self.path)
        if found is None:
            return
        machines = self.machines
        standing = [machine for machine in machines if "deletionTimestamp" not in machine["metadata"]]
        surplus = len(standing) - found["spec"]["replicas"]
        for _ in range(-surplus):
            self._create_machine()
        for machine in self._victims(standing)[: max(surplus, 0)]:
            self.api.delete(self._at(machine))
        for machine in machines:
            if not self.cloud.stalled:
                self._advance(machine, at_s)
        self._tell(found, standing)

    def _at(self, machine: Json) -> str:
        return f"{self.collection('machines')}/{machine['metadata']['name']}"

    def _create_machine(self) -> None:
        labels = {DEPLOYMENT_NAME: self.name, f"{GROUP}/cluster-name": "lab"}
        meta = {"name": self.cloud.name(self.name), "labels": labels, "finalizers": [FINALIZER]}
        body = {"apiVersion": VERSION, "kind": "Machine", "metadata": meta, "spec": self._machine_spec()}
        self.api.create(self.collection("machines"), body)

    def _victims(self, standing: list[Json]) -> list[Json]:
        """In the order in which a MachineSet deletes."""

        def rank(machine: Json) -> tuple[int, float]:
            if DELETE_MACHINE in machine["metadata"].get("annotations", {}):
                return 0, self.dice.random()
            healthy = "nodeRef" in machine.get("status", {})
            return (2 if healthy else 1), self.dice.random()

        return sorted(standing, key=rank)

    def _advance(self, machine: Json, at_s: float) -> None:
        phase = machine.get("status", {}).get("phase", "")
        if "deletionTimestamp" in machine["metadata"]:
            self._leave(machine, at_s)
        elif phase == "Running":
            self._plug_in(machine, at_s)
        elif phase != "Failed":
            self._join(machine, at_s)

    def _join(self, machine: Json, at_s: float) -> None:
        name = machine["metadata"]["name"]
        if name not in self.trips:
            delivery = self.cloud.order()
            if delivery is None:
                self._say(machine, "Provisioning", reason=NO_STOCK, text="no capacity for this machine type here")
                return
            self.trips[name] = _Trip(delivery, at_s + self.cloud.join_s)
            self._say(machine, "Provisioning", reason="NotReady", text="on its way")
        trip = self.trips[name]
        if at_s < trip.due_s:
            return
        if trip.delivery.outcome is Outcome.FAILED:
            self._say(machine, "Failed", reason="InstanceProvisionFailed", text="the machine did not start")
            return
        self.cloud.register(self.api, name, self.template, trip.delivery)
        self.api.merge(self._at(machine), {"spec": {"providerID": f"lab://{name}"}})
        self._say(machine, "Running", reason="Ready", text="", node=name)
        trip.plugin_s = at_s + self.cloud.plugin_s if self.cloud.plugin_s else None

    def _plug_in(self, machine: Json, at_s: float) -> None:
        trip = self.trips.get(machine["metadata"]["name"])
        if trip is None or trip.plugin_s is None or at_s < trip.plugin_s:
            return
        set_allocatable_gpus(self.api, machine["metadata"]["name"], trip.delivery.gpus)
        trip.plugin_s = None

    def _leave(self, machine: Json, at_s: float) -> None:
        name = machine["metadata"]["name"]
        if self.api.find(f"/api/v1/nodes/{name}") is not None and not self._drained(name):
            return
        if at_s < self.leaving.setdefault(name, at_s + self.cloud.leave_s):
            return
        self.api.delete(f"/api/v1/nodes/{name}")
        self.api.merge(self._at(machine), {"metadata": {"finalizers": None}})
        del self.leaving[name]
        if self.trips.pop(name, None) is not None:
            self.cloud.give_back()

    def _drained(self, name: str) -> bool:
        """Cordon, evict; True once no pod but a daemon's is there."""
        self.api.merge(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}}, manager="cluster-api")
        left = [pod for pod in _pods_on(self.api, name) if not _is_daemon(pod)]
        for pod in left:
            if "deletionTimestamp" not in pod["metadata"]:
                _try_to_evict(self.api, pod)
        return not left

    def _say(self, machine: Json, phase: str, *, reason: str, text: str, node: str = "") -> None:
        told = machine.get("status", {}).get("conditions", [{}])[0]
        if (machine.get("status", {}).get("phase"), told.get("reason")) == (phase, reason):
            return
        condition = {
            "type": "InfrastructureReady",
            "status": "True" if phase == "Running" else "False",
            "reason": reason,
            "message": text,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        status: Json = {"phase": phase, "conditions": [condition]} | ({"nodeRef": {"name": node}} if node else {})
        self.api.merge(f"{self._at(machine)}/status", {"status": status})

    def _tell(self, found: Json, standing: list[Json]) -> None:
        """The MachineDeployment's status: a Machine with a Node counts as ready."""
        ready = sum("nodeRef" in machine.get("status", {}) for machine in standing)
        counts = {"replicas": len(standing), "readyReplicas": ready, "availableReplicas": ready}
        status = counts | {"selector": f"{DEPLOYMENT_NAME}={self.name}"}
        if any(found.get("status", {}).get(key) != value for key, value in status.items()):
            self.api.merge(f"{self.path}/status", {"status": status})


def _pods_on(api: Api, node: str) -> list[Json]:
    found: list[Json] = api.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node}")["items"]
    return found


def _is_daemon(pod: Json) -> bool:
    return any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences", ()))


def _try_to_evict(api: Api, pod: Json) -> None:
    """A budget may refuse: then again at the next step, for as long as it takes."""
    try:
        api.evict(pod["metadata"]["namespace"], pod["metadata"]["name"])
    except ApiError as error:
        if error.code not in (404, 429, 500):
            raise
