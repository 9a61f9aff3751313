"""What happened, summed as it happens: counts over time, GPU-time by place, and who did what."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray


class Place(StrEnum):
    """Where a machine is, for the books: a machine is in one place at any time.

    ``MOVING``: leaving, in transit or joining. ``BROKEN``: it stands somewhere and is not whole.
    """

    PRODUCTION = "production"
    RESEARCH = "research"
    MOVING = "moving"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Steps:
    """A count over time: ``counts[j]`` from ``starts_s[j]`` on; before the first start it was 0.

    What ``fcfs.Capacity`` takes as ``starts_s`` and ``replicas``.
    """

    starts_s: NDArray[np.float64]
    counts: NDArray[np.int64]


class Series:
    """A count that changes, kept as steps; of changes at one instant the last is kept."""

    __slots__ = ("_at_s", "_counts", "count")

    def __init__(self) -> None:
        self.count = 0
        self._at_s: list[float] = []
        self._counts: list[int] = []

    def add(self, change: int, at_s: float) -> None:
        """Change the count from an instant on."""
        self.count += change
        if self._at_s and self._at_s[-1] == at_s:
            self._counts[-1] = self.count
        else:
            self._at_s.append(at_s)
            self._counts.append(self.count)

    @property
    def steps(self) -> Steps:
        """The count over time so far."""
        return Steps(starts_s=np.array(self._at_s), counts=np.array(self._counts, dtype=np.int64))

    def total_s(self, until_s: float) -> float:
        """The count times its time, from the first step until an instant."""
        steps = self.steps
        ends_s = np.minimum(np.append(steps.starts_s[1:], until_s), until_s)
        return float(np.sum(np.maximum(ends_s - steps.starts_s, 0.0) * steps.counts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """Something that somebody did: ``ebbtide``, the provider, a person, another controller."""

    at_s: float
    who: str
    what: str
    to: str


class Tally:
    """The books of one world.

    ``places[pool, place]``: machines. ``ready[workload]``: replicas that serve. ``deeds``: everything that others did,
    in order; of what ebbtide did only ``counts`` are kept, by (who, what). ``wrongs``: what ebbtide did and must never
    do, whatever it saw (§6.6).
    """

    def __init__(self) -> None:
        self.places: dict[tuple[str, Place], Series] = {}
        self.ready: dict[str, Series] = {}
        self.counts: Counter[tuple[str, str]] = Counter()
        self.deeds: list[Deed] = []
        self.wrongs: list[Deed] = []

    def stand(self, pool: str, was: Place | None, now: Place | None, at_s: float) -> None:
        """A machine changes places; None: it comes into the world, or leaves it."""
        for place, change in ((was, -1), (now, 1)):
            if place is not None:
                self.places.setdefault((pool, place), Series()).add(change, at_s)

    def did(self, who: str, what: str, to: str, at_s: float) -> None:
        """Somebody other than ebbtide did something."""
        self.counts[who, what] += 1
        self.deeds.append(Deed(at_s=at_s, who=who, what=what, to=to))

    def wrong(self, what: str, to: str, at_s: float) -> None:
        """Ebbtide did what it must never do."""
        self.wrongs.append(Deed(at_s=at_s, who=OURS, what=what, to=to))


OURS = "ebbtide"
