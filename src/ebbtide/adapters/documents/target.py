"""Read a Target document: rules between its fields, its digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ebbtide.adapters.documents.problems import Problem, document_errors, one_of, raise_errors
from ebbtide.adapters.documents.reading import read_document
from ebbtide.adapters.documents.target_models import LiveSpec, TargetForm, TargetSpecification
from ebbtide.adapters.documents.target_values import bounds_of
from ebbtide.errors import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetDocument:
    """A checked Target and where it lies. ``digest`` is of the spec as completed: equal for equal measurements."""

    path: Path
    name: str
    spec: TargetSpecification
    digest: str

    @property
    def folder(self) -> Path:
        """Where its relative paths begin."""
        return self.path.parent

    def place(self, field: str) -> Place:
        """A field of it, for a message."""
        return Place(file=str(self.path), field=field)


def read_target(path: Path | str) -> TargetDocument:
    """The Target in a file. Raises ``DocumentError`` where it is wrong, ``InputError`` where there is no such file."""
    path = Path(path)
    read = read_document(path, TargetForm, kind="Target")
    raise_errors(read.errors)
    assert read.form is not None  # without errors there is a form
    raise_errors(document_errors(target_problems(read.form.spec), read.tree, read.file))
    return TargetDocument(
        path=path, name=read.form.metadata.name, spec=read.form.spec, digest=target_digest(read.form.spec)
    )


def target_digest(spec: TargetSpecification) -> str:
    """sha256 of the spec with every default written out."""
    plain = spec.model_dump(mode="json", by_alias=True)
    return "sha256:" + hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def target_problems(spec: TargetSpecification) -> Iterator[Problem]:
    """Everything that is wrong between the fields of a Target."""
    yield from _endpoint(spec)
    requests = spec.requests
    given = {"prompts": requests.prompts, "template": requests.template, "lengths": requests.lengths}
    yield from one_of(("spec", "requests"), given)
    if requests.lengths is not None and spec.endpoint.api not in ("chat", "completions"):
        message = f"makes prompts, which api {spec.endpoint.api} does not take"
        yield Problem(path=("spec", "requests", "lengths"), kind="conflicting_fields", message=message)
    yield from _arrivals(spec)
    yield from _bounds(spec)
    yield from _quality(spec)
    yield from live_problems(spec.live, len(spec.targets))


def live_problems(live: LiveSpec | None, targets: int) -> Iterator[Problem]:
    """What is wrong between a document's live queries and the number of its targets."""
    if live is not None and len(live.within) != targets:
        message = f"has {len(live.within)} queries, targets {targets}: one for each is needed"
        yield Problem(path=("spec", "live", "within"), kind="conflicting_fields", message=message)


def _endpoint(spec: TargetSpecification) -> Iterator[Problem]:
    endpoint, root = spec.endpoint, ("spec", "endpoint")
    try:
        parts = urlsplit(endpoint.url)
        good, secret = parts.scheme in ("http", "https") and bool(parts.hostname), parts.password is not None
        _ = parts.port
    except ValueError:
        good, secret = False, False
    if not good:
        message = "is no address; write it whole, such as http://127.0.0.1:8000/v1/chat/completions"
        yield Problem(path=(*root, "url"), kind="bad_url", message=message)
    if secret:
        yield Problem(
            path=(*root, "url"),
            kind="secret_in_document",
            message="holds a password",
            hint="name the variable or file that holds it under token",
        )
    if endpoint.token is not None:
        yield from one_of((*root, "token"), {"env": endpoint.token.env, "file": endpoint.token.file})
    secrets = {"authorization", "proxy-authorization", "cookie", "x-api-key", "api-key"}
    for name in endpoint.headers:
        if name.lower() in secrets:
            yield Problem(
                path=(*root, "headers", name),
                kind="secret_in_document",
                message="carries a credential",
                hint="name the variable or file that holds it under token, with header for another header",
            )
    if endpoint.stream and endpoint.api == "embeddings":
        message = "is true, but embeddings do not stream"
        yield Problem(path=(*root, "stream"), kind="conflicting_fields", message=message)


def _arrivals(spec: TargetSpecification) -> Iterator[Problem]:
    arrivals, root = spec.arrivals, ("spec", "arrivals")
    if (arrivals.file is not None) != (arrivals.law == "replay"):
        message = "replay needs a file" if arrivals.file is None else f"{arrivals.law} reads no file"
        yield Problem(path=(*root, "file"), kind="conflicting_fields", message=message)
    if arrivals.scv is not None and arrivals.law != "gamma":
        message = f"{arrivals.law} has no SCV to be given"
        yield Problem(path=(*root, "scv"), kind="conflicting_fields", message=message)


def _bounds(spec: TargetSpecification) -> Iterator[Problem]:
    for index, bound in enumerate(spec.targets):
        root = ("spec", "targets", index)
        given = bounds_of(bound)
        yield from one_of(root, given)
        for name, value in given.items():
            if value is not None and name != "latency" and not spec.endpoint.stream:
                message = "is seen in streams alone, and endpoint.stream is false"
                yield Problem(path=(*root, name), kind="conflicting_fields", message=message)


def _quality(spec: TargetSpecification) -> Iterator[Problem]:
    quality, root = spec.quality, ("spec", "quality")
    if quality is None:
        return
    checks = {
        "exact": quality.exact or None,
        "regex": quality.regex,
        "jsonSchema": quality.json_schema,
        "numeric": quality.numeric,
        "similarity": quality.similarity,
        "checker": quality.checker,
    }
    yield from one_of(root, checks)
    if quality.checker is not None:
        given = {"python": quality.checker.python, "command": quality.checker.command}
        yield from one_of((*root, "checker"), given)
    if quality.similarity is not None and quality.similarity.url is None and spec.endpoint.api != "embeddings":
        message = "is needed: the answers are texts, which an embeddings endpoint must turn into vectors"
        yield Problem(path=(*root, "similarity", "url"), kind="missing_field", message=message)
    if quality.pointer and spec.endpoint.api != "http":
        message = f"is of http alone; api {spec.endpoint.api} knows where its text is"
        yield Problem(path=(*root, "pointer"), kind="conflicting_fields", message=message)
