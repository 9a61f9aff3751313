"""Kueue's door beside the controller's ticks: a thread of its own, under the same Lease.

Planning may take a second and a window's start hundreds of writes: neither is to hold up a reclaim, nor a slow reclaim
a job. What is wrong here is told and tried again; a bug is raised where the controller's loop asks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ebbtide.workflows.run_documents import Documents
from ebbtide.workflows.run_door import Door
from ebbtide.workflows.run_pace import rest_s

STOPS_S = 10.0  # a call at its time-out; after that the Lease is given back, and no write leaves any more
SHORTEST_REST_S = 0.2  # a start that is due in a moment is waited for, not spun for


class Beside:
    """Turns of the door until ``stop``. ``ours``: whether the Lease is; ``documents``: those in force."""

    def __init__(
        self,
        door: Door,
        documents: Callable[[], Documents],
        ours: Callable[[], bool],
        *,
        every_s: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._door, self._documents, self._ours, self._clock = door, documents, ours, clock
        self._every_s = every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="door", daemon=True)
        self._bug: Exception | None = None

    def start(self) -> None:
        """Begin in the background."""
        self._thread.start()

    def stop(self) -> None:
        """No more turns; what is under way ends with its next write, and a plan under way is left."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(STOPS_S)

    def check(self) -> None:
        """Raises a bug in the thread: it must not end in silence."""
        if self._bug is not None:
            raise self._bug

    def _run(self) -> None:
        failures, rest = 0, 0.0
        try:
            while not self._stop.wait(rest):
                rest = self._every_s
                if self._ours():
                    turn = self._door.turn(self._documents(), self._clock())
                    failures = failures + 1 if turn.failed else 0
                    rest = rest_s(self._every_s, failures)
                    if turn.next_s is not None and not turn.failed:
                        rest = min(rest, max(turn.next_s - self._clock(), SHORTEST_REST_S))
        except Exception as bug:  # raised in the controller's loop, which ends the process
            self._bug = bug
