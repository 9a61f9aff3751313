"""A fleet for a whole day on two real API servers: 24 nodes of 8 GPUs, six Deployments, Kueue jobs on ephemeral nodes.

Time is the controller's: it runs ``SCALE`` times as fast as the clock on the wall while something is to be waited for,
and the test lets it jump over hours in which nothing is to be done. So a slow machine makes the test longer, not wrong.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from whenever import OffsetDateTime, Time, hours

from ebbtide.adapters.kubernetes.bindings import bindings_of
from ebbtide.adapters.kubernetes.clients import Cluster, config_of
from ebbtide.adapters.kubernetes.home import ConfigMapHome
from ebbtide.adapters.kubernetes.pacing import Pace
from ebbtide.adapters.kubernetes.world import KubernetesWorld, Wishes
from ebbtide.adapters.nodepools.of_fleet import node_pools_of
from ebbtide.control.state import Mode, Side
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import WEEK, DayPattern, windows_of
from ebbtide.fleet.operations import QuotaFlavor, QuotaKind, QuotaRef, ScaleTarget
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.schedule import PoolColumn, Schedule, WorkloadColumn
from ebbtide.fleet.workload import DemandRef, Service, Target, TargetKind, Workload
from kubelab.api import Api, Json
from kubelab.cloud import Cloud
from kubelab.cluster import Cluster as LabCluster
from kubelab.cluster import delete_quietly
from kubelab.nodes import remove_node
from kubelab.objects import QUEUES, cluster_queue, deployment, flavor, job, local_queue
from kubelab.relabelled import RelabelledMachines

POOL, GPUS, NODES, RESERVED = "h100", 8, 24, 4
STARTS = (0, 7, 12, 20)  # o'clock: night, morning, day, evening
PRODUCTION_NODES = (6, 12, 16, 9)
WIDTHS = {"chat": 1, "assist": 2, "search": 1, "agents": 2, "code": 2, "report": 1}
USED = 0.85  # of the GPUs: the scheduler spreads pods, and with one GPU left on every node none of two would fit
SCALE = 60.0
MOVE_S = 1500.0  # told: 25 minutes either way, as many seconds on the wall
STARTUP_S = 120.0
LEAD_S = MOVE_S + STARTUP_S
OPTED_IN = {"key": "ebbtide.dev/tenure", "operator": "Exists", "effect": "NoSchedule"}


def replicas_of(nodes: int) -> dict[str, int]:
    """What so many production nodes hold: each Deployment a sixth of the GPUs, at least one replica."""
    share = USED * nodes * GPUS / len(WIDTHS)
    return {name: max(int(share // width), 1) for name, width in WIDTHS.items()}


@dataclass(slots=True)
class Clock:
    """The controller's time."""

    base_s: float
    _mark_s: float = field(default_factory=time.monotonic)

    def now_s(self) -> float:
        return self.base_s + (time.monotonic() - self._mark_s) * SCALE

    def jump(self, to_s: float) -> None:
        """Later only: nobody's clock goes back."""
        assert to_s >= self.now_s()
        self.base_s, self._mark_s = to_s, time.monotonic()


@dataclass(slots=True, kw_only=True)
class DayFleet:
    """The objects in both clusters; all names begin with ``space``."""

    lab: dict[Side, LabCluster]
    space: str
    cloud: Cloud
    machines: RelabelledMachines

    def api(self, side: Side) -> Api:
        return self.lab[side].api

    def labels(self, tenure: str) -> dict[str, str]:
        return {"ebbtide.dev/pool": self.space, "ebbtide.dev/tenure": tenure}

    def stand(self, production: int) -> None:
        for k in range(NODES - RESERVED):
            side = Side.PRODUCTION if k < production else Side.RESEARCH
            self.machines.create(f"{self.space}-{k:02}", side.value, self.labels("ephemeral"))
        for k in range(RESERVED):
            self.machines.create(f"{self.space}-r{k}", Side.RESEARCH.value, self.labels("reserved"))
        for name, count in replicas_of(production).items():
            body = deployment(name, replicas=count, gpus=WIDTHS[name], node_selector={"ebbtide.dev/pool": self.space})
            self.api(Side.PRODUCTION).create(f"/apis/apps/v1/namespaces/{self.space}/deployments", body)
        self._stand_queues(GPUS * (NODES - RESERVED - production))

    def _stand_queues(self, ephemeral_gpus: int) -> None:
        api, tide, fixed = self.api(Side.RESEARCH), f"{self.space}-tide", f"{self.space}-fixed"
        taint = {"key": "ebbtide.dev/tenure", "value": "ephemeral", "effect": "NoSchedule"}
        api.create(f"{QUEUES}/resourceflavors", flavor(fixed, node_labels=self.labels("reserved")))
        api.create(f"{QUEUES}/resourceflavors", flavor(tide, node_labels=self.labels("ephemeral"), taints=(taint,)))
        for name, quotas in ((fixed, {fixed: RESERVED * GPUS}), (tide, {tide: ephemeral_gpus})):
            api.create(f"{QUEUES}/clusterqueues", cluster_queue(name, quotas))
            api.create(f"{QUEUES}/namespaces/{self.space}/localqueues", local_queue(name, name))

    def stand_job(self, name: str, *, queue: str, pods: int, completions: int, after: str) -> None:
        """An indexed job of whole nodes; each of its pods completes after so long on the wall."""
        body = job(
            name,
            pods=pods,
            completions=completions,
            gpus=GPUS,
            queue=f"{self.space}-{queue}",
            indexed=True,
            annotations={"lab/complete-after": after},
        )
        if queue == "tide":
            body["spec"]["template"]["spec"]["tolerations"].append(OPTED_IN)
        self.api(Side.RESEARCH).create(f"/apis/batch/v1/namespaces/{self.space}/jobs", body)

    def jobs(self) -> dict[str, Json]:
        found = self.api(Side.RESEARCH).items(f"/apis/batch/v1/namespaces/{self.space}/jobs")
        return {one["metadata"]["name"]: one for one in found}

    @property
    def fleet(self) -> Fleet:
        pool = Pool(
            name=POOL,
            gpus_per_node=GPUS,
            nodes=NODES,
            reserved_nodes=RESERVED,
            min_production_nodes=4,
            moves_at_once=10,
            yield_time_s=MOVE_S,
            reclaim_time_s=MOVE_S,
            node_selector=(("ebbtide.dev/pool", self.space),),
        )
        quota = QuotaRef(
            kind=QuotaKind.CLUSTER_QUEUE,
            name=f"{self.space}-tide",
            flavors=(QuotaFlavor(pool=POOL, ephemeral=f"{self.space}-tide", reserved=f"{self.space}-fixed"),),
        )
        return Fleet(
            name=self.space,
            digest="sha256:day",
            time_zone="UTC",
            confidence=0.95,
            patterns=(),
            pools=(pool,),
            workloads=tuple(self._workload(name, width) for name, width in WIDTHS.items()),
            research=Research(quota=quota),
            mode=Mode.ACTIVE,
        )

    def _workload(self, name: str, width: int) -> Workload:
        return Workload(
            name=name,
            demand=DemandRef(source="s", key=name),
            pool=POOL,
            gpus_per_replica=width,
            service=Service(time_s=1.0, scv=1.0),
            targets=(Target(kind=TargetKind.WAIT, bound_s=1.0),),
            startup_time_s=STARTUP_S,
            scale_target=ScaleTarget(namespace=self.space, name=name),
        )

    @property
    def schedule(self) -> Schedule:
        held = [replicas_of(nodes) for nodes in PRODUCTION_NODES]
        ephemeral = tuple(NODES - RESERVED - nodes for nodes in PRODUCTION_NODES)
        column = PoolColumn(
            name=POOL,
            production_nodes=PRODUCTION_NODES,
            ephemeral_nodes=ephemeral,
            ephemeral_quota_gpus=tuple(GPUS * nodes for nodes in ephemeral),
            lead_s=(0.0, LEAD_S, LEAD_S, 0.0),
        )
        return Schedule(
            name=self.space,
            fleet_name=self.space,
            fleet_digest="sha256:day",
            time_zone="UTC",
            valid_until=OffsetDateTime(2099, 1, 1, offset=hours(0)),
            windows=windows_of(DayPattern(days=WEEK, starts=tuple(Time(hour) for hour in STARTS))),
            workloads=tuple(
                WorkloadColumn(name=name, replicas=tuple(one[name] for one in held), holds_rps=(1e9,) * len(STARTS))
                for name in WIDTHS
            ),
            pools=(column,),
        )

    @contextmanager
    def world(self) -> Iterator[KubernetesWorld]:
        """A controller's world over it, with connections of its own."""
        quick = Pace(per_s=1000.0, at_once=1000, silence_s=0.1)
        clusters = {
            side: Cluster(
                config_of(context=None, kubeconfig=str(self.lab[side].kubeconfig)), name=side.value, pace=quick
            )
            for side in Side
        }
        fleet = self.fleet
        bindings = bindings_of(fleet)
        home = ConfigMapHome(clusters[Side.PRODUCTION], self.space, "ebbtide")
        try:
            yield KubernetesWorld(
                clusters,
                bindings,
                home,
                node_pools_of(fleet, bindings, clusters),
                wishes=lambda _at_s: Wishes(mode=Mode.ACTIVE),
            )
        finally:
            for cluster in clusters.values():
                cluster.close()

    def clear(self) -> None:
        self.cloud.players.clear()
        for side in Side:
            for node in self.api(side).items("/api/v1/nodes", f"ebbtide.dev/pool={self.space}"):
                remove_node(self.api(side), node["metadata"]["name"])
        for plural in ("clusterqueues", "resourceflavors"):
            for name in ("tide", "fixed"):
                delete_quietly(self.api(Side.RESEARCH), f"{QUEUES}/{plural}/{self.space}-{name}")


@contextmanager
def day_fleet(production: LabCluster, research: LabCluster, space: str) -> Iterator[DayFleet]:
    """An empty one, to be stood up; gone after the block. A machine is away for five seconds on the wall."""
    with Cloud(stock=NODES, join_s=5.0) as cloud:
        lab = {Side.PRODUCTION: production, Side.RESEARCH: research}
        machines = RelabelledMachines(cloud=cloud, apis={str(side): lab[side].api for side in Side})
        fleet = DayFleet(lab=lab, space=space, cloud=cloud, machines=machines)
        try:
            yield fleet
        finally:
            fleet.clear()
