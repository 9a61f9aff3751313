"""Kueue's door with 2,000 Workloads pending on a real API server: releases at a window's start, and single ones.

    uv run python -m benchmarks.door [WORKLOADS]

Starts the control plane of the tests (``tests/kubelab``) with Kueue, submits so many Jobs to a held LocalQueue, and
runs the door as ``ebbtide run`` does. When the window begins, a quarter of them is due at once: measured is the time
from the window's start until the last one's label names the live queue, and told beside it until Kueue has followed;
then, for single Jobs that are submitted while the others wait, the time from submission to admission. Limits are in
``limits.toml``, section ``[door]``; exit code 1 where one is broken. A dozen servers share the machine: it wants
a quiet one. Two minutes and more: most of it is Kueue taking the Jobs in.
"""

from __future__ import annotations

import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # the lab is the tests'

from ebbtide.control.state import Side  # behind the path
from kubelab.api import Api, Json  # behind the path
from kubelab.lab import Lab  # behind the path
from kubelab.objects import QUEUES, job  # behind the path
from kubelab.waiting import until  # behind the path
from worlds.door_fleet import DoorFleet, Window, clock, door  # behind the path

LIMITS = tomllib.loads((Path(__file__).parent / "limits.toml").read_text())["door"]
WORKLOADS = 2_000
SINGLES = 5
GPUS = 8


def submit(here: DoorFleet, name: str, tenure: str) -> None:
    """A Job of one GPU for an hour that may stand on nodes of one tenure."""
    body = job(name, gpus=1, queue="held", annotations={"ebbtide.dev/duration": "1h", "ebbtide.dev/deadline": "12h"})
    spec = body["spec"]["template"]["spec"]
    spec["nodeSelector"] = {"ebbtide.dev/tenure": tenure}
    spec["tolerations"].append({"key": "ebbtide.dev/tenure", "operator": "Exists", "effect": "NoSchedule"})
    here.api.create(here.jobs, body)


def workloads(here: DoorFleet) -> list[Json]:
    """All Workloads, as the API server has them."""
    found: list[Json] = here.api.items(here.workloads)
    return found


def count(here: DoorFleet, holds: Callable[[Json], bool]) -> int:
    """How many Workloads are so."""
    return sum(holds(one) for one in workloads(here))


def in_live(one: Json) -> bool:
    """Whether it was let in."""
    return bool(one["spec"]["queueName"] == "live")


def is_told(one: Json) -> bool:
    """Whether its start was promised."""
    return "ebbtide.dev/promise" in one["metadata"].get("annotations", {})


def admitted(api: Api, here: DoorFleet, name: str) -> bool:
    """Whether Kueue lets the Job run."""
    return not api.get(f"{here.jobs}/{name}")["spec"].get("suspend")


def at_window_start(here: DoorFleet, pending: int) -> float:
    """Seconds from the window's start until a quarter of the Workloads is in the live queue."""
    due = pending // 4
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda k: submit(here, f"j{k}", "ephemeral"), range(pending)))
    until(lambda: len(workloads(here)) == pending, "Kueue has taken them in", within_s=600, every_s=1.0)
    start_s = (time.time() // 60 + 2) * 60
    here.write(Window(start=clock(start_s), nodes=-(-due // GPUS)), Window(start=clock(start_s + 4 * 3600), nodes=0))
    with door(here, every_s=5.0) as lines:
        until(lambda: count(here, is_told), "the plan is made", within_s=120, every_s=0.5)
        print(f"{pending} pending, planned {start_s - time.time():.0f} s before the window", flush=True)
        time.sleep(max(start_s - time.time(), 0.0))
        until(lambda: sum(one.get("event") == "released" for one in lines) >= due, "released", within_s=120)
        took_s = time.time() - start_s
        until(lambda: count(here, in_live) >= due, "Kueue has followed", within_s=120, every_s=0.5)
        print(
            f"{due} due: released within {took_s:.1f} s, in the queue within {time.time() - start_s:.1f} s", flush=True
        )
        singles(here)
    return took_s


def singles(here: DoorFleet) -> None:
    """Jobs that come one by one, and could start at once."""
    worst_s = 0.0
    for k in range(SINGLES):
        begun_s = time.time()
        submit(here, f"single{k}", "reserved")
        until(lambda k=k: admitted(here.api, here, f"single{k}"), "admitted", within_s=60, every_s=0.1)
        worst_s = max(worst_s, time.time() - begun_s)
        print(f"a single one: {time.time() - begun_s:.1f} s", flush=True)
    SEEN["single_s"] = worst_s


SEEN: dict[str, float] = {}


def main(arguments: list[str]) -> int:
    """1 where a limit is broken."""
    pending = int(arguments[0]) if arguments else WORKLOADS
    folder = Path(tempfile.mkdtemp(prefix="ebbtide-door-"))
    with Lab(folder) as lab:
        lab.start(["production", "research"], kueue=["research"])
        api = lab.clusters["research"].api
        for side in ("production", "research"):
            lab.clusters[side].api.create("/api/v1/namespaces", {"metadata": {"name": "door"}})
        here = DoorFleet(
            lab={side: lab.clusters[str(side)] for side in Side},
            space="door",
            folder=folder,
            gpus=GPUS,
            reserved=2,
            ephemeral=0,
        )
        here.stand()
        here.ephemeral = -(-pending // 4 // GPUS)
        quota = "/spec/resourceGroups/0/flavors/1/resources/0/nominalQuota"
        api.edit(f"{QUEUES}/clusterqueues/door", [{"op": "replace", "path": quota, "value": str(pending)}])
        SEEN["start_s"] = at_window_start(here, pending)
    missed = 0
    for name, value in SEEN.items():
        holds = value <= LIMITS[name]
        missed += not holds
        print(f"{name}: {value:.1f}, at most {LIMITS[name]}{'' if holds else ': MISSED'}")
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
