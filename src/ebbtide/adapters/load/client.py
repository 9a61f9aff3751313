"""The HTTP client: aiohttp without anything that holds a request back or asks twice."""

from __future__ import annotations

import asyncio
import errno
import ssl
from collections.abc import Sequence
from contextvars import ContextVar
from time import monotonic
from types import TracebackType
from typing import Any

import aiohttp
from yarl import URL

from ebbtide.adapters.load.calls import Call, Fault
from ebbtide.adapters.load.endpoint import Endpoint
from ebbtide.adapters.load.items import Item
from ebbtide.adapters.load.replies import FaultyAnswerError, read_answer, read_stream, short
from ebbtide.errors import PermanentError, Place

# Servers close idle connections after 5 s and more; one closed while a request is on its way would count against them.
KEEP_ALIVE_S = 4.0
CALL: ContextVar[Call] = ContextVar("CALL")
_OWN_LACK = {errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM, errno.EAGAIN}


class _Request(aiohttp.ClientRequest):
    """Notes when its last byte was written."""

    async def send(self, conn: Any) -> aiohttp.ClientResponse:
        response = await super().send(conn)
        CALL.get().written_s = monotonic()  # without a body that is all; with one, its writing says so again
        return response

    async def write_bytes(self, writer: Any, conn: Any, content_length: int | None = None) -> None:
        await super().write_bytes(writer, conn, content_length)
        CALL.get().written_s = monotonic()


class _Connector(aiohttp.TCPConnector):
    """Notes how long a connection took to make: that is the server's time, not the sender's."""

    async def connect(self, req: aiohttp.ClientRequest, traces: Any, timeout: Any) -> Any:
        begun_s = monotonic()
        found = await super().connect(req, traces, timeout)
        CALL.get().connect_s = monotonic() - begun_s
        return found


class Client:
    """One endpoint's client; used as an async context. It never follows, repeats, or waits for a free connection."""

    def __init__(self, endpoint: Endpoint, items: Sequence[Item], *, keep_texts: bool) -> None:
        self._endpoint, self._items, self._keep = endpoint, items, keep_texts
        self._url = URL(endpoint.url)
        self._secret = endpoint.credential.header_value() if endpoint.credential is not None else None
        self._headers = {one.content_type: self._headers_of(one.content_type) for one in items}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Client:
        connector = _Connector(limit=0, ssl=tls_of(self._endpoint), keepalive_timeout=KEEP_ALIVE_S)
        self._session = aiohttp.ClientSession(
            connector=connector,
            request_class=_Request,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None),
            auto_decompress=False,
            trust_env=False,
            raise_for_status=False,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def ask(self, call: Call) -> None:
        """Send one request and read its answer into ``call``; nothing is raised but a cancellation that it is not."""
        CALL.set(call)
        try:
            await self._ask(call)
        except asyncio.CancelledError:
            if call.fault is not Fault.TIMEOUT:
                raise
            if call.last_s != float("inf"):  # the whole answer was there; only its connection was not closed
                call.fault = Fault.NONE
        except FaultyAnswerError as problem:
            self._fail(call, problem.fault, str(problem))
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            self._fail(call, fault_of(problem), str(problem) or type(problem).__name__)

    async def _ask(self, call: Call) -> None:
        assert self._session is not None
        item, endpoint = self._items[call.item], self._endpoint
        async with self._session.request(
            endpoint.method,
            self._url,
            data=item.body or None,
            headers=self._headers[item.content_type],
            allow_redirects=False,
        ) as response:
            call.status = response.status
            if response.status != 200:
                await self._refuse(response)
            if endpoint.stream:
                await read_stream(response, call, endpoint, keep=self._keep)
            else:
                await read_answer(response, call, endpoint, keep=self._keep)

    async def _refuse(self, response: aiohttp.ClientResponse) -> None:
        if 200 < response.status < 300:
            return
        if 300 <= response.status < 400:
            raise FaultyAnswerError(Fault.REDIRECT, f"status {response.status}, to another address")
        text = (await response.content.read(400)).decode(errors="replace")
        if not response.content.at_eof():
            await response.content.read(4096)  # most error pages end here, and the connection lives on
        raise FaultyAnswerError(Fault.STATUS, f"status {response.status}: {' '.join(text.split())}")

    def _fail(self, call: Call, fault: Fault, detail: str) -> None:
        call.fault, call.detail = fault, short(self.scrubbed(detail))

    def scrubbed(self, text: str) -> str:
        """The text without the credential, should the world have echoed it."""
        if self._secret is None:
            return text
        bare = self._secret.rsplit(" ", 1)[-1]
        return text.replace(self._secret, "***").replace(bare, "***")

    def _headers_of(self, content_type: str) -> dict[str, str]:
        headers = {"Content-Type": content_type, "Accept": "*/*", "Accept-Encoding": "identity"}
        headers |= dict(self._endpoint.headers)
        credential = self._endpoint.credential
        if credential is not None and self._secret is not None:
            headers[credential.header] = self._secret
        return headers


def fault_of(problem: Exception) -> Fault:
    """Whose fault an exception of the client's is.

    >>> fault_of(OSError(errno.EMFILE, "too many open files")).name
    'LOCAL'
    """
    number = getattr(problem, "errno", None) or getattr(getattr(problem, "os_error", None), "errno", None)
    if number in _OWN_LACK:
        return Fault.LOCAL
    if isinstance(problem, (aiohttp.ClientSSLError, aiohttp.ClientConnectorCertificateError, ssl.SSLError)):
        return Fault.TLS
    if isinstance(problem, aiohttp.ClientConnectorError):
        return Fault.REFUSED
    if isinstance(problem, aiohttp.ClientPayloadError):
        return Fault.TRUNCATED
    if isinstance(problem, aiohttp.ClientResponseError):
        return Fault.MALFORMED
    return Fault.BROKEN


def tls_of(endpoint: Endpoint) -> ssl.SSLContext | bool:
    tls = endpoint.tls
    if not tls.verify:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    if tls.ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=tls.ca_file)
    except (OSError, ssl.SSLError) as problem:
        place = Place(file=tls.ca_file)
        raise PermanentError("can't be read as certificates", kind="bad_ca_file", place=place) from problem
