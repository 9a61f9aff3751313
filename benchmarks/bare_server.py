"""The least HTTP server there can be, as the other side of the generator's benchmark: ``bare_server.py PORT``.

Answers every request at once with the same few bytes, or, under /stream, with a chunked stream of EVENTS events PER_S
a second: ``/stream?events=20&every_ms=10``.
"""

from __future__ import annotations

import asyncio
import sys

import uvloop

BODY = b'{"text":"ok"}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY)
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}\n\n'
LAST = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def chunk(data: bytes) -> bytes:
    """As the chunked transfer has it."""
    return b"%x\r\n%s\r\n" % (len(data), data)


class Bare(asyncio.Protocol):
    """One connection; requests are taken to arrive whole, one at a time, as a load generator sends them."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, rest = self.buffer.partition(b"\r\n\r\n")
        if not found or len(rest) < length_of(head):
            return
        self.buffer = b""
        if head.split(b" ", 2)[1].startswith(b"/stream"):
            task = asyncio.get_running_loop().create_task(self.stream())
            task.add_done_callback(lambda _: None)
        else:
            self.transport.write(HEAD + BODY)

    async def stream(self, events: int = 20, every_s: float = 0.025) -> None:
        self.transport.write(STREAM)
        for _ in range(events):
            if self.transport.is_closing():
                return
            self.transport.write(chunk(EVENT))
            await asyncio.sleep(every_s)
        if not self.transport.is_closing():
            self.transport.write(chunk(LAST) + b"0\r\n\r\n")


def length_of(head: bytes) -> int:
    """The body's length."""
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            return int(line[15:])
    return 0


async def serve(port: int) -> None:
    """For ever."""
    server = await asyncio.get_running_loop().create_server(Bare, "127.0.0.1", port, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
