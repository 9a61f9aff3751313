"""Queries over time: asked in pieces that a server answers, put together on one grid; what is no number is unknown."""

from __future__ import annotations

import httpx2
import numpy as np
import pytest

from ebbtide.adapters.prometheus.instant import Prometheus
from ebbtide.adapters.prometheus.range import MOST_POINTS, Span, line_of
from ebbtide.errors import PermanentError, TemporaryError

START_S = 1_789_000_200
MOST_OF_PROMETHEUS = 11_000  # "exceeded maximum resolution of 11,000 points per timeseries"


class Double:
    """Answers as a Prometheus would: a value at every instant asked for, 400 above its limit."""

    def __init__(self, **series: str) -> None:
        self.series = series or {"a": "1"}
        self.asked: list[dict[str, str]] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        given = dict(request.url.params)
        self.asked.append(given)
        start, end, step = (int(given[name]) for name in ("start", "end", "step"))
        instants = range(start, end + 1, step)
        if len(instants) > MOST_OF_PROMETHEUS:
            error = "exceeded maximum resolution of 11,000 points per timeseries"
            return httpx2.Response(400, json={"status": "error", "errorType": "bad_data", "error": error})
        result = [
            {
                "metric": {"service": name},
                "values": [[at, text.format(at=at)] for at in instants if at % 7 or text == "1"],
            }
            for name, text in self.series.items()
        ]
        return httpx2.Response(200, json={"status": "success", "data": {"resultType": "matrix", "result": result}})

    @property
    def server(self) -> Prometheus:
        return Prometheus(url="http://prometheus:9090/", transport=httpx2.MockTransport(self))


def test_a_month_of_minutes_is_asked_in_pieces() -> None:
    double, span = Double(), Span(start_s=START_S, step_s=60, count=40_320)
    line = line_of(double.server, "up", span)
    assert len(line) == 40_320
    assert (line == 1.0).all()
    assert len(double.asked) == 5
    assert (double.asked[0]["start"], double.asked[-1]["end"]) == (str(START_S), str(START_S + 60 * 40_319))
    pieces = [(int(one["end"]) - int(one["start"])) // 60 + 1 for one in double.asked]
    assert max(pieces) == MOST_POINTS
    assert sum(pieces) == 40_320


def test_values_stand_at_their_instants_and_gaps_are_not_observed() -> None:
    span = Span(start_s=START_S, step_s=61, count=300)
    line = line_of(Double(a="{at}").server, "up", span)
    instants = span.instants_s
    gap = instants % 7 == 0
    assert gap.any()
    assert np.isnan(line[gap]).all()
    assert (line[~gap] == instants[~gap]).all()


def test_no_series_and_no_numbers_are_not_observed() -> None:
    span = Span(start_s=START_S, step_s=60, count=5)
    empty = httpx2.Response(200, json={"status": "success", "data": {"resultType": "matrix", "result": []}})
    server = Prometheus(url="http://p", transport=httpx2.MockTransport(lambda request: empty))
    assert np.isnan(line_of(server, "up", span)).all()
    for text in ("NaN", "+Inf"):
        assert np.isnan(line_of(Double(a=text).server, "up", span)).all()


def test_several_series_are_refused_with_the_query() -> None:
    with pytest.raises(PermanentError, match="several series, and one is needed: up"):
        line_of(Double(a="1", b="1").server, "up", Span(start_s=START_S, step_s=60, count=5))


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (httpx2.Response(400, json={"status": "error", "error": "parse error"}), PermanentError, "parse error"),
        (httpx2.Response(503, text="busy"), TemporaryError, "no JSON"),
        (
            httpx2.Response(200, json={"status": "success", "data": {"resultType": "vector", "result": []}}),
            PermanentError,
            "gives a vector, not a matrix",
        ),
        (
            httpx2.Response(200, json={"status": "success", "data": {"resultType": "matrix", "result": [3]}}),
            PermanentError,
            "not readable",
        ),
    ],
)
def test_what_is_no_answer_is_said(answer: httpx2.Response, kind: type[Exception], said: str) -> None:
    server = Prometheus(url="http://p", transport=httpx2.MockTransport(lambda request: answer))
    with pytest.raises(kind, match=said):
        line_of(server, "up", Span(start_s=START_S, step_s=60, count=5))
