"""One cluster: API server, controller manager, scheduler and the pretended kubelet, each a process of its own."""

from __future__ import annotations

import base64
import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from kubelab.api import Api, ApiError, Json
from kubelab.certificates import make_account_keys, make_authority, make_certificate
from kubelab.processes import Processes, free_port
from kubelab.programs import STAGES, Programs
from kubelab.waiting import until

HOSTS = "DNS:localhost,DNS:kubernetes,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:10.96.0.1"

# Who did what, for the least-privilege test; the lab's own users and Kubernetes' components are left out.
_QUIET = ("kubelab", "system:apiserver", "system:kube-controller-manager", "system:kube-scheduler")
AUDIT: Json = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "None", "users": list(_QUIET)}, {"level": "Metadata"}],
}


@dataclass(slots=True, kw_only=True)
class Cluster:
    """A running control plane. ``api`` is its administrator's; ``kubeconfig`` names one context, the cluster's name."""

    name: str
    folder: Path
    programs: Programs
    processes: Processes
    url: str = ""
    token: str = ""
    api: Api

    @classmethod
    def create(cls, name: str, *, programs: Programs, processes: Processes) -> Cluster:
        """Certificates, keys and kubeconfig; nothing runs yet."""
        folder = processes.folder / name
        folder.mkdir()
        make_authority(folder)
        make_certificate(folder, folder, "apiserver", "kube-apiserver", HOSTS)
        make_account_keys(folder)
        url, token = f"https://127.0.0.1:{free_port()}", secrets.token_hex(16)
        (folder / "tokens.csv").write_text(f'{token},kubelab,kubelab,"system:masters"\n')
        (folder / "audit-policy.json").write_text(json.dumps(AUDIT))
        api = Api.at(url, folder / "ca.crt", token)
        made = cls(name=name, folder=folder, programs=programs, processes=processes, url=url, token=token, api=api)
        made.kubeconfig.write_text(json.dumps(kubeconfig([made])))
        return made

    @property
    def ca_file(self) -> Path:
        """The certificate authority that the API server's certificate is signed by."""
        return self.folder / "ca.crt"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.folder / "kubeconfig"

    @property
    def audit_log(self) -> Path:
        """JSON lines of every request by a user that is not the lab's own."""
        return self.folder / "audit.log"

    def process(self, component: str) -> str:
        """How a component's process is named in `processes`: for kill, restart and signals."""
        return f"{self.name}-{component}"

    def start_server(self, etcd_url: str) -> None:
        """The API server alone: objects stay as they are written, for nobody acts on them."""
        self._run("kube-apiserver", self._api_server_flags(etcd_url))
        self.wait_ready()

    def start(self, etcd_url: str) -> None:
        """Start everything and wait until the default service account stands."""
        self.start_server(etcd_url)
        simple = [f"--kubeconfig={self.kubeconfig}", "--leader-elect=false", "--secure-port=0", "--profiling=false"]
        self._run("kube-controller-manager", [*simple, *self._controller_flags()])
        self._run("kube-scheduler", simple)
        self._run("kwok", self._kwok_flags())
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        until(lambda: self.api.answers(account), f"default service account of {self.name}", within_s=240)

    def _run(self, component: str, flags: list[str]) -> None:
        self.processes.start(
            self.process(component), [*self.programs.command(component), *flags], {"HOME": str(self.folder)}
        )

    def wait_ready(self, *, within_s: float = 240.0) -> None:
        """Until the API server answers; RuntimeError where it has ended."""

        def ready() -> bool:
            self.processes.check(self.process("kube-apiserver"))
            return self.api.answers()

        until(ready, f"API server of {self.name}", within_s=within_s)

    def _api_server_flags(self, etcd_url: str) -> list[str]:
        here = self.folder
        return [
            f"--etcd-servers={etcd_url}",
            f"--etcd-prefix=/{self.name}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.url.rsplit(':', 1)[1]}",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--tls-cert-file={here}/apiserver.crt",
            f"--tls-private-key-file={here}/apiserver.key",
            f"--client-ca-file={here}/ca.crt",
            f"--token-auth-file={here}/tokens.csv",
            "--authorization-mode=Node,RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={here}/sa.pub",
            f"--service-account-signing-key-file={here}/sa.key",
            "--service-cluster-ip-range=10.96.0.0/16",
            f"--audit-policy-file={here}/audit-policy.json",
            f"--audit-log-path={self.audit_log}",
            "--etcd-count-metric-poll-period=0",
            "--etcd-compaction-interval=0",
            "--profiling=false",
            "--v=1",
        ]

    def _controller_flags(self) -> list[str]:
        """Nodes are looked at more often than by default, so that one without a kubelet is Unknown after 8 s, not 50;
        autoscalers every 3 s, not 15."""
        return [
            f"--service-account-private-key-file={self.folder}/sa.key",
            f"--root-ca-file={self.ca_file}",
            "--node-monitor-period=1s",
            "--node-monitor-grace-period=8s",
            "--horizontal-pod-autoscaler-sync-period=3s",
            "--terminated-pod-gc-threshold=50",
            "--v=1",
        ]

    def _kwok_flags(self) -> list[str]:
        """A node labelled `lab/dead=true` has no kubelet."""
        return [
            f"--config={STAGES}",
            f"--kubeconfig={self.kubeconfig}",
            "--manage-nodes-with-label-selector=lab/dead!=true",
            "--node-ip=127.0.0.1",
            "--cidr=10.244.0.0/16",
            "--node-lease-duration-seconds=8",
        ]

    def account(self, namespace: str, name: str) -> Api:
        """The API as a service account sees it, by a token of one hour."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}"
        until(lambda: self.api.answers(path), f"service account {namespace}/{name}")
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = self.api.create(f"{path}/token", request)["status"]["token"]
        return Api(url=self.url, context=self.api.context, token=token)

    def install(self, manifest: Path, name: str) -> None:
        """Apply a CRD's file and wait until it is served."""
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
        self.api.apply(path, manifest.read_bytes())
        until(lambda: is_true(self.api.get(path), "Established"), f"{name} established")


def is_true(thing: Json | None, condition: str) -> bool:
    """Whether a condition in an object's status is True.

    >>> is_true({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, "Ready")
    True
    """
    conditions = ((thing or {}).get("status") or {}).get("conditions") or []
    return any(entry["type"] == condition and entry["status"] == "True" for entry in conditions)


def kubeconfig(clusters: list[Cluster]) -> Json:
    """One kubeconfig with a context for each cluster, named like it; the first is current."""

    def authority(cluster: Cluster) -> str:
        return base64.b64encode(cluster.ca_file.read_bytes()).decode()

    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": clusters[0].name,
        "clusters": [
            {"name": it.name, "cluster": {"server": it.url, "certificate-authority-data": authority(it)}}
            for it in clusters
        ],
        "users": [{"name": it.name, "user": {"token": it.token}} for it in clusters],
        "contexts": [{"name": it.name, "context": {"cluster": it.name, "user": it.name}} for it in clusters],
    }


def delete_quietly(api: Api, path: str) -> None:
    """For cleaning up: whatever stands in the way is the next test's to find."""
    try:
        api.delete(path)
    except (ApiError, OSError):
        return
