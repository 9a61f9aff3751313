"""The Fleet's fields that the controller reads and no plan does: clusters, providers, objects, graces, quota.

Part of the one table (``fleet_models`` holds the rest). Addresses and credentials are settings: no field is for them.
"""

from __future__ import annotations

from typing import Literal

from ebbtide.adapters.documents.cluster_names import (
    ApiVersionText,
    ContextName,
    HttpPath,
    KindName,
    ObjectName,
)
from ebbtide.adapters.documents.model import DocumentModel, described
from ebbtide.adapters.documents.quantities import Duration, Label


class ClusterSpec(DocumentModel):
    """One cluster: a context of the kubeconfig, or the one that the controller itself runs in."""

    context: ContextName | None = described(
        "The kubeconfig's context; this or inCluster.", default=None, completed="none"
    )
    in_cluster: Literal[True] | None = described(
        "The cluster in which the controller runs: true.", default=None, completed="none"
    )


class ClustersSpec(DocumentModel):
    """The two clusters; one may be both. EBBTIDE_CONTEXT_PRODUCTION and EBBTIDE_CONTEXT_RESEARCH override them."""

    production: ClusterSpec = described("Where inference runs; the Fleet and its Schedule live here.")
    research: ClusterSpec = described("Where research runs.")


class MachineDeploymentSpec(DocumentModel):
    """A MachineDeployment of Cluster API."""

    namespace: Label = described("Its namespace.")
    name: ObjectName = described("Its name.")
    cluster: Literal["production", "research"] | None = described(
        "The side whose API server holds it.", default=None, completed="its own side"
    )


class ClusterApiSpec(DocumentModel):
    """Nodes are Machines of two MachineDeployments, one for each side."""

    production: MachineDeploymentSpec = described("Of the nodes in production.")
    research: MachineDeploymentSpec = described("Of the movable nodes in research.")


class RelabelSpec(DocumentModel):
    """Nodes stay where they are and get the other side's labels, once drained; an empty map."""


class ProviderSpec(DocumentModel):
    """How a node gets to the other side."""

    relabel: RelabelSpec | None = described("Relabel it: {}; this or clusterapi.", default=None, completed="none")
    clusterapi: ClusterApiSpec | None = described("Through Cluster API.", default=None, completed="none")


class ScaleTargetSpec(DocumentModel):
    """The object whose /scale holds the replicas."""

    api_version: ApiVersionText = described("Its group and version.", default="apps/v1")
    kind: KindName = described("Its kind; any with a /scale subresource.", default="Deployment")
    namespace: Label = described("Its namespace.", default="default")
    name: ObjectName | None = described("Its name.", default=None, completed="the workload's name")


class DrainSpec(DocumentModel):
    """How a leaving replica ends."""

    grace: Duration | None = described(
        "How long requests in flight may finish.", default=None, unit="duration", completed="the pod's own grace"
    )
    path: HttpPath | None = described(
        "Path on the pod that is asked first to take no more requests.", default=None, completed="none"
    )


class QuotaObjectSpec(DocumentModel):
    """The object of Kueue that holds the quota."""

    kind: Literal["ClusterQueue", "Cohort"] = described("Its kind.")
    name: ObjectName = described("Its name.")


class QuotaFlavorSpec(DocumentModel):
    """One pool's ResourceFlavors."""

    pool: Label = described("The pool's name.")
    reserved: ObjectName | None = described("Flavor of its reserved nodes.", default=None, completed="none")
    ephemeral: ObjectName = described("Flavor of its movable nodes: the quota on it is ebbtide's.")


class QuotaSpec(DocumentModel):
    """The one quantity in Kueue that is ebbtide's: the nominal quota of the ephemeral flavors."""

    of: QuotaObjectSpec = described("The object whose quota it is.")
    flavors: list[QuotaFlavorSpec] = described("By pool.", min_length=1, max_length=64, merge_by="pool")
