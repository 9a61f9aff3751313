"""A query over a span of time, asked in pieces: a server answers 400 above 11,000 points a series."""

from __future__ import annotations

from dataclasses import dataclass

import httpx2
import msgspec
import numpy as np
from numpy.typing import NDArray

from ebbtide.adapters.prometheus.instant import Prometheus
from ebbtide.errors import PermanentError

MOST_POINTS = 10_000
TIMEOUT = httpx2.Timeout(120.0, connect=5.0)  # a month of a heavy query takes a server a while


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The instants at which a query is evaluated: ``count`` of them, ``step_s`` apart, the first at ``start_s``."""

    start_s: int
    step_s: int
    count: int

    @property
    def instants_s(self) -> NDArray[np.int64]:
        """All of them."""
        return self.start_s + self.step_s * np.arange(self.count, dtype=np.int64)


class _Line(msgspec.Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]]


def line_of(server: Prometheus, promql: str, span: Span) -> NDArray[np.float64]:
    """The query's only series at the instants of the span; NaN where it has no sample or none that is a number.

    Raises what ``Prometheus.instant`` raises, and ``PermanentError`` where the query gives several series: they would
    have to be summed, or one chosen, and only who wrote it knows which.
    """
    found = np.full(span.count, np.nan)
    labels: set[str] = set()
    for first in range(0, span.count, MOST_POINTS):
        last = min(first + MOST_POINTS, span.count) - 1
        params = {
            "query": promql,
            "start": str(span.start_s + first * span.step_s),
            "end": str(span.start_s + last * span.step_s),
            "step": str(span.step_s),
        }
        for line in _lines(server.answer("query_range", params, form="matrix", timeout=TIMEOUT)):
            labels.add(str(sorted(line.metric.items())))
            if len(labels) > 1:
                raise PermanentError(
                    f"the query gives several series, and one is needed: {promql}",
                    kind="prometheus_form",
                    hint="sum them, or name the labels of one",
                )
            _fill(found, line, span)
    return found


def _lines(result: object) -> list[_Line]:
    try:
        return msgspec.convert(result, list[_Line])
    except msgspec.ValidationError as problem:
        raise PermanentError(f"Prometheus' answer is not readable: {problem}", kind="prometheus_form") from None


def _fill(found: NDArray[np.float64], line: _Line, span: Span) -> None:
    for at_s, text in line.values:
        place = round((at_s - span.start_s) / span.step_s)
        try:
            value = float(text)
        except ValueError:
            raise PermanentError(f"Prometheus' answer is not readable: {text[:40]}", kind="prometheus_form") from None
        if 0 <= place < span.count and np.isfinite(value):
            found[place] = value
