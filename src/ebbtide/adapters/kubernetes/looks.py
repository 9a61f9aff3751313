"""One look at both sides: what is read of each cluster, once where one cluster is both, and what fails alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ebbtide.adapters.kubernetes.bindings import Bindings
from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.kinds import Kinds
from ebbtide.adapters.kubernetes.node_sight import Changes, nodes_of
from ebbtide.adapters.kubernetes.objects import NodeObject
from ebbtide.adapters.kubernetes.problems import ApiError, Kind
from ebbtide.adapters.kubernetes.quota import Quota, read_quota
from ebbtide.adapters.kubernetes.readings import Reading, read_nodes_and_pods
from ebbtide.adapters.kubernetes.replica_sight import Production, read_production
from ebbtide.adapters.kubernetes.research_sight import Research, read_research
from ebbtide.adapters.nodepools.protocol import Asked, NodePool
from ebbtide.control.state import PoolSeen, Side, Sight


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """One side: its sight, or why there is none; and the objects behind it that actions need."""

    side: Side
    sight: Sight | None = None
    problem: ApiError | None = None
    production: Production | None = None
    research: Research | None = None
    quota: Quota | None = None


class Look:
    """Reads; keeps only what a single look cannot tell: since when things are as they are."""

    def __init__(
        self, clusters: Mapping[Side, Cluster], bindings: Bindings, node_pools: Mapping[str, NodePool]
    ) -> None:
        self._clusters, self._bindings, self._node_pools = clusters, bindings, node_pools
        kinds = {id(cluster): Kinds(cluster) for cluster in clusters.values()}
        self._kinds = {side: kinds[id(cluster)] for side, cluster in clusters.items()}
        self._one_cluster = clusters[Side.PRODUCTION] is clusters[Side.RESEARCH]
        self._changes = Changes()
        self._stock_out_s: dict[tuple[Side, str], float] = {}

    def at(self, at_s: float) -> Iterator[Looked]:
        """Both sides. A side that cannot be read whole is not seen: half a sight would be counted as a whole one."""
        readings: dict[int, Reading | ApiError] = {}
        for side, cluster in self._clusters.items():
            if id(cluster) not in readings:
                readings[id(cluster)] = self._read(cluster)
            reading = readings[id(cluster)]
            if isinstance(reading, ApiError):
                yield Looked(side=side, problem=reading)
                continue
            try:
                yield self._see(side, reading, at_s)
            except ApiError as problem:
                if problem.why is Kind.MISSING:
                    self._kinds[side].forget()
                yield Looked(side=side, problem=problem)

    def _read(self, cluster: Cluster) -> Reading | ApiError:
        try:
            return read_nodes_and_pods(cluster, self._bindings.pools)
        except ApiError as problem:
            return problem

    def _see(self, side: Side, reading: Reading, at_s: float) -> Looked:
        cluster, kinds, bindings = self._clusters[side], self._kinds[side], self._bindings
        pools = {pool.name: self._pool(side, pool.name, reading, at_s) for pool in bindings.pools}
        names = [node.name for seen in pools.values() for node in seen.nodes]
        if side is Side.PRODUCTION:
            production = read_production(cluster, kinds, bindings.workloads, reading)
            self._changes.forget_others(side, names)
            sight = Sight(seen_at_s=at_s, pools=pools, replicas=production.replicas)
            return Looked(side=side, sight=sight, production=production)
        here = Reading(nodes=_only(reading, pools), pods=reading.pods, by_node=reading.by_node)
        research = read_research(cluster, kinds, bindings.pools, here, at_s)
        quota = None if bindings.quota is None else read_quota(cluster, kinds, bindings.quota, bindings.pools)
        self._changes.forget_others(side, names)
        sight = Sight(
            seen_at_s=at_s,
            pools=pools,
            quota_gpus={} if quota is None else quota.gpus,
            quota_set_by={} if quota is None else dict.fromkeys(quota.flavors, quota.set_by),
            work=research.work,
        )
        return Looked(side=side, sight=sight, research=research, quota=quota)

    def _pool(self, side: Side, name: str, reading: Reading, at_s: float) -> PoolSeen:
        provider = self._node_pools.get(name)
        asked = Asked(size=None) if provider is None else provider.look(side, reading.nodes[name])
        if asked.stock_out:
            self._stock_out_s.setdefault((side, name), at_s)
        else:
            self._stock_out_s.pop((side, name), None)
        nodes = nodes_of(
            reading,
            self._bindings.pool(name),
            side,
            cluster_of=None if self._one_cluster else side,
            changes=self._changes,
            leaving=asked.leaving,
            at_s=at_s,
        )
        return PoolSeen(nodes=nodes, size=asked.size, stock_out_s=self._stock_out_s.get((side, name)))


def _only(reading: Reading, pools: Mapping[str, PoolSeen]) -> dict[str, list[NodeObject]]:
    """The Node objects that stand on this side."""
    names = {node.name for seen in pools.values() for node in seen.nodes}
    return {pool: [one for one in nodes if one.metadata.name in names] for pool, nodes in reading.nodes.items()}
