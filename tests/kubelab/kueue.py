"""Kueue in a cluster: its CRDs with conversion, the manager as a process, and its webhooks by URL."""

from __future__ import annotations

import base64
import json
import shutil
import tempfile
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ruamel.yaml import YAML

from kubelab.api import Json
from kubelab.certificates import make_certificate
from kubelab.cluster import Cluster
from kubelab.processes import free_port
from kubelab.waiting import until

FRAMEWORKS = ("batch/job", "pod", "deployment")
CONVERTED = {"localqueues", "clusterqueues", "cohorts", "workloads", "multikueueclusters"}
# With its own certificate management off, Kueue 0.17 reads a certificate for metrics here, even with metrics off.
FIXED = Path("/etc/kueue/metrics/certs")
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def start_kueue(cluster: Cluster) -> None:
    """Start Kueue in a running cluster and wait until it is ready and its webhooks are called."""
    port, health = free_port(), free_port()
    certificates = cluster.folder / "kueue-certificates"
    make_certificate(cluster.folder, certificates, "tls", "kueue-webhook", "DNS:localhost,IP:127.0.0.1")
    _put_fixed_certificate(certificates)
    _install_crds(cluster, port)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}}
    cluster.api.apply("/api/v1/namespaces/kueue-system", namespace)
    settings = cluster.folder / "kueue.yaml"
    settings.write_text(json.dumps(_settings(port, health, certificates)))
    words = [f"--config={settings}", f"--kubeconfig={cluster.kubeconfig}", "--zap-log-level=2"]
    cluster.processes.start(cluster.process("kueue"), [*cluster.programs.command("kueue"), *words])
    until(lambda: _ready(cluster, health), f"Kueue in {cluster.name}", within_s=240)
    _install_webhooks(cluster, port)


def install_kinds(cluster: Cluster, *plurals: str) -> None:
    """Kueue's kinds alone, in their stored version: nobody admits anything."""
    for plural in plurals:
        name = f"kueue.x-k8s.io_{plural}.yaml"
        cluster.install(cluster.programs.manifests / "kueue" / "crd" / name, f"{plural}.kueue.x-k8s.io")


def _put_fixed_certificate(certificates: Path) -> None:
    """Any pair will do; several labs may start at once, so it appears in one rename."""
    if (FIXED / "tls.key").exists():
        return
    FIXED.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(dir=FIXED.parent))
    for name in ("tls.crt", "tls.key"):
        shutil.copy(certificates / name, part / name)
    try:
        part.rename(FIXED)
    except OSError:  # another lab was faster
        shutil.rmtree(part)


def _client(cluster: Cluster, port: int, path: str) -> Json:
    return {
        "url": f"https://127.0.0.1:{port}{path}",
        "caBundle": base64.b64encode(cluster.ca_file.read_bytes()).decode(),
    }


def _install_crds(cluster: Cluster, port: int) -> None:
    def install(manifest: Path) -> None:
        group, plural = manifest.stem.split("_")
        cluster.install(manifest, f"{plural}.{group}")
        if plural in CONVERTED:
            webhook = {"clientConfig": _client(cluster, port, "/convert"), "conversionReviewVersions": ["v1"]}
            conversion = {"spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}}}
            cluster.api.merge(f"{_CRDS}/{plural}.{group}", conversion)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(install, sorted((cluster.programs.manifests / "kueue" / "crd").glob("*.yaml"))))


def _settings(port: int, health: int, certificates: Path) -> Json:
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": "kueue-system",
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": port, "certDir": str(certificates)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "manageJobsWithoutQueueName": False,
        "featureGates": {"VisibilityOnDemand": False},
        "clientConnection": {"qps": 200, "burst": 400},
        "integrations": {"frameworks": list(FRAMEWORKS)},
    }


def _ready(cluster: Cluster, health: int) -> bool:
    cluster.processes.check(cluster.process("kueue"))
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{health}/readyz", timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _install_webhooks(cluster: Cluster, port: int) -> None:
    """Only those of the kinds that run here; pods and deployments not in the system's namespaces."""
    kept = {"clusterqueue", "cohort", "resourceflavor", "workload"} | {name.split("/")[-1] for name in FRAMEWORKS}
    where = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "kueue-system"]}
    manifest = cluster.programs.manifests / "kueue" / "webhooks.yaml"
    for found in YAML(typ="safe").load_all(manifest.read_text()):
        if not found:
            continue
        kind = "mutating" if found["kind"].startswith("Mutating") else "validating"
        hooks = [hook for hook in found["webhooks"] if _kind_of(hook) in kept]
        for hook in hooks:
            hook["clientConfig"] = _client(cluster, port, hook["clientConfig"]["service"]["path"])
            if _kind_of(hook) in ("pod", "deployment"):
                hook["namespaceSelector"] = {"matchExpressions": [where]}
        name = f"kueue-{kind}-webhook-configuration"
        body = found | {"metadata": {"name": name}, "webhooks": hooks}
        cluster.api.apply(f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/{name}", body)


def _kind_of(hook: Json) -> str:
    """``mjob.kb.io`` is about jobs."""
    name: str = hook["name"]
    return name.split(".")[0][1:]
