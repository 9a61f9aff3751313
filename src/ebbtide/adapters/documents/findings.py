"""pydantic's findings on a document, in ebbtide's words.

What belongs here: kinds and messages of what a field's own type and bounds refuse. What doesn't: places and nearest
words (``problems``).
"""

from __future__ import annotations

import math
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from whenever import available_timezones

from ebbtide.adapters.documents.model import DocumentModel, aliases, model_at
from ebbtide.adapters.documents.not_yet import MESSAGE, is_not_yet
from ebbtide.adapters.documents.problems import Problem, nearest
from ebbtide.adapters.documents.quantities import shown
from ebbtide.adapters.documents.yaml_text import Path

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
    if code == "unknown_time_zone":
        return Problem(path=path, kind=code, message=details["msg"], nearest=nearest(value, available_timezones()))
    if code == "literal_error":
        return _literal(path, value, str(context.get("expected", "")))
    kind, message = _words(code, value, context) or (code, details["msg"])
    return Problem(path=path, kind=kind, message=message)


def _words(code: str, value: Any, context: dict[str, Any]) -> tuple[str, str] | None:
    """Kind and message for what pydantic found by itself; None where one of ``quantities`` said it."""
    if isinstance(value, float) and not math.isfinite(value):
        return "not_finite", f"is {shown(value)}; must be finite"
    if code in _NEEDED:
        return "wrong_type", f"is {shown(value)}, but {_NEEDED[code]} is needed"
    if code in _BOUNDS:
        name, needed = _BOUNDS[code]
        return "out_of_range", f"is {shown(value)}; {needed.format(context[name])}"
    if code in ("too_long", "too_short"):
        return "out_of_range", _length(code, context)
    if code == "string_pattern_mismatch":
        return "bad_form", f"is {shown(value)}, which has not the form {context['pattern'].strip('^$')}"
    if code.startswith("string_too"):
        return "out_of_range", f"is {shown(value)}: too long or empty"
    return None


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


def _length(code: str, context: dict[str, Any]) -> str:
    bound = f"at most {context['max_length']:,}" if code == "too_long" else f"at least {context['min_length']}"
    return f"has {context['actual_length']:,} items; {bound} must be given"


def _literal(path: Path, value: Any, expected: str) -> Problem:
    words = [word.strip().strip("'") for word in expected.replace(" or ", ", ").split(",")]
    near = nearest(value, words) if isinstance(value, str) else None
    return Problem(
        path=path,
        kind="unknown_value" if isinstance(value, str) else "wrong_type",
        message=f"is {shown(value)}; must be {expected}".replace("'", ""),
        nearest=near,
    )
