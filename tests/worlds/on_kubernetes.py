"""A small fleet on two real API servers, for tests: one pool, one Deployment, Kueue jobs on research's nodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lightkube.config.models import User

from ebbtide.adapters.kubernetes.bindings import Bindings, PoolBinding, QuotaBinding, WorkloadBinding
from ebbtide.adapters.kubernetes.clients import Cluster, config_of
from ebbtide.adapters.kubernetes.home import ConfigMapHome
from ebbtide.adapters.kubernetes.pacing import Pace
from ebbtide.adapters.kubernetes.world import KubernetesWorld, Wishes
from ebbtide.adapters.nodepools.clusterapi import ClusterApi, DeploymentAt
from ebbtide.adapters.nodepools.protocol import NodePool
from ebbtide.adapters.nodepools.relabel import Relabel
from ebbtide.control.state import Mode, Side
from kubelab.api import Api, Json
from kubelab.cloud import Cloud, NodeTemplate
from kubelab.cluster import Cluster as LabCluster
from kubelab.cluster import delete_quietly
from kubelab.machines import MachinePool, install_cluster_api
from kubelab.nodes import remove_node
from kubelab.objects import QUEUES, cluster_queue, deployment, flavor, job, local_queue
from kubelab.relabelled import RelabelledMachines
from kubelab.waiting import until

POOL = "h100"
QUICK = Pace(per_s=1000.0, at_once=1000, silence_s=0.1)

OPTED_IN = {"key": "ebbtide.dev/tenure", "operator": "Exists", "effect": "NoSchedule"}


@dataclass(kw_only=True, slots=True)
class SmallFleet:
    """Two clusters with a pool of whole nodes that move by ``provider`` (``relabel`` or ``clusterapi``).

    ``space``: a namespace of that name in both clusters; it names whatever has no namespace, too.
    """

    lab: dict[Side, LabCluster]
    space: str
    provider: str
    cloud: Cloud

    @property
    def labels(self) -> dict[str, str]:
        return {"ebbtide.dev/pool": self.space, "ebbtide.dev/tenure": "ephemeral"}

    def api(self, side: Side) -> Api:
        return self.lab[side].api

    def stand_nodes(self, production: int, research: int) -> None:
        counts = {Side.PRODUCTION: production, Side.RESEARCH: research}
        if self.provider == "relabel":
            machines = RelabelledMachines(cloud=self.cloud, apis={side: self.api(side) for side in Side})
            for side, count in counts.items():
                for k in range(count):
                    machines.create(f"{self.space}-{side.value[0]}{k}", side.value, self.labels)
        else:
            for side, count in counts.items():
                install_cluster_api(self.lab[side])
                # Those that stand at the beginning are whole: nobody is waiting for them.
                template = NodeTemplate(labels=self.labels, taints=())
                pool = MachinePool(
                    cloud=self.cloud, api=self.api(side), namespace=self.space, name=self.space, template=template
                )
                pool.create(count)
                until(lambda side=side, count=count: len(self.nodes(side)) == count, f"nodes of {side}")
                joining = {"key": "ebbtide.dev/joining", "effect": "NoSchedule"}
                tenure = {"key": "ebbtide.dev/tenure", "value": "ephemeral", "effect": "NoSchedule"}
                more = (joining, tenure) if side is Side.RESEARCH else (joining,)
                pool.template = NodeTemplate(labels=self.labels, taints=more)

    def nodes(self, side: Side) -> list[Json]:
        return self.api(side).items("/api/v1/nodes", f"ebbtide.dev/pool={self.space}")

    def stand_chat(self, replicas: int) -> None:
        body = deployment("chat", replicas=replicas, gpus=2, node_selector={"ebbtide.dev/pool": self.space})
        self.api(Side.PRODUCTION).create(f"/apis/apps/v1/namespaces/{self.space}/deployments", body)

    def stand_queue(self, gpus: int) -> None:
        """An ephemeral flavor that is opted in to, and one queue on it."""
        api, name = self.api(Side.RESEARCH), self.space
        taint = {"key": "ebbtide.dev/tenure", "value": "ephemeral", "effect": "NoSchedule"}
        api.create(f"{QUEUES}/resourceflavors", flavor(name, node_labels=self.labels, taints=(taint,)))
        api.create(f"{QUEUES}/clusterqueues", cluster_queue(name, {name: gpus}))
        api.create(f"{QUEUES}/namespaces/{name}/localqueues", local_queue("live", name))

    def stand_job(self, name: str, *, pods: int = 1, gpus: int = 8, **more: object) -> None:
        body = job(name, pods=pods, gpus=gpus, queue="live", **more)  # type: ignore[arg-type] # job's own wishes
        body["spec"]["template"]["spec"]["tolerations"].append(OPTED_IN)
        self.api(Side.RESEARCH).create(f"/apis/batch/v1/namespaces/{self.space}/jobs", body)

    @property
    def bindings(self) -> Bindings:
        pool = PoolBinding(
            name=POOL, gpus_per_node=8, node_selector={"ebbtide.dev/pool": self.space}, ephemeral=self.space
        )
        chat = WorkloadBinding(name="chat", pool=POOL, namespace=self.space)
        return Bindings(pools=(pool,), workloads=(chat,), quota=QuotaBinding(name=self.space))

    def connect(self, side: Side, token: str = "") -> Cluster:
        """The administrator's connection, or that of who has the token."""
        config = config_of(context=None, kubeconfig=str(self.lab[side].kubeconfig))
        if token:
            config = config._replace(user=User(token=token))
        return Cluster(config, name=side.value, pace=QUICK)

    @contextmanager
    def world(self, wishes: Callable[[float], Wishes] | None = None) -> Iterator[KubernetesWorld]:
        """A controller's world over it, with connections of its own."""
        clusters = {side: self.connect(side) for side in Side}
        bindings = self.bindings
        pools: dict[str, NodePool]
        if self.provider == "relabel":
            pools = {POOL: Relabel(clusters, bindings.pools[0])}
        else:
            at = {side: DeploymentAt(cluster=clusters[side], namespace=self.space, name=self.space) for side in Side}
            pools = {POOL: ClusterApi(at)}
        home = ConfigMapHome(clusters[Side.PRODUCTION], self.space, "ebbtide")
        try:
            yield KubernetesWorld(
                clusters, bindings, home, pools, wishes=wishes or (lambda _at_s: Wishes(mode=Mode.ACTIVE))
            )
        finally:
            for cluster in clusters.values():
                cluster.close()

    def clear(self) -> None:
        """Take away what has no namespace; the namespaces go with the test."""
        self.cloud.players.clear()
        for side in Side:
            api = self.api(side)
            for node in self.nodes(side):
                remove_node(api, node["metadata"]["name"])
        api = self.api(Side.RESEARCH)
        for path in (f"{QUEUES}/clusterqueues", f"{QUEUES}/resourceflavors"):
            delete_quietly(api, f"{path}/{self.space}")


@contextmanager
def small_fleet(
    production: LabCluster, research: LabCluster, space: str, provider: str = "relabel"
) -> Iterator[SmallFleet]:
    """An empty one, to be stood up; gone after the block."""
    with Cloud(stock=16, join_s=0.3) as cloud:
        lab = {Side.PRODUCTION: production, Side.RESEARCH: research}
        fleet = SmallFleet(lab=lab, space=space, provider=provider, cloud=cloud)
        try:
            yield fleet
        finally:
            fleet.clear()


def now_s() -> float:
    """The controller's clock."""
    return time.time()
