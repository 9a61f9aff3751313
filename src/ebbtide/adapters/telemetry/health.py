"""One small HTTP server: ``/metrics``, ``/healthz`` (the loop goes round) and ``/readyz`` (it can do its work)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from ebbtide.errors import InputError, PermanentError, Place


class Health:
    """When the loop last came round, and why it is not ready ("" where it is)."""

    def __init__(self, *, patience_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience_s, self._clock = patience_s, clock
        self._round_s = clock()
        self.unready = "starting"

    def came_round(self, unready: str) -> None:
        """The loop has made a turn."""
        self._round_s, self.unready = self._clock(), unready

    @property
    def silent_s(self) -> float:
        """Since when it has not come round."""
        return self._clock() - self._round_s

    @property
    def alive(self) -> bool:
        """Whether it came round lately; a loop that hangs is to be started again."""
        return self.silent_s < self._patience_s


def serve(listen: str, registry: CollectorRegistry, health: Health) -> ThreadingHTTPServer:
    """The server, running in a thread; ``shutdown`` ends it.

    Raises ``InputError`` where ``listen`` is no ``host:port``, ``PermanentError`` where it is taken.
    """
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65_535:
        raise InputError(
            f"{listen!r} is no address", kind="bad_listen", place=Place(field="--listen"), hint="127.0.0.1:9090"
        )

    class Handler(BaseHTTPRequestHandler):
        timeout = 10.0  # who opens a connection and says nothing is not waited for

        def do_GET(self) -> None:
            status, kind, body = _answer(self.path.partition("?")[0], registry, health)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Probes come every few seconds: not a line for each."""

    try:
        server = ThreadingHTTPServer((host.strip("[]"), int(port)), Handler)
    except OSError as problem:
        message = f"cannot listen on {listen}: {problem.strerror or problem}"
        raise PermanentError(message, kind="listen", place=Place(field="--listen"), hint="another port") from None
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="health", daemon=True).start()
    return server


def _answer(path: str, registry: CollectorRegistry, health: Health) -> tuple[int, str, bytes]:
    plain = "text/plain; charset=utf-8"
    if path == "/metrics":
        return 200, CONTENT_TYPE_LATEST, generate_latest(registry)
    if path == "/healthz":
        return (200, plain, b"ok\n") if health.alive else (503, plain, f"silent for {health.silent_s:.0f} s\n".encode())
    if path == "/readyz":
        return (503, plain, f"{health.unready}\n".encode()) if health.unready else (200, plain, b"ok\n")
    return 404, plain, b"/metrics, /healthz, /readyz\n"
