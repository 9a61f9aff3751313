"""The Fleet's clusters and homes, connected: one connection where one cluster is both sides."""

from __future__ import annotations

from collections.abc import Mapping

from ebbtide.adapters.kubernetes.clients import Cluster, config_of
from ebbtide.control.state import Side
from ebbtide.fleet.operations import ClusterRef, Clusters


def connect(
    clusters: Clusters,
    *,
    contexts: Mapping[Side, str] | None = None,
    kubeconfig: str | None = None,
    dry_run: bool = False,
) -> dict[Side, Cluster]:
    """By side. ``contexts``: the settings', which override the Fleet's; ``kubeconfig``: a path other than usual.

    ``PermanentError`` where a context is not there. Nothing is asked of a server yet.
    """
    refs = {Side.PRODUCTION: clusters.production, Side.RESEARCH: clusters.research}
    for side, context in (contexts or {}).items():
        if context:
            refs[side] = ClusterRef(context=context)
    made: dict[ClusterRef, Cluster] = {}
    for side, ref in refs.items():
        if ref not in made:
            config = config_of(context=ref.context or None, in_cluster=ref.in_cluster, kubeconfig=kubeconfig)
            name = side.value if ref.in_cluster else ref.context
            made[ref] = Cluster(config, name=name, dry_run=dry_run)
    return {side: made[ref] for side, ref in refs.items()}
