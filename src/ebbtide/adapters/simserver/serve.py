"""Running the simulated server, on loopback unless told otherwise."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable

from aiohttp import web

from ebbtide.adapters.simserver.app import Simulated
from ebbtide.adapters.simserver.slots import Shape
from ebbtide.errors import InputError


def serve(
    shape: Shape, *, host: str = "127.0.0.1", port: int = 8000, token_env: str | None = None, up: Callable[[str], None]
) -> None:
    """Serve until told to end; ``up`` is called with the address once it listens (port 0: a free one)."""
    import uvloop

    if token_env is not None:
        _refuse_missing(token_env)
    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(_serve(Simulated(shape, token_env=token_env).app(), host, port, up))


async def _serve(app: web.Application, host: str, port: int, up: Callable[[str], None]) -> None:
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    try:
        site = web.TCPSite(runner, host, port, backlog=4096)
        await site.start()
        up(f"http://{host}:{runner.addresses[0][1]}")
        await ended.wait()
    finally:
        await runner.cleanup()


def _refuse_missing(name: str) -> None:
    import os

    if not os.environ.get(name):
        raise InputError(f"the variable {name} is not set", kind="no_credential", hint=f"export {name} first")
