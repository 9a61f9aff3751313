"""The small HTTP server at a port, and health in virtual time."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest
from prometheus_client import CollectorRegistry, Gauge

from ebbtide.adapters.telemetry.health import Health, serve
from ebbtide.errors import InputError, PermanentError


class Clock:
    now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def served(clock):
    registry = CollectorRegistry()
    Gauge("ebbtide_x", "An x.", registry=registry).set(3)
    health = Health(patience_s=60.0, clock=clock)
    server = serve("127.0.0.1:0", registry, health)
    yield health, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def ask(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.read().decode()


def test_ready_once_it_came_round_and_says_why_not(served):
    health, url = served
    assert ask(f"{url}/readyz") == (503, "starting\n")
    health.came_round("list nodes of prod: forbidden")
    assert ask(f"{url}/readyz") == (503, "list nodes of prod: forbidden\n")
    health.came_round("")
    assert ask(f"{url}/readyz?verbose") == (200, "ok\n")


def test_alive_as_long_as_the_loop_comes_round_however_it_fares(served, clock):
    health, url = served
    clock.now_s = 59.0
    assert ask(f"{url}/healthz") == (200, "ok\n")
    clock.now_s = 61.0
    assert ask(f"{url}/healthz") == (503, "silent for 61 s\n")
    health.came_round("home does not answer")
    assert ask(f"{url}/healthz") == (200, "ok\n")


def test_metrics_of_its_own_registry_and_nothing_else(served):
    _, url = served
    status, text = ask(f"{url}/metrics")
    assert status == 200
    assert "ebbtide_x 3.0" in text
    assert "python_gc" not in text
    assert ask(f"{url}/")[0] == 404


@pytest.mark.parametrize("listen", ["9090", "host:", "127.0.0.1:70000", "127.0.0.1:http", ""])
def test_what_is_no_address_is_the_users_to_mend(listen):
    with pytest.raises(InputError, match="is no address"):
        serve(listen, CollectorRegistry(), Health(patience_s=1.0))


def test_a_port_that_is_taken_is_said(served):
    _, url = served
    with pytest.raises(PermanentError, match="cannot listen"):
        serve(url.removeprefix("http://"), CollectorRegistry(), Health(patience_s=1.0))
