"""A workload's requests of some past days in pieces: rates, burstiness and services as the trace and the Fleet say.

What belongs here: from a series to pieces of requests of bounded size. What doesn't: queues (``runs``), scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ebbtide.fleet.demand import Floats, Series
from ebbtide.fleet.workload import Workload
from ebbtide.forecast.measured import arrival_scv, mean_service_time_s, measured_service_scv
from ebbtide.simulate.arrivals import Requests, patience_times_s, request_arrivals_s, service_times_s

PIECE_REQUESTS = 250_000  # a piece, and what ten queues make of it one after the other: some 50 MB

Piece = tuple[Requests, Floats, float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stream:
    """The demand of one workload on ``[start_s, end_s)``, whole intervals of its series; instants since the epoch.

    ``rates_rps`` go on through intervals that were not observed, interpolated; those are not ``scored``.
    """

    start_s: int
    interval_s: int
    rates_rps: Floats
    scv: Floats
    scored: NDArray[np.bool_]
    service_time_s: float
    service_scv: float
    patience_s: float

    @property
    def end_s(self) -> int:
        """End of its last interval."""
        return self.start_s + self.interval_s * len(self.rates_rps)

    @property
    def expected_requests(self) -> float:
        """Requests to come in the mean."""
        return float(self.rates_rps.sum()) * self.interval_s


def stream_of(workload: Workload, series: Series, *, start_s: int, end_s: int) -> Stream:
    """The stream of the series' intervals that begin in ``[start_s, end_s)``.

    Services are the Fleet's; where it says observed, the trace's own in these intervals. Raises ``InputError`` where
    the trace holds none. ``ValueError`` where nothing at all was observed.
    """
    part = _part(series, start_s, end_s)
    seen = series.observed
    rates = rates_through_gaps(series)[part]
    intervals = np.arange(len(seen))[part][seen[part]]
    service = workload.service
    return Stream(
        start_s=series.start_s + series.interval_s * part.start,
        interval_s=series.interval_s,
        rates_rps=rates,
        scv=arrival_scv(series)[part],
        scored=seen[part],
        service_time_s=mean_service_time_s(series, intervals, workload.name)
        if service.time_s is None
        else service.time_s,
        service_scv=measured_service_scv(series, intervals) if service.scv is None else service.scv,
        patience_s=workload.patience_s,
    )


def rates_through_gaps(series: Series) -> Floats:
    """The rates of all intervals; those that were not observed interpolated. ``ValueError`` where none was.

    >>> seen = np.array([0, 1, 0], dtype=np.uint8)
    >>> rates_through_gaps(Series(key="a", start_s=0, interval_s=60, rate_rps=np.array([1.0, np.nan, 5.0]), seen=seen))
    array([1., 3., 5.])
    """
    seen = series.observed
    if not seen.any():
        raise ValueError(f"{series.key} was never observed")
    at = np.arange(len(seen))
    return np.asarray(np.interp(at, at[seen], series.rate_rps[seen]))


def pieces_of(stream: Stream, *, seed: tuple[int, ...], piece_requests: int = PIECE_REQUESTS) -> Iterator[Piece]:
    """The requests in pieces that follow each other: each with a uniform number a request, and where it ends.

    The same seed gives the same requests, however often they are asked for.

    >>> flat = Stream(start_s=0, interval_s=600, rates_rps=np.ones(4), scv=np.ones(4), scored=np.ones(4, bool),
    ...               service_time_s=2.0, service_scv=1.0, patience_s=float("inf"))
    >>> [until_s for _, _, until_s in pieces_of(flat, seed=(1,), piece_requests=1300)]
    [1200.0, 2400.0]
    """
    rng = np.random.default_rng(seed)
    edges_s, interval = _edges(stream, piece_requests)
    expected = np.concatenate([[0.0], np.cumsum(stream.rates_rps[interval] * np.diff(edges_s))])
    first = 0
    while first < len(interval):
        last = max(first + 1, int(np.searchsorted(expected, expected[first] + piece_requests, side="right")) - 1)
        inside = interval[first:last]
        arrival_s = request_arrivals_s(
            edges_s[first : last + 1], stream.rates_rps[inside], arrival_scv=stream.scv[inside], rng=rng
        )
        count = len(arrival_s)
        requests = Requests(
            arrival_s=arrival_s,
            service_s=service_times_s(count, stream.service_time_s, scv=stream.service_scv, rng=rng),
            patience_s=patience_times_s(count, stream.patience_s, rng=rng),
        )
        yield requests, rng.random(count), float(edges_s[last])
        first = last


def _part(series: Series, start_s: int, end_s: int) -> slice:
    first = -(-(start_s - series.start_s) // series.interval_s)
    last = -(-(end_s - series.start_s) // series.interval_s)
    return slice(max(first, 0), min(last, len(series.seen)))


def _edges(stream: Stream, piece_requests: int) -> tuple[Floats, NDArray[np.int64]]:
    """The intervals' edges, and between them where one interval has more than a piece's requests; whose each is."""
    parts = np.maximum(1, np.ceil(stream.rates_rps * stream.interval_s / piece_requests)).astype(np.int64)
    interval = np.repeat(np.arange(len(parts)), parts)
    within = np.arange(len(interval)) - np.repeat(np.cumsum(parts) - parts, parts)
    edges = stream.start_s + stream.interval_s * (interval + within / parts[interval])
    return np.append(edges, float(stream.end_s)), interval


def split_days(stream: Stream, most_requests: float) -> int:
    """From which instant the stream has at most ``most_requests`` to its end, in whole days back and at least one."""
    per_day = max(86_400 // stream.interval_s, 1)
    day = max(len(stream.rates_rps) // per_day, 1)
    expected = np.add.reduceat(stream.rates_rps[::-1], np.arange(0, len(stream.rates_rps), per_day))
    days = int(np.searchsorted(np.cumsum(expected) * stream.interval_s, most_requests, side="right"))
    return stream.end_s - 86_400 * min(max(days, 1), day)
