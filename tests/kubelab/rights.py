"""The controller's own user in the lab: a service account with the roles in deploy/rbac, and not one verb more."""

from __future__ import annotations

from pathlib import Path

from ruamel.yaml import YAML

from kubelab.api import Json
from kubelab.cluster import Cluster

RBAC = Path(__file__).parents[2] / "deploy" / "rbac"
AUTHORIZATION = "/apis/rbac.authorization.k8s.io/v1"


def role(name: str) -> Json:
    """One manifest."""
    found: Json = YAML(typ="safe").load((RBAC / f"{name}.yaml").read_text())
    return found


def controller_token(cluster: Cluster, namespace: str, side: str) -> str:
    """A token of the namespace's service account ``default``, bound to the roles of a side (and of home)."""
    for one in (role(side), role("extras")):
        bind(cluster, "cluster", one, namespace)
    if side == "production":
        bind(cluster, "", role("home"), namespace)
    return cluster.account(namespace, "default").token


def bind(cluster: Cluster, scope: str, one: Json, namespace: str, *, account: str = "default") -> None:
    """Apply the role (a Role: in the namespace) and bind it to the account."""
    root = AUTHORIZATION if scope else f"{AUTHORIZATION}/namespaces/{namespace}"
    name = one["metadata"]["name"]
    if not scope:
        one["metadata"]["namespace"] = namespace
    cluster.api.apply(f"{root}/{scope}roles/{name}", one)
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding" if scope else "RoleBinding",
        "metadata": {"name": f"{name}-{namespace}-{account}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": one["kind"], "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }
    cluster.api.apply(f"{root}/{scope}rolebindings/{name}-{namespace}-{account}", binding)
