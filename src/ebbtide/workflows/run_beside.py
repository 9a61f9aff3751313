"""Kueue's door beside the controller's ticks: a thread of its own, under the same Lease.

Planning may take a second and a window's start hundreds of writes: neither is to hold up a reclaim, nor a slow reclaim
a job. Another thread listens: a Workload that changed is looked at within a second or two, not at the next turn. What
is wrong here is told and tried again; a bug is raised where the controller's loop asks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ebbtide.errors import EbbtideError
from ebbtide.workflows.run_documents import Documents
from ebbtide.workflows.run_door import Door, DoorTurn
from ebbtide.workflows.run_pace import rest_s

STOPS_S = 10.0  # a call at its time-out; after that the Lease is given back, and no write leaves any more
SHORTEST_REST_S = 0.2  # a start that is due in a moment is waited for, not spun for
HEARD_REST_S = 1.0  # changes that come together are looked at together
BUSY_SHARE = 0.5  # of the time at most, where every look is followed by a change


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
        self._every_s, self._failures = every_s, 0
        self._stop, self._heard = threading.Event(), threading.Event()
        self._threads = [
            threading.Thread(target=self._kept, args=(run,), name=name, daemon=True)
            for name, run in (("door", self._turns), ("door's ear", self._listen))
        ]
        self._bug: Exception | None = None

    def start(self) -> None:
        """Begin in the background."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """No more turns; what is under way ends with its next write, and a plan under way is left."""
        self._stop.set()
        self._heard.set()
        if self._threads[0].ident is not None:
            self._threads[0].join(STOPS_S)

    def check(self) -> None:
        """Raises a bug in the threads: it must not end in silence."""
        if self._bug is not None:
            raise self._bug

    def once(self) -> DoorTurn:
        """One turn, here and now."""
        return self._door.turn(self._documents(), self._clock())

    def _kept(self, run: Callable[[], None]) -> None:
        try:
            run()
        except Exception as bug:  # raised in the controller's loop, which ends the process
            if not self._stop.is_set():  # then connections are closed under its feet
                self._bug = bug

    def _turns(self) -> None:
        while not self._stop.is_set():
            begun_s, rest, shortest = time.monotonic(), self._every_s, HEARD_REST_S
            self._heard.clear()
            if self._ours():
                rest = self._rest_after(self.once())
                shortest = max(HEARD_REST_S, (time.monotonic() - begun_s) * (1.0 / BUSY_SHARE - 1.0))
            self._stop.wait(rest if self._failures else min(shortest, rest))
            if not self._failures:
                self._heard.wait(max(rest - shortest, 0.0))

    def _rest_after(self, turn: DoorTurn) -> float:
        self._failures = self._failures + 1 if turn.failed else 0
        rest = rest_s(self._every_s, self._failures)
        if turn.next_s is not None and not turn.failed:
            rest = min(rest, max(turn.next_s - self._clock(), SHORTEST_REST_S))
        return rest

    def _listen(self) -> None:
        """Changes are heard while the Lease is ours; where that fails turns come as usual."""
        while not self._stop.wait(self._every_s):
            if self._ours():
                try:
                    for _change in self._door.changes():
                        self._heard.set()
                        if self._stop.is_set():
                            return
                except EbbtideError:
                    continue  # the turns say what is wrong
