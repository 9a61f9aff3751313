"""Servers on loopback, each in a thread of its own: a simulated model, and one that does everything wrong."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from aiohttp import web

from ebbtide.adapters.simserver.app import Simulated
from ebbtide.adapters.simserver.slots import Shape

UP_S = 60.0


@contextlib.contextmanager
def running(app: web.Application, *, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The application on a free port, from another thread; its address."""
    address: list[str] = []
    stops: list[Callable[[], object]] = []
    up = threading.Event()

    async def serve() -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        address.append(f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}")
        stops.append(lambda: loop.call_soon_threadsafe(ended.set))
        up.set()
        await ended.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    try:
        assert up.wait(UP_S)
        yield address[0]
    finally:
        for stop in stops:
            stop()
        thread.join(UP_S)


def simulated(shape: Shape) -> AbstractContextManager[str]:
    """A simulated model of that shape."""
    return running(Simulated(shape).app())


GOOD = '{"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}'


async def whole(request: web.Request) -> web.StreamResponse:
    return web.Response(text=GOOD, content_type="application/json")


async def unauthorized(request: web.Request) -> web.StreamResponse:
    # Some servers echo what they were given; it must not come through.
    return web.Response(status=401, text=f"no such key: {request.headers.get('Authorization', 'none')}")


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    with contextlib.suppress(ConnectionError):
        while True:
            await response.write(b'data: {"choices": [{"delta": {"content": "on "}}]}\n\n')
            await asyncio.sleep(0.02)
    return response


async def flood(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    with contextlib.suppress(ConnectionError):
        while True:
            await response.write(b" " * 65_536)
    return response


async def silent(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(3600)
    return web.Response()


async def cut(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": "1000"})
    await response.prepare(request)
    await response.write(GOOD.encode())
    assert request.transport is not None
    request.transport.close()
    return response


async def unfinished(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    await response.write(b'data: {"choices": [{"delta": {"content": "half"}}]}\n\n')
    await response.write_eof()
    return response


async def page(request: web.Request) -> web.StreamResponse:
    return web.Response(text="<html>hello</html>", content_type="text/html")


async def moved(request: web.Request) -> web.StreamResponse:
    raise web.HTTPFound("/whole?token=secret-in-the-redirect")


async def garbage(request: web.Request) -> web.StreamResponse:
    return web.Response(text="{", content_type="application/json")


async def busy(request: web.Request) -> web.StreamResponse:
    return web.Response(status=503, text="later")


async def broken(request: web.Request) -> web.StreamResponse:
    return web.Response(status=500, text="boom")


async def error(request: web.Request) -> web.StreamResponse:
    return web.json_response({"error": {"message": "no such model"}})


def hostile_app() -> web.Application:
    """A path for everything that a server can do wrong."""
    app = web.Application()
    paths = (whole, unauthorized, endless, flood, silent, cut, unfinished, page, moved, garbage, busy, broken, error)
    app.add_routes([web.post(f"/{one.__name__}", one) for one in paths])
    return app
