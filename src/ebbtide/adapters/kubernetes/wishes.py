"""People's pause and overrides (§6.9): in the Schedule under a field manager of their own, or in a ConfigMap at home.

A new schedule that is applied by others leaves fields of this manager alone: that is what survives planning again.
With files the ConfigMap holds the same form, and what the schedule's file says counts beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from ebbtide.adapters.documents.wishes_document import wishes_plain, wishes_value
from ebbtide.adapters.kubernetes import marks
from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.home import ConfigMap
from ebbtide.errors import DocumentError, Place
from ebbtide.fleet.operations import Override, Pause

PEOPLE = "ebbtide-people"  # the field manager
KEY = "wishes.json"

Plain = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PeoplesWishes:
    """Overrides and the pause, None where nobody paused."""

    overrides: tuple[Override, ...] = ()
    pause: Pause | None = None


class WishHome(Protocol):
    """Where they are kept."""

    def read(self) -> PeoplesWishes:
        """What people asked for; ``DocumentError`` where it cannot be read."""

    def write(self, wishes: PeoplesWishes, /) -> None:
        """Replace it whole."""


class MapWishes:
    """A ConfigMap of its own: the controller reads it and never writes it."""

    def __init__(self, cluster: Cluster, namespace: str, name: str) -> None:
        self._cluster, self._name = cluster, name
        self._root = f"/api/v1/namespaces/{namespace}/configmaps"

    def read(self) -> PeoplesWishes:
        found = self._cluster.find(f"{self._root}/{self._name}", ConfigMap)
        if found is None:
            return PeoplesWishes()
        where = f"ConfigMap {found.metadata.namespace}/{self._name}"
        try:
            plain = msgspec.json.decode(found.data.get(KEY, "{}"), type=Plain)
        except msgspec.DecodeError as damage:
            hint = "mend it, or delete it: nobody then pauses or overrides"
            place = Place(file=where, field=KEY)
            raise DocumentError(f"is damaged: {damage}", kind="damaged_wishes", place=place, hint=hint) from None
        return _value(plain, where)

    def write(self, wishes: PeoplesWishes, /) -> None:
        plain = wishes_plain(wishes.overrides, wishes.pause)
        found = self._cluster.find(f"{self._root}/{self._name}", ConfigMap)
        metadata: Plain = {"name": self._name, "labels": {"app.kubernetes.io/managed-by": marks.US}}
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": {KEY: msgspec.json.encode(plain).decode()},
        }
        if found is None:
            self._cluster.create(self._root, body)
        else:
            metadata["resourceVersion"] = found.metadata.resource_version
            self._cluster.replace(f"{self._root}/{self._name}", body)


class ScheduleWishes:
    """The Schedule's ``overrides`` and ``pause``, by server-side apply."""

    def __init__(self, cluster: Cluster, namespace: str, name: str) -> None:
        self._cluster, self._name = cluster, name
        self._path = f"/apis/ebbtide.dev/v1alpha1/namespaces/{namespace}/schedules/{name}"

    def read(self) -> PeoplesWishes:
        return _value(self._cluster.get(self._path, dict).get("spec", {}), f"Schedule {self._name}")

    def write(self, wishes: PeoplesWishes, /) -> None:
        body = {
            "apiVersion": "ebbtide.dev/v1alpha1",
            "kind": "Schedule",
            "metadata": {"name": self._name},
            "spec": wishes_plain(wishes.overrides, wishes.pause),
        }
        self._cluster.apply(self._path, body, manager=PEOPLE)


def _value(plain: Plain, file: str) -> PeoplesWishes:
    overrides, pause = wishes_value(plain, file=file)
    return PeoplesWishes(overrides=overrides, pause=pause)
