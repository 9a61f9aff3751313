"""The lab itself: clusters of their own, rights enforced, an audit log, outages on command, nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kubelab.api import ApiError, Json
from kubelab.cluster import Cluster
from kubelab.lab import Lab
from kubelab.processes import Processes
from kubelab.programs import HERE, Programs
from kubelab.recorder import Recorder
from kubelab.spare import attach
from kubelab.waiting import until


def test_two_clusters_share_no_object(
    production: Cluster, research: Cluster, new_node: Callable[..., Json], lab: Lab
) -> None:
    new_node(production, "only-here")
    assert research.api.find("/api/v1/nodes/only-here") is None
    assert {it["name"] for it in json.loads(lab.kubeconfig.read_text())["contexts"]} == {"production", "research"}


def test_rights_are_enforced_and_requests_audited(production: Cluster, new_namespace: Callable[[Cluster], str]) -> None:
    namespace = new_namespace(production)
    weak = production.account(namespace, "default")
    with pytest.raises(ApiError) as refused:
        weak.get("/api/v1/nodes")
    assert refused.value.code == 403

    def written() -> bool:
        entries = [json.loads(line) for line in production.audit_log.read_text().splitlines()]
        mine = [it for it in entries if it["user"]["username"] == f"system:serviceaccount:{namespace}:default"]
        return [(it["verb"], it["objectRef"]["resource"]) for it in mine] == [("list", "nodes")]

    until(written, "the request is in the audit log")


@pytest.mark.own_control_plane
def test_an_api_server_can_hang_be_killed_and_come_back_with_all_it_had(
    production: Cluster, new_namespace: Callable[[Cluster], str]
) -> None:
    namespace, name = new_namespace(production), production.process("kube-apiserver")
    production.processes.send(name, signal.SIGSTOP)
    assert not production.api.answers(timeout_s=0.5)
    production.processes.send(name, signal.SIGCONT)
    production.wait_ready()
    production.processes.kill(name)
    assert not production.api.answers()
    production.processes.restart(name)
    production.wait_ready()
    assert production.api.find(f"/api/v1/namespaces/{namespace}") is not None


def test_a_record_has_every_change_of_both_clusters(
    production: Cluster, research: Cluster, new_node: Callable[..., Json]
) -> None:
    nodes = "/api/v1/nodes"
    new_node(production, "recorded-1")
    with Recorder({"production": production.api, "research": research.api}, [nodes]) as record:
        for cordoned in (True, False):
            production.api.merge(f"{nodes}/recorded-1", {"spec": {"unschedulable": cordoned}})
        new_node(research, "recorded-2")
        production.api.delete(f"{nodes}/recorded-1")
        until(lambda: ("DELETED", "recorded-1") in _kinds(record), "the deletion is recorded")
        until(lambda: ("ADDED", "recorded-2") in _kinds(record), "the other cluster's node is recorded")
    assert record.holes == []
    mine = [event for event, _ in record.replay() if event.key[2] == "/recorded-1"]
    assert [mine[0].kind, mine[-1].kind] == ["ADDED", "DELETED"]
    cordons = [bool(event.thing["spec"].get("unschedulable")) for event in mine]
    assert cordons.index(True) < len(cordons) - 1 - cordons[::-1].index(False)
    assert ("production", nodes, "/recorded-1") not in record.standing()
    assert ("research", nodes, "/recorded-2") in record.standing()


@pytest.mark.own_control_plane
def test_a_record_goes_on_after_the_api_server_restarted_and_says_where_states_may_be_missing(
    production: Cluster, new_node: Callable[..., Json]
) -> None:
    nodes = "/api/v1/nodes"
    new_node(production, "recorded-3")
    with Recorder({"production": production.api}, [nodes]) as record:
        production.processes.restart(production.process("kube-apiserver"))
        production.wait_ready()
        production.api.delete(f"{nodes}/recorded-3")
        until(lambda: ("DELETED", "recorded-3") in _kinds(record), "the deletion is recorded")
    assert all("production" in hole for hole in record.holes)


def _kinds(record: Recorder) -> list[tuple[str, str]]:
    return [(event.kind, event.thing["metadata"]["name"]) for event in list(record.events)]


def test_a_spare_cluster_is_taken_by_its_context_and_never_by_guess(
    lab: Lab, research: Cluster, tmp_path: Path
) -> None:
    processes = Processes(folder=tmp_path)
    found = attach(lab.kubeconfig, "research", processes=processes)
    assert found.url == research.url
    assert found.api.find("/api/v1/namespaces/kueue-system") is not None
    with pytest.raises(ValueError, match="no context 'spare'"):
        attach(lab.kubeconfig, "spare", processes=processes)


CHILD = """
import sys, time
from pathlib import Path
from kubelab.processes import Processes
processes = Processes(folder=Path(sys.argv[1]))
processes.start("sleeper", sys.argv[2:])
print(processes.running["sleeper"].pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("source", ["built", "assets"])
def test_a_killed_test_process_leaves_nothing_behind(source: str, lab: Lab, tmp_path: Path) -> None:
    """Both by our own program, and by the tether around somebody else's."""
    sleeper = tmp_path / "kwok"
    sleeper.write_text("#!/bin/sh\nexec sleep 600\n")
    sleeper.chmod(0o755)
    if source == "built":
        command = [*next(iter(lab.clusters.values())).programs.command("kwok")[:2], str(sleeper)]
    else:
        command = Programs(built=None, assets=tmp_path).command("kwok")
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path), *command],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(HERE.parent)},
    ) as child:
        assert child.stdout is not None
        group = int(child.stdout.readline())
        until(lambda: len(_group(group)) > 1, "the program runs")
        child.kill()
    until(lambda: not _group(group), "nothing left")


def _group(group: int) -> list[int]:
    """Processes of a group that are not dead yet."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            state, _, its_group = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(its_group) == group and state not in "ZX":
            found.append(int(folder.name))
    return found
