"""`ebbtide run` on two real API servers that hold a large fleet: CPU time and memory of a quiet tick, and its calls.

    uv run python -m benchmarks.control_plane

1,000 nodes of 8 GPUs, 200 Deployments in 20 namespaces, 5,000 pods of some 4 kB as servers send them, 500 of Kueue's
Workloads. Nothing but etcd and API servers runs beside (``tests/kubelab``), so objects stay as they are written, and a
plan that is what stands gives quiet ticks. The controller is a process of its own with the rights of ``deploy/rbac``,
Active, with its Lease, its door and its metrics: what it costs is the whole process's, and its calls are counted in the
servers' audit logs. Limits are in ``limits.toml``, section ``[control_plane]``; exit code 1 where one is broken.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # for kubelab, which is the tests'

from ebbtide.adapters.documents.fleet import read_fleet
from ebbtide.adapters.kubernetes.clients import MERGE_PATCH, Cluster, config_of
from ebbtide.adapters.kubernetes.pacing import Pace
from kubelab.cluster import Cluster as LabCluster
from kubelab.kueue import install_kinds
from kubelab.lab import Lab
from kubelab.nodes import GPU, node
from kubelab.objects import QUEUES, cluster_queue, deployment, flavor, local_queue
from kubelab.processes import free_port
from kubelab.rights import controller_token
from kubelab.waiting import until

LIMITS = tomllib.loads(Path(__file__).with_name("limits.toml").read_text())["control_plane"]
SIDES = ("production", "research")
HOME, POOL, FLAVOR = "ebbtide", "h100", "tide"
PRODUCTION, EPHEMERAL, RESERVED = 600, 300, 100
DEPLOYMENTS, REPLICAS, NAMESPACES = 200, 20, 20
WORKS, PODS_EACH, GPUS_EACH = 500, 2, 2
EVERY_S, WARM, TICKS = 5.0, 12, 6  # the door asks for 50 owners a turn: of 500 Workloads it knows all after ten
ALL_DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
LONG_AGO = "2026-01-01T00:00:00Z"
Json = dict[str, Any]


# --- what stands


def space_of(number: int) -> str:
    """A Deployment's namespace."""
    return f"team-{number % NAMESPACES:02}"


def whole_pod(name: str, on: str, gpus: int, owner: Json, labels: Json) -> Json:
    """A pod as large as a model server's: its command line, environment, probes and volumes."""
    environment = [{"name": f"SETTING_{k:02}", "value": f"/models/weights/{name}/{k}"} for k in range(16)]
    probe = {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 10, "failureThreshold": 3}
    server = {
        "name": "server",
        "image": "registry.example.com/inference/server:v0.11.2",
        "args": ["--model", "/models/weights", "--tensor-parallel-size", str(gpus), "--max-model-len", "32768"],
        "env": environment,
        "ports": [{"containerPort": 8000, "name": "http"}],
        "readinessProbe": probe,
        "livenessProbe": probe,
        "resources": {"limits": {GPU: str(gpus)}, "requests": {"cpu": "1", "memory": "8Gi"}},
        "volumeMounts": [{"name": "cache", "mountPath": "/cache"}, {"name": "shm", "mountPath": "/dev/shm"}],
    }
    return {
        "metadata": {"name": name, "labels": labels, "ownerReferences": [owner]},
        "spec": {
            "nodeName": on,
            "containers": [server, {"name": "proxy", "image": "registry.example.com/mesh/proxy:1.29"}],
            "volumes": [{"name": "cache", "emptyDir": {}}, {"name": "shm", "emptyDir": {"medium": "Memory"}}],
        },
    }


def is_up() -> Json:
    """The status of a pod that serves."""
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    conditions = [{"type": one, "status": "True", "lastTransitionTime": LONG_AGO} for one in kinds]
    return {"phase": "Running", "startTime": LONG_AGO, "podIP": "10.1.2.3", "conditions": conditions}


def ready_node(name: str, side: str, tenure: str) -> Json:
    """A node that has been Ready for long."""
    made = node(name, labels={"ebbtide.dev/pool": POOL, "ebbtide.dev/side": side, "ebbtide.dev/tenure": tenure})
    made["status"]["conditions"] = [
        {"type": kind, "status": status, "lastTransitionTime": LONG_AGO}
        for kind, status in (("MemoryPressure", "False"), ("DiskPressure", "False"), ("Ready", "True"))
    ]
    return made


def owned_by(kind: str, name: str, uid: str) -> Json:
    """An owner of pods."""
    group = "batch/v1" if kind == "Job" else "apps/v1"
    return {"apiVersion": group, "kind": kind, "name": name, "uid": uid, "controller": True}


def stand(api: Cluster, side: str) -> None:
    """All that a side holds."""
    spaces = [HOME, *(space_of(k) for k in range(NAMESPACES))] if side == "production" else [HOME, "lab"]
    for space in spaces:
        api.create("/api/v1/namespaces", {"metadata": {"name": space}})
        account = {"metadata": {"name": "default"}}
        api.create(f"/api/v1/namespaces/{space}/serviceaccounts", account)
    counts = {"ephemeral": PRODUCTION} if side == "production" else {"ephemeral": EPHEMERAL, "reserved": RESERVED}
    at_once(
        lambda one: api.create("/api/v1/nodes", one),
        [ready_node(f"{side[0]}-{t[0]}{k:03}", side, t) for t, count in counts.items() for k in range(count)],
    )
    # The server's admission taints a new node as not ready; the controller that would untaint it does not run.
    names = [one["metadata"]["name"] for one in api.list("/api/v1/nodes", dict)]
    at_once(lambda one: api.patch(f"/api/v1/nodes/{one}", {"spec": {"taints": None}}, MERGE_PATCH), names)
    (stand_services if side == "production" else stand_work)(api)


def stand_services(api: Cluster) -> None:
    """Deployments and their pods, spread over the nodes."""

    def one(number: int) -> None:
        space, name = space_of(number), f"model-{number:03}"
        made = deployment(name, replicas=REPLICAS, gpus=1)
        at = f"/apis/apps/v1/namespaces/{space}/deployments"
        api.create(at, made)
        status = {"replicas": REPLICAS, "updatedReplicas": REPLICAS, "readyReplicas": REPLICAS}
        api.patch(f"{at}/{name}/status", {"status": status | {"availableReplicas": REPLICAS}}, MERGE_PATCH)
        for k in range(REPLICAS):
            on = f"p-e{(number * REPLICAS + k) % PRODUCTION:03}"
            owner = owned_by("ReplicaSet", f"{name}-5d9c7b", f"00000000-0000-4000-8000-0000000{number:05}")
            stand_pod(api, space, whole_pod(f"{name}-5d9c7b-{k:02}", on, 1, owner, {"app": name}))

    at_once(one, range(DEPLOYMENTS))


def stand_work(api: Cluster) -> None:
    """Kueue's queue, and admitted Workloads with their pods."""
    labels = {"ebbtide.dev/pool": POOL, "ebbtide.dev/tenure": "ephemeral"}
    api.create(f"{QUEUES}/resourceflavors", flavor(FLAVOR, node_labels=labels))
    api.create(f"{QUEUES}/clusterqueues", cluster_queue(FLAVOR, {FLAVOR: 8 * EPHEMERAL}))
    api.create(f"{QUEUES}/namespaces/lab/localqueues", local_queue("live", FLAVOR))

    def one(number: int) -> None:
        name = f"train-{number:03}"
        owner = owned_by("Job", name, f"10000000-0000-4000-8000-0000000{number:05}")
        container = {"name": "main", "image": "example.com/trainer", "resources": {"limits": {GPU: str(GPUS_EACH)}}}
        template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        pod_sets = [{"name": "main", "count": PODS_EACH, "template": template}]
        at = f"{QUEUES}/namespaces/lab/workloads"
        api.create(
            at,
            {
                "apiVersion": "kueue.x-k8s.io/v1beta2",
                "kind": "Workload",
                "metadata": {"name": name, "ownerReferences": [owner]},
                "spec": {"queueName": "live", "podSets": pod_sets},
            },
        )
        given = {"name": "main", "flavors": {GPU: FLAVOR}, "resourceUsage": {GPU: str(PODS_EACH * GPUS_EACH)}}
        admission = {"clusterQueue": FLAVOR, "podSetAssignments": [{**given, "count": PODS_EACH}]}
        conditions = [
            {"type": kind, "status": "True", "reason": "Admitted", "message": "", "lastTransitionTime": LONG_AGO}
            for kind in ("QuotaReserved", "Admitted")
        ]
        api.patch(f"{at}/{name}/status", {"status": {"admission": admission, "conditions": conditions}}, MERGE_PATCH)
        for k in range(PODS_EACH):
            on = f"r-e{(number * PODS_EACH + k) % EPHEMERAL:03}"
            stand_pod(api, "lab", whole_pod(f"{name}-{k}", on, GPUS_EACH, owner, {"job-name": name}))

    at_once(one, range(WORKS))


def stand_pod(api: Cluster, space: str, made: Json) -> None:
    """A pod that runs."""
    at = f"/api/v1/namespaces/{space}/pods"
    api.create(at, made)
    api.patch(f"{at}/{made['metadata']['name']}/status", {"status": is_up()}, MERGE_PATCH)


def at_once(make: Callable[[Any], Any], things: Iterable[Any]) -> None:
    """Some at a time."""
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(make, things))


# --- the controller's papers


def write_papers(folder: Path, clusters: dict[str, LabCluster]) -> None:
    """Kubeconfig by the roles of ``deploy/rbac``, Fleet, and a Schedule that wants what stands."""
    config: Json = {"apiVersion": "v1", "kind": "Config", "clusters": [], "contexts": [], "users": []}
    for side, cluster in clusters.items():
        where = {"server": cluster.url, "certificate-authority": str(cluster.ca_file)}
        config["clusters"].append({"name": side, "cluster": where})
        config["users"].append({"name": side, "user": {"token": controller_token(cluster, HOME, side)}})
        config["contexts"].append({"name": side, "context": {"cluster": side, "user": side}})
    (folder / "kubeconfig").write_text(json.dumps(config))
    (folder / "fleet.yaml").write_text(json.dumps(a_fleet()))
    digest = read_fleet(folder / "fleet.yaml").fleet.digest
    (folder / "schedule.yaml").write_text(json.dumps(a_schedule(digest)))


def a_fleet() -> Json:
    """One pool, and as many workloads as there are Deployments."""
    workloads = [
        {
            "name": f"model-{k:03}",
            "scaleTargetRef": {"namespace": space_of(k)},
            "gpusPerReplica": 1,
            "service": {"time": "1s"},
            "targets": [{"wait": "1s"}],
        }
        for k in range(DEPLOYMENTS)
    ]
    pool = {"name": POOL, "gpusPerNode": 8, "nodes": PRODUCTION + EPHEMERAL + RESERVED, "reservedNodes": RESERVED}
    quota = {"of": {"kind": "ClusterQueue", "name": FLAVOR}, "flavors": [{"pool": POOL, "ephemeral": FLAVOR}]}
    spec = {
        "mode": "Active",
        "timeZone": "UTC",
        "demand": [{"name": "log", "file": "requests.csv"}],
        "clusters": {side: {"context": side} for side in SIDES},
        "pools": [pool],
        "workloads": workloads,
        "research": {"quota": quota},
    }
    return {"apiVersion": "ebbtide.dev/v1alpha1", "kind": "Fleet", "metadata": {"name": "large"}, "spec": spec}


def a_schedule(digest: str) -> Json:
    """One window that wants what stands."""
    columns = [
        {"name": f"model-{k:03}", "replicas": [REPLICAS], "holdsRps": [float(REPLICAS)]} for k in range(DEPLOYMENTS)
    ]
    pool = {
        "name": POOL,
        "productionNodes": [PRODUCTION],
        "ephemeralNodes": [EPHEMERAL],
        "ephemeralQuotaGpus": [8 * EPHEMERAL],
        "lead": ["0s"],
    }
    spec = {
        "fleet": {"name": "large", "digest": digest},
        "timeZone": "UTC",
        "validUntil": "2099-01-01T00:00:00+00:00",
        "windows": [{"name": "all-0000", "days": ALL_DAYS, "start": "00:00", "end": "00:00"}],
        "workloads": columns,
        "pools": [pool],
    }
    return {"apiVersion": "ebbtide.dev/v1alpha1", "kind": "Schedule", "metadata": {"name": "large"}, "spec": spec}


# --- the controller


@contextmanager
def running(folder: Path, port: int) -> Iterator[int]:
    """`ebbtide run`; its process's id."""
    command = [sys.executable, "-m", "ebbtide.cli.main", "run", "--kubeconfig", str(folder / "kubeconfig"), "--json"]
    command += ["--fleet", str(folder / "fleet.yaml"), "--schedule", str(folder / "schedule.yaml")]
    command += ["--namespace", HOME, "--every-s", str(EVERY_S), "--listen", f"127.0.0.1:{port}"]
    with (folder / "run.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield process.pid
        assert process.poll() is None, (folder / "run.log").read_text()[-2000:]
    finally:
        process.terminate()
        process.wait(60)


def metric(port: int, name: str) -> float:
    """The sum of a metric's values over its labels; 0 while nobody answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        return 0.0
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith((f"{name} ", f"{name}{{")))


def cpu_s(process: int) -> float:
    """CPU time of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mib(process: int) -> float:
    """Most memory that was ever resident."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def calls(clusters: dict[str, LabCluster]) -> Counter[str]:
    """The controller's calls so far by the servers' own account."""
    found: Counter[str] = Counter()
    for side, cluster in clusters.items():
        for line in cluster.audit_log.read_text().splitlines():
            entry = json.loads(line)
            if entry["userAgent"] == "ebbtide" and entry["stage"] == "ResponseComplete":
                ref = entry.get("objectRef", {})
                found[f"{side} {entry['verb']} {ref.get('resource', 'discovery')}"] += 1
    return found


def measure(folder: Path, clusters: dict[str, LabCluster]) -> bool:
    """Quiet ticks of a controller that has found its feet; whether all limits held."""
    port = free_port()
    with running(folder, port) as process:
        ticks = "ebbtide_ticks_total"
        until(lambda: metric(port, ticks) >= WARM, "its first ticks", within_s=600)
        until(lambda: metric(port, "ebbtide_leader") == 1, "its Lease")
        before = (metric(port, ticks), cpu_s(process), calls(clusters), metric(port, "ebbtide_actions_total"))
        begun_s = time.monotonic()
        until(lambda: metric(port, ticks) >= before[0] + TICKS, f"{TICKS} ticks", within_s=600, every_s=0.5)
        took_s = time.monotonic() - begun_s
        done = metric(port, ticks) - before[0]
        spent_s, asked = cpu_s(process) - before[1], calls(clusters) - before[2]
        acted, problems = metric(port, "ebbtide_actions_total") - before[3], metric(port, "ebbtide_problems_total")
        mib, tick_s = peak_mib(process), metric(port, "ebbtide_tick_seconds_sum") / metric(port, ticks)
    print(f"{done:.0f} ticks in {took_s:.0f} s, each {tick_s:.1f} s long; {acted:.0f} actions, {problems:.0f} problems")
    for what, count in sorted(asked.items()):
        print(f"    {what:45} {count / done:6.1f} a tick")
    held = [
        at_most("CPU of a tick", spent_s / done, LIMITS["tick_cpu_s"], "s"),
        at_most("resident at most", mib, LIMITS["peak_mib"], "MiB"),
        at_most("API calls of a quiet tick", sum(asked.values()) / done, LIMITS["calls"], ""),
        at_most("actions and problems", acted + problems, 0.0, ""),
    ]
    return all(held)


def at_most(what: str, value: float, limit: float, unit: str) -> bool:
    """Say a measured value and its limit."""
    print(f"{what:34} {value:8.2f} {unit:4} at most {limit:6.1f}  {'ok' if value <= limit else 'TOO MUCH'}")
    return value <= limit


def main() -> int:
    """Stand the fleet up, and measure."""
    with tempfile.TemporaryDirectory(prefix="ebbtide-bench-") as name, Lab(Path(name)) as lab:
        lab.start_servers(SIDES)
        begun_s = time.monotonic()
        for side in SIDES:
            if side == "research":
                kinds = ("workloads", "clusterqueues", "localqueues", "resourceflavors", "admissionchecks", "cohorts")
                install_kinds(lab.clusters[side], *kinds)
            pace = Pace(per_s=10_000.0, at_once=10_000)
            api = Cluster(config_of(context=None, kubeconfig=str(lab.clusters[side].kubeconfig)), pace=pace)
            stand(api, side)
            api.close()
        stood = f"{PRODUCTION + EPHEMERAL + RESERVED:,} nodes, {DEPLOYMENTS} Deployments in {NAMESPACES} namespaces, "
        stood += f"{DEPLOYMENTS * REPLICAS + WORKS * PODS_EACH:,} pods, {WORKS} Workloads"
        print(f"{stood}: standing after {time.monotonic() - begun_s:.0f} s", flush=True)
        write_papers(Path(name), lab.clusters)
        return 0 if measure(Path(name), lab.clusters) else 1


if __name__ == "__main__":
    sys.exit(main())
