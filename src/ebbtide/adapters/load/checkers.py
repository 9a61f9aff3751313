"""The user's own checkers, each in a process that may crash or hang: bounded by time, and never the service's fault."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebbtide.adapters.documents.target_models import CheckerSpec
from ebbtide.adapters.load.items import Item
from ebbtide.errors import InputError

RIGHT, WRONG, BROKEN = 0, 1, 2
START_S = 60.0
MOST_LINE = 1_000_000
# So many broken checks in a row and the rest of a step is not tried: it would only take its time-out each.
ENOUGH_BROKEN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Checker:
    """What to run: a Python entry point, or a command; where, and how long an answer may take it."""

    python: str | None
    command: tuple[str, ...]
    folder: Path
    timeout_s: float

    @classmethod
    def of(cls, spec: CheckerSpec, folder: Path) -> Checker:
        """Of a Target in that folder."""
        return cls(python=spec.python, command=tuple(spec.command or ()), folder=folder, timeout_s=spec.timeout)


class UserChecker:
    """Runs the checker over answers; ``example`` is the last thing that went wrong with it."""

    name = "checker"

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self._host: subprocess.Popen[bytes] | None = None
        self.example = ""

    def marks(self, items: Sequence[Item], texts: Sequence[str]) -> NDArray[np.int8]:
        """RIGHT, WRONG or BROKEN for each answer."""
        marks = np.full(len(texts), BROKEN, dtype=np.int8)
        broken = 0
        for place, (item, text) in enumerate(zip(items, texts, strict=True)):
            asked = {"request": item.request, "answer": text, "expected": item.expected}
            marks[place] = self._hosted(asked) if self._checker.python is not None else self._commanded(asked)
            broken = broken + 1 if marks[place] == BROKEN else 0
            if broken >= ENOUGH_BROKEN:
                break
        return marks

    def close(self) -> None:
        """Ends the checker's process."""
        if self._host is not None:
            _end(self._host)
            self._host = None

    def _commanded(self, asked: dict[str, Any]) -> int:
        command = list(self._checker.command)
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd=self._checker.folder,
                start_new_session=True,
            )
        except OSError as problem:
            raise InputError(
                f"the checker {command[0]} can't be run: {problem.strerror}", kind="checker_failed"
            ) from None
        try:
            _, said = process.communicate(json.dumps(asked).encode(), timeout=self._checker.timeout_s)
        except subprocess.TimeoutExpired:
            _end(process)
            return self._broke(f"no verdict within {self._checker.timeout_s:g} s")
        if process.returncode in (0, 1):
            return RIGHT if process.returncode == 0 else WRONG
        last = said.decode(errors="replace").strip()[-200:]
        return self._broke(f"exit code {process.returncode}" + (f": {last}" if last else ""))

    def _hosted(self, asked: dict[str, Any]) -> int:
        host = self._host if self._host is not None else self._started()
        assert host.stdin is not None
        try:
            host.stdin.write(json.dumps(asked).encode() + b"\n")
            host.stdin.flush()
            said = self._said(host, self._checker.timeout_s)
        except BrokenPipeError:
            said = None
        if said is None:
            self.close()
            return BROKEN
        if "problem" in said:
            return self._broke(str(said["problem"])[:200])
        return RIGHT if said.get("right") is True else WRONG

    def _started(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "ebbtide.adapters.load.checker_host", str(self._checker.python)]
        host = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._checker.folder,
            start_new_session=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(part).absolute()) for part in sys.path if part])},
        )
        self._host = host
        said = self._said(host, START_S)
        if said is None or "ready" not in said:
            self.close()
            what = self.example if said is None else said.get("problem")
            raise InputError(f"the checker {self._checker.python} can't be loaded: {what}", kind="checker_failed")
        return host

    def _said(self, host: subprocess.Popen[bytes], timeout_s: float) -> dict[str, Any] | None:
        """The host's next line; None where it ended, hung or wrote none."""
        assert host.stdout is not None
        line, until_s = b"", monotonic() + timeout_s
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([host.stdout], [], [], max(until_s - monotonic(), 0.0))
            if not ready:
                self._broke(f"no verdict within {timeout_s:g} s")
                return None
            part = os.read(host.stdout.fileno(), 65_536)
            line += part
            if not part or len(line) > MOST_LINE:
                self._broke("its process ended")
                return None
        found = json.loads(line)
        return found if isinstance(found, dict) else None

    def _broke(self, what: str) -> int:
        self.example = what
        return BROKEN


def _end(process: subprocess.Popen[bytes]) -> None:
    """The process and whatever it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
