"""Research behind Kueue's door, for tests: a reserved and an ephemeral flavor, held and live queues, the check."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from ebbtide.adapters.documents.fleet import read_fleet
from ebbtide.adapters.documents.schedule import read_schedule
from ebbtide.adapters.kubernetes.clients import Cluster, config_of
from ebbtide.adapters.telemetry.metrics import Metrics
from ebbtide.control.state import Side
from ebbtide.workflows.run_beside import Beside
from ebbtide.workflows.run_documents import Documents
from ebbtide.workflows.run_door import Door
from ebbtide.workflows.run_places import DOOR_PACE
from ebbtide.workflows.run_told import Teller
from kubelab.api import Api, Json
from kubelab.cluster import Cluster as LabCluster
from kubelab.cluster import delete_quietly
from kubelab.nodes import add_node, remove_node
from kubelab.objects import QUEUES, cluster_queue, flavor, job, local_queue
from worlds.on_kubernetes import OPTED_IN
from worlds.run_process import ALL_DAYS, write_kubeconfig

POOL = "a100"
TAINT = {"key": "ebbtide.dev/tenure", "value": "ephemeral", "effect": "NoSchedule"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Ephemeral nodes from a wall-clock time on; ``lead_s`` before it nodes begin to leave."""

    start: str
    nodes: int
    lead_s: float = 0.0


@dataclass(slots=True, kw_only=True)
class DoorFleet:
    """Objects in research, and the documents of a controller over them; all names begin with ``space``."""

    lab: dict[Side, LabCluster]
    space: str
    folder: Path
    gpus: int = 4
    reserved: int = 1
    ephemeral: int = 0
    mode: str = "Active"
    nodes: list[str] = field(default_factory=list)

    # --- what worlds.run_process asks of papers

    @property
    def fleet(self) -> DoorFleet:
        return self

    @property
    def fleet_file(self) -> Path:
        return self.folder / "fleet.yaml"

    @property
    def schedule_file(self) -> Path:
        return self.folder / "schedule.yaml"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    # --- objects

    @property
    def api(self) -> Api:
        return self.lab[Side.RESEARCH].api

    @property
    def jobs(self) -> str:
        return f"/apis/batch/v1/namespaces/{self.space}/jobs"

    @property
    def workloads(self) -> str:
        return f"{QUEUES}/namespaces/{self.space}/workloads"

    def stand(self) -> None:
        api, space = self.api, self.space
        for tenure, count in (("reserved", self.reserved), ("ephemeral", self.ephemeral)):
            for k in range(count):
                name = f"{space}-{tenure[0]}{k}"
                self.nodes.append(name)
                taints = (TAINT,) if tenure == "ephemeral" else ()
                add_node(api, name, gpus=self.gpus, labels=self.labels(tenure), taints=taints)
        api.create(f"{QUEUES}/resourceflavors", flavor(f"{space}-fixed", node_labels=self.labels("reserved")))
        tide = flavor(f"{space}-tide", node_labels=self.labels("ephemeral"), taints=(TAINT,))
        api.create(f"{QUEUES}/resourceflavors", tide)
        check = {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "AdmissionCheck",
            "metadata": {"name": space},
            "spec": {"controllerName": "ebbtide.dev/tide"},
        }
        api.create(f"{QUEUES}/admissionchecks", check)
        quotas = {f"{space}-fixed": self.gpus * self.reserved, f"{space}-tide": self.gpus * self.ephemeral}
        queue = cluster_queue(space, quotas)
        queue["spec"]["admissionChecksStrategy"] = {
            "admissionChecks": [{"name": space, "onFlavors": [f"{space}-tide"]}]
        }
        api.create(f"{QUEUES}/clusterqueues", queue)
        self.stand_queues()

    def stand_queues(self, **defaults: str) -> None:
        queues = f"{QUEUES}/namespaces/{self.space}/localqueues"
        self.api.create(queues, local_queue("live", self.space))
        held = local_queue("held", self.space, stop_policy="Hold")
        annotations = {f"ebbtide.dev/{name.replace('_', '-')}": text for name, text in defaults.items()}
        held["metadata"]["annotations"] = {"ebbtide.dev/live-queue": "live"} | annotations
        self.api.create(queues, held)

    def labels(self, tenure: str) -> dict[str, str]:
        return {"ebbtide.dev/pool": self.space, "ebbtide.dev/tenure": tenure}

    def submit(
        self, name: str, *, gpus: int = 2, queue: str = "held", runs_s: float = 5, opted_in: bool = False, **said: str
    ) -> None:
        """A Job of one pod that runs for so long; ``said``: annotations ``ebbtide.dev/…`` of its pod template."""
        annotations = {f"ebbtide.dev/{key.replace('_', '-')}": text for key, text in said.items()}
        body = job(name, gpus=gpus, queue=queue, annotations=annotations | {"lab/complete-after": f"{runs_s}s"})
        if opted_in:
            body["spec"]["template"]["spec"]["tolerations"].append(OPTED_IN)
        self.api.create(self.jobs, body)

    def workload(self, name: str) -> Json:
        """The Job's Workload; empty while there is none."""
        for found in self.api.items(self.workloads):
            if any(owner["name"] == name for owner in found["metadata"].get("ownerReferences", ())):
                return found
        return {}

    def condition(self, name: str, kind: str = "ebbtide.dev/Planned") -> Json:
        """A condition of the Job's Workload; empty while it isn't there."""
        conditions = self.workload(name).get("status", {}).get("conditions", [])
        return next((one for one in conditions if one["type"] == kind), {})

    def done(self) -> set[str]:
        return {
            one["metadata"]["name"]
            for one in self.api.items(self.jobs)
            if any(each["type"] == "Complete" for each in one.get("status", {}).get("conditions", []))
        }

    # --- documents

    def write(self, *windows: Window) -> None:
        """Fleet and Schedule; without windows the ephemeral nodes stay for good."""
        if not self.kubeconfig.exists():
            write_kubeconfig(self.kubeconfig, self)  # type: ignore[arg-type] # it reads lab and space
        self.fleet_file.write_text(json.dumps(self._fleet()))
        self.schedule_file.write_text(
            json.dumps(self._schedule(windows or (Window(start="00:00", nodes=self.ephemeral),)))
        )

    def _fleet(self) -> dict[str, Any]:
        space = self.space
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
                        "gpusPerNode": self.gpus,
                        "nodes": self.reserved + max(self.ephemeral, 1),
                        "reservedNodes": self.reserved,
                        "nodeSelector": {"ebbtide.dev/pool": space},
                        "yieldTime": "0s",
                    }
                ],
                "workloads": [
                    {
                        "name": "chat",
                        "scaleTargetRef": {"namespace": space, "name": "chat"},
                        "gpusPerReplica": self.gpus,
                        "service": {"time": "1s"},
                        "targets": [{"wait": "1s"}],
                    }
                ],
                "research": {
                    "quota": {
                        "of": {"kind": "ClusterQueue", "name": space},
                        "flavors": [{"pool": POOL, "reserved": f"{space}-fixed", "ephemeral": f"{space}-tide"}],
                    }
                },
            },
        }

    def _schedule(self, windows: tuple[Window, ...]) -> dict[str, Any]:
        starts = [one.start for one in windows]
        rows = [
            {"name": f"w{k}", "days": ALL_DAYS, "start": one.start, "end": starts[(k + 1) % len(starts)]}
            for k, one in enumerate(windows)
        ]
        total = max(self.ephemeral, 1)
        return {
            "apiVersion": "ebbtide.dev/v1alpha1",
            "kind": "Schedule",
            "metadata": {"name": self.space},
            "spec": {
                "fleet": {"name": self.space, "digest": read_fleet(self.fleet_file).fleet.digest},
                "timeZone": "UTC",
                "validUntil": "2099-01-01T00:00:00+00:00",
                "windows": rows,
                "workloads": [{"name": "chat", "replicas": [1] * len(rows), "holdsRps": [1.0] * len(rows)}],
                "pools": [
                    {
                        "name": POOL,
                        "productionNodes": [total - one.nodes for one in windows],
                        "ephemeralNodes": [one.nodes for one in windows],
                        "ephemeralQuotaGpus": [self.gpus * one.nodes for one in windows],
                        "lead": [f"{one.lead_s:.0f}s" for one in windows],
                    }
                ],
            },
        }

    def clear(self) -> None:
        delete_quietly(self.api, f"/api/v1/namespaces/{self.space}")
        for path in (f"clusterqueues/{self.space}", f"admissionchecks/{self.space}"):
            delete_quietly(self.api, f"{QUEUES}/{path}")
        for kind in ("fixed", "tide"):
            delete_quietly(self.api, f"{QUEUES}/resourceflavors/{self.space}-{kind}")
        for name in self.nodes:
            remove_node(self.api, name)


@contextmanager
def door_fleet(
    production: LabCluster, research: LabCluster, space: str, folder: Path, **shape: int
) -> Iterator[DoorFleet]:
    """It stands; gone after the block. The namespace in production is the caller's."""
    research.api.create("/api/v1/namespaces", {"metadata": {"name": space}})
    lab = {Side.PRODUCTION: production, Side.RESEARCH: research}
    made = DoorFleet(lab=lab, space=space, folder=folder, **shape)
    try:
        made.stand()
        yield made
    finally:
        made.clear()


def clock(at_s: float) -> str:
    """HH:MM, UTC."""
    return time.strftime("%H:%M", time.gmtime(at_s))


@contextmanager
def door(here: DoorFleet, *, every_s: float = 0.3) -> Iterator[list[dict[str, Any]]]:
    """Kueue's door alone, without the controller's moves of nodes and quota; what it logs."""
    cluster = Cluster(
        config_of(context=str(Side.RESEARCH), kubeconfig=str(here.kubeconfig)), name="research", pace=DOOR_PACE
    )
    lines: list[dict[str, Any]] = []
    documents = Documents(
        fleet=read_fleet(here.fleet_file).fleet, schedule=read_schedule(here.schedule_file, explained=False)[0]
    )
    log = structlog.wrap_logger(None, processors=[lambda _logger, level, event: _kept(lines, level, event)])
    made = Door(cluster, Teller(log, Metrics(), None), goes_on=lambda: True)
    beside = Beside(made, lambda: documents, lambda: True, every_s=every_s)
    beside.start()
    try:
        yield lines
        beside.check()
    finally:
        beside.stop()
        cluster.close()


def _kept(lines: list[dict[str, Any]], level: str, event: Any) -> Any:
    lines.append({"level": level, **event})
    raise structlog.DropEvent
