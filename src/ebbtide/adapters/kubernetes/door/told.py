"""What we write on Workloads: the promise, the planned times, why it waits; and how we read it back (§7.6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from whenever import Instant

from ebbtide.adapters.kubernetes.objects import instant_s
from ebbtide.batch.door.work import Told
from ebbtide.batch.plan import PlannedJob, Promise

START = "ebbtide.dev/planned-start"
FINISH = "ebbtide.dev/planned-finish"
PROMISE = "ebbtide.dev/promise"
WAITS_FOR = "ebbtide.dev/waits-for"
SENT_BACK = "ebbtide.dev/sent-back"  # it was refused, and is on its way to the held queue
ALL = (START, FINISH, PROMISE, WAITS_FOR)


def told_of(annotations: Mapping[str, str]) -> Told:
    """What stands there; what somebody edited so that it can't be read counts as not told.

    >>> text = '{"start": "2026-09-01T12:00:00Z", "given": "2026-09-01T10:00:00Z", "flavor": "tide"}'
    >>> told_of({PROMISE: text}).flavor
    'tide'
    >>> told_of({PROMISE: "tomorrow"}).promise is None
    True
    """
    try:
        plain: Any = msgspec.json.decode(annotations.get(PROMISE, ""))
    except msgspec.DecodeError:
        plain = None
    if not isinstance(plain, dict):
        return Told()
    start_s, given_s = _instant_s(plain.get("start")), _instant_s(plain.get("given"))
    if start_s is None or given_s is None:
        return Told()
    promise = Promise(
        start_s=start_s, given_s=given_s, moved_s=_instant_s(plain.get("moved")), reason=str(plain.get("reason", ""))
    )
    finish_s = _instant_s(annotations.get(FINISH))
    return Told(promise=promise, flavor=str(plain.get("flavor", "")), finish_s=finish_s)


def annotations_of(planned: PlannedJob | None, waits_for: str) -> dict[str, str | None]:
    """The annotations of a Workload that waits; None takes one away."""
    found: dict[str, str | None] = dict.fromkeys(ALL)
    found[WAITS_FOR] = waits_for or None
    if planned is not None and planned.promise is not None:
        found[PROMISE] = _promise_text(planned, planned.promise)
    if planned is not None and planned.place is not None:
        found[START] = instant_text(planned.place.start_s)
        found[FINISH] = instant_text(planned.place.finish_s)
    return found


def _promise_text(planned: PlannedJob, promise: Promise) -> str:
    plain = {"start": instant_text(promise.start_s), "given": instant_text(promise.given_s)}
    if promise.moved_s is not None:
        plain |= {"moved": instant_text(promise.moved_s), "reason": promise.reason}
    if planned.place is not None:
        plain["flavor"] = planned.place.pool
    return msgspec.json.encode(plain).decode()


def instant_text(at_s: float) -> str:
    """An instant as the API server writes it.

    >>> instant_text(60.0)
    '1970-01-01T00:01:00Z'
    """
    return Instant.from_timestamp(round(at_s)).format_iso()


def _instant_s(text: object) -> float | None:
    return instant_s(text) if isinstance(text, str) else None
