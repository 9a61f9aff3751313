"""YAML 1.2 text → plain values with the line of every field; what is no plain document is refused by name.

What belongs here: UTF-8, size, depth and alias bounds, tags, duplicate keys, the core schema's scalars. What doesn't:
which fields there are (the models) and rules between them.

Scalars are resolved here by YAML 1.2's core schema (YAML 1.2.2, §10.3.2), not by a loader: ``10:00`` stays text,
``yes`` stays text, a date stays text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.reader import ReaderError

from ebbtide.adapters.documents.columns import Columns

MAX_BYTES = 4_000_000  # a Schedule is refused above 1.4 MB when written; a reader allows for comments and spaces
MAX_DEPTH = 24  # the deepest field of any document has 8 levels
MAX_ALIASES = 200
MAX_EXPANDED = 400_000  # values after aliases: 2,000 workloads of 50 values are 100,000

Path = tuple[str | int, ...]
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}


class YamlRefusedError(Exception):
    """The text is no document: ``kind``, ``line`` (from 1) and, where known, the path of the field."""

    def __init__(self, message: str, *, kind: str, line: int | None = None, hint: str | None = None) -> None:
        self.message, self.kind, self.line, self.hint = message, kind, line, hint
        super().__init__(message)


@dataclass(slots=True)
class Tree:
    """A document's values, and the line of each map key and list item; ``duplicates`` are (path, line, first line)."""

    data: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    duplicates: list[tuple[Path, int, int]] = field(default_factory=list)

    def line_of(self, path: Path) -> int | None:
        """The line of a field, or of the nearest thing around it that is written down."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.lines:
                return self.lines[path[:end]]
        return None


def decode(content: bytes) -> str:
    """The text of a document's bytes; ``YamlRefusedError`` where they are too many or no UTF-8."""
    if len(content) > MAX_BYTES:
        raise YamlRefusedError(f"{len(content):,} bytes; a document has at most {MAX_BYTES:,}", kind="too_large")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        raise YamlRefusedError(
            f"byte {problem.start} is not UTF-8", kind="not_utf8", line=line, hint="save the file as UTF-8"
        ) from problem


def parse(text: str) -> Tree:
    """The one document in a text; ``YamlRefusedError`` where there is none, more than one, or it breaks a bound.

    >>> tree = parse("spec:\\n  starts: [10:00, 7]\\n")
    >>> tree.data, tree.lines[("spec", "starts")]
    ({'spec': {'starts': ['10:00', 7]}}, 2)
    """
    columns = Columns.cut(text)
    try:
        return _Builder(YAML(typ="safe", pure=True).parse(columns.text), columns).document()
    except MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        said = " ".join(part for part in (problem.context, problem.problem) if part)
        raise YamlRefusedError(f"not YAML: {said}", kind="not_yaml", line=mark.line + 1 if mark else None) from problem
    except ReaderError as problem:
        line = text.count("\n", 0, problem.position) + 1
        raise YamlRefusedError(f"not YAML: {_first_line(problem)}", kind="not_yaml", line=line) from problem
    except (YAMLError, ArithmeticError, ValueError, TypeError, LookupError, AttributeError) as problem:
        # The scanner meets some damaged texts with bare Python errors (an escape's number beyond Unicode).
        raise YamlRefusedError(f"not YAML: {_first_line(problem)}", kind="not_yaml") from problem


def _first_line(problem: Exception) -> str:
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0]


def resolve(text: str) -> Any:
    """A plain scalar's value by the core schema.

    >>> [resolve(word) for word in ("12", "1e3", "yes", "10:00", "", "0x10")]
    [12, 1000.0, 'yes', '10:00', None, 16]
    """
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        # Beyond 18 digits no field has a use for the exact number, and Python refuses to read 4,300.
        return _integer(text) if len(text) <= 18 else math.copysign(math.inf, -1 if text[0] == "-" else 1)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


def _integer(text: str) -> int:
    return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))


class _Builder:
    """Turns parse events into a tree; counts what aliases would expand to."""

    def __init__(self, events: Iterator[Event], columns: Columns) -> None:
        self.events = events
        self.columns = columns
        self.tree = Tree()
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.aliases = 0

    def document(self) -> Tree:
        starts = 0
        for event in self.events:
            if isinstance(event, DocumentStartEvent):
                starts += 1
                self._check_start(event, starts)
            elif isinstance(event, (ScalarEvent, MappingStartEvent, SequenceStartEvent, AliasEvent)):
                self.tree.lines[()] = _line(event)
                self.tree.data = self._value(event, ())[0]
        if starts == 0 or self.tree.data is None:
            raise YamlRefusedError("empty: there is no document in it", kind="empty_file")
        return self.tree

    @staticmethod
    def _check_start(event: DocumentStartEvent, starts: int) -> None:
        if starts > 1:
            raise YamlRefusedError(
                "a second document begins here; a file holds one",
                kind="multiple_documents",
                line=_line(event),
                hint="write each to its own file",
            )
        version = tuple(event.version) if event.version else (1, 2)
        if event.tags or version != (1, 2):
            raise YamlRefusedError("a YAML directive; documents are plain YAML 1.2", kind="yaml_directive", line=1)

    def _value(self, event: Event, path: Path) -> tuple[Any, int]:
        """The value that begins with an event, and how many values it holds once aliases are followed."""
        if isinstance(event, AliasEvent):
            return self._alias(event)
        assert isinstance(event, (ScalarEvent, CollectionStartEvent))  # inside a document the parser emits nothing else
        if event.tag is not None:
            raise YamlRefusedError(f"has the YAML tag {event.tag}; remove it", kind="yaml_tag", line=_line(event))
        if len(path) > MAX_DEPTH:
            raise YamlRefusedError(f"nested deeper than {MAX_DEPTH} levels", kind="too_deep", line=_line(event))
        value, size = self._bare(event, path)
        if event.anchor is not None:
            if len(self.anchors) >= MAX_ALIASES:
                raise YamlRefusedError(f"more than {MAX_ALIASES} anchors", kind="alias_bomb", line=_line(event))
            self.anchors[event.anchor] = (value, size)
        return value, size

    def _alias(self, event: AliasEvent) -> tuple[Any, int]:
        self.aliases += 1
        if event.anchor not in self.anchors:
            raise YamlRefusedError(f"*{event.anchor} stands for nothing", kind="unknown_alias", line=_line(event))
        if self.aliases > MAX_ALIASES:
            raise YamlRefusedError(f"more than {MAX_ALIASES} aliases", kind="alias_bomb", line=_line(event))
        return self.anchors[event.anchor]

    def _bare(self, event: Event, path: Path) -> tuple[Any, int]:
        if isinstance(event, ScalarEvent):
            return self._scalar(event)
        if isinstance(event, SequenceStartEvent):
            return self._list(path)
        return self._map(path)

    def _scalar(self, event: ScalarEvent) -> tuple[Any, int]:
        if event.style is not None and event.style != "":
            return self.columns.restore(event.value), 1
        column = self.columns.column(event.value)
        if column is not None:
            values = [resolve(word) for word in column]
            return values, len(values) + 1
        return resolve(self.columns.restore(event.value)), 1

    def _list(self, path: Path) -> tuple[list[Any], int]:
        values: list[Any] = []
        total = 1
        while not isinstance(event := next(self.events), SequenceEndEvent):
            here = (*path, len(values))
            self.tree.lines[here] = _line(event)
            value, size = self._value(event, here)
            values.append(value)
            total = _bounded(total + size, event)
        return values, total

    def _map(self, path: Path) -> tuple[dict[str, Any], int]:
        values: dict[str, Any] = {}
        total = 1
        while not isinstance(event := next(self.events), MappingEndEvent):
            key = self._key(event)
            here = (*path, key)
            if key in values:
                self.tree.duplicates.append((here, _line(event), self.tree.lines[here]))
            self.tree.lines[here] = _line(event)
            values[key], size = self._value(next(self.events), here)
            total = _bounded(total + size, event)
        return values, total

    def _key(self, event: Event) -> str:
        if isinstance(event, ScalarEvent) and event.tag is None:
            return self.columns.restore(str(event.value))
        raise YamlRefusedError("a field's name is text, no list, map, alias or tag", kind="bad_key", line=_line(event))


def _bounded(total: int, event: Event) -> int:
    if total > MAX_EXPANDED:
        raise YamlRefusedError(f"more than {MAX_EXPANDED:,} values", kind="alias_bomb", line=_line(event))
    return total


def _line(event: Event) -> int:
    return int(event.start_mark.line) + 1
