"""What a job's owner says of it in annotations ``ebbtide.dev/…`` (DOCUMENTS §3), as values.

Annotations come in layers: the LocalQueue's are defaults, the owner's and the pod template's win. What does not parse
is never guessed at: the job waits, and is told which annotation and why.

What belongs here: reading texts. What doesn't: where they are written (``adapters.kubernetes.door``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from whenever import OffsetDateTime

from ebbtide.batch.durations import USUAL_SPREAD, Duration
from ebbtide.units import parse_duration_s

PREFIX = "ebbtide.dev/"
ASKED = (
    "duration",
    "duration-p90",
    "earliest-start",
    "deadline",
    "value-usd",
    "preemptible",
    "checkpoint-interval",
    "checkpointed-at",
)
OURS = ("planned-start", "planned-finish", "promise", "waits-for", "live-queue", "managed", "parked")
_INSTANT = "write an instant with its offset, such as 2026-09-29T08:00:00+08:00"
_DURATION = "write a duration above 0, such as 90m or 5h30m"


class BadWishError(ValueError):
    """An annotation that cannot be obeyed: which one, and why."""

    def __init__(self, annotation: str, text: str, why: str) -> None:
        super().__init__(f'{PREFIX}{annotation} is "{text}": {why}')
        self.annotation = annotation


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What was asked for. ``duration`` None: nobody said how long it runs. Instants: seconds since the epoch.

    ``checkpoint_interval_s`` None: it must not be interrupted.
    """

    duration: Duration | None = None
    earliest_start_s: float | None = None
    deadline_s: float | None = None
    value_usd: float = 0.0
    checkpoint_interval_s: float | None = None


def read_wishes(said: Mapping[str, str], *, created_s: float, checkpoint_interval_s: float) -> Wishes:
    """The wishes in annotations (all of them, ours and others' are skipped); raises ``BadWishError``.

    ``created_s``: when the job was submitted; a deadline given as a duration counts from its earliest start, or from
    then. ``checkpoint_interval_s``: the Fleet's, for work that says that it is preemptible and no interval.

    >>> said = {"ebbtide.dev/duration": "5h", "ebbtide.dev/deadline": "12h", "app": "x"}
    >>> found = read_wishes(said, created_s=0.0, checkpoint_interval_s=3600.0)
    >>> found.duration.p90_s / 3600, found.deadline_s / 3600, found.checkpoint_interval_s
    (6.5, 12.0, None)
    """
    own = {key.removeprefix(PREFIX): text for key, text in said.items() if key.startswith(PREFIX)}
    _known(own)
    earliest_s = _instant_s("earliest-start", own)
    deadline_s = _deadline_s(own, created_s if earliest_s is None else max(earliest_s, created_s))
    if deadline_s is not None and deadline_s <= created_s:
        raise BadWishError("deadline", own["deadline"], "it was over before the job was submitted; give a later one")
    return Wishes(
        duration=_duration(own),
        earliest_start_s=earliest_s,
        deadline_s=deadline_s,
        value_usd=_value_usd(own),
        checkpoint_interval_s=_checkpoint_s(own, checkpoint_interval_s),
    )


def _known(own: Mapping[str, str]) -> None:
    """A misspelt deadline would be no deadline; words of a newer ebbtide are left alone unless they look like one."""
    for name in own:
        if name not in ASKED and name not in OURS:
            near = get_close_matches(name, ASKED, n=1, cutoff=0.8)
            if near:
                raise BadWishError(name, own[name], f"no such annotation; nearest: {PREFIX}{near[0]}")


def _duration(own: Mapping[str, str]) -> Duration | None:
    expected_s, p90_s = _length_s("duration", own), _length_s("duration-p90", own)
    if expected_s is None and p90_s is None:
        return None
    if expected_s is None:
        assert p90_s is not None  # the one or the other
        return Duration(expected_s=p90_s / USUAL_SPREAD, p90_s=p90_s)
    if p90_s is None:
        return Duration.usual(expected_s)
    if p90_s < expected_s:
        raise BadWishError("duration-p90", own["duration-p90"], f"below {PREFIX}duration, {own['duration']}")
    return Duration(expected_s=expected_s, p90_s=p90_s)


def _length_s(name: str, own: Mapping[str, str]) -> float | None:
    text = own.get(name)
    if text is None:
        return None
    try:
        length_s = parse_duration_s(text.strip())
    except ValueError:
        raise BadWishError(name, text, f"no duration; {_DURATION}") from None
    if not 0.0 < length_s < math.inf:
        raise BadWishError(name, text, _DURATION)
    return length_s


def _instant_s(name: str, own: Mapping[str, str]) -> float | None:
    text = own.get(name)
    if text is None:
        return None
    try:
        return float(OffsetDateTime.parse_iso(text.strip().replace("Z", "+00:00")).timestamp())
    except ValueError:
        raise BadWishError(name, text, f"no instant; {_INSTANT}") from None


def _deadline_s(own: Mapping[str, str], begins_s: float) -> float | None:
    text = own.get("deadline")
    if text is None:
        return None
    try:
        return begins_s + parse_duration_s(text.strip())
    except ValueError:
        pass
    try:
        return _instant_s("deadline", own)
    except BadWishError:
        raise BadWishError(
            "deadline", text, f"neither a duration nor an instant; write 12h, or {_INSTANT[6:]}"
        ) from None


def _value_usd(own: Mapping[str, str]) -> float:
    text = own.get("value-usd", "0")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 <= value < math.inf:
        raise BadWishError("value-usd", text, "no amount of dollars; write a number that is at least 0")
    return value


def _checkpoint_s(own: Mapping[str, str], usual_s: float) -> float | None:
    """Not said: it must not be interrupted. An interval says that it may be."""
    interval_s = _length_s("checkpoint-interval", own)
    text = own.get("preemptible", "true" if interval_s is not None else "false")
    if text.strip().lower() not in ("true", "false"):
        raise BadWishError("preemptible", text, 'neither "true" nor "false"')
    if text.strip().lower() == "false":
        return None
    return usual_s if interval_s is None else interval_s
