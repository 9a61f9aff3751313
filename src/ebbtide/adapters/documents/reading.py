"""From a file's bytes to a checked document model: the part that all kinds of document share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from ebbtide.adapters.documents import yaml_text
from ebbtide.adapters.documents.files import read_bytes
from ebbtide.adapters.documents.findings import validation_problems
from ebbtide.adapters.documents.model import API_VERSION, Document, aliases
from ebbtide.adapters.documents.problems import (
    Problem,
    document_errors,
    duplicate_problems,
    nearest,
)
from ebbtide.adapters.documents.quantities import shown
from ebbtide.errors import DocumentError, Place

Form = TypeVar("Form", bound=Document)
_SERVER_FIELDS = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generation",
        "managedFields",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read(Generic[Form]):
    """A document as read: ``form`` is None where ``errors`` say why."""

    file: str
    tree: yaml_text.Tree
    form: Form | None
    errors: tuple[DocumentError, ...]


def document_bytes(path: Path) -> bytes:
    """A document's bytes; errors as ``read_bytes``. One byte more than a document may have where it is larger."""
    return read_bytes(path, at_most=yaml_text.MAX_BYTES)


def read_document(path: Path, form: type[Form], *, kind: str, content: bytes | None = None) -> Read[Form]:
    """Read one document of a kind; a file that is no YAML raises, a wrong document comes back with its errors.

    ``content``: the file's bytes where they were read already, for a pipe gives them once.
    """
    file = str(path)
    if content is None:
        content = document_bytes(path)
    try:
        tree = yaml_text.parse(yaml_text.decode(content))
    except yaml_text.YamlRefusedError as refusal:
        place = Place(file=file, line=refusal.line)
        raise DocumentError(refusal.message, kind=refusal.kind, place=place, hint=refusal.hint) from refusal
    return _checked(tree, form, kind, file)


def read_object(data: Mapping[str, Any], form: type[Form], *, kind: str, file: str) -> Read[Form]:
    """The same of an object as an API server gives it; ``file`` names it in errors, which have no line."""
    return _checked(yaml_text.Tree(data=dict(data)), form, kind, file)


def object_name(data: Mapping[str, Any]) -> str:
    """How errors name an object: its kind, namespace and name.

    >>> object_name({"kind": "Fleet", "metadata": {"namespace": "ebbtide", "name": "two-models"}})
    'Fleet ebbtide/two-models'
    """
    found = data.get("metadata")
    metadata = found if isinstance(found, Mapping) else {}
    return f"{data.get('kind', 'object')} {metadata.get('namespace', 'default')}/{metadata.get('name', '?')}"


def without_server_fields(data: Any) -> Any:
    """The document without what an API server keeps in its metadata: a file and an object are the same document.

    >>> without_server_fields({"metadata": {"name": "a", "uid": "1"}})
    {'metadata': {'name': 'a'}}
    """
    metadata = data.get("metadata") if isinstance(data, dict) else None
    if not isinstance(metadata, dict):
        return data
    return data | {"metadata": {name: value for name, value in metadata.items() if name not in _SERVER_FIELDS}}


def _checked(tree: yaml_text.Tree, form: type[Form], kind: str, file: str) -> Read[Form]:
    problems = duplicate_problems(tree) + _envelope_problems(tree, kind, form)
    found: Form | None = None
    if not problems:
        try:
            found = form.model_validate(without_server_fields(tree.data))
        except ValidationError as error:
            problems = validation_problems(error, form)
    return Read(file=file, tree=tree, form=found, errors=tuple(document_errors(problems, tree, file)))


def _envelope_problems(tree: yaml_text.Tree, kind: str, form: type[Document]) -> list[Problem]:
    """Wrong kind and version are said alone: all other findings would follow from them."""
    data = tree.data
    if not isinstance(data, dict):
        message = f"the document is {shown(data)}, but a map with apiVersion, kind, metadata and spec is needed"
        return [Problem(path=(), kind="wrong_type", message=message)]
    wanted = {"kind": ("wrong_kind", kind), "apiVersion": ("wrong_api_version", API_VERSION)}
    problems = []
    for name, (code, value) in wanted.items():
        if name in data and data[name] != value:
            message = f"is {shown(data[name])}, but {value} is needed"
            problems.append(Problem(path=(name,), kind=code, message=message))
        elif name not in data:
            problems.append(_missing(name, value, data, form))
    return problems


def _missing(name: str, value: str, data: dict[str, object], form: type[Document]) -> Problem:
    misspelt = nearest(name, [key for key in data if key not in aliases(form)])
    if misspelt is not None:
        return Problem(path=(misspelt,), kind="unknown_field", message="unknown field", nearest=name)
    return Problem(path=(name,), kind="missing_field", message="missing", hint=f"write {name}: {value}")
