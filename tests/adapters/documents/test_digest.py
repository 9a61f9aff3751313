"""The digest changes with what is planned, and with nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ebbtide.adapters.documents.fleet import read_fleet

BASE = """\
apiVersion: ebbtide.dev/v1alpha1
kind: Fleet
metadata: {name: two-models}
spec:
  timeZone: America/New_York
  demand: [{name: log, file: requests.csv.gz}]
  pools: [{name: h100, gpusPerNode: 8, nodes: 6}]
  workloads:
  - {name: chat, gpusPerReplica: 1, service: {time: 90s, concurrency: 64}, targets: [{wait: 2s}]}
  - {name: agents, gpusPerReplica: 2, service: {time: 8s, concurrency: 16}, targets: [{wait: 5s}]}
"""


def digest(folder: Path, text: str) -> str:
    (folder / "fleet.yaml").write_text(text)
    return read_fleet(folder / "fleet.yaml").fleet.digest


SAME = [
    ("nodes: 6", "nodes: 6, reservedNodes: 0"),
    ("nodes: 6", "nodes: 6, yieldTime: 30m, reclaimTime: 60m, movesAtOnce: 4, minProductionNodes: 0"),
    ("gpusPerNode: 8, nodes: 6", "nodes: 6, gpusPerNode: 8"),
    ("time: 90s", "time: 1m30s"),
    ("concurrency: 64", "concurrency: 64, scv: null"),
    ("name: chat,", "name: chat, pool: h100, demand: {source: log, key: chat},"),
    ("name: chat,", "name: chat, demand: {}, balancing: leastLoaded, patience: unlimited, weight: 1, minReplicas: 1,"),
    ("name: chat,", "name: chat, maxReplicas: null, startupTime: 5m, waitingCostUsdPerRequestHour: 0,"),
    ("wait: 2s", "wait: 2000ms, percentile: 0.95"),
    ("spec:", "spec:\n  confidence: 0.95\n  research: {valueUsdPerGpuHour: 1.0, checkpointInterval: 1h}"),
    ("spec:", "spec:\n  windows: [{days: [Sun, Mon, Tue, Wed, Thu, Fri, Sat], choose: {atMost: 6, shortest: 2h}}]"),
    ("spec:", "spec:\n  windows: [{}]\n  exceptions: []"),
    ("name: log,", "name: log, columns: {}, timeZone: America/New_York,"),
    ("{name: two-models}", "{name: renamed, namespace: prod, labels: {a: b}}"),
    ("kind: Fleet", "kind: Fleet # a comment"),
]
OTHER = [
    ("nodes: 6", "nodes: 7"),
    ("nodes: 6", "nodes: 6, reservedNodes: 1"),
    ("time: 90s", "time: 91s"),
    ("time: 90s", "time: 90s, scv: 1"),
    ("time: 90s", "observed: {}"),
    ("wait: 2s", "latency: 120s"),
    ("name: chat", "name: chat2"),
    ("name: chat,", "name: chat, demand: {key: other},"),
    ("name: chat,", "name: chat, patience: 30s,"),
    ("spec:", "spec:\n  windows: [{starts: [07:00]}]"),
    ("spec:", "spec:\n  windows: [{choose: {atMost: 5}}]"),
    ("spec:", "spec:\n  exceptions: [{name: x, from: 2026-10-01, until: 2026-10-02, like: Sun}]"),
    ("spec:", "spec:\n  research: {valueUsdPerGpuHour: 2}"),
    ("America/New_York", "America/Chicago"),
    ("requests.csv.gz", "other.csv.gz"),
]


def test_its_form(tmp_path: Path) -> None:
    assert re.fullmatch("sha256:[0-9a-f]{64}", digest(tmp_path, BASE))


def test_it_is_the_same_tomorrow(tmp_path: Path) -> None:
    # Written down once: schedules outlive versions, and a changed digest stops them.
    assert digest(tmp_path, BASE) == "sha256:e35ca1f2ad50d09e98abf019959fc1c7364d524cc50e41e5ddda66c50340bc04"


@pytest.mark.parametrize(("old", "new"), SAME)
def test_what_is_only_said_otherwise_does_not_change_it(tmp_path: Path, old: str, new: str) -> None:
    assert old in BASE
    assert digest(tmp_path, BASE.replace(old, new, 1)) == digest(tmp_path, BASE)


def test_the_order_of_named_things_does_not_change_it(tmp_path: Path) -> None:
    *head, chat, agents = BASE.splitlines(keepends=True)
    assert digest(tmp_path, "".join([*head, agents, chat])) == digest(tmp_path, BASE)


@pytest.mark.parametrize(("old", "new"), OTHER)
def test_what_is_planned_changes_it(tmp_path: Path, old: str, new: str) -> None:
    assert old in BASE
    assert digest(tmp_path, BASE.replace(old, new, 1)) != digest(tmp_path, BASE)
