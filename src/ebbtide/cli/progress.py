"""Talk while a command works: on stderr, and only once it has taken two seconds."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING

from ebbtide.cli.answers import say

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE_S = 2.0  # shorter work needs no bar: it would only flicker


class Talk:
    """A progress bar that a workflow drives through ``stage``; used as a context.

    On a terminal it is one bar, drawn from the second second on; elsewhere (a log, a pipe) one line per stage that
    begins after that time. Nothing is ever written to stdout.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._late = threading.Event()
        self._timer = threading.Timer(PATIENCE_S, self._begin)
        self._timer.daemon = True
        self._lock = threading.Lock()
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._now: tuple[str, int, int] = ("", 0, 0)

    def __enter__(self) -> Talk:
        if not self._quiet:
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._quiet = True
            if self._bar is not None:
                self._bar.stop()

    def stage(self, name: str, done: int, total: int) -> None:
        """Where the work stands: ``done`` of ``total`` steps of a stage; cheap enough for every step."""
        new_stage = name != self._now[0]
        self._now = (name, done, total)
        if self._late.is_set():
            with self._lock:
                self._show(new_stage)

    def _begin(self) -> None:
        self._late.set()
        with self._lock:
            self._show(True)

    def _show(self, new_stage: bool) -> None:
        name, done, total = self._now
        if self._quiet or not name:
            return
        if not sys.stderr.isatty():
            if new_stage:
                say(f"{name} …")
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(name)
        assert self._task is not None
        self._bar.update(self._task, description=name, completed=done, total=total or None)
