"""Who owns a Workload: the object whose label names its queue, and whose annotations speak where a template's don't."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from ebbtide.adapters.kubernetes.clients import JSON_PATCH, Cluster
from ebbtide.adapters.kubernetes.door.objects import OwnerObject, Queued
from ebbtide.adapters.kubernetes.kinds import Kinds
from ebbtide.adapters.kubernetes.objects import Owner
from ebbtide.adapters.kubernetes.problems import ApiError, Kind

QUEUE_NAME = "kueue.x-k8s.io/queue-name"
_POINTER = "/metadata/labels/kueue.x-k8s.io~1queue-name"
ASK_AGAIN_S = 120.0  # an owner may be annotated later; a right may be given later
FOLLOWED_S = 30.0  # Kueue follows a label within a second, and later when hundreds come together
MOST_AT_ONCE = 50  # owners asked in one look: two thousand that came together are known within minutes


class Owners:
    """Reads owners' annotations, each seldom; moves them from queue to queue."""

    def __init__(self, cluster: Cluster, kinds: Kinds) -> None:
        self._cluster, self._kinds = cluster, kinds
        self._known: dict[str, tuple[float, Mapping[str, str]]] = {}
        self._left = MOST_AT_ONCE
        self._moved: dict[str, tuple[str, float]] = {}
        self._barred: dict[str, float] = {}  # kinds that we may not read, until when

    def begin(self) -> None:
        """A new look: so many may be asked again; what was not asked for long is forgotten."""
        self._left = MOST_AT_ONCE
        now_s = time.monotonic()
        self._moved = {uid: one for uid, one in self._moved.items() if now_s - one[1] < FOLLOWED_S}
        self._known = {uid: one for uid, one in self._known.items() if now_s - one[0] < 3 * ASK_AGAIN_S}

    def annotations(self, one: Queued) -> Mapping[str, str]:
        """The owner's annotations; empty where there is no owner, or we may not read it."""
        owner = next(_owners(one), None)
        if owner is None:
            return {}
        now_s = time.monotonic()
        asked_s, known = self._known.get(owner.uid, (float("-inf"), {}))
        if now_s - asked_s < ASK_AGAIN_S or self._left <= 0 or self._barred.get(owner.kind, 0.0) > now_s:
            return known
        self._left -= 1
        try:
            found = self._cluster.find(self._path(one, owner), OwnerObject)
        except ApiError as problem:
            if problem.why is Kind.FORBIDDEN:
                self._barred[owner.kind] = now_s + ASK_AGAIN_S
                return known
            if problem.why is Kind.MISSING:
                return known
            raise
        annotations = {} if found is None else found.metadata.annotations
        self._known[owner.uid] = (now_s, annotations)
        return annotations

    def move(self, one: Queued, queue: str) -> bool:
        """The owners' label names another queue, where it still names the one that was seen; ``ApiError``.

        False where that was done just now: Kueue has not followed yet.
        """
        if self._moved.get(one.metadata.uid, ("", 0.0))[0] == queue:
            return False
        for owner in _owners(one):
            patch = [
                {"op": "test", "path": _POINTER, "value": one.spec.queue_name},
                {"op": "replace", "path": _POINTER, "value": queue},
            ]
            self._cluster.patch(self._path(one, owner), patch, JSON_PATCH)
        self._moved[one.metadata.uid] = (queue, time.monotonic())
        return True

    def _path(self, one: Queued, owner: Owner) -> str:
        return f"{self._kinds.collection(owner.api_version, owner.kind, one.metadata.namespace)}/{owner.name}"


def _owners(one: Queued) -> Iterator[Owner]:
    """The controller; of a group of pods all of them."""
    owners = one.metadata.owner_references
    controlling = [owner for owner in owners if owner.controller]
    yield from controlling or owners
