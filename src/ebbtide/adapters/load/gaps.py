"""Times between arrivals, in units of the mean gap: Poisson, Gamma with a given SCV, or a trace's own, in order.

One seeded process gives the times of all requests of a step, and several processes that share the work each send every
n-th of them: what arrives at the server is the one process (§M.5).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
CHUNK = 1024


class Arrivals(StrEnum):
    """The law of the gaps."""

    POISSON = "poisson"
    GAMMA = "gamma"
    REPLAY = "replay"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Law:
    """Gaps of mean 1. ``scv`` of Gamma; ``gaps`` of a replay, scaled to mean 1 and repeated from a seeded start."""

    arrivals: Arrivals = Arrivals.POISSON
    scv: float = 1.0
    gaps: Floats | None = None

    def __post_init__(self) -> None:
        if (self.gaps is None) == (self.arrivals is Arrivals.REPLAY) or not self.scv > 0.0:
            raise ValueError(f"gaps go with a replay alone, an SCV is above 0: {self.arrivals}, {self.scv}")


def gap_chunks(law: Law, seed: tuple[int, ...]) -> Iterator[Floats]:
    """Gaps for ever, ``CHUNK`` at a time, the same for the same seed.

    >>> first = next(gap_chunks(Law(), (1, 2)))
    >>> bool((first == next(gap_chunks(Law(), (1, 2)))).all()), len(first)
    (True, 1024)
    """
    rng = np.random.default_rng(seed)
    if law.gaps is not None:
        scaled = law.gaps / law.gaps.mean()
        at = int(rng.integers(len(scaled)))
        while True:
            yield np.take(scaled, np.arange(at, at + CHUNK), mode="wrap")
            at += CHUNK
    shape = 1.0 / law.scv if law.arrivals is Arrivals.GAMMA else 1.0
    while True:
        yield rng.standard_gamma(shape, CHUNK) / shape


def arrival_times(
    law: Law, seed: tuple[int, ...], rate_rps: float, *, share: int = 1, part: int = 0
) -> Iterator[float]:
    """Seconds from the step's start of its requests ``part``, ``part + share``, … for ever.

    >>> from itertools import islice
    >>> whole = list(islice(arrival_times(Law(), (3,), 10.0), 6))
    >>> halves = [list(islice(arrival_times(Law(), (3,), 10.0, share=2, part=part), 3)) for part in (0, 1)]
    >>> whole == sorted(halves[0] + halves[1])
    True
    """
    total, skip = 0.0, part
    for chunk in gap_chunks(law, seed):
        times = total + np.cumsum(chunk) / rate_rps
        total = float(times[-1])
        yield from times[skip::share].tolist()
        skip = (skip - len(times)) % share
