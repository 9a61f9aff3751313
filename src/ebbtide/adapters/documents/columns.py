"""Long columns of numbers, taken out of a text before YAML is parsed and put back as lists.

The pure-Python YAML scanner reads some 75 kB a second; a Schedule of 1.4 MB is nearly all flow lists of plain numbers
and durations. Such a list on one line is replaced by one private-use scalar before scanning. Whatever turns out to be
no value by itself (a part of a quoted text, of a comment, of a longer plain scalar) is put back letter by letter, so
the values read are the same with and without this step.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_OPEN, _CLOSE = "\ue0eb", "\ue0ec"
_WORD = r"(?:[0-9][0-9.a-z]*|null|unstable|target|floor|minimum|maximum|gain|shortage)"
_COLUMN = re.compile(rf"\[({_WORD}(?:, ?{_WORD}){{7,}})\]")
_PLACEHOLDER = re.compile(f"{_OPEN}([0-9]+){_CLOSE}")


@dataclass(frozen=True, slots=True)
class Columns:
    """A text with its long columns cut out; ``cuts`` are the columns' own texts without brackets."""

    text: str
    cuts: tuple[str, ...]

    @classmethod
    def cut(cls, text: str) -> Columns:
        """Cut every flow list of eight and more plain numbers, durations or column words.

        >>> Columns.cut("a: [1, 2, 3, 4, 5, 6, 7, 8]").column(Columns.cut("a: [1,2,3,4,5,6,7,8]").text[3:])
        ['1', '2', '3', '4', '5', '6', '7', '8']
        """
        if _OPEN in text or _CLOSE in text:
            return cls(text, ())
        cuts: list[str] = []

        def replace(match: re.Match[str]) -> str:
            cuts.append(match[1])
            return f"{_OPEN}{len(cuts) - 1}{_CLOSE}"

        return cls(_COLUMN.sub(replace, text), tuple(cuts))

    def column(self, scalar: str) -> list[str] | None:
        """The words of the column that a plain scalar stands for, None where it stands for itself."""
        if not self.cuts or not (match := _PLACEHOLDER.fullmatch(scalar)):
            return None
        return [word.strip() for word in self.cuts[int(match[1])].split(",")]

    def restore(self, scalar: str) -> str:
        """The scalar's own text, with every column in it put back."""
        if not self.cuts:
            return scalar
        return _PLACEHOLDER.sub(lambda match: f"[{self.cuts[int(match[1])]}]", scalar)
