"""What becomes of each request: one object while it is under way, columns once a step is over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from math import inf, nan

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Fault(IntEnum):
    """Why a request has no whole answer. ``LOCAL`` is this machine's own: it was never offered (§M.5)."""

    NONE = 0
    REFUSED = 1
    TLS = 2
    BROKEN = 3
    TIMEOUT = 4
    STATUS = 5
    REDIRECT = 6
    CONTENT_TYPE = 7
    TRUNCATED = 8
    TOO_LARGE = 9
    MALFORMED = 10
    LOCAL = 11

    @property
    def words(self) -> str:
        """As reports say it."""
        return _WORDS[self]


_WORDS = {
    Fault.NONE: "answered",
    Fault.REFUSED: "no connection",
    Fault.TLS: "TLS failed",
    Fault.BROKEN: "connection broken off",
    Fault.TIMEOUT: "timed out",
    Fault.STATUS: "an error status",
    Fault.REDIRECT: "redirected",
    Fault.CONTENT_TYPE: "wrong content type",
    Fault.TRUNCATED: "answer cut short",
    Fault.TOO_LARGE: "answer too large",
    Fault.MALFORMED: "answer not understood",
    Fault.LOCAL: "not sent: this machine ran out of ports, files or time",
}


class Call:
    """One request under way. Times are of ``time.monotonic``; infinite or NaN until known."""

    __slots__ = (
        "connect_s",
        "detail",
        "done",
        "events",
        "fault",
        "first_s",
        "in_flight",
        "index",
        "input_tokens",
        "intended_s",
        "item",
        "last_s",
        "output_tokens",
        "status",
        "text",
        "token_s",
        "worst_gap_s",
        "written_s",
    )

    def __init__(self, index: int, item: int, intended_s: float, in_flight: int) -> None:
        self.index, self.item, self.intended_s, self.in_flight = index, item, intended_s, in_flight
        self.written_s = self.last_s = inf
        self.connect_s = 0.0
        self.first_s = self.token_s = self.worst_gap_s = nan
        self.events = self.status = 0
        self.input_tokens = self.output_tokens = -1
        self.fault = Fault.NONE
        self.detail = ""
        self.text: str | None = None
        self.done = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calls:
    """A step's requests in the order of their intended times, as columns; all times from the step's start, in seconds.

    ``latency_s`` from the intended time, infinite where no whole answer came; ``lateness_s`` from the intended time to
    the request's last byte written, less the time of making a connection, infinite where it was never sent. Token
    counts are −1, ``first_s`` and ``worst_gap_s`` NaN, where nothing was said of them.
    """

    index: Ints
    item: Ints
    intended_s: Floats
    lateness_s: Floats
    connect_s: Floats
    latency_s: Floats
    first_s: Floats
    mean_gap_s: Floats
    worst_gap_s: Floats
    events: Ints
    input_tokens: Ints
    output_tokens: Ints
    in_flight: Ints
    status: Ints
    fault: Ints

    def __len__(self) -> int:
        return len(self.index)

    def first(self, count: int) -> Calls:
        """The first so many requests."""
        return Calls(**{one.name: getattr(self, one.name)[:count] for one in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sent:
    """Columns, and what no column holds: the answers' texts (where they are checked) and the first detail of faults."""

    calls: Calls
    texts: tuple[str | None, ...]
    details: tuple[tuple[Fault, str], ...] = ()


def columns(calls: Sequence[Call], start_s: float) -> Calls:
    """The calls as columns."""

    def numbers(name: str) -> Floats:
        return np.array([getattr(one, name) for one in calls], dtype=np.float64)

    def whole(name: str) -> Ints:
        return np.array([getattr(one, name) for one in calls], dtype=np.int64)

    intended, connect = numbers("intended_s"), numbers("connect_s")
    faults, first, last = whole("fault"), numbers("first_s"), numbers("last_s")
    answered = faults == Fault.NONE
    latency = np.where(answered, last - intended, inf)
    gaps = np.array([max(one.events, one.output_tokens) - 1 for one in calls], dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_gap = np.where(gaps > 0, (numbers("token_s") - first) / gaps, nan)
    return Calls(
        index=whole("index"),
        item=whole("item"),
        intended_s=intended - start_s,
        lateness_s=numbers("written_s") - intended - connect,
        connect_s=connect,
        latency_s=latency,
        first_s=first - intended,
        mean_gap_s=np.where(answered, mean_gap, nan),
        worst_gap_s=numbers("worst_gap_s"),
        events=whole("events"),
        input_tokens=whole("input_tokens"),
        output_tokens=whole("output_tokens"),
        in_flight=whole("in_flight"),
        status=whole("status"),
        fault=faults,
    )


def merged(parts: Sequence[Sent]) -> Sent:
    """Parts of one step, from several processes, in the order of their requests."""
    if len(parts) == 1:
        return parts[0]
    names = [one.name for one in fields(Calls)]
    whole = {name: np.concatenate([getattr(part.calls, name) for part in parts]) for name in names}
    order = np.argsort(whole["index"], kind="stable")
    texts = [text for part in parts for text in part.texts]
    return Sent(
        calls=Calls(**{name: column[order] for name, column in whole.items()}),
        texts=tuple(texts[place] for place in order) if texts else (),
        details=tuple(dict(detail for part in parts for detail in reversed(part.details)).items()),
    )
