"""The lab's processes: started apart from the terminal, logged, stopped, and never left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_LOCK = threading.Lock()
_GIVEN: set[int] = set()
_NOT_OURS = ("KUBECONFIG", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")


def free_port() -> int:
    """A loopback port that nobody listens on, given out once."""
    with _LOCK:
        while True:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port: int = probe.getsockname()[1]
            if port not in _GIVEN:
                _GIVEN.add(port)
                return port


@dataclass(slots=True, kw_only=True)
class Processes:
    """Programs by name, each with a log ``<folder>/<name>.log``. They end with this process, even by SIGKILL."""

    folder: Path
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    commands: dict[str, tuple[list[str], dict[str, str]]] = field(default_factory=dict)

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        """Start a program; its words are kept for `restart`."""
        self.commands[name] = (list(command), dict(environment or {}))
        variables = {key: value for key, value in os.environ.items() if key not in _NOT_OURS}
        variables |= {"KUBELAB_PARENT": str(os.getpid())} | self.commands[name][1]
        with self.log(name).open("ab") as log:
            self.running[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=variables,
                cwd=self.folder,
                start_new_session=True,
            )

    def log(self, name: str) -> Path:
        """Where a program writes."""
        return self.folder / f"{name}.log"

    def check(self, name: str) -> None:
        """RuntimeError with the end of its log where a program is no longer there."""
        code = self.running[name].poll()
        if code is not None:
            raise RuntimeError(f"{name} ended with {code}: {self.log(name)}\n{self.tail(name, 20)}")

    def tail(self, name: str, lines: int) -> str:
        """The last lines of a log."""
        return "\n".join(self.log(name).read_text(errors="replace").splitlines()[-lines:])

    def errors(self, name: str, most: int) -> str:
        """The last errors in a log, in klog's form (`E1201 …`) or as JSON."""
        lines = self.log(name).read_text(errors="replace").splitlines()
        return "\n".join([line for line in lines if line[:1] in "EF" or '"level":"error"' in line][-most:])

    def send(self, name: str, what: signal.Signals) -> None:
        """A signal to a program and whatever it started."""
        os.killpg(self.running[name].pid, what)

    def kill(self, name: str) -> None:
        """SIGKILL, and wait until it is gone."""
        process = self.running.pop(name)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def restart(self, name: str) -> None:
        """The same program with the same words again."""
        if name in self.running:
            self.kill(name)
        command, environment = self.commands[name]
        self.start(name, command, environment)

    def stop(self) -> None:
        """All at once by SIGKILL: the state is thrown away, and an API server whose etcd is gone ends slowly."""
        for process in reversed(list(self.running.values())):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        for name in list(self.running):
            self.kill(name)
