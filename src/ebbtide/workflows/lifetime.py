"""Whether a schedule is still of use when it is made, and which dated exceptions lie beyond its life."""

from __future__ import annotations

from whenever import OffsetDateTime

from ebbtide.fleet.fleet import Fleet


def lifetime_warnings(fleet: Fleet, *, made_at: OffsetDateTime, valid_until: OffsetDateTime) -> tuple[str, ...]:
    """A sentence where the schedule has ended before it was made, and one for every exception that begins after it."""
    last = valid_until.to_tz(fleet.time_zone).date()
    lines = [
        f"exception {one.name} begins on {one.start}, after the schedule ends on {last}: plan again with newer demand"
        for one in fleet.exceptions
        if one.start >= last
    ]
    if made_at > valid_until:
        lines.insert(0, f"valid until {last}, which is past: nothing is yielded after it; plan again with newer demand")
    return tuple(lines)
