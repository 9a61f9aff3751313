"""From a Target's requests to bodies that are ready to be sent: recorded prompts, templates, a trace's lengths."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ebbtide.adapters.documents.target import TargetDocument
from ebbtide.adapters.documents.target_models import EndpointSpec
from ebbtide.adapters.load.items import JSON_TYPE, Item
from ebbtide.adapters.load.logs import token_lengths
from ebbtide.errors import InputError, Place

MOST_BYTES = 512 * 2**20  # of all bodies together
# Common words of about one token each: enough of them that no two prompts begin alike, which a cache would notice.
WORDS = tuple(
    """
    time year people way day man thing woman life child world school state family student group country problem hand
    part place case week company system program question work government number night point home water room mother area
    money story fact month lot right study book eye job word business issue side kind head house service friend father
    power hour game line end member law car city community name president team minute idea body information
    """.split()  # noqa: SIM905 - eighty words in quotes would hide what they are
)
_FIELDS = {
    "chat": ("prompt", "messages", "body"),
    "completions": ("prompt", "body"),
    "embeddings": ("input", "prompt", "body"),
    "http": ("body", "text", "file"),
}


def items_of(document: TargetDocument, *, model: str | None) -> tuple[Item, ...]:
    """All requests of a Target; ``model`` is what they name. ``InputError`` for what is wrong with a file of them."""
    requests, folder = document.spec.requests, document.folder
    build = _Build(document, model)
    if requests.lengths is not None:
        found = list(_of_lengths(build, folder / requests.lengths.file, requests.lengths.rows))
    elif requests.template is not None:
        found = list(_of_template(build, requests.template.text, folder / requests.template.values))
    else:
        assert requests.prompts is not None  # the rules ask for one of the three
        path = folder / requests.prompts
        build.folder = path.parent  # files that its lines name lie beside it
        found = [build.item(line, Place(file=str(path), line=number)) for number, line in _lines(path)]
    if not found:
        place = Place(file=str(folder / (requests.prompts or requests.template.values if requests.template else "")))
        raise InputError("holds no requests", kind="no_requests", place=place)
    return tuple(found)


class _Build:
    """Bodies of one endpoint's form."""

    def __init__(self, document: TargetDocument, model: str | None) -> None:
        self.spec, self.folder = document.spec, document.folder
        self.endpoint: EndpointSpec = document.spec.endpoint
        self.model = model
        self.bytes = 0

    def item(self, line: Mapping[str, Any], place: Place) -> Item:
        """One recorded prompt."""
        fields = _FIELDS[self.endpoint.api]
        given = [name for name in fields if name in line]
        if len(given) != 1:
            names = " or ".join(fields)
            message = f"has {' and '.join(given) or 'none'} of {names}; a request of api {self.endpoint.api} needs one"
            raise InputError(message, kind="bad_request_line", place=place)
        body, content_type = self._body(given[0], line, place)
        self.bytes += len(body)
        if self.bytes > MOST_BYTES:
            raise InputError("all requests together are above 512 MiB", kind="too_many_requests", place=place)
        shown = {name: value for name, value in line.items() if name != "expected"}
        return Item(body=body, content_type=content_type, expected=line.get("expected"), request=shown)

    def _body(self, name: str, line: Mapping[str, Any], place: Place) -> tuple[bytes, str]:
        value = line[name]
        if self.endpoint.api == "http":
            content_type = str(line.get("content_type", self.spec.requests.content_type))
            if name == "file":
                return _file_bytes(self.folder / str(value), place), content_type
            return (str(value).encode() if name == "text" else json.dumps(value).encode()), content_type
        if name == "body":
            if not isinstance(value, dict):
                raise InputError("body is no map", kind="bad_request_line", place=place)
            return self._json(value), JSON_TYPE
        return self._json(self._asked(name, value) | _most_tokens(line)), JSON_TYPE

    def _asked(self, name: str, value: Any) -> dict[str, Any]:
        if self.endpoint.api == "chat":
            return {"messages": value if name == "messages" else [{"role": "user", "content": value}]}
        return {"prompt" if self.endpoint.api == "completions" else "input": value}

    def _json(self, asked: Mapping[str, Any]) -> bytes:
        body: dict[str, Any] = {"model": self.model} if self.model is not None else {}
        if self.endpoint.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return json.dumps(body | self.spec.requests.parameters | dict(asked)).encode()


def _of_lengths(build: _Build, path: Path, rows: int) -> Iterator[Item]:
    inputs, outputs = token_lengths(path, rows)
    rng = np.random.default_rng(build.spec.search.seed)
    for number, (asked, most) in enumerate(zip(inputs.astype(int), outputs.astype(int), strict=True), start=1):
        words = " ".join(WORDS[place] for place in rng.integers(len(WORDS), size=max(int(asked), 1)))
        place = Place(file=str(path), line=number)
        yield build.item({"prompt": words, "max_tokens": max(int(most), 1)}, place)


def _of_template(build: _Build, text: str, path: Path) -> Iterator[Item]:
    for number, line in _lines(path):
        filled = text
        for name, value in line.items():
            filled = filled.replace("{" + name + "}", str(value))
        place = Place(file=str(path), line=number)
        field = {"http": "text", "embeddings": "input"}.get(build.endpoint.api, "prompt")
        yield build.item({field: filled, **{k: line[k] for k in ("expected", "max_tokens") if k in line}}, place)


def _most_tokens(line: Mapping[str, Any]) -> dict[str, Any]:
    return {"max_tokens": line["max_tokens"]} if "max_tokens" in line else {}


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Maps of a file of JSON lines; a bare text is a prompt."""
    place = Place(file=str(path))
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError("no such file", kind="no_file", place=place) from None
    except UnicodeDecodeError:
        raise InputError("is no UTF-8 text", kind="bad_encoding", place=place) from None
    found = False
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        found = True
        yield number, _line(line, Place(file=str(path), line=number))
    if not found:
        hint = 'write one request a line, such as {"prompt": "…", "expected": "…"}'
        raise InputError("is empty", kind="no_requests", place=place, hint=hint)


def _line(line: str, place: Place) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except json.JSONDecodeError as problem:
        raise InputError(f"is no JSON: {problem.msg}", kind="bad_json_line", place=place) from None
    if isinstance(value, str):
        return {"prompt": value}
    if not isinstance(value, dict):
        raise InputError("is neither a map nor a text", kind="bad_json_line", place=place)
    return value


def _file_bytes(path: Path, place: Place) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        raise InputError(f"{path.name} can't be read: {problem.strerror}", kind="no_file", place=place) from None
