"""Quantity names and the only conversions between a document's text and a number with a unit.

Suffixes used on every bare number that crosses a function: ``_s`` seconds, ``_h`` hours, ``_rps`` requests per
second, ``_gpus``, ``_usd_per_gpu_h``. What belongs here: durations as text. What doesn't: clock times and zones
(``fleet.horizon``), rendering for people (``cli``, ``web``).
"""

from __future__ import annotations

import re

SECONDS_PER_HOUR = 3600.0
DAY_S = 86_400.0
_UNIT_S = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|[dhms])")


def parse_duration_s(text: str) -> float:
    """Seconds in a duration such as ``95s``, ``20m``, ``1h30m`` (``m`` is minutes).

    Raises ``ValueError`` where the text is not a sequence of numbers with units, largest unit first.

    >>> parse_duration_s("1h30m"), parse_duration_s("250ms"), parse_duration_s("700ms")
    (5400.0, 0.25, 0.7)
    """
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"not a duration: {text!r}; write a number with a unit, such as 95s, 20m or 1h30m")
    sizes = [_UNIT_S[unit] for _, unit in parts]
    if sizes != sorted(set(sizes), reverse=True):
        raise ValueError(f"not a duration: {text!r}; each unit once, the largest first, such as 1h30m")
    # Divided, not multiplied by a thousandth, which is no double: 700ms and 0.7s are the same number.
    return float(sum(float(n) / 1000.0 if unit == "ms" else float(n) * _UNIT_S[unit] for n, unit in parts))


def format_duration(seconds: float) -> str:
    """The shortest text that ``parse_duration_s`` reads back as the same number, minutes and hours where whole.

    >>> format_duration(5400), format_duration(95 * 60), format_duration(95), format_duration(0), format_duration(0.25)
    ('1h30m', '1h35m', '95s', '0s', '250ms')
    """
    if seconds < 0:
        raise ValueError(f"a duration is never negative: {seconds}")
    if seconds != int(seconds):
        millis = seconds * 1000.0
        return f"{millis:.0f}ms" if millis == int(millis) else f"{seconds!r}s"
    whole = int(seconds)
    if whole % 60 or whole == 0:
        return f"{whole}s"
    hours, minutes = divmod(whole // 60, 60)
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if minutes else "")
