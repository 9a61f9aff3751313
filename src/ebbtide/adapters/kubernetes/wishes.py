"""People's pause and overrides (§6.9): in the Schedule under a field manager of their own, or in a ConfigMap at home.

A new schedule that is applied by others leaves fields of this manager alone: that is what survives planning again.
With files the ConfigMap holds the same form, and what the schedule's file says counts beside it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol

from ebbtide.adapters.documents.exact_times import instant_s, instant_text
from ebbtide.adapters.kubernetes import marks
from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.home import ConfigMap
from ebbtide.fleet.operations import Override, OverrideKind, Pause

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
        """What people asked for."""

    def write(self, wishes: PeoplesWishes, /) -> None:
        """Replace it whole."""


class MapWishes:
    """A ConfigMap of its own: the controller reads it and never writes it."""

    def __init__(self, cluster: Cluster, namespace: str, name: str) -> None:
        self._cluster, self._name = cluster, name
        self._root = f"/api/v1/namespaces/{namespace}/configmaps"

    def read(self) -> PeoplesWishes:
        found = self._cluster.find(f"{self._root}/{self._name}", ConfigMap)
        return _value({} if found is None else json.loads(found.data.get(KEY, "{}")))

    def write(self, wishes: PeoplesWishes, /) -> None:
        found = self._cluster.find(f"{self._root}/{self._name}", ConfigMap)
        metadata: Plain = {"name": self._name, "labels": {"app.kubernetes.io/managed-by": marks.US}}
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": {KEY: json.dumps(_plain(wishes))},
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
        return _value(self._cluster.get(self._path, dict).get("spec", {}))

    def write(self, wishes: PeoplesWishes, /) -> None:
        body = {
            "apiVersion": "ebbtide.dev/v1alpha1",
            "kind": "Schedule",
            "metadata": {"name": self._name},
            "spec": _plain(wishes),
        }
        self._cluster.apply(self._path, body, manager=PEOPLE)


def _plain(wishes: PeoplesWishes) -> Plain:
    found: Plain = {"overrides": [_override(one) for one in wishes.overrides]} if wishes.overrides else {}
    if wishes.pause is not None:
        found["pause"] = {"reason": wishes.pause.reason}
    return found


def _override(one: Override) -> Plain:
    asked: Plain = {"hold": {}} if one.kind is OverrideKind.HOLD else {str(one.kind): one.what}
    return {"name": one.name, "until": instant_text(one.until_s), "reason": one.reason, **asked}


def _value(spec: Plain) -> PeoplesWishes:
    pause = spec.get("pause")
    return PeoplesWishes(
        overrides=tuple(_wish(one) for one in spec.get("overrides") or ()),
        pause=None if pause is None else Pause(reason=pause.get("reason", "")),
    )


def _wish(plain: Plain) -> Override:
    kind = next(one for one in OverrideKind if str(one) in plain)
    what = "" if kind is OverrideKind.HOLD else str(plain[str(kind)])
    return Override(
        name=plain["name"], kind=kind, until_s=_until_s(plain["until"]), reason=plain.get("reason", ""), what=what
    )


def _until_s(text: str) -> float:
    from whenever import OffsetDateTime

    return instant_s(text) if text.endswith("Z") else OffsetDateTime.parse_iso(text).timestamp()
