"""Clusters that stand already: contexts of a kubeconfig, in place of what the lab would start."""

from __future__ import annotations

import base64
import ssl
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from kubelab.api import Api
from kubelab.cluster import Cluster
from kubelab.processes import Processes
from kubelab.programs import Programs


def attach(given: Path, name: str, *, processes: Processes) -> Cluster:
    """The cluster of the context called ``name``. It has kwok with `kwok-stages.yaml`, and research has Kueue.

    ValueError where the kubeconfig has no such context: the current one is never taken by guess, because tests make
    and delete nodes.
    """
    config = YAML(typ="safe").load(given.read_text())
    context = _named(config["contexts"], name, "context")
    server = _named(config["clusters"], context["cluster"], "cluster")
    user = _named(config["users"], context["user"], "user")
    folder = processes.folder / name
    folder.mkdir()
    (folder / "ca.crt").write_bytes(_data(server, "certificate-authority"))
    api = Api(url=server["server"], context=_tls(folder, user), token=user.get("token", ""))
    (folder / "kubeconfig").write_bytes(given.read_bytes())
    return Cluster(
        name=name,
        folder=folder,
        programs=Programs(built=None),
        processes=processes,
        url=server["server"],
        token=user.get("token", ""),
        api=api,
    )


def _named(entries: list[dict[str, Any]], name: str, kind: str) -> dict[str, Any]:
    for entry in entries:
        if entry["name"] == name:
            found: dict[str, Any] = entry[kind]
            return found
    raise ValueError(f"the kubeconfig in KUBELAB_KUBECONFIG has no {kind} {name!r}")


def _data(entry: dict[str, Any], what: str) -> bytes:
    if f"{what}-data" in entry:
        return base64.b64decode(entry[f"{what}-data"])
    return Path(entry[what]).read_bytes()


def _tls(folder: Path, user: dict[str, Any]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=folder / "ca.crt")
    if "client-certificate" in user or "client-certificate-data" in user:
        for what, name in (("client-certificate", "client.crt"), ("client-key", "client.key")):
            (folder / name).write_bytes(_data(user, what))
        context.load_cert_chain(folder / "client.crt", folder / "client.key")
    return context
