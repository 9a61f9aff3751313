"""Loads that another tool measured, each with its percentiles: which of them hold, without an interval (§M.1).

A percentile that a tool gives is of the answered requests. §M.1 counts all: where a share f has failed, a target on
P95 asks for the percentile 0.95 / (1 − f) of those answered. Where a file does not hold that very percentile the next
higher one stands for it, which errs on the safe side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan

from ebbtide.capacity.limits import Limit, LimitKind

NO_HIGHER = "no percentile as high as the target's"
NO_METRIC = "nothing of it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One load. ``rate_rps`` is what was answered a second, in all; ``offered_rps`` what was to be, NaN where unknown.

    ``quantiles``: by metric, pairs of (share, seconds) of the answered requests, ascending. ``cut_off`` requests were
    neither answered nor failed when the tool stopped. ``cap``: most requests in flight. ``open_loop`` and ``arrivals``
    None: the file does not say. ``lateness_s``: 99th percentile of the sender's own.
    """

    file: str
    rate_rps: float
    offered_rps: float = nan
    answered: int
    failed: int = 0
    cut_off: int = 0
    quantiles: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    concurrency: float = nan
    open_loop: bool | None = None
    arrivals: str | None = None
    cap: int | None = None
    cap_reached: bool | None = None
    lateness_s: float = nan
    seconds: float = nan
    started_s: float = nan
    input_tokens: float = nan
    input_scv: float = nan
    output_tokens: float = nan
    output_scv: float = nan

    @property
    def held_rps(self) -> float:
        """The rate that a claim may state: answered, and never more than was offered."""
        return min(self.rate_rps, self.offered_rps) if self.offered_rps > 0.0 else self.rate_rps

    @property
    def failed_share(self) -> float:
        """Of those answered or failed."""
        return self.failed / max(self.answered + self.failed, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A level that can't be judged by a limit, and why."""

    level: Level
    limit: Limit
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldLevels:
    """``low`` is the highest load below which none fails (None: the lowest fails), ``high`` the lowest that fails."""

    low: Level | None
    high: Level | None
    limited_by: str | None
    monotone: bool


def held(levels: Sequence[Level], limits: Sequence[Limit]) -> HeldLevels:
    """What the loads show of the limits; quality is not looked at.

    >>> tail = lambda p95: {"latency": ((0.5, 0.2), (0.95, p95))}
    >>> slow = Limit(kind=LimitKind.LATENCY, bad_share=0.05, bound_s=1.0)
    >>> one, two = (Level(file="a", rate_rps=r, answered=900, quantiles=tail(p)) for r, p in ((4.0, 0.6), (8.0, 1.4)))
    >>> found = held([two, one], [slow])
    >>> found.low.rate_rps, found.high.rate_rps, found.limited_by
    (4.0, 8.0, 'latency')
    """
    ordered = sorted(levels, key=lambda one: one.held_rps)
    broken = [_broken(level, limits) for level in ordered]
    first = next((index for index, one in enumerate(broken) if one is not None), len(ordered))
    return HeldLevels(
        low=ordered[first - 1] if first else None,
        high=ordered[first] if first < len(ordered) else None,
        limited_by=broken[first] if first < len(ordered) else None,
        monotone=all(one is not None for one in broken[first:]),
    )


def unknowns(levels: Sequence[Level], limits: Sequence[Limit]) -> Iterator[Unknown]:
    """What the files don't say that the limits ask for."""
    for level in levels:
        for limit in limits:
            if limit.bound_s is None:
                continue
            known = level.quantiles.get(limit.metric, ())
            if not known:
                yield Unknown(level=level, limit=limit, why=NO_METRIC)
            elif known[-1][0] + 1e-9 < 1.0 - limit.bad_share:
                yield Unknown(level=level, limit=limit, why=NO_HIGHER)


def at_share(level: Level, metric: str, share: float) -> float:
    """Seconds within which that share of *all* requests was answered, or a little more; infinite where fewer were.

    >>> tail = {"latency": ((0.95, 2.0), (0.99, 3.0))}
    >>> at_share(Level(file="a", rate_rps=1.0, answered=98, failed=2, quantiles=tail), "latency", 0.95)
    3.0
    """
    wanted = share / (1.0 - level.failed_share) if level.failed_share < 1.0 else 2.0
    found = (seconds for known, seconds in level.quantiles.get(metric, ()) if known + 1e-9 >= wanted)
    return next(found, float("inf"))


def _broken(level: Level, limits: Sequence[Limit]) -> str | None:
    for limit in limits:
        if limit.kind is LimitKind.ERRORS and level.failed_share > limit.bad_share:
            return limit.name
        if limit.bound_s is not None and at_share(level, limit.metric, 1.0 - limit.bad_share) > limit.bound_s:
            return limit.name
    return None
