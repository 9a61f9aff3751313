"""HTTP around the slots: OpenAI's forms, streams, usage, and vLLM's names of metrics.

The right answer is the request's last message (or prompt) itself; a wrong one has a question mark before it.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any

from aiohttp import web

from ebbtide.adapters.simserver.slots import Shape, Slots, Turn

MODEL = "ebbtide-simulated"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Simulated:
    """The server's state and its handlers. ``token_env``: the variable that holds the token it asks for."""

    def __init__(self, shape: Shape, *, token_env: str | None = None) -> None:
        self.shape, self.slots = shape, Slots(shape)
        self._token = os.environ[token_env] if token_env is not None else None
        self.answered = self.prompt_tokens = self.generation_tokens = 0

    def app(self) -> web.Application:
        """The application: all routes."""
        app = web.Application(client_max_size=2**24)
        app.add_routes(
            [
                web.post("/v1/chat/completions", self.guarded(self.chat)),
                web.post("/v1/completions", self.guarded(self.completions)),
                web.post("/v1/embeddings", self.guarded(self.embeddings)),
                web.get("/v1/models", self.guarded(self.models)),
                web.get("/version", self.version),
                web.get("/metrics", self.metrics),
                web.get("/health", self.health),
            ]
        )
        return app

    def guarded(self, handler: Handler) -> Handler:
        """The handler, for those who bring the token."""

        async def handle(request: web.Request) -> web.StreamResponse:
            if self._token is not None and request.headers.get("Authorization") != f"Bearer {self._token}":
                return _error(401, "invalid_api_key", "the token is missing or wrong")
            return await handler(request)

        return handle

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """A chat completion, whole or streamed."""
        asked = await _json(request)
        messages = asked.get("messages") if isinstance(asked, dict) else None
        if not isinstance(messages, list) or not messages or not isinstance(messages[-1], dict):
            return _error(400, "invalid_request_error", "messages is missing")
        return await self._answer(request, asked, str(messages[-1].get("content", "")), chat=True)

    async def completions(self, request: web.Request) -> web.StreamResponse:
        """A completion of a prompt, whole or streamed."""
        asked = await _json(request)
        if not isinstance(asked, dict) or not isinstance(asked.get("prompt"), str):
            return _error(400, "invalid_request_error", "prompt is missing")
        return await self._answer(request, asked, asked["prompt"], chat=False)

    async def embeddings(self, request: web.Request) -> web.StreamResponse:
        """Counts of letters as the embedding: equal texts have equal ones, like texts like ones."""
        asked = await _json(request)
        if not isinstance(asked, dict) or not isinstance(asked.get("input"), (str, list)):
            return _error(400, "invalid_request_error", "input is missing")
        texts = [asked["input"]] if isinstance(asked["input"], str) else [str(one) for one in asked["input"]]
        turn = self.slots.arrive(monotonic())
        if turn is None:
            return _full()
        await _until(turn.end_s)
        self._count(sum(len(text.split()) for text in texts), 0)
        if turn.fails:
            return _error(500, "server_error", "this request was to fail")
        data = [
            {"object": "embedding", "index": i, "embedding": letters(("?" if turn.wrong else "") + text)}
            for i, text in enumerate(texts)
        ]
        return web.json_response({"object": "list", "model": MODEL, "data": data, "usage": self._usage(texts, 0)})

    async def models(self, request: web.Request) -> web.StreamResponse:
        """The one model."""
        return web.json_response({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "ebbtide"}]})

    async def version(self, request: web.Request) -> web.StreamResponse:
        """As vLLM says its version."""
        from importlib.metadata import version

        return web.json_response({"version": f"simulated-{version('ebbtide')}"})

    async def health(self, request: web.Request) -> web.StreamResponse:
        """Always well."""
        return web.Response()

    async def metrics(self, request: web.Request) -> web.StreamResponse:
        """Under vLLM's names."""
        waiting, running = self.slots.present(monotonic())
        values: dict[str, tuple[str, float]] = {
            "num_requests_running": ("gauge", running),
            "num_requests_waiting": ("gauge", waiting),
            "request_success_total": ("counter", self.answered),
            "prompt_tokens_total": ("counter", self.prompt_tokens),
            "generation_tokens_total": ("counter", self.generation_tokens),
        }
        lines = [
            f'# TYPE vllm:{name} {kind}\nvllm:{name}{{model_name="{MODEL}"}} {value}'
            for name, (kind, value) in values.items()
        ]
        return web.Response(text="\n".join(lines) + "\n", content_type="text/plain")

    async def _answer(
        self, request: web.Request, asked: dict[str, Any], text: str, *, chat: bool
    ) -> web.StreamResponse:
        turn = self.slots.arrive(monotonic())
        if turn is None:
            return _full()
        most = asked.get("max_tokens") or asked.get("max_completion_tokens")
        tokens = min(self.shape.tokens, int(most)) if isinstance(most, int) and most > 0 else self.shape.tokens
        answer = ("?" if turn.wrong else "") + text
        if asked.get("stream") is True:
            return await self._stream(request, asked, turn, _pieces(answer, tokens), chat=chat)
        await _until(turn.end_s)
        self._count(len(text.split()), tokens)
        if turn.fails:
            return _error(500, "server_error", "this request was to fail")
        choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
        choice |= {"message": {"role": "assistant", "content": answer}} if chat else {"text": answer}
        return web.json_response(
            {"object": _kind(chat, ""), "model": MODEL, "choices": [choice], "usage": self._usage([text], tokens)}
        )

    async def _stream(
        self, request: web.Request, asked: dict[str, Any], turn: Turn, pieces: list[str], *, chat: bool
    ) -> web.StreamResponse:
        await _until(turn.first_s)
        if turn.fails:
            return _error(500, "server_error", "this request was to fail")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
        await response.prepare(request)
        every_s = (turn.end_s - turn.first_s) / max(len(pieces) - 1, 1)
        for index, piece in enumerate(pieces):
            await _until(turn.first_s + index * every_s)
            delta = {"delta": {"content": piece}} if chat else {"text": piece}
            await _event(response, {"object": _kind(chat, ".chunk"), "choices": [{"index": 0, **delta}]})
        last: dict[str, Any] = {"delta": {}} if chat else {"text": ""}
        await _event(response, {"choices": [{"index": 0, **last, "finish_reason": "stop"}]})
        self._count(1, len(pieces))
        options = asked.get("stream_options")
        if isinstance(options, dict) and options.get("include_usage") is True:
            await _event(response, {"choices": [], "usage": self._usage([""], len(pieces))})
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    def _count(self, prompt: int, generated: int) -> None:
        self.answered += 1
        self.prompt_tokens += prompt
        self.generation_tokens += generated

    def _usage(self, texts: list[str], tokens: int) -> dict[str, int]:
        prompt = sum(max(1, len(text.split())) for text in texts)
        return {"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens}


def letters(text: str) -> list[float]:
    """How often each letter is in a text, and what is none, as a vector of 27.

    >>> letters("a?")[0], letters("a?")[26]
    (1.0, 1.0)
    """
    counts = [0.0] * 27
    for one in text.lower():
        counts[ord(one) - 97 if "a" <= one <= "z" else 26] += 1.0
    return counts


def _pieces(text: str, tokens: int) -> list[str]:
    """The text in so many pieces; more pieces than letters are spaces at its end, which no exact check minds."""
    size = max(1, -(-len(text) // tokens))
    found = [text[start : start + size] for start in range(0, len(text), size)]
    return found + [" "] * (tokens - len(found))


def _kind(chat: bool, part: str) -> str:
    return f"chat.completion{part}" if chat else "text_completion"


async def _json(request: web.Request) -> Any:
    try:
        return await request.json()
    except json.JSONDecodeError:
        return None


async def _event(response: web.StreamResponse, value: dict[str, Any]) -> None:
    await response.write(b"data: " + json.dumps(value).encode() + b"\n\n")


async def _until(at_s: float) -> None:
    left_s = at_s - monotonic()
    if left_s > 0.0:
        await asyncio.sleep(left_s)


def _error(status: int, kind: str, message: str) -> web.Response:
    return web.json_response({"error": {"type": kind, "message": message, "code": status}}, status=status)


def _full() -> web.Response:
    return _error(503, "overloaded", "the queue is full")
