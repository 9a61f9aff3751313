"""Where the memory lives: a ConfigMap when running from files, the Schedule's status where it is a resource (§6.1).

Its version is the object's resourceVersion: a writer that has not seen the last write is refused by the server.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from ebbtide.adapters.documents.memory_document import memory_plain, memory_value
from ebbtide.adapters.kubernetes import marks
from ebbtide.adapters.kubernetes.clients import MERGE_PATCH, Cluster
from ebbtide.adapters.kubernetes.objects import Meta, Read
from ebbtide.adapters.kubernetes.problems import ApiError, Asked, Kind
from ebbtide.control.memory import Memory
from ebbtide.errors import DocumentError, Place

MEMORY_KEY = "memory.json"


class Home(Protocol):
    """Read the memory, write it where nobody else did since."""

    def read(self) -> Memory:
        """The memory as it is kept; an empty one where none was ever written."""

    def write(self, memory: Memory, /) -> None:
        """Replace it; ``ApiError`` of kind ``conflict`` where its version is not the last one."""


class ConfigMap(Read, frozen=True):
    metadata: Meta
    data: dict[str, str] = msgspec.field(default_factory=dict)


class ScheduleStatus(Read, frozen=True):
    memory: dict[str, Any] | None = None


class ScheduleObject(Read, frozen=True):
    metadata: Meta
    status: ScheduleStatus | None = None


class ConfigMapHome:
    """A ConfigMap of ours, made with the first write."""

    def __init__(self, cluster: Cluster, namespace: str, name: str) -> None:
        self._cluster, self._name = cluster, name
        self._root = f"/api/v1/namespaces/{namespace}/configmaps"

    def read(self) -> Memory:
        """The memory as it is kept."""
        found = self._cluster.find(f"{self._root}/{self._name}", ConfigMap)
        if found is None:
            return Memory()
        try:
            plain = msgspec.json.decode(found.data.get(MEMORY_KEY, "{}"), type=dict[str, Any])
        except msgspec.DecodeError as damage:
            place = Place(file=f"ConfigMap {self._root.split('/')[4]}/{self._name}", field=MEMORY_KEY)
            hint = "what is in motion is written there: mend it; deleted, moves under way are forgotten"
            raise DocumentError(f"is damaged: {damage}", kind="damaged_memory", place=place, hint=hint) from None
        return memory_value(plain, version=int(found.metadata.resource_version))

    def write(self, memory: Memory, /) -> None:
        """Replace it whole."""
        labels = {"app.kubernetes.io/managed-by": marks.US}
        metadata: dict[str, Any] = {"name": self._name, "labels": labels}
        text = msgspec.json.encode(memory_plain(memory)).decode()
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {MEMORY_KEY: text}}
        if memory.version == 0:
            self._cluster.create(self._root, body)  # 409 where somebody made it first
        else:
            metadata["resourceVersion"] = str(memory.version)
            self._cluster.replace(f"{self._root}/{self._name}", body)


class ScheduleHome:
    """The status of a Schedule: the memory beside what people read there."""

    def __init__(self, cluster: Cluster, namespace: str, name: str) -> None:
        self._cluster = cluster
        self._path = f"/apis/ebbtide.dev/v1alpha1/namespaces/{namespace}/schedules/{name}"

    def read(self) -> Memory:
        """The memory as it is kept; ``ApiError`` of kind ``missing`` where there is no such Schedule."""
        found = self._cluster.get(self._path, ScheduleObject)
        plain = (found.status.memory if found.status else None) or {}
        return memory_value(plain, version=int(found.metadata.resource_version))

    def write(self, memory: Memory, /) -> None:
        """Replace the memory alone; all its fields are lists or numbers, which a merge replaces whole."""
        found = self._cluster.get(self._path, ScheduleObject)
        if found.metadata.resource_version != str(memory.version):
            call = Asked(cluster=self._cluster.name, verb="patch", resource="schedules/status.ebbtide.dev")
            raise ApiError(Kind.CONFLICT, call, "the Schedule changed since it was read")
        body = {
            "metadata": {"resourceVersion": str(memory.version)},
            "status": {"memory": _replacing(found, memory_plain(memory))},
        }
        self._cluster.patch(f"{self._path}/status", body, MERGE_PATCH)


def _replacing(found: ScheduleObject, plain: dict[str, Any]) -> dict[str, Any]:
    """In a merge patch a field that is left out stays: those that go are null."""
    had = (found.status.memory if found.status else None) or {}
    return {**dict.fromkeys(key for key in had if key not in plain), **plain}
