"""What a rate must hold: latency percentiles, the error budget and the verified share, each as a share of bad requests.

Every limit counts bad requests among those that it speaks of: a latency target speaks of *all intended* requests (one
that failed, was shed or never answered is late), the error budget too, quality of the answered and checked (§M.1).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Marks = NDArray[np.int8]
UNCHECKED, RIGHT, WRONG = -1, 0, 1
LATENCY = "latency"
FIRST_TOKEN = "firstToken"
# A latency counts as at most this many bounds when memory is taken from it: an infinite one has no mean, and how
# late a late request is tells nothing more about the time that disturbances last.
LEVEL_CAP = 4.0


class LimitKind(StrEnum):
    """What a limit bounds."""

    LATENCY = "latency"
    ERRORS = "errors"
    QUALITY = "quality"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """At most ``bad_share`` of the requests may be bad.

    ``kind`` latency: bad is above ``bound_s`` in the ``metric`` (``latency``, ``firstToken``, ``betweenTokens`` …).

    >>> Limit(kind=LimitKind.LATENCY, bad_share=0.05, bound_s=2.0).name
    'latency'
    >>> Limit(kind=LimitKind.ERRORS, bad_share=0.01).name
    'errors'
    """

    kind: LimitKind
    bad_share: float
    bound_s: float | None = None
    metric: str = LATENCY

    def __post_init__(self) -> None:
        if not 0.0 < self.bad_share < 1.0:
            raise ValueError(f"a limit allows a share between 0 and 1, not {self.bad_share}")
        if (self.bound_s is None) == (self.kind is LimitKind.LATENCY):
            raise ValueError(f"a bound goes with latency alone: {self.kind}, {self.bound_s}")

    @property
    def name(self) -> str:
        """The word that ``limitedBy`` says."""
        return self.metric if self.kind is LimitKind.LATENCY else str(self.kind)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answers:
    """All intended requests of a step in the order of their intended times, warm-up included.

    ``latency_s``: from the intended time to the end of the answer, infinite where none came; ``metrics_s`` holds the
    other latencies by name. ``failed``: refused, broken off, timed out. ``wrong``: 1, 0, or −1 where unchecked.

    >>> answers = Answers(latency_s=np.array([0.5, np.inf]), failed=np.array([False, True]))
    >>> len(answers)
    2
    """

    latency_s: Floats
    failed: Flags
    wrong: Marks | None = None
    metrics_s: MappingProxyType[str, Floats] = field(default_factory=lambda: MappingProxyType({}))

    def __len__(self) -> int:
        return len(self.latency_s)

    def metric_s(self, name: str) -> Floats:
        """The latency of that name; failed requests are infinitely late in each."""
        values = self.latency_s if name == LATENCY else self.metrics_s[name]
        return np.where(self.failed, np.inf, values)


def judged(limit: Limit, answers: Answers) -> tuple[Flags, Flags]:
    """Which requests the limit speaks of, and which of these are bad (False for all others).

    >>> answers = Answers(latency_s=np.array([0.5, 3.0, 9.0]), failed=np.array([False, False, True]))
    >>> judged(Limit(kind=LimitKind.LATENCY, bad_share=0.05, bound_s=2.0), answers)[1]
    array([False,  True,  True])
    """
    everyone = np.ones(len(answers), dtype=np.bool_)
    if limit.bound_s is not None:
        return everyone, ~(answers.metric_s(limit.metric) <= limit.bound_s)
    if limit.kind is LimitKind.ERRORS:
        return everyone, answers.failed.copy()
    if answers.wrong is None:
        return ~everyone, ~everyone
    checked = (answers.wrong != UNCHECKED) & ~answers.failed
    return checked, checked & (answers.wrong == WRONG)


def level(limit: Limit, answers: Answers) -> Floats:
    """How loaded the service was, as each request saw it: its latency in bounds (in means, without a bound), capped.

    >>> level(Limit(kind=LimitKind.LATENCY, bad_share=0.05, bound_s=2.0),
    ...     Answers(latency_s=np.array([1.0, 90.0]), failed=np.zeros(2, dtype=bool)))
    array([0.5, 4. ])
    """
    latency_s = answers.metric_s(limit.metric)
    scale_s = limit.bound_s
    if scale_s is None:
        finite = latency_s[np.isfinite(latency_s)]
        scale_s = float(finite.mean()) if len(finite) else 1.0
    return np.minimum(latency_s / max(scale_s, 1e-12), LEVEL_CAP)
