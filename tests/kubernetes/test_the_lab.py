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
from kubelab.programs import HERE, Programs
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
