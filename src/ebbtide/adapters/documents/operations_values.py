"""The Fleet's fields that the controller reads → the core's values."""

from __future__ import annotations

from ebbtide.adapters.documents.fleet_models import FleetSpec, WorkloadSpec
from ebbtide.adapters.documents.operations_models import (
    ClusterSpec,
    ClustersSpec,
    DrainSpec,
    MachineDeploymentSpec,
    ProviderSpec,
    QuotaSpec,
)
from ebbtide.fleet.operations import (
    ClusterApi,
    ClusterRef,
    Clusters,
    Drain,
    LiveDemand,
    MachineDeploymentRef,
    Provider,
    ProviderSide,
    QuotaFlavor,
    QuotaKind,
    QuotaRef,
    Relabel,
    ScaleTarget,
)


def clusters_value(spec: ClustersSpec | None) -> Clusters | None:
    """The two clusters; None where the Fleet names none."""
    return None if spec is None else Clusters(production=_cluster(spec.production), research=_cluster(spec.research))


def _cluster(spec: ClusterSpec) -> ClusterRef:
    return ClusterRef(context=spec.context or "", in_cluster=spec.in_cluster is True)


def live_value(spec: FleetSpec) -> LiveDemand | None:
    """The source of live demand; None where the Fleet has none."""
    for source in spec.demand:
        if source.name == spec.live_demand and source.promql is not None:
            return LiveDemand(source=source.name, promql=source.promql)
    return None


def provider_value(spec: ProviderSpec) -> Provider:
    """How a pool's nodes get to the other side."""
    if spec.clusterapi is None:
        return Relabel()
    return ClusterApi(
        production=_deployment(spec.clusterapi.production, ProviderSide.PRODUCTION),
        research=_deployment(spec.clusterapi.research, ProviderSide.RESEARCH),
    )


def _deployment(spec: MachineDeploymentSpec, own: ProviderSide) -> MachineDeploymentRef:
    cluster = own if spec.cluster is None else ProviderSide(spec.cluster)
    return MachineDeploymentRef(namespace=spec.namespace, name=spec.name, cluster=cluster)


def scale_target_value(workload: WorkloadSpec) -> ScaleTarget:
    """The object that holds a workload's replicas."""
    spec = workload.scale_target_ref
    return ScaleTarget(
        api_version=spec.api_version, kind=spec.kind, namespace=spec.namespace, name=spec.name or workload.name
    )


def drain_value(spec: DrainSpec) -> Drain:
    """How a workload's leaving replicas end."""
    return Drain(grace_s=spec.grace, path=spec.path)


def quota_value(spec: QuotaSpec | None) -> QuotaRef | None:
    """The quota that is ebbtide's; None where the Fleet names none."""
    if spec is None:
        return None
    flavors = tuple(
        QuotaFlavor(pool=flavor.pool, ephemeral=flavor.ephemeral, reserved=flavor.reserved or "")
        for flavor in spec.flavors
    )
    return QuotaRef(kind=QuotaKind(spec.of.kind), name=spec.of.name, flavors=flavors)
