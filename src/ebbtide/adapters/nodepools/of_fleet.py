"""Each pool's provider, as the Fleet names it."""

from __future__ import annotations

from collections.abc import Mapping

from ebbtide.adapters.kubernetes.bindings import Bindings
from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.kinds import Kinds
from ebbtide.adapters.nodepools.clusterapi import SERVED, ClusterApi, DeploymentAt
from ebbtide.adapters.nodepools.protocol import NodePool
from ebbtide.adapters.nodepools.relabel import Relabel
from ebbtide.control.state import Side
from ebbtide.fleet import operations
from ebbtide.fleet.fleet import Fleet


def node_pools_of(fleet: Fleet, bindings: Bindings, clusters: Mapping[Side, Cluster]) -> dict[str, NodePool]:
    """By pool. Nothing is asked of a cluster yet: one that does not answer must not keep the others from their work."""
    kinds = {id(cluster): Kinds(cluster) for cluster in clusters.values()}
    pools: dict[str, NodePool] = {}
    for pool in fleet.pools:
        if isinstance(pool.provider, operations.ClusterApi):
            named = {Side.PRODUCTION: pool.provider.production, Side.RESEARCH: pool.provider.research}
            pools[pool.name] = ClusterApi({side: _at(ref, clusters, kinds) for side, ref in named.items()})
        else:
            pools[pool.name] = Relabel(clusters, bindings.pool(pool.name))
    return pools


def _at(
    ref: operations.MachineDeploymentRef, clusters: Mapping[Side, Cluster], kinds: Mapping[int, Kinds]
) -> DeploymentAt:
    cluster = clusters[Side(ref.cluster)]
    known = kinds[id(cluster)]
    return DeploymentAt(
        cluster=cluster,
        namespace=ref.namespace,
        name=ref.name,
        version=lambda: known.version("cluster.x-k8s.io", *SERVED) or SERVED[0],
    )
