"""`ebbtide run` as a process over a small fleet on two real API servers: its documents, its log, signals to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from ebbtide.adapters.documents.fleet import read_fleet
from ebbtide.control.state import Side
from kubelab.rights import controller_token
from kubelab.waiting import until
from worlds.on_kubernetes import POOL, SmallFleet

ALL_DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]


def write_kubeconfig(path: Path, fleet: SmallFleet) -> None:
    """Both clusters as contexts of one file, for a user with the rights of deploy/rbac."""
    yaml = YAML(typ="safe")
    merged: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "clusters": [], "contexts": [], "users": []}
    for side in Side:
        config = yaml.load(fleet.lab[side].kubeconfig.read_text())
        (one,) = config["clusters"]
        merged["clusters"].append({**one, "name": str(side)})
        token = controller_token(fleet.lab[side], fleet.space, str(side))
        merged["users"].append({"name": str(side), "user": {"token": token}})
        merged["contexts"].append({"name": str(side), "context": {"cluster": str(side), "user": str(side)}})
    merged["current-context"] = str(Side.PRODUCTION)
    with path.open("w") as file:
        yaml.dump(merged, file)


@dataclass(kw_only=True, slots=True)
class Papers:
    """Fleet and Schedule of a small fleet, as files; the schedule holds one window all day."""

    folder: Path
    fleet: SmallFleet
    nodes: int
    mode: str = "Shadow"

    @property
    def fleet_file(self) -> Path:
        return self.folder / "fleet.yaml"

    @property
    def schedule_file(self) -> Path:
        return self.folder / "schedule.yaml"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    def fleet_object(self) -> dict[str, Any]:
        space = self.fleet.space
        return {
            "apiVersion": "ebbtide.dev/v1alpha1",
            "kind": "Fleet",
            "metadata": {"name": space},
            "spec": {
                "mode": self.mode,
                "timeZone": "UTC",
                "demand": [{"name": "log", "file": "requests.csv"}],
                "clusters": {str(side): {"context": str(side)} for side in Side},
                "pools": [
                    {
                        "name": POOL,
                        "gpusPerNode": 8,
                        "nodes": self.nodes,
                        "nodeSelector": {"ebbtide.dev/pool": space},
                        "yieldTime": "20s",
                        "reclaimTime": "20s",
                    }
                ],
                "workloads": [
                    {
                        "name": "chat",
                        "scaleTargetRef": {"namespace": space, "name": "chat"},
                        "gpusPerReplica": 2,
                        "service": {"time": "1s"},
                        "targets": [{"wait": "1s"}],
                        "startupTime": "0s",
                    }
                ],
                "research": {
                    "quota": {
                        "of": {"kind": "ClusterQueue", "name": space},
                        "flavors": [{"pool": POOL, "ephemeral": space}],
                    }
                },
            },
        }

    def schedule_object(self, *, replicas: int, production: int) -> dict[str, Any]:
        ephemeral = self.nodes - production
        return {
            "apiVersion": "ebbtide.dev/v1alpha1",
            "kind": "Schedule",
            "metadata": {"name": self.fleet.space},
            "spec": {
                "fleet": {"name": self.fleet.space, "digest": read_fleet(self.fleet_file).fleet.digest},
                "timeZone": "UTC",
                "validUntil": "2099-01-01T00:00:00+00:00",
                "windows": [{"name": "all-0000", "days": ALL_DAYS, "start": "00:00", "end": "00:00"}],
                "workloads": [{"name": "chat", "replicas": [replicas], "holdsRps": [float(replicas)]}],
                "pools": [
                    {
                        "name": POOL,
                        "productionNodes": [production],
                        "ephemeralNodes": [ephemeral],
                        "ephemeralQuotaGpus": [8 * ephemeral],
                        "lead": ["0s"],
                    }
                ],
            },
        }

    def write_fleet(self, mode: str) -> None:
        self.mode = mode
        if not self.kubeconfig.exists():
            write_kubeconfig(self.kubeconfig, self.fleet)
        _replace(self.fleet_file, self.fleet_object())

    def write_schedule(self, *, replicas: int, production: int) -> None:
        _replace(self.schedule_file, self.schedule_object(replicas=replicas, production=production))


def _replace(path: Path, content: dict[str, Any]) -> None:
    """At once: the controller may read at any moment."""
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(content, indent=1))  # JSON is YAML
    fresh.replace(path)


@dataclass(kw_only=True, slots=True)
class Running:
    """One process; what it logs, a value for each line."""

    process: subprocess.Popen[bytes]
    log: Path
    said: list[dict[str, Any]] = field(default_factory=list)

    def lines(self) -> list[dict[str, Any]]:
        found = []
        for line in self.log.read_text().splitlines():
            if line.startswith("{"):
                found.append(json.loads(line))
        return found

    def events(self, name: str) -> list[dict[str, Any]]:
        return [one for one in self.lines() if one["event"] == name]

    def acted(self) -> list[str]:
        return [one["kind"] for one in self.events("action") if one["result"] == "done"]

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ended(self) -> int:
        """Its exit code, once it has ended."""
        return self.process.wait(timeout=60)


@contextmanager
def running(
    papers: Papers, name: str, *more: str, every_s: float = 0.5, lease_s: float = 4.0, started: str = "started"
) -> Iterator[Running]:
    """The process once it said ``started``, killed after the block if it still runs."""
    command = [sys.executable, "-m", "ebbtide.cli.main", "run", "--kubeconfig", str(papers.kubeconfig), "--json"]
    command += ["--namespace", papers.fleet.space, "--every-s", str(every_s), "--lease-s", str(lease_s), *more]
    if "--fleet-name" not in more:
        command += ["--fleet", str(papers.fleet_file), "--schedule", str(papers.schedule_file)]
    log = papers.folder / f"{name}.log"
    with log.open("wb") as file:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("EBBTIDE_")}
        process = subprocess.Popen(command, stdout=file, stderr=file, env=environment)
        made = Running(process=process, log=log)
        try:
            until(lambda: made.events(started) or process.poll() is not None, f"{name} started")
            yield made
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(timeout=30)
