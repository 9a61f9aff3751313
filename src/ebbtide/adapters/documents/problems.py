"""What is wrong with a document, as errors that name the file, the line, the field and the next step.

What belongs here: problems and their places, field names as people read them, nearest words. What doesn't: pydantic's
findings (``findings``) and the rules between fields (``fleet_rules``, ``schedule_rules``).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ebbtide.adapters.documents.yaml_text import Path, Tree
from ebbtide.errors import DocumentError, Place

_MOST_LINES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong at one field, before it is known to which file and line that belongs."""

    path: Path
    kind: str
    message: str
    hint: str | None = None
    nearest: str | None = None


class DocumentErrors(DocumentError):  # noqa: N818 - the plural says that it holds several errors
    """Several things that are wrong with one document: kind and place of the first one, the text of all."""

    def __init__(self, errors: Sequence[DocumentError]) -> None:
        first = errors[0]
        super().__init__(first.message, kind=first.kind, place=first.place, hint=first.hint)
        self.next_step = first.next_step
        self.errors = tuple(errors)

    def __str__(self) -> str:
        lines = [str(error) for error in self.errors[:_MOST_LINES]]
        more = len(self.errors) - _MOST_LINES
        return "\n".join(lines + ([f"and {more} more"] if more > 0 else []))


def raise_errors(errors: Sequence[DocumentError]) -> None:
    """Raise the one error, or all of them as one ``DocumentErrors``; nothing where there is none."""
    if len(errors) > 1:
        raise DocumentErrors(errors)
    if errors:
        raise errors[0]


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word most like a misspelt one, None where none is like it.

    >>> nearest("reservedNode", ["nodes", "reservedNodes"]), nearest("zzz", ["nodes"])
    ('reservedNodes', None)
    """
    by_lower = {name.lower(): name for name in sorted(known)}
    found = difflib.get_close_matches(word.lower()[:100], by_lower, n=1, cutoff=0.55)
    return by_lower[found[0]] if found else None


def one_of(path: Path, fields: Mapping[str, object]) -> Iterator[Problem]:
    """What is wrong where exactly one of several fields is to be given (None: it is not).

    >>> [problem.message for problem in one_of((), {"wait": 1, "latency": 2})]
    ['has both wait and latency']
    """
    given = [name for name, value in fields.items() if value is not None]
    if len(given) > 1:
        message = f"has both {' and '.join(given)}"
        yield Problem(path=path, kind="conflicting_fields", message=message, hint="give one of them")
    elif not given:
        message = f"has neither {' nor '.join(fields)}"
        yield Problem(path=path, kind="missing_field", message=message, hint="give one")


def unknown(path: Path, *, kind: str, word: str, known: Iterable[str], what: str) -> Problem:
    """A reference to a name that is not there, with the nearest one, or all there are where none is near."""
    names = list(dict.fromkeys(known))
    near = nearest(word, names)
    listed = f"there are {', '.join(names[:12])}{' …' if len(names) > 12 else ''}" if names else "there is none"
    return Problem(path=path, kind=kind, message=f'{what} "{word}"', nearest=near, hint=None if near else listed)


def field_name(path: Path, data: Any) -> str:
    """How people read a path: ``spec`` left out, list items by their names.

    >>> field_name(("spec", "pools", 0, "nodes"), {"spec": {"pools": [{"name": "h100"}]}})
    'pools[h100].nodes'
    """
    text = ""
    here = data
    for part in path:
        here = _step(here, part)
        if isinstance(part, int):
            name = here.get("name") if isinstance(here, dict) else None
            text += f"[{name if isinstance(name, str) and 0 < len(name) <= 63 else part}]"
        else:
            text += f".{part[:100]}" if text else part[:100]
    return text.removeprefix("spec.") if text != "spec" else text


def _step(here: Any, part: str | int) -> Any:
    try:
        return here[part]
    except (LookupError, TypeError):
        return None


def document_errors(problems: Iterable[Problem], tree: Tree, file: str) -> list[DocumentError]:
    """The problems as errors with their places, in the order of their lines."""
    errors = [
        DocumentError(
            problem.message,
            kind=problem.kind,
            place=Place(file=file, line=tree.line_of(problem.path), field=field_name(problem.path, tree.data) or None),
            hint=problem.hint,
            nearest=problem.nearest,
        )
        for problem in problems
    ]
    return sorted(errors, key=lambda error: error.place.line or 0)


def duplicate_problems(tree: Tree) -> list[Problem]:
    """Keys that a map holds twice."""
    return [
        Problem(path=path, kind="duplicate_key", message=f"written twice, first on line {first}")
        for path, _, first in tree.duplicates
    ]
