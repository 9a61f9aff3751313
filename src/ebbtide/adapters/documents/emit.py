"""Plain values → YAML text in the compact style of ebbtide's documents.

What belongs here: quoting, figures of few digits, maps and lists on one line where they fit. What doesn't: which
fields a document has. Everything written here means the same to YAML 1.1 readers (kubectl) as to 1.2.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

WIDTH = 150  # a dated window with all its days still fits
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9/_.+-]*|[0-9]+(\.[0-9]+)?(ms|[dhms])([0-9]+(ms|[hms]))*")
_TAKEN = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})  # words to YAML 1.1
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")


def significant(value: float, digits: int) -> float:
    """Rounded to so many significant digits; what is no finite number stays.

    >>> significant(0.012345, 3), significant(1221.4, 3), significant(math.inf, 3)
    (0.0123, 1220.0, inf)
    """
    return float(f"{value:.{digits - 1}e}") if math.isfinite(value) else value


def rounded_down(value: float, digits: int) -> float:
    """The largest number of so many significant digits that is not above the value (at least 0).

    >>> rounded_down(393.9, 3), rounded_down(39390.0, 3), rounded_down(0.0, 3)
    (393.0, 39300.0, 0.0)
    """
    near = significant(value, digits)
    if near <= value or near <= 0:
        return near
    step = 10.0 ** (math.floor(math.log10(near)) - digits + 1)
    return significant(near - step, digits)


def number_text(value: float) -> str:
    """A finite number without an exponent, so that every YAML reads it as a number.

    >>> number_text(1220.0), number_text(0.00005), number_text(0.25)
    ('1220', '0.00005', '0.25')
    """
    if value == int(value):
        return str(int(value))
    text = repr(value)
    return f"{value:.15f}".rstrip("0").rstrip(".") if "e" in text else text


@lru_cache(maxsize=65_536, typed=True)  # columns repeat their numbers of three digits; typed: True is not 1
def scalar(value: Any) -> str:
    """One value on its own.

    >>> scalar("chat"), scalar("09:00"), scalar("no"), scalar("1h30m"), scalar(None), scalar(True)
    ('chat', '"09:00"', '"no"', '1h30m', 'null', 'true')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return number_text(value)
    text = str(value)
    return text if _PLAIN.fullmatch(text) and text.lower() not in _TAKEN else _quoted(text)


def _quoted(text: str) -> str:
    # JSON's escapes are YAML's too; surrogate pairs are not, so only what YAML can't print is escaped.
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))


def flow(value: Any, *, tight: bool = False) -> str:
    """A value on one line; ``tight`` leaves out spaces between the scalars of a list.

    >>> flow({"name": "chat", "replicas": [1, 2]})
    '{name: chat, replicas: [1, 2]}'
    """
    if isinstance(value, dict):  # plain values only: an abstract Mapping would cost a second per million numbers
        return "{" + ", ".join(f"{key}: {flow(item, tight=tight)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ("," if tight else ", ").join(flow(item, tight=tight) for item in value) + "]"
    return scalar(value)


def block(value: Mapping[str, Any], *, open_keys: frozenset[str], tight: bool = False) -> str:
    """A map as lines: each entry on one line where it fits ``WIDTH``, lists of maps as lists of lines.

    ``open_keys`` are maps that are never written on one line.
    """
    return "\n".join(_entries(value, "", open_keys, tight)) + "\n"


def _entries(value: Mapping[str, Any], indent: str, open_keys: frozenset[str], tight: bool) -> list[str]:
    lines: list[str] = []
    for key, item in value.items():
        head = f"{indent}{key}:"
        if _of_maps(item):
            lines.append(head)
            for element in item:
                lines += _item(element, indent, open_keys, tight)
        elif isinstance(item, Mapping) and (key in open_keys or _too_wide(head, item, tight)):
            lines += [head, *_entries(item, indent + "  ", open_keys, tight)]
        else:
            lines.append(f"{head} {flow(item, tight=tight)}")
    return lines


def _item(element: Mapping[str, Any], indent: str, open_keys: frozenset[str], tight: bool) -> list[str]:
    head = f"{indent}-"
    if not _too_wide(head, element, tight):
        return [f"{head} {flow(element, tight=tight)}"]
    first, *rest = _entries(element, indent + "  ", open_keys, tight)
    return [f"{head} {first.lstrip()}", *rest]


def _too_wide(head: str, item: Mapping[str, Any], tight: bool) -> bool:
    nested = any(_of_maps(value) and len(value) > 1 for value in item.values())
    return nested or len(head) + 1 + len(flow(item, tight=tight)) > WIDTH


def _of_maps(item: Any) -> bool:
    return isinstance(item, Sequence) and not isinstance(item, str) and len(item) > 0 and isinstance(item[0], Mapping)
