"""Where a controller's documents, Lease and clusters are, out of options, settings and the Fleet."""

from __future__ import annotations

import os
import platform
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx2

from ebbtide.adapters.kubernetes.clients import Cluster, config_of
from ebbtide.adapters.kubernetes.connections import refs_of
from ebbtide.adapters.kubernetes.lease import DURATION_S, Lease
from ebbtide.adapters.kubernetes.pacing import Pace
from ebbtide.control.state import Side
from ebbtide.errors import InputError, PermanentError, Place
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.operations import ClusterRef, Clusters
from ebbtide.settings import Settings
from ebbtide.workflows.run_documents import DocumentSource, Files, Resources

# The Lease has a connection of its own: a home that answers slowly, or one that is left in peace after a failure, must
# not let it run out. What is not answered within a sixth of its duration is given up: time is left for another try.
LEASE_TIMEOUTS = 6.0
DOOR_PACE = Pace(per_s=100.0, at_once=200)  # five hundred jobs that are due at once are let in within seconds
LEASE_PACE = Pace(silence_s=0.5, longest_silence_s=2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What `ebbtide run` was asked for: two files, or the name of a Fleet in the cluster."""

    fleet: Path | None = None
    schedule: Path | None = None
    fleet_name: str = ""
    namespace: str = ""
    kubeconfig: str | None = None
    every_s: float = 5.0
    lease_s: float = DURATION_S
    listen: str = ""
    record: Path | None = None
    once: bool = False

    @property
    def from_files(self) -> bool:
        """Whether Fleet and Schedule are files."""
        return not self.fleet_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Where documents come from, and the namespace of Lease and memory; ``cluster``: of resources, None with files."""

    source: DocumentSource
    namespace: str
    cluster: Cluster | None = None

    def close(self) -> None:
        """Give the connection back."""
        if self.cluster is not None:
            self.cluster.close()


def find_home(options: RunOptions, settings: Settings) -> Home:
    """Nothing is asked of a server yet.

    Raises ``InputError`` where the options name no documents, ``PermanentError`` where a context is not there.
    """
    if not options.from_files:
        cluster, namespace = home_of(options.namespace, settings, kubeconfig=options.kubeconfig)
        return Home(source=Resources(cluster, namespace, options.fleet_name), namespace=namespace, cluster=cluster)
    if options.fleet is None or options.schedule is None:
        raise InputError(
            "needs --fleet FILE and --schedule FILE, or --fleet-name NAME for resources in the cluster",
            kind="no_documents",
            place=Place(field="--fleet"),
        )
    return Home(source=Files(options.fleet, options.schedule), namespace=options.namespace or "default")


def home_of(namespace: str, settings: Settings, *, kubeconfig: str | None) -> tuple[Cluster, str]:
    """The production cluster as the environment names it, and the namespace of the home."""
    inside = settings.context_production is None and "KUBERNETES_SERVICE_HOST" in os.environ
    config = config_of(context=settings.context_production, in_cluster=inside, kubeconfig=kubeconfig)
    return Cluster(config, name="production"), namespace or config.namespace


def clusters_of(fleet: Fleet, settings: Settings) -> Clusters:
    """The two clusters: the settings' contexts before the Fleet's; ``PermanentError`` where neither names one."""
    contexts = {Side.PRODUCTION: settings.context_production or "", Side.RESEARCH: settings.context_research or ""}
    named = fleet.clusters
    if named is None and not all(contexts.values()):
        raise PermanentError(
            f"Fleet {fleet.name} names no clusters",
            kind="no_clusters",
            place=Place(field="spec.clusters"),
            hint="name them there, or set EBBTIDE_CONTEXT_PRODUCTION and EBBTIDE_CONTEXT_RESEARCH",
        )
    refs = refs_of(Clusters(production=ClusterRef(), research=ClusterRef()) if named is None else named, contexts)
    return Clusters(production=refs[Side.PRODUCTION], research=refs[Side.RESEARCH])


def lease_of(named: Clusters, fleet: str, namespace: str, options: RunOptions) -> tuple[Lease, Cluster]:
    """The Lease at home, in the production cluster, and the connection that is its own."""
    ref = named.production
    config = config_of(context=ref.context or None, in_cluster=ref.in_cluster, kubeconfig=options.kubeconfig)
    timeout_s = options.lease_s / LEASE_TIMEOUTS
    timeout = httpx2.Timeout(timeout_s, connect=min(3.0, timeout_s))
    cluster = Cluster(config, name=ref.context or str(Side.PRODUCTION), pace=LEASE_PACE, timeout=timeout)
    return Lease(cluster, namespace, f"ebbtide-{fleet}", _identity(), duration_s=options.lease_s), cluster


def door_cluster_of(named: Clusters, options: RunOptions, *, may_write: Callable[[], bool]) -> Cluster:
    """Research once more, for Kueue's door."""
    ref = named.research
    config = config_of(context=ref.context or None, in_cluster=ref.in_cluster, kubeconfig=options.kubeconfig)
    return Cluster(config, name=ref.context or str(Side.RESEARCH), pace=DOOR_PACE, may_write=may_write)


def _identity() -> str:
    """Another with every start: a controller that was killed is not the one that comes after it."""
    return f"{platform.node() or 'ebbtide'}_{os.getpid()}_{uuid.uuid4().hex[:8]}"
