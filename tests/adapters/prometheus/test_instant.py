"""Live demand from a server at a port: what counts as observed, and what a failure says."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from ebbtide.adapters.prometheus.instant import Prometheus, Sample, rates_by_key
from ebbtide.errors import PermanentError, TemporaryError

NOW_S = 1_789_000_000.0


def vector(*series: tuple[dict[str, str], float, str]) -> dict[str, object]:
    result = [{"metric": labels, "value": [at_s, value]} for labels, at_s, value in series]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


@pytest.fixture
def server():
    """Answers what it is told to, and keeps what it was asked."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            url = urlsplit(self.path)
            here.asked.append((url.path, parse_qs(url.query), self.headers.get("Authorization")))
            body = here.body if isinstance(here.body, bytes) else json.dumps(here.body).encode()
            self.send_response(here.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format, *args):
            pass

    here = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    here.asked, here.body, here.status = [], vector(), 200
    here.url = f"http://127.0.0.1:{here.server_port}"
    thread = threading.Thread(target=here.serve_forever)
    thread.start()
    yield here
    here.shutdown()
    here.server_close()
    thread.join()


def test_a_query_is_asked_with_the_token_of_now(server, tmp_path):
    token = tmp_path / "token"
    server.body = vector(({"service": "chat"}, NOW_S, "12.5"))
    prometheus = Prometheus(url=server.url + "/", token_file=token)
    for text in ("first", "second\n"):
        token.write_text(text)
        (sample,) = prometheus.instant("sum by (service) (rate(requests_total[5m]))")
        assert sample == Sample(labels={"service": "chat"}, at_s=NOW_S, value=12.5)
    query = {"query": ["sum by (service) (rate(requests_total[5m]))"]}
    assert server.asked == [("/api/v1/query", query, f"Bearer {token}") for token in ("first", "second")]


@pytest.mark.parametrize(
    ("status", "body", "kind", "error"),
    [
        (503, b"<html>busy</html>", TemporaryError, "HTTP 503, no JSON"),
        (422, {"status": "error", "error": "unknown function rat"}, PermanentError, "unknown function rat"),
        (401, b"", PermanentError, "HTTP 401, no JSON"),
        (200, {"status": "success", "data": {"resultType": "scalar", "result": [1, "2"]}}, PermanentError, "scalar"),
        (200, vector(({"service": "chat"}, NOW_S, "twelve")), PermanentError, "not readable"),
        (200, {"status": "success", "data": {"resultType": "vector", "result": [3]}}, PermanentError, "not readable"),
    ],
)
def test_an_answer_that_is_none_is_said_and_never_taken_for_no_demand(server, status, body, kind, error):
    server.status, server.body = status, body
    with pytest.raises(kind, match=error):
        Prometheus(url=server.url).instant("up")


@pytest.mark.parametrize("url", ["http://me:hunter2@127.0.0.1:1", "http://me:hunter2@[nowhere"])
def test_no_error_holds_the_urls_password(url):
    with pytest.raises(TemporaryError) as caught:
        Prometheus(url=url).instant("up")
    assert "hunter2" not in str(caught.value)


def test_a_token_file_that_is_not_there_is_said(server, tmp_path):
    with pytest.raises(TemporaryError, match="No such file"):
        Prometheus(url=server.url, token_file=tmp_path / "token").instant("up")
    assert server.asked == []


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "-1"])
def test_what_is_no_rate_is_not_observed_and_zero_is(server, value):
    server.body = vector(({"service": "chat"}, NOW_S, value), ({"service": "search"}, NOW_S, "0"))
    assert rates_by_key(Prometheus(url=server.url).instant("q"), now_s=NOW_S).rps == {"search": 0.0}


def test_old_samples_are_not_observed_and_the_oldest_that_counts_dates_the_rest(server):
    server.body = vector(
        ({"service": "chat"}, NOW_S - 301.0, "1"),
        ({"service": "search"}, NOW_S - 100.0, "2"),
        ({"service": "agents"}, NOW_S, "3"),
    )
    rates = rates_by_key(Prometheus(url=server.url).instant("q"), now_s=NOW_S)
    assert (rates.rps, rates.at_s) == ({"search": 2.0, "agents": 3.0}, NOW_S - 100.0)


def test_a_series_that_names_nobody_or_somebody_twice_counts_for_nobody(server):
    server.body = vector(
        ({}, NOW_S, "1"),
        ({"pod": "a", "zone": "b"}, NOW_S, "2"),
        ({"service": "chat", "pod": "a"}, NOW_S, "3"),
        ({"service": "chat", "pod": "b"}, NOW_S, "4"),
        ({"__name__": "rate", "service": "search"}, NOW_S, "5"),
    )
    assert rates_by_key(Prometheus(url=server.url).instant("q"), now_s=NOW_S).rps == {"search": 5.0}
