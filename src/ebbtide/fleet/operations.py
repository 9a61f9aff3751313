"""What the controller must know of the clusters beside the plan: where things stand there, and whether it may act.

What belongs here: names of objects, graces, the mode, people's overrides. What doesn't: what is planned (``pool``,
``workload``), what was observed (``control``), how a cluster is reached (settings: no address or credential here).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Mode(StrEnum):
    """Shadow computes and records only; Active acts (§6.9)."""

    SHADOW = "Shadow"
    ACTIVE = "Active"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRef:
    """One cluster: a context of the kubeconfig, or (``in_cluster``) the one that the controller itself runs in."""

    context: str = ""
    in_cluster: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters:
    """The two clusters; one may be both."""

    production: ClusterRef
    research: ClusterRef


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveDemand:
    """A query of Prometheus that gives each workload's arrival rate now (§6.7), and the source's name."""

    source: str
    promql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleTarget:
    """The object whose ``/scale`` is a workload's replicas."""

    api_version: str = "apps/v1"
    kind: str = "Deployment"
    namespace: str = "default"
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """How a leaving replica ends: ``grace_s`` for requests in flight (None: its pod's own), ``path``: asked first."""

    grace_s: float | None = None
    path: str | None = None


OWN_GRACE = Drain()


class ProviderSide(StrEnum):
    """A side as a provider's objects name it."""

    PRODUCTION = "production"
    RESEARCH = "research"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineDeploymentRef:
    """A Cluster API MachineDeployment, and the cluster whose API server holds it."""

    namespace: str
    name: str
    cluster: ProviderSide


@dataclass(frozen=True, slots=True, kw_only=True)
class Relabel:
    """Nodes never leave: drained, they get the other side's labels. One cluster, or bare metal that is both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterApi:
    """Nodes are Machines: one MachineDeployment for each side."""

    production: MachineDeploymentRef
    research: MachineDeploymentRef


Provider = Relabel | ClusterApi
RELABEL = Relabel()


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaFlavor:
    """One pool's ResourceFlavors in research: of its reserved nodes ("" where it has none), of its ephemeral ones."""

    pool: str
    ephemeral: str
    reserved: str = ""


class QuotaKind(StrEnum):
    """Which of Kueue's objects holds the quota."""

    CLUSTER_QUEUE = "ClusterQueue"
    COHORT = "Cohort"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaRef:
    """The one object of Kueue whose nominal quota on ephemeral flavors is ebbtide's."""

    kind: QuotaKind
    name: str
    flavors: tuple[QuotaFlavor, ...]

    def ephemeral_flavor(self, pool: str) -> str | None:
        """The flavor of a pool's ephemeral nodes, None where research has no quota on that pool.

        >>> flavors = (QuotaFlavor(pool="h100", ephemeral="tide"),)
        >>> QuotaRef(kind=QuotaKind.COHORT, name="research", flavors=flavors).ephemeral_flavor("h100")
        'tide'
        """
        return next((flavor.ephemeral for flavor in self.flavors if flavor.pool == pool), None)


class OverrideKind(StrEnum):
    """What a dated override asks for: nothing moves; a named window holds; one workload is left alone."""

    HOLD = "hold"
    WINDOW = "window"
    RELEASE = "release"


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """A person's wish with an end (§6.9). ``what`` is the window or the workload; empty for ``hold``."""

    name: str
    kind: OverrideKind
    until_s: float
    reason: str
    what: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Somebody paused the schedule; until somebody resumes it nothing is begun (§6.9)."""

    reason: str = ""
