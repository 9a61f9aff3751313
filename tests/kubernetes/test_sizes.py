"""How large an object an API server takes: what bounds a Schedule that is applied to a cluster."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kubelab.api import ApiError, Json
from kubelab.cluster import Cluster
from kubelab.waiting import until


def test_an_object_of_1_4_megabytes_is_taken_and_one_of_1_6_refused(
    production: Cluster, new_namespace: Callable[[Cluster], str]
) -> None:
    """Fact 21, by the size of etcd's requests. ConfigMaps stop at 1 MiB by their own rule, so it is a CRD's matter."""
    api, namespace = production.api, new_namespace(production)
    group = "sizes.ebbtide.test"
    api.apply(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/blobs.{group}", _blob_crd(group))
    path = f"/apis/{group}/v1/namespaces/{namespace}/blobs"
    until(lambda: api.answers(path), "the CRD is served")
    blob = {"apiVersion": f"{group}/v1", "kind": "Blob", "metadata": {"name": "taken"}}
    api.create(path, blob | {"spec": {"text": "x" * 1_400_000}})
    with pytest.raises(ApiError) as refused:
        api.create(path, blob | {"metadata": {"name": "refused"}, "spec": {"text": "x" * 1_620_000}})
    assert refused.value.code in (413, 500)
    api.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/blobs.{group}")


def _blob_crd(group: str) -> Json:
    text = {"type": "object", "properties": {"text": {"type": "string"}}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": text}}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"blobs.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "blobs", "singular": "blob", "kind": "Blob", "listKind": "BlobList"},
            "versions": [version],
        },
    }
