"""Cluster API: a pool is one MachineDeployment for each side, a node its Machine's.

The names of leaving nodes and the size are one write, on the MachineDeployment: after a crash between two writes
nobody could tell a size that was lowered for them from one that was not, and another node would be taken. Machines
carry the delete-machine annotation before, so that the controller takes those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ebbtide.adapters.kubernetes import marks
from ebbtide.adapters.kubernetes.clients import MERGE_PATCH, Cluster
from ebbtide.adapters.kubernetes.objects import Condition, Meta, NodeObject, Read
from ebbtide.adapters.kubernetes.problems import ApiError, Kind
from ebbtide.adapters.kubernetes.problems import Asked as Call
from ebbtide.adapters.nodepools.protocol import Asked, Capabilities
from ebbtide.control.state import Side

SERVED = ("v1beta2", "v1beta1")  # what is read here reads the same in both
DELETE_MACHINE = "cluster.x-k8s.io/delete-machine"
DEPLOYMENT_LABEL = "cluster.x-k8s.io/deployment-name"
# As infrastructure providers call it (AWS, Azure and GCP pass their clouds' own words on).
STOCK_OUT_REASONS = ("InsufficientCapacity", "InsufficientInstanceCapacity", "StockOut", "ZoneResourcePoolExhausted")


class Ref(Read, frozen=True):
    name: str = ""


class MachineStatus(Read, frozen=True):
    node_ref: Ref | None = None
    phase: str = ""
    failure_reason: str = ""
    conditions: list[Condition] | None = None

    @property
    def stock_out(self) -> bool:
        """Whether its provider says that there is none to be had."""
        reasons = (self.failure_reason, *(one.reason for one in self.conditions or () if one.status != "True"))
        return any(reason in STOCK_OUT_REASONS for reason in reasons)


class Machine(Read, frozen=True):
    metadata: Meta
    status: MachineStatus | None = None


class DeploymentSpec(Read, frozen=True):
    replicas: int | None = None  # its default is 1


class MachineDeployment(Read, frozen=True):
    metadata: Meta
    spec: DeploymentSpec = DeploymentSpec()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentAt:
    """Where one side's MachineDeployment is: the management cluster, and its path's parts.

    ``version`` is asked at every use: a cluster that does not answer fails what needs it, and nothing before.
    """

    cluster: Cluster
    namespace: str
    name: str
    version: Callable[[], str] = lambda: SERVED[0]

    @property
    def root(self) -> str:
        """Where its namespace's Cluster API objects are."""
        return f"/apis/cluster.x-k8s.io/{self.version()}/namespaces/{self.namespace}"

    @property
    def path(self) -> str:
        """Where the MachineDeployment is."""
        return f"{self.root}/machinedeployments/{self.name}"


class ClusterApi:
    """``NodePool`` by MachineDeployments."""

    capabilities = Capabilities(removes_named=True)

    def __init__(self, sides: Mapping[Side, DeploymentAt]) -> None:
        self._sides = sides

    def look(self, side: Side, nodes: Sequence[NodeObject], /) -> Asked:
        """The size as written, and the names written with it."""
        at = self._sides[side]
        found = at.cluster.find(at.path, MachineDeployment)
        if found is None:
            return Asked(size=None)
        stock_out = any(one.status is not None and one.status.stock_out for one in self._machines(at))
        return Asked(size=_size(found), leaving=_leaving(found), stock_out=stock_out)

    def remove(self, side: Side, nodes: tuple[str, ...], size: int, /) -> None:
        """Annotate the Machines; then names and size in one write."""
        at = self._sides[side]
        found = at.cluster.get(at.path, MachineDeployment)
        machines = {
            one.status.node_ref.name: one
            for one in self._machines(at)
            if one.status and one.status.node_ref is not None
        }
        going = [name for name in nodes if name not in _leaving(found) and name in machines]
        for name in going:
            one = machines[name]
            if DELETE_MACHINE not in one.metadata.annotations:
                body = {"metadata": {"annotations": {DELETE_MACHINE: "yes"}}}
                at.cluster.patch(f"{at.root}/machines/{one.metadata.name}", body, MERGE_PATCH)
        if not going:
            return  # asked before: they are gone or named, and the size with them
        # As large as it is: where more stand than it says, those that go are the surplus.
        if not _size(found) - len(going) <= size <= _size(found):
            call = Call(cluster=at.cluster.name, verb="patch", resource="machinedeployments", namespace=at.namespace)
            text = f"{at.name} has {_size(found)}: {size} without {', '.join(going)} would take or keep another"
            raise ApiError(Kind.CONFLICT, call, text)
        leaving = sorted((_leaving(found) & set(machines)) | set(going))
        self._write(at, found, size, leaving)

    def grow(self, side: Side, size: int, /) -> None:
        """Write the size; what was asked before is not asked again, and a pool that is larger stays so."""
        at = self._sides[side]
        found = at.cluster.get(at.path, MachineDeployment)
        if _size(found) < size:
            self._write(at, found, size, None)

    def _machines(self, at: DeploymentAt) -> list[Machine]:
        return at.cluster.list(f"{at.root}/machines", Machine, labels=f"{DEPLOYMENT_LABEL}={at.name}")

    def _write(self, at: DeploymentAt, found: MachineDeployment, size: int, leaving: list[str] | None) -> None:
        metadata: dict[str, Any] = {"resourceVersion": found.metadata.resource_version}
        if leaving is not None:
            metadata["annotations"] = {marks.LEAVING: msgspec.json.encode(leaving).decode()}
        at.cluster.patch(at.path, {"metadata": metadata, "spec": {"replicas": size}}, MERGE_PATCH)


def _size(found: MachineDeployment) -> int:
    return 1 if found.spec.replicas is None else found.spec.replicas


def _leaving(found: MachineDeployment) -> frozenset[str]:
    try:
        return frozenset(msgspec.json.decode(found.metadata.annotations.get(marks.LEAVING, "[]"), type=list[str]))
    except msgspec.DecodeError:
        return frozenset()
