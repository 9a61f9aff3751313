"""The kinds of value that documents hold: durations, clock times, dates, zones, names; each reads its text.

What belongs here: one annotated type per kind, with its error and its JSON Schema. What doesn't: which field has
which kind (the models).
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal

from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError
from whenever import Date, OffsetDateTime, PlainDateTime, Time, TimeZoneNotFoundError, ZonedDateTime

from ebbtide.fleet.horizon import clock
from ebbtide.units import format_duration, parse_duration_s

MAX_DURATION_S = 366 * 86_400.0
UNLIMITED = "unlimited"
UNSTABLE = "unstable"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_DURATION_SCHEMA = {"type": "string", "pattern": r"^([0-9]+(\.[0-9]+)?(ms|d|h|m|s))+$", "examples": ["95s", "1h30m"]}


def refused(kind: str, message: str) -> PydanticCustomError:
    """A validation error whose ``kind`` becomes the document error's."""
    return PydanticCustomError(kind, "{message}", {"message": message})


def shown(value: Any) -> str:
    """A value as a message names it, cut where it is long.

    >>> shown("10"), shown(None), shown(True), shown([1]), shown(0.5)
    ('the text "10"', 'empty', 'true', 'a list', '0.5')
    """
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "a map"
    if isinstance(value, str):
        return f'the text "{value if len(value) <= 60 else value[:57] + "..."}"'
    return f"{value:g}" if isinstance(value, float) else str(value)


def refuse_infinite(value: Any) -> None:
    """``not_finite`` for the numbers that YAML writes ``.inf`` and ``.nan``."""
    if isinstance(value, float) and not math.isfinite(value):
        raise refused("not_finite", f"is {shown(value)}; must be finite")


def text_of(value: Any, what: str) -> str:
    """The value if it is text; ``wrong_type`` otherwise, saying ``what`` is needed."""
    if not isinstance(value, str):
        raise refused("wrong_type", f"is {shown(value)}, but {what} is needed")
    return value


def _duration(value: Any) -> float:
    refuse_infinite(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise refused("bad_duration", f"is {shown(value)}: it needs a unit, such as {shown(value)}s or {shown(value)}m")
    text = text_of(value, "a duration with a unit, such as 95s, 20m or 1h30m,")
    try:
        seconds = parse_duration_s(text)
    except ValueError:
        raise refused(
            "bad_duration", f"is {shown(text)}: no duration; write numbers with units, as in 95s, 20m or 1h30m"
        ) from None
    if not seconds <= MAX_DURATION_S:
        raise refused("out_of_range", f"is {shown(text)}; at most 366d")
    return seconds


def _positive_duration(value: Any) -> float:
    seconds = _duration(value)
    if seconds <= 0:
        raise refused("out_of_range", f"is {shown(value)}; must be above 0s")
    return seconds


def _whole_seconds(value: Any) -> float:
    seconds = _positive_duration(value)
    if seconds != int(seconds):
        raise refused("out_of_range", f"is {shown(value)}; must be whole seconds")
    return seconds


def _patience(value: Any) -> float:
    return math.inf if value == UNLIMITED else _positive_duration(value)


def _wait(value: Any) -> float:
    return math.inf if value == UNSTABLE else _duration(value)


def duration_text(seconds: float) -> str:
    """A duration's canonical text: ``1h30m`` and ``90m`` are the same.

    >>> duration_text(5400.0), duration_text(0.00002), duration_text(0.0125)
    ('1h30m', '0.00002s', '0.0125s')
    """
    text = format_duration(seconds)
    return f"{seconds:.12f}".rstrip("0") + "s" if "e" in text else text


def _observed_wait(value: Any) -> float:
    return math.nan if value is None else _wait(value)


def _patience_text(seconds: float) -> str:
    return UNLIMITED if math.isinf(seconds) else duration_text(seconds)


def _wait_text(seconds: float) -> str:
    return UNSTABLE if math.isinf(seconds) else duration_text(seconds)


def _observed_wait_text(seconds: float) -> str | None:
    return None if math.isnan(seconds) else _wait_text(seconds)


def parse_clock(value: Any) -> Time:
    """``"07:30"`` as a time; refused with both hours and minutes in two digits or not at all."""
    text = text_of(value, 'a clock time as quoted text, such as "07:30",')
    if not _CLOCK.fullmatch(text):
        raise refused("bad_clock_time", f'is {shown(text)}: no clock time; write two digits each, such as "07:30"')
    return Time.parse_iso(f"{text}:00")


def _date(value: Any) -> Date:
    text = text_of(value, 'a date, such as "2026-10-01",')
    try:
        if len(text) != 10:
            raise ValueError(text)
        return Date.parse_iso(text)
    except ValueError:
        raise refused("bad_date", f'is {shown(text)}: no date; write "2026-10-01"') from None


def _instant(value: Any) -> OffsetDateTime:
    text = text_of(value, 'an instant with its offset, such as "2026-09-29T00:00:00+08:00",')
    try:
        return OffsetDateTime.parse_iso(text)
    except ValueError:
        raise refused(
            "bad_instant", f'is {shown(text)}: no instant; write "2026-09-29T00:00:00+08:00", offset included'
        ) from None


def _wall_clock(value: Any) -> str:
    text = text_of(value, 'a wall-clock instant, such as "2026-09-01T00:00",')
    try:
        PlainDateTime.parse_iso(text)
    except ValueError:
        raise refused("bad_instant", f'is {shown(text)}: no wall-clock instant; write "2026-09-01T00:00"') from None
    return text


def known_zone(name: str) -> bool:
    """Whether the machine's time zone database holds that IANA name.

    >>> known_zone("Asia/Shanghai"), known_zone("Asia/Shangai")
    (True, False)
    """
    try:
        ZonedDateTime(2026, 1, 1, tz=name)
    except (TimeZoneNotFoundError, ValueError, OSError):
        return False
    return True


def _time_zone(value: Any) -> str:
    text = text_of(value, "an IANA time zone, such as Europe/Berlin,")
    if not known_zone(text):
        raise refused("unknown_time_zone", f"is {shown(text)}: no time zone of the IANA database")
    return text


def _label(value: Any) -> str:
    text = text_of(value, "a name")
    if not _LABEL.fullmatch(text):
        raise refused(
            "bad_name",
            f"is {shown(text)}: no DNS label; use at most 63 of a-z, 0-9 and -, with a letter or digit at both ends",
        )
    return text


def _percentile(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise refused("wrong_type", f"is {shown(value)}, but a number between 0 and 1 is needed")
    refuse_infinite(value)
    if not 0 < value < 1:
        as_share = f"; write {value / 100:g} for P{value:g}" if 1 < value < 100 else ""
        raise refused("out_of_range", f"is {shown(value)}; must be above 0 and below 1{as_share}")
    return float(value)


def _schema(pattern: str, example: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern, "examples": [example]})


_CLOCK_SCHEMA = _schema("^([01][0-9]|2[0-3]):[0-5][0-9]$", "07:30")
_LABEL_SCHEMA = WithJsonSchema({"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", "maxLength": 63})

Duration = Annotated[float, PlainValidator(_duration), PlainSerializer(duration_text), WithJsonSchema(_DURATION_SCHEMA)]
PositiveDuration = Annotated[
    float, PlainValidator(_positive_duration), PlainSerializer(duration_text), WithJsonSchema(_DURATION_SCHEMA)
]
WholeSeconds = Annotated[
    float, PlainValidator(_whole_seconds), PlainSerializer(duration_text), WithJsonSchema(_DURATION_SCHEMA)
]
Patience = Annotated[
    float,
    PlainValidator(_patience),
    PlainSerializer(_patience_text),
    WithJsonSchema({"anyOf": [_DURATION_SCHEMA, {"const": UNLIMITED}]}),
]
Wait = Annotated[
    float,
    PlainValidator(_wait),
    PlainSerializer(_wait_text),
    WithJsonSchema({"anyOf": [_DURATION_SCHEMA, {"const": UNSTABLE}]}),
]
# NaN is a wait that was not observed: null.
ObservedWait = Annotated[
    float,
    PlainValidator(_observed_wait),
    PlainSerializer(_observed_wait_text),
    WithJsonSchema({"anyOf": [_DURATION_SCHEMA, {"const": UNSTABLE}, {"type": "null"}]}),
]
ClockTime = Annotated[Time, PlainValidator(parse_clock), PlainSerializer(clock), _CLOCK_SCHEMA]
DateText = Annotated[
    Date, PlainValidator(_date), PlainSerializer(str), _schema("^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "2026-10-01")
]
Instant = Annotated[
    OffsetDateTime,
    PlainValidator(_instant),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-09-29T00:00:00+08:00"]}),
]
WallClock = Annotated[
    str,
    PlainValidator(_wall_clock),
    WithJsonSchema({"type": "string", "maxLength": 32, "examples": ["2026-09-01T00:00"]}),
]
TimeZone = Annotated[
    str, PlainValidator(_time_zone), WithJsonSchema({"type": "string", "maxLength": 64, "examples": ["Asia/Shanghai"]})
]
Label = Annotated[str, PlainValidator(_label), _LABEL_SCHEMA]
Percentile = Annotated[
    float,
    PlainValidator(_percentile),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}),
]
Share = Annotated[float, Field(ge=0, le=1)]
Day = Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
