"""Decisions at the door as API calls: answers of the check, moves between queues, what a Workload is told."""

from __future__ import annotations

import time
from typing import Any

from ebbtide.adapters.kubernetes import marks
from ebbtide.adapters.kubernetes.clients import JSON_PATCH, MERGE_PATCH, Cluster
from ebbtide.adapters.kubernetes.door.objects import AdmissionCheck, Queued
from ebbtide.adapters.kubernetes.door.owners import Owners
from ebbtide.adapters.kubernetes.door.queues import Queues
from ebbtide.adapters.kubernetes.door.told import PROMISE, SENT_BACK, START, instant_text
from ebbtide.adapters.kubernetes.objects import Queued as SeenQueued
from ebbtide.adapters.kubernetes.objects import is_true, last_writer
from ebbtide.batch.admission import Verdict

PLANNED = "ebbtide.dev/Planned"  # the condition that says what is planned, or why nothing is


class DoorActs:
    """Writes into one cluster; every act stands on the object as it was seen, and fails as an ``ApiError``."""

    def __init__(self, cluster: Cluster, root: str, owners: Owners) -> None:
        self._cluster, self._root, self._owners = cluster, root, owners

    @property
    def api_version(self) -> str:
        """Of Kueue's objects."""
        return self._root.removeprefix("/apis/")

    def path(self, one: Queued) -> str:
        """Where a Workload is."""
        return f"{self._root}/namespaces/{one.metadata.namespace}/workloads/{one.metadata.name}"

    def activate(self, check: AdmissionCheck) -> None:
        """Say that the check is answered: until then its ClusterQueues admit nothing (fact 9)."""
        condition = {
            "type": "Active",
            "status": "True",
            "reason": "Answered",
            "message": "ebbtide answers this check",
            "lastTransitionTime": instant_text(time.time()),
            "observedGeneration": check.metadata.generation,
        }
        body = {
            "metadata": {"resourceVersion": check.metadata.resource_version},
            "status": {"conditions": [condition]},
        }
        self._cluster.patch(f"{self._root}/admissionchecks/{check.metadata.name}/status", body, MERGE_PATCH)

    def answer(self, one: Queued, queues: Queues, verdict: Verdict, message: str) -> bool:
        """The state of our checks, where it is still Pending; whether something was written.

        The first look after an eviction may be at states that are being reset: the tests in the patch refuse then.
        """
        at = instant_text(time.time())
        patch: list[dict[str, Any]] = []
        for k, each in enumerate((one.status.admission_checks if one.status is not None else None) or ()):
            if each.name in queues.checks and each.state == "Pending":
                pointer = f"/status/admissionChecks/{k}"
                patch += [
                    {"op": "test", "path": f"{pointer}/name", "value": each.name},
                    {"op": "test", "path": f"{pointer}/state", "value": each.state},
                    {"op": "replace", "path": f"{pointer}/state", "value": str(verdict)},
                    {"op": "add", "path": f"{pointer}/message", "value": message[:1024]},
                    {"op": "add", "path": f"{pointer}/lastTransitionTime", "value": at},
                ]
        if patch:
            self._cluster.patch(f"{self.path(one)}/status", patch, JSON_PATCH)
        return bool(patch)

    def send_back(self, one: Queued, held: str) -> None:
        """Take it out of the live queue after its Retry: Kueue would reserve the same flavor again within the second.

        Marked and inactive in one write, it goes to the held queue once its quota is free (``settle``); its owner names
        that queue from now on.
        """
        body = {"metadata": {"annotations": {SENT_BACK: held}}, "spec": {"active": False}}
        self._cluster.patch(self.path(one), body, MERGE_PATCH)
        self._owners.move(one, held)

    def settle(self, one: Queued, held: str) -> None:
        """Into the held queue and active again, where it was we who took it out (§7.5) and its quota is free.

        Kueue leaves the queue's name of what was evicted alone: it is written here (fact 12).
        """
        found = self._cluster.find(self.path(one), SeenQueued)
        if found is None or last_writer(found.metadata.managed_fields, "spec", "active") not in ("", marks.US):
            return
        body = {
            "metadata": {"resourceVersion": found.metadata.resource_version},
            "spec": {"queueName": held, "active": True},
        }
        self._cluster.patch(self.path(one), body, MERGE_PATCH)

    def release(self, one: Queued, live: str) -> bool:
        """Let it into the live queue: by its owner's label, which Kueue follows, unless it was admitted before.

        Whether something was written.
        """
        if not self._owners.move(one, live):
            return False
        conditions = one.status.conditions if one.status is not None else None
        if is_true(conditions, "Evicted") or SENT_BACK in one.metadata.annotations:
            body = {
                "metadata": {
                    "annotations": {SENT_BACK: None},
                    "resourceVersion": one.metadata.resource_version,
                },
                "spec": {"queueName": live},
            }
            self._cluster.patch(self.path(one), body, MERGE_PATCH)
        return True

    def says(self, one: Queued, annotations: dict[str, str | None], *, planned: bool, reason: str) -> bool:
        """Whether promise and start are on the Workload as they should be, and the condition but for its sentence."""
        had, conditions = one.metadata.annotations, (one.status.conditions if one.status is not None else None) or ()
        told = next((each for each in conditions if each.type == PLANNED), None)
        same = told is not None and (told.status, told.reason) == ("True" if planned else "False", reason)
        return same and all(had.get(key) == annotations.get(key) for key in (START, PROMISE))

    def annotate(self, one: Queued, annotations: dict[str, str | None]) -> bool:
        """Ours are as given, None takes one away; whether something was written."""
        had = one.metadata.annotations
        changed = {key: text for key, text in annotations.items() if had.get(key) != text}
        if changed:
            self._cluster.patch(self.path(one), {"metadata": {"annotations": changed}}, MERGE_PATCH)
        return bool(changed)

    def tell(self, one: Queued, *, planned: bool, reason: str, message: str) -> bool:
        """Our condition on the Workload; whether something was written."""
        status, message = "True" if planned else "False", message[:1024]
        conditions = (one.status.conditions if one.status is not None else None) or ()
        known = next((k for k, each in enumerate(conditions) if each.type == PLANNED), None)
        plain = {
            "type": PLANNED,
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": instant_text(time.time()),
            "observedGeneration": one.metadata.generation,
        }
        path = f"{self.path(one)}/status"
        if known is not None:
            old = conditions[known]
            if (old.status, old.reason, old.message) == (status, reason, message):
                return False
            if old.status == status and old.last_transition_time:
                plain["lastTransitionTime"] = old.last_transition_time
            pointer = f"/status/conditions/{known}"
            patch = [
                {"op": "test", "path": f"{pointer}/type", "value": PLANNED},
                {"op": "replace", "path": pointer, "value": plain},
            ]
            self._cluster.patch(path, patch, JSON_PATCH)
        elif conditions:
            self._cluster.patch(path, [{"op": "add", "path": "/status/conditions/-", "value": plain}], JSON_PATCH)
        else:  # a status without conditions: the version says that it still has none
            body = {"metadata": {"resourceVersion": one.metadata.resource_version}, "status": {"conditions": [plain]}}
            self._cluster.patch(path, body, MERGE_PATCH)
        return True
