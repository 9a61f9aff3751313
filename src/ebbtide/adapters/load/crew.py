"""The processes that send, and the one step that they make together."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from time import monotonic
from types import TracebackType
from typing import Any

from ebbtide.adapters.load.calls import Sent, merged
from ebbtide.adapters.load.messages import Beat, Setup
from ebbtide.adapters.load.open_loop import Begin
from ebbtide.errors import TemporaryError

LEAD_S = 0.02  # a step begins so much after it is told: all processes know of it by then
UP_S = 60.0
LEAVE_S = 5.0
Watch = Callable[[Beat], None]


def unwatched(beat: Beat) -> None:
    """For those who don't want to be told."""


class Crew:
    """``processes`` senders that make one step at a time; used as a context. Nothing waits for the server's answers."""

    def __init__(self, setup: Setup, *, processes: int = 1) -> None:
        self._setup, self._count = setup, processes
        self._processes: list[subprocess.Popen[bytes]] = []
        self._pipes: list[Connection] = []
        self._beats: list[Beat] = []
        self._taken: Sent | None = None
        self._requests = 0

    def __enter__(self) -> Crew:
        try:
            for part in range(self._count):
                self._start(replace(self._setup, share=self._count, part=part))
            for pipe in self._pipes:
                self._receive(pipe, "up", monotonic() + UP_S)
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def begin(self, rate_rps: float, requests: int, seed: tuple[int, ...]) -> None:
        """Begin a step; what was sent before it is no part of it."""
        self._taken, self._requests = None, requests
        step = Begin(rate_rps=rate_rps, requests=requests, start_s=monotonic() + LEAD_S, seed=seed)
        self._tell("begin", step)

    def extend(self, requests: int) -> None:
        """The step goes on to so many requests; it never stopped."""
        self._requests = requests
        self._tell("extend", requests)

    def halt(self) -> None:
        """Send no more."""
        self._tell("halt", None)

    def drained(self, watch: Watch = unwatched) -> None:
        """Send no more, and return once nothing is under way: every request ends by its time-out."""
        self.halt()
        seen = [False] * self._count
        while not all(seen):
            for place, word, value in self._messages(watch):
                # The first beat may be from before the halt; none is sent after one with nothing under way.
                if word == "beat":
                    seen[place] = value.in_flight == 0

    def decided(self, watch: Watch = unwatched) -> Sent:
        """All the step's requests so far, once each is answered, failed or timed out."""
        waiting = set(range(self._count))
        while waiting:
            waiting -= {place for place, word, _ in self._messages(watch) if word == "decided"}
        known = 0 if self._taken is None else len(self._taken.calls)
        parts = []
        for place, pipe in enumerate(self._pipes):
            first, last = (max(0, -(-(count - place) // self._count)) for count in (known, self._requests))
            pipe.send(("take", (first, last)))
            parts.append(self._receive(pipe, "taken", monotonic() + UP_S))
        new = merged(parts)
        self._taken = new if self._taken is None else merged([self._taken, new])
        return self._taken

    def _messages(self, watch: Watch) -> list[tuple[int, str, Any]]:
        found = []
        for one in wait(self._pipes, timeout=UP_S):
            assert isinstance(one, Connection)
            place = self._pipes.index(one)
            word, value = self._next(one)
            if word == "beat":
                self._beats[place] = value
                watch(_sum(self._beats))
            found.append((place, word, value))
        if not found:
            raise TemporaryError("the sending process no longer answers", kind="sender_lost")
        return found

    def _receive(self, pipe: Connection, wanted: str, until_s: float) -> Any:
        while monotonic() < until_s:
            if not pipe.poll(1.0):
                continue
            word, value = self._next(pipe)
            if word == wanted:
                return value
        raise TemporaryError("the sending process did not answer", kind="sender_lost")

    def _next(self, pipe: Connection) -> tuple[str, Any]:
        try:
            word, value = pipe.recv()
        except (EOFError, OSError) as problem:
            raise TemporaryError("the sending process ended", kind="sender_lost") from problem
        if word == "broken":
            raise TemporaryError(f"the sending process broke: {value}", kind="sender_lost")
        return word, value

    def _tell(self, word: str, value: Any) -> None:
        for pipe in self._pipes:
            pipe.send((word, value))

    def _start(self, setup: Setup) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-m", "ebbtide.adapters.load.worker", str(theirs.fileno())]
            self._processes.append(subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL))
        os.set_blocking(ours.fileno(), True)
        pipe = Connection(ours.detach())
        self._pipes.append(pipe)
        self._beats.append(Beat(sent=0, known=0, in_flight=0))
        pipe.send(setup)

    def _leave(self) -> None:
        for pipe in self._pipes:
            with contextlib.suppress(OSError):
                pipe.close()
        for process in self._processes:
            try:
                process.wait(LEAVE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._pipes, self._processes = [], []


def _sum(beats: list[Beat]) -> Beat:
    return Beat(
        sent=sum(one.sent for one in beats),
        known=sum(one.known for one in beats),
        in_flight=sum(one.in_flight for one in beats),
    )
