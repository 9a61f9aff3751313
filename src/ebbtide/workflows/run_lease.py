"""The Lease kept while ticks are made: a thread renews it, so that a long tick does not let it run out."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ebbtide.adapters.kubernetes.lease import Lease
from ebbtide.errors import EbbtideError

TRIES = 15.0  # looks within one duration; client-go's 2 s of 30


class LeaseKeeper:
    """Takes and renews the Lease until ``stop``.

    ``alive`` is asked before every renewal: a controller whose loop hangs lets its Lease run out, so that the other one
    takes over. ``problem``: why home could not be asked, None where it answers.
    """

    def __init__(self, lease: Lease, *, duration_s: float, alive: Callable[[], bool] = lambda: True) -> None:
        self._lease, self._alive = lease, alive
        self._every_s = duration_s / TRIES
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self._bug: Exception | None = None
        self.problem: EbbtideError | None = None

    def start(self) -> None:
        """Try once before anything else, then go on in the background."""
        self._hold()
        self._thread.start()

    def stop(self) -> None:
        """Renew no more; the Lease is as it is. What is under way ends with its time-out."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def ours(self) -> bool:
        """Whether the Lease is ours now. A bug in the thread is raised here: it must not end in silence."""
        if self._bug is not None:
            raise self._bug
        return self._lease.still_ours()

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            if self._alive():
                self._hold()

    def _hold(self) -> None:
        try:
            self._lease.hold()
            self.problem = None
        except EbbtideError as problem:
            self.problem = problem
        except Exception as bug:
            self._bug = bug
