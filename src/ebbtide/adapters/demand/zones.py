"""Time zones: from wall-clock seconds to instants, with the repeated and the missing hour told apart (§5.1)."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from whenever import Date, Instant, OffsetDateTime, PlainDateTime, TimeZoneNotFoundError, available_timezones

from ebbtide.errors import DemandError, Place

Ints = NDArray[np.int64]
# Two changes of a zone's offset are never closer than this: Ramadan's pause of summer time lasts a month.
_STEP_S = 86_400


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clock:
    """A zone's offsets from UTC over a span: ``offsets_s[i]`` holds before ``changes_s[i]``, the last one for good."""

    zone: str
    changes_s: Ints
    offsets_s: Ints

    def offset_at(self, utc_s: Ints) -> Ints:
        """The zone's offset from UTC at given instants, seconds."""
        return self.offsets_s[np.searchsorted(self.changes_s, utc_s, side="right")]

    def readings(self, local_s: Ints) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        """Both instants that wall-clock seconds can mean (equal unless the hour is repeated); where neither exists.

        >>> clock = clock_over("America/New_York", 1_414_800_000, 1_415_000_000)
        >>> earlier, later, missing = clock.readings(np.array([1_414_893_600]))  # 2014-11-02 02:00 on the wall
        >>> int(later[0] - earlier[0]), bool(missing[0])
        (0, False)
        """
        before, after = self.offsets_s[:-1], self.offsets_s[1:]
        back = after < before
        lows, highs = self.changes_s + np.minimum(before, after), self.changes_s + np.maximum(before, after)
        # Put back: [low, high) happens twice, first by the old offset. Put forward: [low, high) never happens.
        earlier = np.searchsorted(np.where(back, highs, lows), local_s, side="right")
        later = np.searchsorted(lows, local_s, side="right")
        change = np.minimum(later - 1, len(lows) - 1)
        inside = (later > 0) & (len(lows) > 0)
        missing = np.zeros(len(local_s), dtype=np.bool_)
        if len(lows):
            missing = inside & ~back[change] & (local_s < highs[change])
        return local_s - self.offsets_s[earlier], local_s - self.offsets_s[later], missing


def clock_over(zone: str, start_s: int, end_s: int) -> Clock:
    """The offsets of an IANA zone from a day before ``start_s`` to two days after ``end_s`` (UTC seconds)."""
    changes: list[int] = []
    at_s = start_s - _STEP_S
    offsets = [_offset_s(zone, at_s)]
    while at_s < end_s + 2 * _STEP_S:
        next_s = at_s + _STEP_S
        if (offset := _offset_s(zone, next_s)) != offsets[-1]:
            changes.append(_change_between(zone, at_s, next_s))
            offsets.append(offset)
        at_s = next_s
    return Clock(zone=zone, changes_s=np.array(changes, dtype=np.int64), offsets_s=np.array(offsets, dtype=np.int64))


def check_zone(zone: str, *, field: str) -> None:
    """Raise ``DemandError`` of kind ``unknown_time_zone`` (naming the nearest) unless the IANA zone exists."""
    try:
        Instant.from_timestamp(0).to_tz(zone)
    except (TimeZoneNotFoundError, ValueError) as error:
        near = difflib.get_close_matches(zone, sorted(available_timezones()), n=1, cutoff=0.5)
        hint = f"nearest: {near[0]}" if near else "write an IANA name such as Europe/Berlin"
        message = f"there is no time zone {zone[:60]!r}"
        raise DemandError(message, kind="unknown_time_zone", place=Place(field=field), hint=hint) from error


def origin_s(text: str, zone: str | None, *, source: str) -> int:
    """The instant of t = 0, seconds since the epoch: text with an offset, or wall-clock text in ``zone``.

    >>> origin_s("2026-09-01T00:00", "Asia/Shanghai", source="small")
    1788192000
    """
    place = Place(field=f"demand[{source}].origin")
    try:
        return int(OffsetDateTime.parse_iso(text).timestamp())
    except ValueError:
        pass
    try:
        wall = Date.parse_iso(text).at(_MIDNIGHT) if len(text) == len("2026-09-01") else PlainDateTime.parse_iso(text)
    except ValueError as error:
        hint = 'write it as "2026-09-01T00:00", or with an offset'
        raise DemandError(f"not a time: {text[:60]!r}", kind="bad_origin", place=place, hint=hint) from error
    if zone is None:
        message = f"{text} has no offset, and no time zone is named"
        hint = f"set demand[{source}].timeZone"
        raise DemandError(message, kind="zone_missing", place=place, hint=hint)
    check_zone(zone, field=f"demand[{source}].timeZone")
    try:
        return int(wall.assume_tz(zone, disambiguation="raise").timestamp())
    except ValueError as error:
        message = f"{text} happens twice or never in {zone}"
        raise DemandError(message, kind="bad_origin", place=place, hint="write it with an offset") from error


_MIDNIGHT = PlainDateTime(2000, 1, 1).time()


def _offset_s(zone: str, at_s: int) -> int:
    return int(Instant.from_timestamp(at_s).to_tz(zone).offset.total("seconds"))


def _change_between(zone: str, low_s: int, high_s: int) -> int:
    before = _offset_s(zone, low_s)
    while high_s - low_s > 1:
        middle = (low_s + high_s) // 2
        low_s, high_s = (middle, high_s) if _offset_s(zone, middle) == before else (low_s, middle)
    return high_s
