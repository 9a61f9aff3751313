"""Instants and durations as text that is read back as the very same number: what the controller remembers.

Instants are RFC 3339 in UTC with as many digits as the number has. Exact from one second after the epoch on; nearer
to it digits beyond 1e-20 s are lost.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema
from whenever import Instant as Moment

from ebbtide.adapters.documents.quantities import duration_text, refused, shown, text_of
from ebbtide.units import parse_duration_s

_DIGITS = 20
_FORM = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]{1,20})?Z")
_LONGEST_S = 1e10
_SHORTEST_S = 1e-9  # the difference of two instants of today is a multiple of 2e-7 s


def instant_text(at_s: float) -> str:
    """Seconds since the epoch as RFC 3339 text. ``ValueError`` for what is no instant of a calendar.

    >>> instant_text(1789012920.25), instant_text(0.0)
    ('2026-09-10T04:02:00.25Z', '1970-01-01T00:00:00Z')
    """
    if not math.isfinite(at_s):
        raise ValueError(f"no instant: {at_s}")
    whole = math.floor(at_s)
    rest = f"{Decimal(repr(at_s)) - whole:.{_DIGITS}f}".rstrip("0").removeprefix("0").rstrip(".")
    return Moment.from_timestamp(whole).format_iso().removesuffix("Z") + rest + "Z"


def instant_s(value: Any) -> float:
    """Seconds since the epoch of such a text; refused (``bad_instant``) where it has another form.

    >>> instant_s("2026-09-10T04:02:00.25Z")
    1789012920.25
    """
    text = text_of(value, 'an instant in UTC, such as "2026-09-10T04:02:00Z",')
    match = _FORM.fullmatch(text)
    try:
        if match is None:
            raise ValueError(text)
        whole = Moment.parse_iso(match[1] + "Z").timestamp()
    except ValueError:
        raise refused("bad_instant", f"is {shown(text)}: no instant; write 2026-09-10T04:02:00Z, in UTC") from None
    return float(whole + Decimal(f"0{match[2] or '.0'}"))


def exact_duration_text(seconds: float) -> str:
    """A duration that is read back as the same number; below a nanosecond it is none.

    >>> exact_duration_text(2700.0), exact_duration_text(123.457)
    ('45m', '123457ms')
    """
    if seconds < _SHORTEST_S:
        return "0s"
    text = duration_text(seconds)
    return text if parse_duration_s(text) == seconds else f"{Decimal(repr(seconds)):f}s"


def _duration(value: Any) -> float:
    text = text_of(value, "a duration with a unit, such as 95s,")
    try:
        seconds = parse_duration_s(text)
    except ValueError:
        raise refused("bad_duration", f"is {shown(text)}: no duration") from None
    if not seconds <= _LONGEST_S:
        raise refused("out_of_range", f"is {shown(text)}: three centuries and more")
    return seconds


ExactInstant = Annotated[
    float,
    PlainValidator(instant_s),
    PlainSerializer(instant_text),
    WithJsonSchema({"type": "string", "maxLength": 48, "pattern": r"^[0-9-]{10}T[0-9:]{8}([.][0-9]+)?Z$"}),
]
ExactDuration = Annotated[
    float,
    PlainValidator(_duration),
    PlainSerializer(exact_duration_text),
    WithJsonSchema({"type": "string", "maxLength": 48, "pattern": r"^([0-9]+(\.[0-9]+)?(ms|d|h|m|s))+$"}),
]
