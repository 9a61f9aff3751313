"""Runs that ended, out of finished Workloads; and the ledger's ConfigMap at home."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import msgspec

from ebbtide.adapters.kubernetes import marks
from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.door.objects import Queued
from ebbtide.adapters.kubernetes.door.queues import Queues
from ebbtide.adapters.kubernetes.home import ConfigMap
from ebbtide.adapters.kubernetes.objects import condition, instant_s
from ebbtide.batch.door.ledger import Ledger, Ran
from ebbtide.units import parse_duration_s

LEDGER_KEY = "ledger.json"
DURATION = "ebbtide.dev/duration"


def runs_of(ended: Iterable[Queued], queues: Queues, *, known: Collection[str]) -> Iterator[Ran]:
    """Those that succeeded and are not ``known`` yet: a run that failed says nothing of how long it takes."""
    for one in ended:
        conditions = one.status.conditions if one.status is not None else None
        finished, admitted = condition(conditions, "Finished"), condition(conditions, "Admitted")
        if one.metadata.uid in known or finished is None or finished.reason != "Succeeded" or admitted is None:
            continue
        ended_s, began_s = instant_s(finished.last_transition_time), instant_s(admitted.last_transition_time)
        if ended_s is None or began_s is None or ended_s <= began_s or one.status is None:
            continue
        space, queue = one.metadata.namespace, one.spec.queue_name
        yield Ran(
            uid=one.metadata.uid,
            team=f"{space}/{queues.live_of.get((space, queue), queue)}",
            said_s=_said_s(one, queues),
            real_s=ended_s - began_s + float(one.status.accumulated_past_execution_time_seconds),
            ended_s=ended_s,
        )


def _said_s(one: Queued, queues: Queues) -> float | None:
    """The expected duration in its template, else its queue's default."""
    said = dict(queues.defaults.get((one.metadata.namespace, one.spec.queue_name), {}))
    for each in one.spec.pod_sets:
        said.update(each.template.metadata.annotations)
    try:
        length_s = parse_duration_s(said.get(DURATION, ""))
    except ValueError:
        return None
    return length_s or None


class LedgerHome:
    """The ledger in a ConfigMap of ours. It is advice: one that is damaged or gone begins anew."""

    def __init__(self, cluster: Cluster, namespace: str, name: str) -> None:
        self._cluster, self._name = cluster, name
        self._root = f"/api/v1/namespaces/{namespace}/configmaps"

    def read(self) -> Ledger:
        """The ledger as it is kept; ``ApiError`` where home does not answer."""
        found = self._cluster.find(f"{self._root}/{self._name}", ConfigMap)
        try:
            return Ledger().told(msgspec.json.decode(found.data.get(LEDGER_KEY, "[]"), type=list[Ran]) if found else ())
        except msgspec.DecodeError:
            return Ledger()

    def write(self, ledger: Ledger) -> None:
        """Replace it; who writes last wins, and the Lease lets only one write."""
        metadata: dict[str, Any] = {"name": self._name, "labels": {"app.kubernetes.io/managed-by": marks.US}}
        text = msgspec.json.encode(list(ledger.runs)).decode()
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {LEDGER_KEY: text}}
        if self._cluster.find(f"{self._root}/{self._name}", ConfigMap) is None:
            self._cluster.create(self._root, body)
        else:
            self._cluster.replace(f"{self._root}/{self._name}", body)
