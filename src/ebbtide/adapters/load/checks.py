"""Whether an answer is right: exact, by expression, JSON Schema, number or embedding, or by the user's own check.

An answer is right, wrong, or not checked: not sampled, nothing to compare with, or a checker that broke, which is a
fault of the checker's and not of the service's (§M.6).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ebbtide.adapters.documents.target import TargetDocument
from ebbtide.adapters.documents.target_models import QualitySpec
from ebbtide.adapters.load.checkers import Checker, UserChecker
from ebbtide.adapters.load.embedding import Embedder
from ebbtide.adapters.load.items import Item
from ebbtide.errors import InputError, Place

RIGHT, WRONG, UNCHECKED, BROKEN = 0, 1, -1, 2
_NUMBER = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
Marks = NDArray[np.int8]


class Check(Protocol):
    """One kind of check, over many answers at once: marks RIGHT, WRONG or BROKEN."""

    name: str

    def marks(self, items: Sequence[Item], texts: Sequence[str]) -> Marks:
        """One mark an answer."""

    def close(self) -> None:
        """Ends what it runs."""


@dataclass(slots=True)
class Simple:
    """A check that is one function of the answer and its item."""

    name: str
    right: Callable[[str, Item], bool]

    def marks(self, items: Sequence[Item], texts: Sequence[str]) -> Marks:
        """One mark an answer."""
        found = [RIGHT if self.right(text, item) else WRONG for item, text in zip(items, texts, strict=True)]
        return np.array(found, dtype=np.int8)

    def close(self) -> None:
        """Nothing runs."""


@dataclass(slots=True)
class Checked:
    """What became of the checks of one step."""

    marks: Marks
    broken: int = 0
    example: str = ""
    tried: int = field(default=0)


@dataclass(slots=True)
class Quality:
    """The Target's check with its sampling."""

    check: Check
    spec: QualitySpec

    def checked(self, items: Sequence[Item], indices: Sequence[int], texts: Sequence[str | None]) -> Checked:
        """Marks of a step's answers: −1 where there is none or the sample left it out; broken checks are −1 too."""
        sampled = [self.samples(number) and text is not None for number, text in enumerate(texts)]
        places = [number for number, wanted in enumerate(sampled) if wanted]
        marks = np.full(len(texts), UNCHECKED, dtype=np.int8)
        asked = [items[indices[place]] for place in places]
        answers = [answer_text(texts[place] or "", self.spec.pointer) for place in places]
        found = self.check.marks(asked, answers)
        marks[places] = np.where(found == BROKEN, UNCHECKED, found)
        broken = int((found == BROKEN).sum())
        return Checked(marks=marks, broken=broken, example=getattr(self.check, "example", ""), tried=len(places))

    def samples(self, number: int) -> bool:
        """Whether the step's answer of that number is checked: evenly spread."""
        return math.floor((number + 1) * self.spec.sample) > math.floor(number * self.spec.sample)


def quality_of(document: TargetDocument, items: Sequence[Item]) -> Quality | None:
    """The check that a Target asks for; None where it asks for none. ``InputError`` where it can't work."""
    spec = document.spec.quality
    if spec is None:
        return None
    check = _check(document, spec)
    if check.name not in ("jsonSchema", "checker") and not (spec.regex and "{expected}" not in spec.regex):
        missing = sum(item.expected is None for item in items)
        if missing:
            message = f"{missing:,} of {len(items):,} requests have no expected answer, which the check compares with"
            raise InputError(message, kind="no_expected", place=document.place("requests"))
    return Quality(check, spec)


def _check(document: TargetDocument, spec: QualitySpec) -> Check:
    if spec.exact:
        return Simple("exact", lambda text, item: text.strip() == str(item.expected).strip())
    if spec.regex is not None:
        return Simple("regex", _regex(spec.regex, document))
    if spec.json_schema is not None:
        return Simple("jsonSchema", _schema(document.folder / spec.json_schema.file))
    if spec.numeric is not None:
        tolerance = spec.numeric
        return Simple("numeric", lambda text, item: near(text, item.expected, tolerance.absolute, tolerance.relative))
    if spec.similarity is not None:
        return Embedder(spec.similarity)
    assert spec.checker is not None  # the rules ask for one
    return UserChecker(Checker.of(spec.checker, document.folder))


def _regex(expression: str, document: TargetDocument) -> Callable[[str, Item], bool]:
    try:
        fixed = re.compile(expression.replace("{expected}", "x"))
    except re.error as problem:
        place = document.place("quality.regex")
        raise InputError(f"is no regular expression: {problem}", kind="bad_regex", place=place) from None
    if "{expected}" not in expression:
        return lambda text, item: fixed.search(text) is not None
    return lambda text, item: (
        re.search(expression.replace("{expected}", re.escape(str(item.expected))), text) is not None
    )


def _schema(path: Path) -> Callable[[str, Item], bool]:
    import jsonschema

    place = Place(file=str(path))
    try:
        schema = json.loads(path.read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator.check_schema(schema)
    except FileNotFoundError:
        raise InputError("no such file", kind="no_file", place=place) from None
    except (ValueError, jsonschema.SchemaError) as problem:
        message = f"is no JSON Schema: {getattr(problem, 'message', problem)}"
        raise InputError(message, kind="bad_schema", place=place) from None
    validator = jsonschema.Draft202012Validator(schema)

    def follows(text: str, item: Item) -> bool:
        try:
            return bool(validator.is_valid(json.loads(text)))
        except json.JSONDecodeError:
            return False

    return follows


def near(text: str, expected: Any, absolute: float, relative: float) -> bool:
    """Whether the last number in a text is near the expected one.

    >>> near("so it is 1,204.5 in all.", 1204, 1.0, 0.0), near("none", 1, 1.0, 0.0)
    (True, False)
    """
    found = _NUMBER.findall(text)
    try:
        value, wanted = float(found[-1].replace(",", "")), float(expected)
    except (IndexError, ValueError, TypeError):
        return False
    return abs(value - wanted) <= max(absolute, relative * abs(wanted))


def answer_text(body: str, pointer: str) -> str:
    """What a JSON pointer names in a body; the whole body without one, nothing where it names nothing (RFC 6901).

    >>> answer_text('{"lines": [{"text": "42"}]}', "/lines/0/text"), answer_text("42", "")
    ('42', '42')
    """
    if not pointer:
        return body
    try:
        value = json.loads(body)
        for part in pointer[1:].split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            value = value[int(name)] if isinstance(value, list) else value[name]
    except (ValueError, KeyError, IndexError, TypeError):
        return ""
    return value if isinstance(value, str) else json.dumps(value)
