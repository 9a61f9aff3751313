"""What of the Fleet is told to the real world alone: which objects stand for its pools, workloads and quota."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.operations import QuotaFlavor
from ebbtide.fleet.pool import Pool
from ebbtide.fleet.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolBinding:
    """Which Node objects are a pool's, and the resource that counts its GPUs.

    ``ephemeral`` and ``reserved``: its flavors in research's quota; "" where it has none.
    """

    name: str
    gpus_per_node: int
    node_selector: Mapping[str, str] = field(default_factory=dict)
    gpu_resource: str = "nvidia.com/gpu"
    ephemeral: str = ""
    reserved: str = ""

    @property
    def selector(self) -> str:
        """The label selector of its nodes.

        >>> PoolBinding(name="h100", gpus_per_node=8).selector
        'ebbtide.dev/pool=h100'
        """
        wanted = self.node_selector or {"ebbtide.dev/pool": self.name}
        return ",".join(f"{key}={value}" for key, value in sorted(wanted.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadBinding:
    """The object whose scale is a workload's; ``target`` is its name, where it is not the workload's."""

    name: str
    pool: str
    api_version: str = "apps/v1"
    kind: str = "Deployment"
    namespace: str = "default"
    target: str = ""

    @property
    def object_name(self) -> str:
        """The name of the object."""
        return self.target or self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaBinding:
    """The one object that holds research's quota: a ``ClusterQueue`` or a ``Cohort``."""

    name: str
    kind: str = "ClusterQueue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bindings:
    """All of them."""

    pools: tuple[PoolBinding, ...]
    workloads: tuple[WorkloadBinding, ...] = ()
    quota: QuotaBinding | None = None

    def pool(self, name: str) -> PoolBinding:
        """The pool of that name; ``KeyError`` where there is none."""
        return {one.name: one for one in self.pools}[name]

    def workload(self, name: str) -> WorkloadBinding:
        """The workload of that name; ``KeyError`` where there is none."""
        return {one.name: one for one in self.workloads}[name]


def bindings_of(fleet: Fleet) -> Bindings:
    """What a Fleet says of its objects."""
    quota = fleet.research.quota
    flavors = {one.pool: one for one in quota.flavors} if quota is not None else {}
    return Bindings(
        pools=tuple(_pool(pool, flavors.get(pool.name)) for pool in fleet.pools),
        workloads=tuple(_workload(one) for one in fleet.workloads),
        quota=None if quota is None else QuotaBinding(name=quota.name, kind=str(quota.kind)),
    )


def _pool(pool: Pool, flavors: QuotaFlavor | None) -> PoolBinding:
    return PoolBinding(
        name=pool.name,
        gpus_per_node=pool.gpus_per_node,
        node_selector=dict(pool.node_selector),
        gpu_resource=pool.gpu_resource,
        ephemeral="" if flavors is None else flavors.ephemeral,
        reserved="" if flavors is None else flavors.reserved,
    )


def _workload(workload: Workload) -> WorkloadBinding:
    target = workload.scales
    return WorkloadBinding(
        name=workload.name,
        pool=workload.pool,
        api_version=target.api_version,
        kind=target.kind,
        namespace=target.namespace,
        target=target.name,
    )
