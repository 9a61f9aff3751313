"""Reading answers: whole bodies of OpenAI's forms or of any, and streams of events with the time each one came."""

from __future__ import annotations

from time import monotonic
from typing import Any

import aiohttp
import msgspec

from ebbtide.adapters.load.calls import Call, Fault
from ebbtide.adapters.load.endpoint import Api, Endpoint

MOST_TEXT = 65_536  # of an answer's text is kept for its check
DONE = b"[DONE]"


class FaultyAnswerError(Exception):
    """An answer that is none; ``fault`` says why, the text what was seen."""

    def __init__(self, fault: Fault, detail: str) -> None:
        super().__init__(detail)
        self.fault = fault


class Usage(msgspec.Struct):
    """Tokens as the server counted them."""

    prompt_tokens: int = -1
    completion_tokens: int = -1


class Said(msgspec.Struct):
    """A message, or a piece of one."""

    content: str | None = None
    reasoning_content: str | None = None


class Choice(msgspec.Struct):
    """One choice of an answer: chat's message or delta, or completions' text."""

    message: Said | None = None
    delta: Said | None = None
    text: str | None = None
    finish_reason: str | None = None


class Vector(msgspec.Struct):
    """One embedding."""

    embedding: msgspec.Raw


class Answer(msgspec.Struct):
    """What is read of an answer or of one event of it; all else in it is ignored."""

    choices: list[Choice] = []
    data: list[Vector] = []
    usage: Usage | None = None
    error: Any = None


_ANSWER = msgspec.json.Decoder(Answer)


async def read_answer(response: aiohttp.ClientResponse, call: Call, endpoint: Endpoint, *, keep: bool) -> None:
    """Read a whole answer into the call; raises ``FaultyAnswerError`` where it is none."""
    _refuse_other_type(response, "application/json" if endpoint.api is not Api.HTTP else None)
    body = await _body(response, endpoint.most_bytes)
    call.last_s = monotonic()
    if endpoint.api is Api.HTTP:
        call.text = body[:MOST_TEXT].decode(errors="replace") if keep else None
        return
    answer = _decoded(body)
    _count(call, answer.usage)
    if endpoint.api is Api.EMBEDDINGS:
        if not answer.data:
            raise FaultyAnswerError(Fault.MALFORMED, "no embedding in the answer")
        call.text = bytes(answer.data[0].embedding).decode() if keep else None
        return
    if not answer.choices:
        raise FaultyAnswerError(Fault.MALFORMED, "no choices in the answer")
    first = answer.choices[0]
    text = first.message.content if first.message is not None else first.text
    call.text = (text or "")[:MOST_TEXT] if keep else None


async def read_stream(response: aiohttp.ClientResponse, call: Call, endpoint: Endpoint, *, keep: bool) -> None:
    """Read a stream of server-sent events into the call, each stamped when it came."""
    _refuse_other_type(response, "text/event-stream")
    stream = _Stream(call, plain=endpoint.api is Api.HTTP, keep=keep)
    buffer, size = b"", 0
    async for chunk in response.content.iter_any():
        now_s = monotonic()
        size += len(chunk)
        if size > endpoint.most_bytes:
            raise FaultyAnswerError(Fault.TOO_LARGE, f"more than {endpoint.most_bytes:,} bytes")
        *lines, buffer = (buffer + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                stream.event(line[5:].strip(), now_s)
    stream.close()


class _Stream:
    """The events of one answer."""

    def __init__(self, call: Call, *, plain: bool, keep: bool) -> None:
        self.call, self.plain, self.keep = call, plain, keep
        self.parts: list[str] = []
        self.ended = False

    def event(self, data: bytes, now_s: float) -> None:
        if data == DONE:
            self._end(now_s)
            return
        if self.plain:
            self._token(data.decode(errors="replace") if self.keep else "", now_s)
            return
        answer = _decoded(data)
        _count(self.call, answer.usage)
        for choice in answer.choices:
            text = _piece(choice)
            if text:
                self._token(text, now_s)
            if choice.finish_reason is not None:
                self._end(now_s)

    def _end(self, now_s: float) -> None:
        # The last token came before; `[DONE]` and usage follow it: an answer ends with its finish.
        if not self.ended:
            self.ended, self.call.last_s = True, now_s

    def _token(self, text: str, now_s: float) -> None:
        call = self.call
        if call.events:
            gap_s = now_s - call.token_s
            if not gap_s <= call.worst_gap_s:  # the first gap too: NaN is not above anything
                call.worst_gap_s = gap_s
        else:
            call.first_s = now_s
        call.events += 1
        call.token_s = now_s
        if self.plain:
            call.last_s = now_s
        if self.keep:
            self.parts.append(text)

    def close(self) -> None:
        if not self.ended and not (self.plain and self.call.events):
            raise FaultyAnswerError(Fault.TRUNCATED, f"the stream ended after {self.call.events} tokens, unfinished")
        self._end(self.call.token_s)  # where no finish was said, the last event was it
        if self.keep:
            self.call.text = "".join(self.parts)[:MOST_TEXT]


def _piece(choice: Choice) -> str | None:
    if choice.delta is not None:
        return choice.delta.content or choice.delta.reasoning_content
    return choice.text


def _decoded(data: bytes) -> Answer:
    try:
        answer = _ANSWER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise FaultyAnswerError(Fault.MALFORMED, f"no answer of that form: {problem}") from None
    if answer.error is not None:
        raise FaultyAnswerError(Fault.STATUS, f"an error in place of an answer: {short(answer.error)}")
    return answer


def _count(call: Call, usage: Usage | None) -> None:
    if usage is not None:
        call.input_tokens, call.output_tokens = usage.prompt_tokens, usage.completion_tokens


def _refuse_other_type(response: aiohttp.ClientResponse, wanted: str | None) -> None:
    if wanted is not None and response.content_type != wanted:
        raise FaultyAnswerError(Fault.CONTENT_TYPE, f"content type {response.content_type}, not {wanted}")


async def _body(response: aiohttp.ClientResponse, most: int) -> bytes:
    length = response.content_length
    if length is not None and length <= most:
        return await response.read()
    parts: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > most:
            raise FaultyAnswerError(Fault.TOO_LARGE, f"more than {most:,} bytes")
        parts.append(chunk)
    return b"".join(parts)


def short(value: Any) -> str:
    """A text of the world's, cut for a message.

    >>> short("x" * 300)[-4:], len(short("x" * 300))
    ('xx …', 202)
    """
    text = str(value)
    return text if len(text) <= 200 else text[:200] + " …"
