"""The process that sends: an open loop, told what to do through a pipe, so that no check and no fit delays a request.

``python -m ebbtide.adapters.load.worker FD``: ``crew`` starts it so, with one end of a socket pair as FD.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import resource
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from ebbtide.adapters.load.calls import Fault, Sent, columns
from ebbtide.adapters.load.client import Client
from ebbtide.adapters.load.messages import Beat, Setup
from ebbtide.adapters.load.open_loop import Begin, OpenLoop

BEAT_S = 0.5


class Worker:
    """One process's side of the pipe."""

    def __init__(self, connection: Connection, setup: Setup, client: Client) -> None:
        self._connection, self._setup = connection, setup
        self._closed = asyncio.Event()
        self._start_s = 0.0
        self.loop = OpenLoop(
            client,
            setup.law,
            items=len(setup.items),
            timeout_s=setup.endpoint.timeout_s,
            decided=lambda: self._tell("decided", None),
            share=setup.share,
            part=setup.part,
        )

    async def serve(self) -> None:
        """Until the other side closes the pipe."""
        asyncio.get_running_loop().add_reader(self._connection.fileno(), self._listen)
        tasks = [asyncio.create_task(self.loop.run()), asyncio.create_task(self._beat())]
        closed = asyncio.create_task(self._closed.wait())
        done, _ = await asyncio.wait([*tasks, closed], return_when=asyncio.FIRST_COMPLETED)
        for task in [*tasks, closed]:
            task.cancel()
        await asyncio.gather(*tasks, closed, return_exceptions=True)
        for task in done:
            task.result()

    def _listen(self) -> None:
        try:
            while self._connection.poll():
                self._obey(*self._connection.recv())
        except (EOFError, OSError):
            self._closed.set()

    def _obey(self, word: str, value: Any) -> None:
        if word == "begin":
            assert isinstance(value, Begin)
            gc.collect()
            self._start_s = value.start_s
            self.loop.begin(value)
        elif word == "extend":
            self.loop.extend(value)
        elif word == "halt":
            self.loop.halt()
        elif word == "take":
            first, last = value
            self._tell("taken", self._taken(first, last))

    def _taken(self, first: int, last: int) -> Sent:
        calls = self.loop.calls[first:last]
        details: dict[Fault, str] = {}
        for one in calls:
            if one.fault is not Fault.NONE:
                details.setdefault(one.fault, one.detail)
        return Sent(
            calls=columns(calls, self._start_s),
            texts=tuple(one.text for one in calls) if self._setup.keep_texts else (),
            details=tuple(details.items()),
        )

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            loop = self.loop
            self._tell("beat", Beat(sent=len(loop.calls), known=loop.known, in_flight=loop.in_flight))

    def _tell(self, word: str, value: Any) -> None:
        try:
            os.set_blocking(self._connection.fileno(), True)  # the loop's reader made it otherwise
            self._connection.send((word, value))
        except OSError:
            self._closed.set()


async def _serve(connection: Connection, setup: Setup) -> None:
    async with Client(setup.endpoint, setup.items, keep_texts=setup.keep_texts) as client:
        connection.send(("up", None))
        await Worker(connection, setup, client).serve()


def _many_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _foremost() -> None:
    """Before other work of this machine, where the system allows it: others' turns are what makes requests late.

    The least of the real-time priorities: P99 lateness at a load average of 4 on two cores fell from 2.5 ms to 0.1. A
    sender sleeps most of the time, and Linux keeps a twentieth of every second for the others whatever it does.
    """
    with contextlib.suppress(OSError, AttributeError):  # not allowed, or not a system that has it
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def main(descriptor: int) -> None:
    """Serve the pipe at that file descriptor."""
    import uvloop

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that keeps the steps
    _many_files()
    _foremost()
    connection = Connection(descriptor)
    setup = connection.recv()
    # What lives long is never looked at again, and old garbage seldom: a full collection would delay requests.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 1_000_000)
    try:
        uvloop.run(_serve(connection, setup))
    except Exception as problem:
        with contextlib.suppress(OSError):
            connection.send(("broken", f"{type(problem).__name__}: {problem}"))
        raise


if __name__ == "__main__":
    main(int(sys.argv[1]))
