"""The Fleet's clusters and homes, connected: one connection where one cluster is both sides."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ebbtide.adapters.kubernetes.clients import Cluster, config_of
from ebbtide.control.state import Side
from ebbtide.fleet.operations import ClusterRef, Clusters


def connect(
    clusters: Clusters,
    *,
    contexts: Mapping[Side, str] | None = None,
    kubeconfig: str | None = None,
    dry_run: bool = False,
    may_write: Callable[[], bool] | None = None,
) -> dict[Side, Cluster]:
    """By side. ``contexts``: the settings', which override the Fleet's; ``kubeconfig``: a path other than usual.

    ``may_write`` is asked before every write (``Cluster``). ``PermanentError`` where a context is not there. Nothing is
    asked of a server yet.
    """
    refs = refs_of(clusters, contexts or {})
    made: dict[ClusterRef, Cluster] = {}
    for side, ref in refs.items():
        if ref not in made:
            config = config_of(context=ref.context or None, in_cluster=ref.in_cluster, kubeconfig=kubeconfig)
            name = side.value if ref.in_cluster else ref.context
            made[ref] = Cluster(config, name=name, dry_run=dry_run, may_write=may_write)
    return {side: made[ref] for side, ref in refs.items()}


def refs_of(clusters: Clusters, contexts: Mapping[Side, str]) -> dict[Side, ClusterRef]:
    """By side; a context that is not empty overrides.

    >>> named = Clusters(production=ClusterRef(context="prod"), research=ClusterRef(in_cluster=True))
    >>> refs_of(named, {Side.RESEARCH: "lab", Side.PRODUCTION: ""})[Side.RESEARCH].context
    'lab'
    """
    refs = {Side.PRODUCTION: clusters.production, Side.RESEARCH: clusters.research}
    return {side: ClusterRef(context=contexts[side]) if contexts.get(side) else ref for side, ref in refs.items()}
