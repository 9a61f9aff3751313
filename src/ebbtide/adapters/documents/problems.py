"""What is wrong with a document, as errors that name the file, the line, the field and the next step.

What belongs here: pydantic's findings in ebbtide's words, field names as people read them, nearest words. What
doesn't: the rules between fields (``fleet_rules``, ``schedule_rules``).
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from whenever import available_timezones

from ebbtide.adapters.documents.model import DocumentModel, aliases, model_at
from ebbtide.adapters.documents.not_yet import MESSAGE, is_not_yet
from ebbtide.adapters.documents.quantities import shown
from ebbtide.adapters.documents.yaml_text import Path, Tree
from ebbtide.errors import DocumentError, Place

_NEEDED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "list_type": "a list",
    "model_type": "a map",
    "dict_type": "a map",
}
_BOUNDS = {
    "greater_than": ("gt", "must be above {}"),
    "greater_than_equal": ("ge", "must be at least {}"),
    "less_than": ("lt", "must be below {}"),
    "less_than_equal": ("le", "must be at most {}"),
}
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


def validation_problems(error: ValidationError, model: type[DocumentModel]) -> list[Problem]:
    """pydantic's findings on a document of a model; a required field that was misspelt is said once, as misspelt."""
    problems = [_problem(details, model) for details in error.errors(include_url=False)]
    misspelt = {(*problem.path[:-1], problem.nearest) for problem in problems if problem.kind == "unknown_field"}
    return [problem for problem in problems if problem.kind != "missing_field" or problem.path not in misspelt]


def _problem(details: ErrorDetails, model: type[DocumentModel]) -> Problem:
    path, code, value, context = details["loc"], details["type"], details["input"], details.get("ctx", {})
    if code == "extra_forbidden":
        return _unknown_field(path, model)
    if code == "missing":
        return Problem(path=path, kind="missing_field", message="missing, and it has no default")
    if isinstance(value, float) and not math.isfinite(value):
        return Problem(path=path, kind="not_finite", message=f"is {shown(value)}; must be finite")
    if code in _NEEDED:
        return Problem(path=path, kind="wrong_type", message=f"is {shown(value)}, but {_NEEDED[code]} is needed")
    if code in _BOUNDS:
        name, needed = _BOUNDS[code]
        return Problem(path=path, kind="out_of_range", message=f"is {shown(value)}; {needed.format(context[name])}")
    if code in ("too_long", "too_short"):
        return _length(path, code, context)
    if code == "literal_error":
        return _literal(path, value, str(context.get("expected", "")))
    if code == "unknown_time_zone":
        return Problem(path=path, kind=code, message=details["msg"], nearest=nearest(value, available_timezones()))
    if code.startswith("string_too"):
        return Problem(path=path, kind="out_of_range", message=f"is {shown(value)}: too long or empty")
    return Problem(path=path, kind=code, message=details["msg"])


def _unknown_field(path: Path, model: type[DocumentModel]) -> Problem:
    holder = model_at(model, path)
    word = str(path[-1])
    if holder is None:
        return Problem(path=path, kind="unknown_field", message="unknown field")
    if is_not_yet(holder.__name__, word):
        return Problem(path=path, kind="not_yet", message=MESSAGE)
    known = list(aliases(holder))
    near = nearest(word, known)
    listed = f"known here: {', '.join(known)}" if known else "this map is empty"
    return Problem(
        path=path, kind="unknown_field", message="unknown field", nearest=near, hint=None if near else listed
    )


def _length(path: Path, code: str, context: dict[str, Any]) -> Problem:
    bound = f"at most {context['max_length']:,}" if code == "too_long" else f"at least {context['min_length']}"
    return Problem(
        path=path, kind="out_of_range", message=f"has {context['actual_length']:,} items; {bound} must be given"
    )


def _literal(path: Path, value: Any, expected: str) -> Problem:
    words = [word.strip().strip("'") for word in expected.replace(" or ", ", ").split(",")]
    near = nearest(value, words) if isinstance(value, str) else None
    return Problem(
        path=path,
        kind="unknown_value" if isinstance(value, str) else "wrong_type",
        message=f"is {shown(value)}; must be {expected}".replace("'", ""),
        nearest=near,
    )
