"""A few requests before anything is measured: whether the endpoint answers at all, and how fast at idle."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic

from ebbtide.adapters.load.apart import run_apart
from ebbtide.adapters.load.calls import Call, Fault
from ebbtide.adapters.load.client import Client
from ebbtide.adapters.load.endpoint import Endpoint
from ebbtide.adapters.load.items import Item
from ebbtide.errors import EbbtideError, PermanentError, Place, TemporaryError

FIRST = 3
UNAUTHORIZED = {401, 403}
BUSY = {429, 502, 503, 504}


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """Answers at idle, one request at a time: which items, and what became of each."""

    items: tuple[int, ...]
    calls: tuple[Call, ...]

    @property
    def latency_s(self) -> float:
        """The median of those that were answered."""
        found = sorted(one.last_s - one.intended_s for one in self.calls if one.fault is Fault.NONE)
        return found[len(found) // 2] if found else float("inf")


def first_answers(endpoint: Endpoint, items: Sequence[Item], *, count: int = FIRST) -> Idle:
    """The first few answers. Raises ``TemporaryError`` or ``PermanentError`` for an endpoint that gives none."""
    found = run_apart(_asked(endpoint, items, range(count), lambda done: None))
    for one in found:
        if one.fault is not Fault.NONE:
            raise refusal(endpoint, one)
    return Idle(items=tuple(one.item for one in found), calls=found)


def idle_answers(endpoint: Endpoint, items: Sequence[Item], count: int, done: Callable[[int], None]) -> Idle:
    """Answers to the first ``count`` items, one at a time: what load is compared with (§M.6)."""
    found = run_apart(_asked(endpoint, items, range(min(count, len(items))), done))
    return Idle(items=tuple(one.item for one in found), calls=found)


async def _asked(
    endpoint: Endpoint, items: Sequence[Item], numbers: Sequence[int], done: Callable[[int], None]
) -> tuple[Call, ...]:
    calls = []
    async with Client(endpoint, items, keep_texts=True) as client:
        for number in numbers:
            call = Call(number, number % len(items), monotonic(), 0)
            task = asyncio.create_task(client.ask(call))
            finished, _ = await asyncio.wait([task], timeout=endpoint.timeout_s)
            if not finished:
                call.fault, call.detail = Fault.TIMEOUT, f"no whole answer within {endpoint.timeout_s:g} s"
                task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            calls.append(call)
            done(len(calls))
    return tuple(calls)


def refusal(endpoint: Endpoint, call: Call) -> EbbtideError:
    """The error of a request that got no answer: what was seen, and the next step."""
    place = Place(file=endpoint.shown)
    said = f"{call.fault.words}: {call.detail}"
    if call.fault is Fault.STATUS and call.status in UNAUTHORIZED:
        hint = (
            "name the variable or file that holds its credential under endpoint.token"
            if endpoint.credential is None
            else f"it refuses the credential in {endpoint.credential}"
        )
        return PermanentError(f"asks for a credential ({call.detail})", kind="unauthorized", place=place, hint=hint)
    if call.fault in (Fault.REFUSED, Fault.BROKEN, Fault.TIMEOUT, Fault.LOCAL):
        kind = {Fault.TIMEOUT: "no_answer_in_time"}.get(call.fault, "endpoint_down")
        return TemporaryError(said, kind=kind, place=place, hint=_HINTS.get(call.fault))
    if call.fault is Fault.STATUS and call.status in BUSY:
        hint = "wait until it serves nobody else, and measure again"
        return TemporaryError(call.detail, kind="endpoint_busy", place=place, hint=hint)
    if call.fault is Fault.TLS and _NO_TLS in call.detail:
        hint = "it speaks no TLS: write http:// in endpoint.url"
        return PermanentError(said, kind="tls", place=place, hint=hint)
    if call.fault is Fault.STATUS:
        said = call.detail
    return PermanentError(said, kind=_KINDS.get(call.fault, "bad_answer"), place=place, hint=_HINTS.get(call.fault))


# What OpenSSL calls a first answer in plain text.
_NO_TLS = "WRONG_VERSION_NUMBER"
_KINDS = {Fault.TLS: "tls", Fault.REDIRECT: "redirected", Fault.STATUS: "refused_request"}
_HINTS = {
    Fault.REFUSED: "start it, or correct endpoint.url",
    Fault.TLS: "give its authority's certificates under endpoint.tls.caFile",
    Fault.REDIRECT: "give the address that it leads to as endpoint.url: a redirect is another service's time",
    Fault.TIMEOUT: "give more under endpoint.timeout, or ask for shorter answers",
    Fault.CONTENT_TYPE: "set endpoint.api and endpoint.stream to what it speaks",
    Fault.MALFORMED: "set endpoint.api and endpoint.stream to what it speaks",
    Fault.TRUNCATED: "a proxy between may cut answers short",
}
