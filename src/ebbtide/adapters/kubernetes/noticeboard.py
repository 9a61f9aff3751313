"""What people read of the controller at home: a ConfigMap with the standing and the last decisions, in both modes.

Written whole and only when it changed. The controller itself never reads it: it is no memory.
"""

from __future__ import annotations

import json
from collections import deque
from typing import Any

from ebbtide.adapters.kubernetes import marks
from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.home import ConfigMap
from ebbtide.adapters.kubernetes.problems import ApiError, Kind

STANDING, HISTORY = "standing.json", "history.jsonl"
LINES = 500
MOST_BYTES = 400_000  # a ConfigMap takes a megabyte

Plain = dict[str, Any]


class Noticeboard:
    """One ConfigMap; others' writes to it are overwritten with the next change."""

    def __init__(self, cluster: Cluster, namespace: str, name: str) -> None:
        self._cluster, self._name = cluster, name
        self._root = f"/api/v1/namespaces/{namespace}/configmaps"
        self._history: deque[str] | None = None
        self._shown: dict[str, str] = {}

    def read(self) -> tuple[Plain | None, list[Plain]]:
        """The standing and the decisions, oldest first; None and none where nobody wrote any, or somebody damaged them.

        It is no memory: what is damaged here is written anew, and keeps nobody from anything.
        """
        found = self._cluster.find(f"{self._root}/{self._name}", ConfigMap)
        data = {} if found is None else found.data
        lines = (_object(line) for line in data.get(HISTORY, "").splitlines())
        return _object(data.get(STANDING, "")), [line for line in lines if line is not None]

    def show(self, standing: Plain, decided: list[Plain]) -> None:
        """Write both, where anything is new; ``ApiError`` where it cannot be written."""
        if self._history is None:
            self._history = deque((json.dumps(one, ensure_ascii=False) for one in self.read()[1]), maxlen=LINES)
        self._history.extend(json.dumps(one, ensure_ascii=False) for one in decided)
        while sum(map(len, self._history)) > MOST_BYTES:
            self._history.popleft()
        data = {STANDING: json.dumps(standing, ensure_ascii=False), HISTORY: "\n".join(self._history)}
        if data != self._shown:
            self._write(data)
            self._shown = data

    def _write(self, data: dict[str, str]) -> None:
        labels = {"app.kubernetes.io/managed-by": marks.US}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": self._name, "labels": labels}}
        try:
            self._cluster.replace(f"{self._root}/{self._name}", {**body, "data": data})
        except ApiError as problem:
            if problem.why is not Kind.MISSING:
                raise
            self._cluster.create(self._root, {**body, "data": data})


def _object(text: str) -> Plain | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
