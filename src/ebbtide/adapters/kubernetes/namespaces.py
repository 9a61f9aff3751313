"""One kind in many namespaces, read with a bounded number of calls: namespace by namespace, or all of them at once."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol, TypeVar

from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.objects import Meta

SEPARATE = 10  # calls for one kind: beyond, a list of the whole cluster is cheaper, with strangers' objects in it


class InNamespace(Protocol):
    """Anything with metadata."""

    @property
    def metadata(self) -> Meta:
        """Name and namespace."""


T = TypeVar("T", bound=InNamespace)


def list_by_namespace(
    cluster: Cluster, group: str, plural: str, spaces: Collection[str], kind: type[T]
) -> dict[str, list[T]]:
    """The objects of a kind, by namespace; ``group``: the path of its version, such as ``/apis/apps/v1``."""
    if len(set(spaces)) <= SEPARATE:
        return {space: cluster.list(f"{group}/namespaces/{space}/{plural}", kind) for space in sorted(set(spaces))}
    found: dict[str, list[T]] = {space: [] for space in spaces}
    for one in cluster.list(f"{group}/{plural}", kind):
        if one.metadata.namespace in found:
            found[one.metadata.namespace].append(one)
    return found
