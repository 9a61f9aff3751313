"""Every exception that ebbtide raises on purpose, split by whose fault it is.

::

    EbbtideError
    ├── InputError            the user's file or argument: exit 2, nothing written
    │   ├── DocumentError     a YAML document: unknown field, wrong type, a rule between fields
    │   └── DemandError       a demand source: columns, times, rates, empty or damaged files
    ├── WorldError            the outside: exit 4
    │   ├── TemporaryError    worth trying again
    │   └── PermanentError    refused: permission, a missing object
    └── (anything else is a bug: exit 70)

A wish that the fleet cannot meet is no exception: it is an answer, a plan with shortages, exit 3.

A message says what is wrong, where, both sides of the conflict, and the next step. What belongs here: the tree and
how an error reads. What doesn't: exit codes (``cli``) and the checks themselves (the rooms that own the rule).
"""

from __future__ import annotations

from dataclasses import dataclass


def one_line(text: str) -> str:
    """The text with everything that a terminal would obey escaped: what a user's file holds can't forge a message.

    >>> print(one_line("a" + chr(10) + "b.yaml: fine" + chr(27)))
    a\\nb.yaml: fine\\x1b
    """
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in the user's input: any part may be unknown.

    >>> str(Place(file="fleet.yaml", line=12, field="pools[h100].nodes"))
    'fleet.yaml:12: pools[h100].nodes'
    """

    file: str | None = None
    line: int | None = None
    field: str | None = None

    def __str__(self) -> str:
        file_line = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        return one_line(": ".join(part for part in (file_line, self.field) if part))


class EbbtideError(Exception):
    """Root of the tree. ``kind`` is a stable snake_case word for scripts; ``hint`` is the next step, if one is known.

    ``nearest`` is the hint where it is the known word closest to a misspelt one: scripts get the bare word.

    >>> str(InputError("zero rows", kind="no_rows", place=Place(file="a.csv"), hint="check the export"))
    'a.csv: zero rows; check the export'
    >>> error = InputError("unknown pool", kind="unknown_pool", nearest="h100")
    >>> str(error), error.hint
    ('unknown pool; nearest: h100', 'h100')
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str,
        place: Place | None = None,
        hint: str | None = None,
        nearest: str | None = None,
    ) -> None:
        self.message = message
        self.kind = kind
        self.place = place if place is not None else Place()
        self.hint = hint if hint is not None else nearest
        self.next_step = hint if hint is not None or nearest is None else f"nearest: {nearest}"
        super().__init__(message)

    def __str__(self) -> str:
        where = str(self.place)
        text = f"{where}: {self.message}" if where else self.message
        return one_line(f"{text}; {self.next_step}" if self.next_step else text)


class InputError(EbbtideError):
    """The user's file or argument is wrong; nothing was written."""


class DocumentError(InputError):
    """A Fleet or Schedule document does not follow its schema or a rule between its fields."""


class DemandError(InputError):
    """A demand source cannot be read as demand."""


class WorldError(EbbtideError):
    """Network, permission or a service outside failed."""


class TemporaryError(WorldError):
    """Trying again may help."""


class PermanentError(WorldError):
    """Trying again will not help: a permission or an object is missing."""
