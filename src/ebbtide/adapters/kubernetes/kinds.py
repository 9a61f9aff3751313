"""What a cluster serves: the collection behind a kind, and whether Kueue and KEDA are there. Asked once, then kept."""

from __future__ import annotations

import time

from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.objects import ApiGroups, ApiResources
from ebbtide.adapters.kubernetes.problems import ApiError, Asked, Kind

_WELL_KNOWN = {
    ("apps/v1", "Deployment"): "deployments",
    ("apps/v1", "StatefulSet"): "statefulsets",
    ("batch/v1", "Job"): "jobs",
}
KUEUE_GROUP = "kueue.x-k8s.io"
KUEUE_VERSIONS = ("v1beta2", "v1beta1")  # what is read here reads the same in both; the stored one first
ASK_AGAIN_S = 60.0  # for a group that was not there: operators are installed seldom


class Kinds:
    """Answers by discovery. What was not there is asked for again: a CRD may come later."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._collections = dict(_WELL_KNOWN)
        self._served: dict[str, list[str]] = {}
        self._asked_s = float("-inf")

    def collection(self, api_version: str, kind: str, namespace: str) -> str:
        """The path of a kind's objects in a namespace; ``ApiError`` where the cluster does not serve it."""
        plural = self._collections.get((api_version, kind))
        if plural is None:
            root = path_of(api_version)
            found = self._cluster.get(root, ApiResources)
            plural = next((one.name for one in found.resources if one.kind == kind and "/" not in one.name), None)
            if plural is None:
                asked = Asked(cluster=self._cluster.name, verb="get", resource=f"{kind}.{api_version}")
                raise ApiError(Kind.MISSING, asked, "no such kind is served")
            self._collections[api_version, kind] = plural
        return f"{path_of(api_version)}/namespaces/{namespace}/{plural}"

    def version(self, group: str, *known: str) -> str | None:
        """The version of a group to be read: the first of those known that is served; None: the group is not there."""
        served = self.served(group)
        return next((one for one in known if one in served), None)

    def served(self, group: str) -> list[str]:
        """The versions of a group that are served; none: the group is not there."""
        if group not in self._served and time.monotonic() >= self._asked_s + ASK_AGAIN_S:
            groups = self._cluster.get("/apis", ApiGroups).groups
            self._served = {one.name: [version.version for version in one.versions] for one in groups}
            self._asked_s = time.monotonic()
        return self._served.get(group, [])

    def forget(self) -> None:
        """Ask anew: something that was served is no longer."""
        self._served.clear()
        self._asked_s = float("-inf")

    @property
    def kueue(self) -> str | None:
        """The path of Kueue's group; None: there is no Kueue."""
        version = self.version(KUEUE_GROUP, *KUEUE_VERSIONS)
        return None if version is None else f"/apis/{KUEUE_GROUP}/{version}"

    @property
    def keda(self) -> str | None:
        """The path of KEDA's group; None: there is no KEDA."""
        version = self.version("keda.sh", "v1alpha1")
        return None if version is None else f"/apis/keda.sh/{version}"


def path_of(api_version: str) -> str:
    """Where a group's version is served.

    >>> path_of("apps/v1"), path_of("v1")
    ('/apis/apps/v1', '/api/v1')
    """
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
