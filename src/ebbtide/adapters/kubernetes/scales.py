"""Everything with a scale, read as one form: Deployments and StatefulSets by list, other kinds one by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from ebbtide.adapters.kubernetes.bindings import WorkloadBinding
from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.kinds import Kinds
from ebbtide.adapters.kubernetes.objects import Scalable, Scale, Selector
from ebbtide.adapters.kubernetes.pods_of import parse_selector

_LISTED = frozenset({("apps/v1", "Deployment"), ("apps/v1", "StatefulSet")})
FEW = 3  # objects of one kind in one namespace: up to here a get each is cheaper than a list of strangers'


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled:
    """One workload's object: where it is, as it reads, its replicas and its pods' selector."""

    path: str
    object: Scalable
    replicas: int
    selector: Selector

    @property
    def rolling(self) -> bool:
        """Whether pods of an older revision stand: a scale that is being followed is no rollout.

        What is of no kind that is known here tells nothing, and is not rolling.
        """
        status = self.object.status
        if status is None:
            return False
        if status.update_revision:  # a StatefulSet
            return status.current_revision != status.update_revision and status.updated_replicas < status.replicas
        return not self.ordered and status.replicas > status.updated_replicas

    @property
    def ordered(self) -> bool:
        """Whether a pod's deletion cost says nothing: of all controllers only a Deployment's is known to heed it."""
        return self.path.rsplit("/", 2)[-2] != "deployments"


def read_scales(cluster: Cluster, kinds: Kinds, workloads: Iterable[WorkloadBinding]) -> dict[str, Scaled]:
    """The scales that are there, by workload."""
    together: dict[tuple[str, str, str], list[WorkloadBinding]] = defaultdict(list)
    for one in workloads:
        together[one.api_version, one.kind, one.namespace].append(one)
    found: dict[str, Scaled] = {}
    for (api_version, kind, namespace), group in together.items():
        root = kinds.collection(api_version, kind, namespace)
        if (api_version, kind) in _LISTED:
            found.update(_listed(cluster, root, group))
        else:
            found.update(_others(cluster, root, group))
    return found


def _listed(cluster: Cluster, root: str, group: list[WorkloadBinding]) -> dict[str, Scaled]:
    if len(group) > FEW:
        objects = {one.metadata.name: one for one in cluster.list(root, Scalable)}
    else:
        got = [cluster.find(f"{root}/{one.object_name}", Scalable) for one in group]
        objects = {one.metadata.name: one for one in got if one is not None}
    found = {}
    for binding in group:
        one = objects.get(binding.object_name)
        if one is not None:
            replicas = 1 if one.spec.replicas is None else one.spec.replicas
            selector = one.spec.selector or Selector(match_expressions=[])
            found[binding.name] = Scaled(
                path=f"{root}/{binding.object_name}", object=one, replicas=replicas, selector=selector
            )
    return found


def _others(cluster: Cluster, root: str, group: list[WorkloadBinding]) -> dict[str, Scaled]:
    """Two calls each: where a custom kind keeps its replicas and selector only its scale knows."""
    found = {}
    for binding in group:
        path = f"{root}/{binding.object_name}"
        one = cluster.find(path, Scalable)
        scale = cluster.find(f"{path}/scale", Scale) if one is not None else None
        if one is not None and scale is not None:
            selector = parse_selector(scale.status.selector)
            found[binding.name] = Scaled(path=path, object=one, replicas=scale.spec.replicas, selector=selector)
    return found
