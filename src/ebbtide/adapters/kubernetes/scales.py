"""Everything with a scale, read as one form: Deployments and StatefulSets by list, other kinds one by one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ebbtide.adapters.kubernetes.bindings import WorkloadBinding
from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.kinds import Kinds
from ebbtide.adapters.kubernetes.namespaces import SEPARATE, list_by_namespace
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
    together: dict[tuple[str, str], list[WorkloadBinding]] = defaultdict(list)
    for one in workloads:
        together[one.api_version, one.kind].append(one)
    found: dict[str, Scaled] = {}
    for key, group in together.items():
        paths = {one.name: f"{kinds.collection(*key, one.namespace)}/{one.object_name}" for one in group}
        found.update((_listed if key in _LISTED else _others)(cluster, group, paths))
    return found


def _listed(cluster: Cluster, group: list[WorkloadBinding], paths: Mapping[str, str]) -> dict[str, Scaled]:
    found = {}
    objects = _objects(cluster, group, paths)
    for binding in group:
        one = objects.get((binding.namespace, binding.object_name))
        if one is not None:
            replicas = 1 if one.spec.replicas is None else one.spec.replicas
            selector = one.spec.selector or Selector(match_expressions=[])
            found[binding.name] = Scaled(path=paths[binding.name], object=one, replicas=replicas, selector=selector)
    return found


def _objects(
    cluster: Cluster, group: list[WorkloadBinding], paths: Mapping[str, str]
) -> dict[tuple[str, str], Scalable]:
    """By namespace and name. One by one where a namespace has few, else by list; one list of all where that is many."""
    counts = Counter(one.namespace for one in group)
    few = {space for space, count in counts.items() if count <= FEW}
    if sum(counts[space] if space in few else 1 for space in counts) > SEPARATE:
        few = set()
    got = {one: cluster.find(paths[one.name], Scalable) for one in group if one.namespace in few}
    found = {(one.namespace, one.object_name): thing for one, thing in got.items() if thing is not None}
    root, _, plural = paths[group[0].name].rpartition("/")[0].rpartition("/namespaces/")
    many = [space for space in counts if space not in few]
    listed = list_by_namespace(cluster, root, plural.partition("/")[2], many, Scalable)
    return found | {(space, one.metadata.name): one for space, things in listed.items() for one in things}


def _others(cluster: Cluster, group: list[WorkloadBinding], paths: Mapping[str, str]) -> dict[str, Scaled]:
    """Two calls each: where a custom kind keeps its replicas and selector only its scale knows."""
    found = {}
    for binding in group:
        path = paths[binding.name]
        one = cluster.find(path, Scalable)
        scale = cluster.find(f"{path}/scale", Scale) if one is not None else None
        if one is not None and scale is not None:
            selector = parse_selector(scale.status.selector)
            found[binding.name] = Scaled(path=path, object=one, replicas=scale.spec.replicas, selector=selector)
    return found
