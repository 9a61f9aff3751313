"""Plain text in columns: the least that a table of a plan needs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 80  # wider, a line of a table is hard to follow with the eye
NARROWEST = 60  # narrower, single columns of figures would no longer stand beside their labels
_NAME_WIDTH = 30


def terminal_width() -> int:
    """Columns to write in: those of the terminal (``COLUMNS`` wins), between 60 and 80; 80 where there is none."""
    return min(max(shutil.get_terminal_size((WIDTH, 24)).columns, NARROWEST), WIDTH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A heading and its cells; ``gap`` spaces stand before it; ``left`` aligns to the left."""

    heading: str
    cells: tuple[str, ...]
    gap: int = 1
    left: bool = False

    @property
    def width(self) -> int:
        """Characters of its widest cell."""
        return max(len(text) for text in (self.heading, *self.cells))

    def line(self, index: int) -> str:
        """One cell in place, its gap before it; ``index`` −1 is the heading."""
        text = self.heading if index < 0 else self.cells[index]
        return " " * self.gap + (text.ljust(self.width) if self.left else text.rjust(self.width))


def total_width(columns: Sequence[Column]) -> int:
    """Characters of a line that holds all the columns.

    >>> total_width([Column(heading="A", cells=("12",), gap=0), Column(heading="PROD", cells=("7",), gap=2)])
    8
    """
    return sum(column.gap + column.width for column in columns)


def lines_of(columns: Sequence[Column]) -> list[str]:
    """The heading line and a line per cell, no spaces at the end.

    >>> lines_of([Column(heading="A", cells=("x",), gap=0, left=True), Column(heading="PROD", cells=("7",), gap=2)])
    ['A  PROD', 'x     7']
    """
    count = len(columns[0].cells)
    return ["".join(column.line(index) for column in columns).rstrip() for index in range(-1, count)]


def elided(names: Sequence[str], width: int = _NAME_WIDTH) -> tuple[str, ...]:
    """Names no longer than ``width``, cut in the middle; all whole where a cut would make two of them alike.

    >>> elided(["a" * 20 + "-eu", "short"], 12)
    ('aaaaaa…aa-eu', 'short')
    """
    tail = (width - 1) // 2
    cut = [name if len(name) <= width else name[: width - 1 - tail] + "…" + name[-tail:] for name in names]
    return tuple(cut) if len(set(cut)) == len(set(names)) else tuple(names)


def filled(text: str, width: int = WIDTH) -> list[str]:
    """The text in lines of at most ``width``, broken at spaces, later lines indented by two; a long word is left whole.

    >>> filled("one two three", 8)
    ['one two', '  three']
    """
    lines = [""]
    for word in re.split(" (?!%)", text):  # "35 %" stays together
        joined = f"{lines[-1]} {word}" if lines[-1].strip() else lines[-1] + word
        if len(joined) <= width or not lines[-1].strip():
            lines[-1] = joined
        else:
            lines.append(f"  {word}")
    return lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Paint:
    """ANSI styles, or nothing at all where colour is not wanted."""

    colour: bool

    def bold(self, text: str) -> str:
        """Bold text."""
        return f"\x1b[1m{text}\x1b[0m" if self.colour and text else text

    def faint(self, text: str) -> str:
        """Faint text."""
        return f"\x1b[2m{text}\x1b[0m" if self.colour and text else text

    def alarm(self, text: str) -> str:
        """Bold red: a target that is missed."""
        return f"\x1b[1;31m{text}\x1b[0m" if self.colour and text else text
