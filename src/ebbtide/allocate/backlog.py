"""Work that one window does not serve waits into the next (§5.10): a fluid backlog over the planned day.

The planned day is every window's deciding day at its hardest scenario. Where its rate is above capacity requests pile
up at the difference; afterwards they are served with the capacity that new requests leave (Newell, 1982, ch. 2). Users
with patience leave the pile at rate backlog ÷ patience. Inside a window the rate counts as constant. That is simple on
purpose: it says when a shortage reaches into the next window and by how much, not how a queue fluctuates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ebbtide.units import SECONDS_PER_HOUR

_CYCLES = 60  # with patience a cycle forgets at least a part of the last one; without, two cycles tell


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """Requests that wait over from the window before, at each window's start, and the wait that they mean.

    ``wait_s[k]`` is how long a request waits that comes at window k's start (inf without capacity). ``clears`` is
    False where the cycle brings more than it can serve: then the backlog grows from cycle to cycle and the numbers
    are those of the second one.
    """

    waiting: tuple[float, ...]
    wait_s: tuple[float, ...]
    clears: bool


NO_BACKLOG = Backlog(waiting=(), wait_s=(), clears=True)


def fluid_backlog(
    rate_rps: Sequence[float],
    capacity_rps: Sequence[float],
    *,
    hours: Sequence[float],
    track: Sequence[int],
    patience_s: float,
) -> Backlog:
    """The backlog of one workload over a closed cycle; rates, capacities and hours are per window.

    ``track`` is the windows' order. A window that comes several times in a cycle shows its worst occurrence.

    >>> night = fluid_backlog([12.0, 4.0], [10.0, 10.0], hours=[1, 23], track=[0, 1], patience_s=math.inf)
    >>> night.waiting, night.wait_s, night.clears
    ((0.0, 7200.0), (0.0, 720.0), True)
    """
    if all(rate <= capacity for rate, capacity in zip(rate_rps, capacity_rps, strict=True)):
        return NO_BACKLOG
    end, before = 0.0, 0.0
    for _ in range(2 if math.isinf(patience_s) else _CYCLES):
        before = end
        worst = [0.0] * len(rate_rps)
        for k in track:
            worst[k] = max(worst[k], end)
            end = _after(end, rate_rps[k] - capacity_rps[k], hours[k] * SECONDS_PER_HOUR, patience_s)
        if end <= before * (1.0 + 1e-12):
            break
    clears = not math.isinf(patience_s) or end <= before * (1.0 + 1e-9)
    waits = tuple(_wait_s(waiting, capacity, patience_s) for waiting, capacity in zip(worst, capacity_rps, strict=True))
    return Backlog(waiting=tuple(worst), wait_s=waits, clears=clears)


def _after(waiting: float, surplus_rps: float, seconds: float, patience_s: float) -> float:
    """The backlog after so long; the surplus may be negative."""
    if math.isinf(patience_s):
        return max(0.0, waiting + surplus_rps * seconds)
    settled = surplus_rps * patience_s
    return max(0.0, settled + (waiting - settled) * math.exp(-seconds / patience_s))


def _wait_s(waiting: float, capacity_rps: float, patience_s: float) -> float:
    if waiting == 0.0:
        return 0.0
    return min(waiting / capacity_rps if capacity_rps > 0.0 else math.inf, patience_s)
