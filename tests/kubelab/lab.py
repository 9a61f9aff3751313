"""The lab: one etcd and the clusters beside each other on loopback; or two spare clusters that somebody gave."""

from __future__ import annotations

import json
import os
import shutil
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from kubelab.cluster import Cluster, kubeconfig
from kubelab.kueue import start_kueue
from kubelab.processes import Processes, free_port
from kubelab.programs import find_programs
from kubelab.spare import attach
from kubelab.waiting import until


class Lab:
    """Starts on `start`; everything ends with the `with` block, or with this process, however it ends."""

    def __init__(self, folder: Path) -> None:
        self.processes = Processes(folder=folder)
        self.clusters: dict[str, Cluster] = {}

    @property
    def kubeconfig(self) -> Path:
        """A context for each cluster."""
        return self.processes.folder / "kubeconfig"

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def start(self, names: Sequence[str], *, kueue: Sequence[str] = ()) -> None:
        """Start these clusters at once; those in ``kueue`` with Kueue."""
        spare = os.environ.get("KUBELAB_KUBECONFIG")
        if spare:
            for name in names:
                self.clusters[name] = attach(Path(spare), name, processes=self.processes)
            self.kubeconfig.write_bytes(Path(spare).read_bytes())
        else:
            self._start_own(names, kueue)
            self.kubeconfig.write_text(json.dumps(kubeconfig(list(self.clusters.values()))))

    def start_servers(self, names: Sequence[str]) -> None:
        """API servers and nothing that acts: for thousands of objects that are to stand as they are written."""
        made, etcd_url = self._made(names)
        for cluster in made:
            cluster.start_server(etcd_url)
        self.clusters |= {cluster.name: cluster for cluster in made}

    def _made(self, names: Sequence[str]) -> tuple[list[Cluster], str]:
        programs = find_programs()
        made = [Cluster.create(name, programs=programs, processes=self.processes) for name in names]
        return made, self._start_etcd(programs.command("etcd"))

    def _start_own(self, names: Sequence[str], kueue: Sequence[str]) -> None:
        made, etcd_url = self._made(names)

        def start(cluster: Cluster) -> None:
            cluster.start(etcd_url)
            if cluster.name in kueue:
                start_kueue(cluster)

        with ThreadPoolExecutor(len(made)) as pool:
            list(pool.map(start, made))
        self.clusters |= {cluster.name: cluster for cluster in made}

    def _start_etcd(self, command: list[str]) -> str:
        url, peers = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        flags = [
            "--name=lab",
            f"--data-dir={self.processes.folder / 'etcd-data'}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=lab={peers}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]
        self.processes.start("etcd", [*command, *flags])

        def healthy() -> bool:
            self.processes.check("etcd")
            try:
                with urllib.request.urlopen(f"{url}/health", timeout=1) as answer:
                    return b'"true"' in answer.read()
            except OSError:
                return False

        until(healthy, "etcd", within_s=120)
        return url

    def stop(self) -> None:
        """End all processes; logs stay."""
        self.processes.stop()
        shutil.rmtree(self.processes.folder / "etcd-data", ignore_errors=True)

    def report(self) -> str:
        """Where the logs are and each one's last errors: what a failed test shows."""
        parts = [f"logs: {self.processes.folder}"]
        parts += [f"-- {name}\n{self.processes.errors(name, 3)}" for name in self.processes.commands]
        return "\n".join(parts)
